package guest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// stateAddress is the physical address, in bytes, of the page in which the guest
// publishes its State.
const stateAddress = statePage

// A State is what a guest has published about itself since it booted.
type State struct {
	KHz          uint64 // the speed of its time-stamp counter, as it measured it
	Written      uint64 // pages of the working set written; at most one behind the truth
	Errors       uint64 // pages that were not as the guest had left them
	ErrorAddress uint64 // the physical address of the last such page
	Beats        uint64 // heartbeats sent
	Ready        bool   // the memory is filled
}

// ReadState reads a guest's State from its physical memory. It fails when the
// memory cannot be read; it cannot know whether the guest has booted.
func ReadState(memory io.ReaderAt) (State, error) {
	page := make([]byte, stateReady+8)
	if err := readFull(memory, page, stateAddress); err != nil {
		return State{}, err
	}
	at := func(offset int) uint64 { return binary.LittleEndian.Uint64(page[offset:]) }
	return State{
		KHz:          at(stateKHz),
		Written:      at(stateWritten),
		Errors:       at(stateErrors),
		ErrorAddress: at(imageStateAddress),
		Beats:        at(stateBeats),
		Ready:        at(stateReady) != 0,
	}, nil
}

// readFull fills buf from an address. A reader may answer io.EOF with the last
// bytes, which is no error.
func readFull(memory io.ReaderAt, buf []byte, address int64) error {
	n, err := memory.ReadAt(buf, address)
	switch {
	case n == len(buf):
		return nil
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("guest: read %d bytes of its memory at %#x: %w", len(buf), address, err)
}
