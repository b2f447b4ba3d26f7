//go:build linux

package guest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestTheGuestBootsAndBeats(t *testing.T) {
	testutil.Sample(t, 5)
	rows := []struct {
		name, machine string
		fromDisk      bool
	}{
		{"from the firmware on pc", "pc", false},
		{"from the firmware on q35", "q35", false},
		{"from a disk on pc", "pc", true},
		{"from a disk on q35", "q35", true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			forEachAccelerator(t, func(t *testing.T, a accelerator) {
				listener := newListener(t)
				m := start(t, setup{accelerator: a, machine: r.machine, fromDisk: r.fromDisk},
					listener, "source")
				begin := time.Now()
				m.do("cont", nil)
				await(t, listener, func(r guest.HeartbeatLog) bool { return r.Ready })
				t.Logf("ready %s after cont", milliseconds(time.Since(begin)))
				got := await(t, listener, beats(200))
				if err := got.Check(); err != nil || got.Boots != 1 {
					t.Errorf("%d boots: %v", got.Boots, err)
				}
			})
		})
	}
}

func TestMemoryIsVerifiedAndAnyDamageIsFound(t *testing.T) {
	testutil.Sample(t, 5)
	rows := []struct {
		name   string
		params guest.Params
	}{
		{"a small working set in a large fill", guest.Params{
			Fill: 4 << 20, WorkingSet: 1 << 20, Rate: 100 << 20}},
		{"a random fill", guest.Params{
			Fill: 4 << 20, WorkingSet: 1 << 20, Rate: 100 << 20, Random: true}},
		{"written as fast as possible", guest.Params{
			WorkingSet: 2 << 20, Rate: guest.MaxRate}},
		{"never written", guest.Params{}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			forEachAccelerator(t, func(t *testing.T, a accelerator) {
				listener := newListener(t)
				m := start(t, setup{accelerator: a, params: r.params}, listener, "source")
				m.do("cont", nil)
				await(t, listener, beats(100))
				dump := m.dump()
				if err := r.params.Verify(dump, memory); err != nil {
					t.Fatal(err)
				}
				state, err := guest.ReadState(dump)
				if err != nil || state.Beats < 100 || (state.Written > 0) != (r.params.Rate > 0) {
					t.Errorf("the state is %+v, %v", state, err)
				}
				size := max(r.params.Fill, r.params.WorkingSet, 1<<20)
				rapid.Check(t, func(t *rapid.T) {
					at := guest.Base + rapid.Int64Range(0, size-1).Draw(t, "at")
					wantDamage(t, r.params.Verify(damaged{dump, at}, memory), at)
				})
			})
		})
	}
}

// TestTheRateIsAsAsked judges by two clocks, so that the load of the machine changes nothing. A
// guest that is kept from running catches up neither with its writes nor with its heartbeats: it
// writes at least a share for each of these, and never more than the rate allows in all the
// time since it was let go.
func TestTheRateIsAsAsked(t *testing.T) {
	testutil.Sample(t, 5)
	for _, rate := range []int64{1 << 20, 50 << 20, 1000 << 20} {
		t.Run(fmt.Sprintf("%d MiB each second", rate>>20), func(t *testing.T) {
			forEachAccelerator(t, func(t *testing.T, a accelerator) {
				listener := newListener(t)
				m := start(t, setup{accelerator: a, params: guest.Params{
					WorkingSet: 8 << 20, Rate: rate}}, listener, "source")
				began := time.Now()
				m.do("cont", nil)
				await(t, listener, beats(1000))
				state, err := guest.ReadState(m.dump())
				if err != nil {
					t.Fatal(err)
				}
				written := float64(state.Written * guest.PageSize)
				ofTime := written / time.Since(began).Seconds() / float64(rate)
				ofBeats := written / (float64(state.Beats) / 1000) / float64(rate)
				t.Logf("%.3f of the rate by the clock, %.3f by %d heartbeats, %d kHz, largest gap %s",
					ofTime, ofBeats, state.Beats, state.KHz,
					milliseconds(listener.Log().Gap.Length))
				if ofTime > 1.1 || ofBeats < 0.4 {
					t.Errorf("%.3f and %.3f of the rate that was asked for", ofTime, ofBeats)
				}
			})
		})
	}
}

