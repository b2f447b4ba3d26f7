package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// played is the memory of a guest after so many writes, made write by write as
// the guest does. Ahead says that it was stopped between the last write and
// publishing it.
func played(t interface{ Fatal(...any) }, p Params, written int, ahead bool) []byte {
	program, err := p.BootSector()
	if err != nil {
		t.Fatal(err)
	}
	p = p.withDefaults()
	memory := make([]byte, Base+p.Fill+PageSize)
	copy(memory[Origin:], program)
	word := binary.LittleEndian
	for at := int64(Base); at < Base+p.Fill; at += PageSize {
		x := uint64(at >> 12)
		for i := int64(0); p.Random && i < PageSize; i += 8 {
			x = x*0x5851f42d4c957f2d + 1
			word.PutUint64(memory[at+i:], x)
		}
		word.PutUint32(memory[at:], 0)
		word.PutUint32(memory[at+4:], 0xffffffff)
		word.PutUint64(memory[at+8:], uint64(at))
	}
	for i := range written {
		page := memory[Base+int64(i)*PageSize%p.WorkingSet:]
		word.PutUint32(page, word.Uint32(page)+1)
		word.PutUint32(page[4:], word.Uint32(page[4:])-1)
	}
	if ahead && written > 0 {
		written--
	}
	word.PutUint64(memory[stateAddress+stateWritten:], uint64(written))
	word.PutUint64(memory[stateAddress+stateReady:], 1)
	return memory
}

// TestVerify draws a guest, how far it came and a byte to damage: memory as the
// guest leaves it is in order, and with one byte changed it is not, just there.
func TestVerify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		working := rapid.Int64Range(1, 6).Draw(t, "working")
		p := Params{
			WorkingSet: working * PageSize,
			Fill:       rapid.Int64Range(working, 8).Draw(t, "fill") * PageSize,
			Random:     rapid.Bool().Draw(t, "random"),
		}
		written := rapid.IntRange(0, 600).Draw(t, "written")
		memory := played(t, p, written, rapid.Bool().Draw(t, "ahead"))
		if err := p.Verify(bytes.NewReader(memory), int64(len(memory))); err != nil {
			t.Fatal(err)
		}
		at := Base + rapid.Int64Range(0, p.Fill-1).Draw(t, "at")
		memory[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "damage"))
		err := p.Verify(bytes.NewReader(memory), int64(len(memory)))
		if d, ok := errors.AsType[*Damage](err); !ok || !names(d.Address, at) {
			t.Fatalf("the error is %v; want damage at %#x", err, at)
		}
	})
}

// TestVerifyOfALossyGuest takes any number of writes to a page, and finds all other damage.
func TestVerifyOfALossyGuest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{WorkingSet: 4 * PageSize, Fill: 6 * PageSize, Lossy: true,
			Random: rapid.Bool().Draw(t, "random")}
		memory := played(t, p, rapid.IntRange(0, 600).Draw(t, "written"), false)
		page := Base + rapid.Int64Range(0, 3).Draw(t, "page")*PageSize
		forgets := uint64(rapid.IntRange(0, 200).Draw(t, "forgets"))
		binary.LittleEndian.PutUint64(memory[page:], stampAfter(forgets))
		if err := p.Verify(bytes.NewReader(memory), int64(len(memory))); err != nil {
			t.Fatal(err)
		}
		strict := p
		strict.Lossy = false
		copy(memory[Origin:], played(t, strict, 0, false)[Origin:Origin+0x20])
		binary.LittleEndian.PutUint64(memory[page:], stampAfter(1<<20))
		if err := strict.Verify(bytes.NewReader(memory), int64(len(memory))); err == nil {
			t.Fatal("a guest that is not lossy may forget")
		}
		memory = played(t, p, 7, false)
		at := Base + rapid.Int64Range(0, p.Fill-1).Draw(t, "at")
		memory[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "damage"))
		err := p.Verify(bytes.NewReader(memory), int64(len(memory)))
		if d, ok := errors.AsType[*Damage](err); !ok || !names(d.Address, at) {
			t.Fatalf("the error is %v; want damage at %#x", err, at)
		}
	})
}

// names reports whether an address names a damaged byte: exactly, or within the
// stamp at the beginning of a page, of which the halves may contradict each
// other without telling which is right.
func names(address, at int64) bool {
	return address == at || at%PageSize < 8 && address&^7 == at&^7
}

