package guest

import (
	"encoding/binary"
	"fmt"
)

// Where things are in the guest's physical memory, in bytes.
const (
	Origin     = 0x7c00  // the program, where a BIOS loads a boot sector
	statePage  = 0x9000  // what the guest publishes about itself
	Base       = 1 << 20 // the filled range and, at its beginning, the working set
	PageSize   = 4096    // the unit of everything the guest writes
	sectorSize = 512     // the program is a whole number of these
	romSize    = 1 << 16 // a firmware image
	blockEnd   = 0x20    // where the parameters end, from Origin on
	sectors    = 3       // the size of the program; growing it is safe up to 8

	// Multiplier is of the generator that makes incompressible pages: each word
	// is the one before times Multiplier plus 1, and before the first was the
	// page's number. Source: D. Knuth, MMIX (the 64-bit multiplier).
	Multiplier uint64 = 0x5851f42d4c957f2d
	// firstStamp is the first word of a page that was filled and not yet
	// written; StampStep is what each write adds to it. The low half counts up
	// and the high half counts down, so that a write changes at least two bytes
	// at once and no damage to a single byte looks like a write.
	firstStamp uint64 = 0xffffffff_00000000
	stampStep  uint64 = 0xffffffff_00000001
)

// Offsets into the state page. Each is a 64-bit little-endian number.
const (
	stateKHz          = 0x00 // the time-stamp counter's speed, in kHz
	stateWritten      = 0x08 // pages written since the fill
	stateErrors       = 0x10 // pages that were not as the guest had left them
	imageStateAddress = 0x18 // the address of the last such page
	stateBeats        = 0x20 // heartbeats sent
	stateReady        = 0x28 // 1 when the memory is filled
	stateWords        = 6
)

// The bytes that the guest sends on its debug console. Every other byte is a
// heartbeat: Beat with the low six bits of the heartbeat's number, from 1.
const (
	booted   byte = '<' // long mode is reached
	ready    byte = '>' // the memory is filled
	Off      byte = '.' // the power button was pressed; the guest powers off
	Bad      byte = '!' // precedes each heartbeat after a memory error
	Beat     byte = 0x40
	beatMask byte = 0x3f
)

// Flags of a Block.
const (
	flagStubborn uint32 = 1 << iota // the power button is ignored
	flagRandom                      // pages are filled with Multiplier's sequence, not zeros
	flagLossy                       // a page that is not as it was left is no error
)

// A Block is what the guest is asked to do: the parameter block behind the two
// entry jumps of the program, all of it 32-bit little-endian numbers.
type Block struct {
	Flags        uint32
	FillPages    uint32 // pages filled from Base; at least WorkingPages, not 0
	WorkingPages uint32 // pages written in turn; not 0
	Batch        uint32 // pages written each period; 0 writes nothing
	Period       uint32 // microseconds; 0 is as fast as possible
	Heartbeat    uint32 // microseconds
}

// Program returns the guest's code and parameters as they lie at Origin: the
// boot sector first. It fails only when the program contradicts itself.
func Program(b Block) ([]byte, error) {
	return assemble(Origin, func(a *assembler) {
		bootSector(a, b)
		kernel(a)
		workload(a)
		if limit := sectors * sectorSize; len(a.code) > limit {
			a.fail("the program has %d bytes; %d are loaded", len(a.code), limit)
		}
		a.pad(sectors * sectorSize)
	})
}

// firmware returns a ROM of ROMSize bytes that contains the program and starts
// it from the reset vector, without any other firmware.
func firmware(b Block) ([]byte, error) {
	program, err := Program(b)
	if err != nil {
		return nil, err
	}
	// A processor starts at 0xfffffff0, where the ROM's last 16 bytes are.
	const stub, vector = 0xff80, 0xfff0
	loader, err := assemble(stub, func(a *assembler) {
		resetStub(a, len(program))
		a.pad(vector - stub)
		a.jmp("stub")
		a.pad(romSize - stub)
	})
	if err != nil {
		return nil, err
	}
	rom := make([]byte, romSize)
	copy(rom, program)
	copy(rom[stub:], loader)
	return rom, nil
}

func (b Block) bytes() []byte {
	out := []byte("GDW1")
	for _, v := range [...]uint32{
		b.Flags, b.FillPages, b.WorkingPages, b.Batch, b.Period, b.Heartbeat,
	} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// The addresses of the parameters, in the order of Block.bytes.
const (
	paramFlags = Origin + 8 + 4*iota
	paramFillPages
	paramWorkingPages
	paramBatch
	paramPeriod
	paramHeartbeat
)

func (a *assembler) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("assemble the test guest at %#x: %s", a.here(),
			fmt.Sprintf(format, args...))
	}
}