func TestTheGuestSurvivesAReset(t *testing.T) {
	forEachAccelerator(t, func(t *testing.T, a accelerator) {
		params := guest.Params{Rate: 50 << 20}
		listener := newListener(t)
		m := start(t, setup{accelerator: a, params: params}, listener, "source")
		m.do("cont", nil)
		await(t, listener, beats(100))
		m.do("system_reset", nil)
		before := await(t, listener, func(r guest.HeartbeatLog) bool { return r.Boots == 2 && r.Ready })
		got := await(t, listener, beats(before.Beats+100))
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		if err := params.Verify(m.dump(), memory); err != nil {
			t.Error(err)
		}
	})
}

func TestThePowerButtonShutsTheGuestDown(t *testing.T) {
	for _, kind := range []string{"pc", "q35"} {
		t.Run(kind, func(t *testing.T) {
			forEachAccelerator(t, func(t *testing.T, a accelerator) {
				listener := newListener(t)
				m := start(t, setup{accelerator: a, machine: kind}, listener, "source")
				m.do("cont", nil)
				await(t, listener, beats(10))
				m.do("system_powerdown", nil)
				if reason := m.event("SHUTDOWN")["reason"]; reason != "guest-shutdown" {
					t.Errorf("the reason of the shutdown is %v", reason)
				}
				m.exited()
				off := await(t, listener, func(r guest.HeartbeatLog) bool { return r.Off })
				if err := off.Check(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAStubbornGuestIgnoresThePowerButton(t *testing.T) {
	forEachAccelerator(t, func(t *testing.T, a accelerator) {
		listener := newListener(t)
		m := start(t, setup{accelerator: a, params: guest.Params{Stubborn: true}}, listener, "source")
		m.do("cont", nil)
		before := await(t, listener, beats(10))
		m.do("system_powerdown", nil)
		m.event("POWERDOWN")
		if got := await(t, listener, beats(before.Beats+300)); got.Off || got.Check() != nil {
			t.Errorf("off: %v, %v", got.Off, got.Check())
		}
	})
}

func TestAMigratedGuestBeatsOnWithoutAHole(t *testing.T) {
	forEachAccelerator(t, func(t *testing.T, a accelerator) {
		listener, source, target, params := migrate(t, a)
		got := await(t, listener, beats(listener.Log().Beats+200))
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		if got.From != "target" || got.Returns != 0 {
			t.Errorf("it beats from %s; %d returns", got.From, got.Returns)
		}
		t.Logf("largest gap %s, from %s to %s", milliseconds(got.Gap.Length),
			got.Gap.From, got.Gap.To)
		if err := params.Verify(target.dump(), memory); err != nil {
			t.Error(err)
		}
		source.do("quit", nil)
		source.exited()
	})
}

func TestAGuestThatRunsTwiceIsNoticed(t *testing.T) {
	forEachAccelerator(t, func(t *testing.T, a accelerator) {
		listener, source, _, _ := migrate(t, a)
		await(t, listener, beats(listener.Log().Beats+50))
		source.do("cont", nil) // what must never happen
		got := await(t, listener, func(r guest.HeartbeatLog) bool { return r.Returns > 0 && r.Repeats > 0 })
		if got.Check() == nil {
			t.Error("a guest that ran twice is in order")
		}
	})
}

// migrate moves a guest and returns when it beats at the target.
func migrate(t *testing.T, a accelerator) (*guest.HeartbeatListener, *machine, *machine, guest.Params) {
	t.Helper()
	params := guest.Params{Fill: 8 << 20, WorkingSet: 2 << 20, Rate: 20 << 20, Random: true,
		Lossy: a.name == "tcg" && forgetsWrites(t)}
	listener := newListener(t)
	source := start(t, setup{accelerator: a, params: params}, listener, "source")
	uri := "unix:" + filepath.Join(source.dir, "migration")
	target := start(t, setup{accelerator: a, params: params, incoming: uri}, listener, "target")
	target.do("cont", nil) // it runs as soon as it is complete
	source.do("cont", nil)
	await(t, listener, beats(200))
	listener.Mark()
	source.do("migrate", map[string]any{"uri": uri})
	await(t, listener, func(r guest.HeartbeatLog) bool { return r.From == "target" })
	return listener, source, target, params
}

// forgetsWrites reports whether the installed QEMU's TCG forgets a write of a guest that moves now and
// then; see guest.Params.
func forgetsWrites(t *testing.T) bool {
	t.Helper()
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Fatal(err)
	}
	f, err := qemu.Probe(testutil.Context(t, testutil.DefaultLimit), path)
	if err != nil {
		t.Fatal(err)
	}
	return f.Version.Major < guest.KeepsWrites
}
