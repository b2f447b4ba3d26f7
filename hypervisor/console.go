package hypervisor

import "context"

// A Console is the open serial port of a VM: an io.ReadWriteCloser.
type Console interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
}

// A Consoler is a [Hypervisor] that opens the serial consoles of its VMs. A backend need not be one.
type Consoler interface {
	// Console opens the first serial port of a VM. What the guest writes there is read, what is
	// written is typed; what the guest wrote while no console was open is not read. A console ends
	// (io.EOF) when the VM does not execute here any more, as after a migration, and when the host
	// is closed. Close ends it, and lets another one be opened.
	//
	// It answers NotFound for an unknown VM; Conflict for a VM that is neither running nor paused, and
	// while another console of it is open; and Unsupported for a VM without a serial port that can be
	// opened.
	Console(context.Context, VMID) (Console, error)
}
