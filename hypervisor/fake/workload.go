package fake

import "github.com/godwit-vm/godwit/hypervisor"

// A Workload is how a guest changes its memory: a hot set that is written all
// the time and a cold set that is written now and then. The distinct bytes
// dirtied in a time t since the last pass are
//
//	hot·(1 − e^(−t·rate/hot)) + min(cold, t·coldRate)
//
// so that a page written twice is sent once. The zero value is an idle guest.
type Workload struct {
	Rate     hypervisor.Bandwidth // writes to the hot set, before saturation
	Hot      hypervisor.Bytes     // size of the hot set
	ColdRate hypervisor.Bandwidth // writes to the cold set, linear up to its size
	Cold     hypervisor.Bytes     // size of the cold set
	// Zero is the part of the memory that has never been written, in parts per
	// thousand: its pages cost a few bytes each on the wire.
	Zero int
}