func TestWhatVerifyRefuses(t *testing.T) {
	p := Params{WorkingSet: 4 * PageSize, Fill: 8 * PageSize}
	state := func(offset int, v byte) func([]byte) {
		return func(m []byte) { m[stateAddress+offset] = v }
	}
	rows := []struct {
		name, says string
		spoil      func([]byte)
	}{
		{"a page whose last write is lost", "count of writes", func(m []byte) {
			copy(m[Base:Base+8], played(t, p, 1, false)[Base:])
		}},
		{"a state page from two writes ago", "count of writes", state(stateWritten, 8)},
		{"a state page from the future", "count of writes", state(stateWritten, 11)},
		{"a page in the place of another", "address", func(m []byte) {
			copy(m[Base+5*PageSize:], m[Base+6*PageSize:Base+7*PageSize])
		}},
		{"an error that the guest found", "itself found 1", state(stateErrors, 1)},
		{"memory that is not filled yet", "not filled yet", state(stateReady, 0)},
		{"a guest of other parameters", "program", func(m []byte) { m[Origin+8] ^= 1 }},
		{"other code", "program", func(m []byte) { m[Origin+1000] ^= 1 }},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			memory := played(t, p, 10, false)
			r.spoil(memory)
			err := p.Verify(bytes.NewReader(memory), int64(len(memory)))
			if err == nil || !strings.Contains(err.Error(), r.says) {
				t.Errorf("the error is %v; want %q in it", err, r.says)
			}
		})
	}
	t.Run("less memory than the fill", func(t *testing.T) {
		if err := p.Verify(bytes.NewReader(nil), Base); err == nil {
			t.Error("no error")
		}
	})
	t.Run("memory that ends too early", func(t *testing.T) {
		memory := played(t, p, 10, false)[:Base+PageSize]
		if err := p.Verify(bytes.NewReader(memory), 16<<20); err == nil {
			t.Error("no error")
		}
	})
}

func FuzzVerify(f *testing.F) {
	p := Params{WorkingSet: PageSize}
	sound := played(f, p, 3, false)
	f.Add(sound[:Base], sound[Base:])
	f.Fuzz(func(t *testing.T, low, high []byte) {
		memory := make([]byte, Base, Base+len(high))
		copy(memory, low)
		memory = append(memory, high...)
		_, _ = ReadState(bytes.NewReader(memory))
		_ = p.Verify(bytes.NewReader(memory), 2<<20) // must not panic
	})
}

func TestCheckGivesEveryReason(t *testing.T) {
	rows := []struct {
		name    string
		params  Params
		reasons int
	}{
		{"the zero value is in order", Params{}, 0},
		{"as fast as possible is in order", Params{Rate: MaxRate}, 0},
		{"the largest fill is in order", Params{Fill: maxFill}, 0},
		{"a page and a byte", Params{WorkingSet: PageSize + 1}, 2},
		{"a fill below the working set", Params{Fill: PageSize}, 1},
		{"too large a fill", Params{Fill: maxFill + PageSize}, 1},
		{"a negative rate", Params{Rate: -1}, 1},
		{"a page in two hours", Params{Rate: 1}, 1},
		{"more than any machine writes", Params{Rate: MaxRate - 1}, 1},
		{"a heartbeat faster than the timer", Params{Heartbeat: 1}, 1},
		{"negative everything", Params{WorkingSet: -1, Fill: -2, Rate: -1, Heartbeat: -1}, 5},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			err := r.params.Check()
			reasons := 0
			if err != nil {
				reasons = strings.Count(err.Error(), "guest: ")
			}
			if _, bad := r.params.Firmware(); reasons != r.reasons || (bad == nil) != (err == nil) {
				t.Errorf("%d reasons, want %d: %v; the firmware: %v", reasons, r.reasons, err, bad)
			}
		})
	}
}

// TestThePaceIsTheRate allows what rounding to a microsecond costs.
func TestThePaceIsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(2, maxPaced).Draw(t, "rate")
		batch, period := pace(rate)
		got := float64(batch) * PageSize * 1e6 / float64(period)
		if ratio := got / float64(rate); ratio < 0.999 || ratio > 1.001 || period < 999 {
			t.Errorf("%d pages each %d µs are %.4f of %d bytes/s", batch, period, ratio, rate)
		}
	})
}

func ExampleParams_Check() {
	err := Params{Fill: 4096, WorkingSet: 8192, Rate: -1}.Check()
	fmt.Println(err)
	// Output:
	// guest: the fill of 4096 bytes is smaller than the working set of 8192; leave it 0 or raise it
	// guest: the rate of -1 bytes/s is not in 0 to 68719476736, nor MaxRate
}
