package guest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Damage is guest memory that is not as it must be.
type Damage struct {
	// Address is the physical address of the first bad byte. In the first eight
	// bytes of the one page that was being written it may be off within them:
	// they hold a count twice, and either may be the right one.
	Address int64
	What    string // what is wrong there, and what was expected
}

// Error says what is damaged and where.
func (d *Damage) Error() string {
	return fmt.Sprintf("guest: memory at %#x is damaged: %s", d.Address, d.What)
}

// verifyChunk is how much memory is read at once: a whole number of pages.
const verifyChunk = 1 << 20

// Verify checks the physical memory of a stopped guest, of which there are size
// bytes: the program and its parameters, every byte of the filled range and so
// of the working set, that the pages agree with the number of writes that the
// guest has published, and that the guest found no error itself. It returns a
// *[Damage] with the first bad address, or an error when the parameters are
// wrong, the memory cannot be read or the guest has not finished filling it.
func (p Params) Verify(memory io.ReaderAt, size int64) error {
	program, err := p.BootSector()
	if err != nil {
		return err
	}
	p = p.withDefaults()
	if size < Base+p.Fill {
		return fmt.Errorf("guest: verify %d bytes of memory: the fill ends at %d; give the VM more",
			size, Base+p.Fill)
	}
	state, err := ReadState(memory)
	if err != nil {
		return err
	}
	if err := compareProgram(memory, program); err != nil {
		return err
	}
	switch {
	case !state.Ready:
		return fmt.Errorf("guest: verify its memory: it is not filled yet; wait for Ready")
	case state.Errors != 0:
		return &Damage{Address: int64(state.ErrorAddress),
			What: fmt.Sprintf("the guest itself found %d errors, the last here", state.Errors)}
	}
	return p.verifyPages(memory, state.Written)
}

// compareProgram checks the guest's parameters and the code that it runs for
// ever. The rest of the boot sector holds descriptors, in which processors note
// what they have used.
func compareProgram(memory io.ReaderAt, want []byte) error {
	got := make([]byte, len(want))
	if err := readFull(memory, got, Origin); err != nil {
		return err
	}
	copy(got[blockEnd:sectorSize], want[blockEnd:])
	if i := firstDifference(want, got); i >= 0 {
		return &Damage{Address: int64(Origin + i),
			What: fmt.Sprintf("the guest's program has %#02x where these parameters make %#02x",
				got[i], want[i])}
	}
	return nil
}

// verifyPages reads the filled range once, in order. The guest stamps a page
// and then publishes that, so it may have been stopped in between: the page
// after the last published write may be written or not, and says so itself.
func (p Params) verifyPages(memory io.ReaderAt, written uint64) error {
	working := uint64(p.WorkingSet / PageSize)
	chunk, want := make([]byte, verifyChunk), make([]byte, PageSize)
	for done := int64(0); done < p.Fill; {
		part := chunk[:min(verifyChunk, p.Fill-done)]
		if err := readFull(memory, part, Base+done); err != nil {
			return err
		}
		for ; len(part) > 0; part, done = part[PageSize:], done+PageSize {
			p.expect(want, done)
			index := uint64(done / PageSize)
			if found := binary.LittleEndian.Uint64(part); index < working && p.Lossy &&
				isStamp(found) {
				binary.LittleEndian.PutUint64(want, found)
			} else if index < working {
				stamp := stampAfter(writesOf(index, written, working))
				if index == written%working && binary.LittleEndian.Uint64(part) ==
					stamp+stampStep {
					stamp += stampStep
				}
				binary.LittleEndian.PutUint64(want, stamp)
			}
			if i := firstDifference(want, part[:PageSize]); i >= 0 {
				return damagedPage(want, part, Base+done, i)
			}
		}
	}
	return nil
}

// writesOf is how often a page of the working set has been written when so many
// writes have been made in all, in turn from the first page on.
func writesOf(index, written, working uint64) uint64 {
	writes := written / working
	if index < written%working {
		writes++
	}
	return writes
}

// stampAfter is a page's first word after so many writes.
func stampAfter(writes uint64) uint64 { return firstStamp + writes*stampStep }

// isStamp reports whether a word counts some number of writes: the same one in both halves.
func isStamp(word uint64) bool { return stampAfter(word&0xffffffff) == word }

// expect makes the page at an offset into the range as it was filled.
func (p Params) expect(page []byte, offset int64) {
	clear(page)
	if p.Random {
		word := uint64(Base+offset) / PageSize
		for at := 0; at < PageSize; at += 8 {
			word = word*Multiplier + 1
			binary.LittleEndian.PutUint64(page[at:], word)
		}
	}
	binary.LittleEndian.PutUint64(page, firstStamp)
	binary.LittleEndian.PutUint64(page[8:], uint64(Base+offset))
}

func firstDifference(want, got []byte) int {
	if bytes.Equal(want, got) {
		return -1
	}
	for i := range want {
		if want[i] != got[i] {
			return i
		}
	}
	return -1
}

func damagedPage(want, got []byte, address int64, i int) *Damage {
	word := i &^ 7
	kind := "the fill"
	switch word {
	case 0:
		kind = "the page's count of writes, twice"
	case 8:
		kind = "the page's own address"
	}
	return &Damage{Address: address + int64(i), What: fmt.Sprintf("%s is %#016x, want %#016x", kind,
		binary.LittleEndian.Uint64(got[word:]), binary.LittleEndian.Uint64(want[word:]))}
}
