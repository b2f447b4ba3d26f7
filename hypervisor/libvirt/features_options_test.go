//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A wish is options, and how QEMU shows that it does so.
type wish struct {
	name    string
	options transferOptions
	// on are capabilities that have to be on, off those that must not.
	on, off []string
	// shown judges the parameters and the figures of a transfer under way.
	shown func(parameters, figures map[string]any) bool
}

// These are off unless they are asked for.
var modes = []string{"auto-converge", "postcopy-ram", "multifd", "compress", "xbzrle"}

func plainly(p, _ map[string]any) bool { return number(p, "downtime-limit") == 300 }

var wishes = []wish{
	{"nothing", transferOptions{}, nil, modes, plainly},
	{"a short downtime", transferOptions{Downtime: 30 * time.Millisecond}, nil, modes,
		func(p, _ map[string]any) bool { return number(p, "downtime-limit") == 30 }},
	{"nothing, after a short downtime", transferOptions{}, nil, modes, plainly},
	{"two channels", transferOptions{Channels: 2}, []string{"multifd"}, modes[:2],
		func(p, f map[string]any) bool { return number(p, "multifd-channels") == 2 }},
	{"four channels with auto-converge", transferOptions{Channels: 4, AutoConverge: true},
		[]string{"multifd", "auto-converge"}, modes[1:2],
		func(p, f map[string]any) bool { return number(p, "multifd-channels") == 4 }},
	{"compression", transferOptions{Compression: true}, []string{"compress"}, modes[:3],
		func(p, f map[string]any) bool { return f["compression"] != nil }},
	{"XBZRLE", transferOptions{XBZRLE: true}, []string{"xbzrle"}, modes[:3],
		func(_, f map[string]any) bool { return number(f, "xbzrle-cache", "cache-size") > 0 }},
	{"post-copy allowed", transferOptions{PostCopy: true}, []string{"postcopy-ram"},
		[]string{"multifd", "auto-converge"}, plainly},
	{"post-copy allowed, which takes one channel", transferOptions{PostCopy: true, Channels: 4},
		[]string{"postcopy-ram"}, []string{"multifd"}, plainly},
	{"nothing, after all of that", transferOptions{}, nil, modes, plainly},
}

// One guest begins to move in one way after the other. What it moved by before must
// not show.
func TestAMigrationHasEveryOption(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, restless)
	w.start(hosta, vm)
	for _, wish := range wishes {
		w.run(wish.name, func() {
			j := jobID("job: " + wish.name)
			o := wish.options
			o.Bandwidth = slow
			w.moving(j, vm.ID, o)
			parameters := w.qmp(hosta, vm.ID, "query-migrate-parameters")
			figures := w.qmp(hosta, vm.ID, "query-migrate")
			on := w.capabilities(hosta, vm.ID)
			if p := w.Progress(hosta, j); p.Status.Final() {
				w.T.Fatalf("it was over before it was looked at: %v %s", p.Status, p.Error)
			}
			if !wish.shown(parameters, figures) {
				w.T.Errorf("QEMU does not do it: %v\n%v", parameters, figures)
			}
			for _, c := range modes {
				if has := slices.Contains(on, c); has && slices.Contains(wish.off, c) ||
					!has && slices.Contains(wish.on, c) {
					w.T.Errorf("capability %s is on: %v", c, has)
				}
			}
			w.cancelled(j, vm.ID)
		})
	}
	w.ends(hosta, vm.ID)
}

// Every way of moving really brings the guest to its target.
func TestEveryOptionArrives(t *testing.T) {
	testutil.Sample(t, 5)
	w := newTrial(t, nil)
	for i, o := range []transferOptions{{Channels: 3}, {Compression: true}, {XBZRLE: true},
		{AutoConverge: true, Downtime: time.Second}} {
		vm := w.vm(traveller, calm)
		w.start(hosta, vm)
		j := jobID(fmt.Sprint("job ", i))
		w.begin(j, vm.ID, o)
		if p := w.arrives(j, vm.ID); p.Sent < hypervisor.Bytes(calm.Fill)/2 || p.Downtime == 0 {
			t.Errorf("with %+v it says that it sent %v, and was out for %v", o, p.Sent, p.Downtime)
		}
		w.ends(hostb, vm.ID)
	}
}

// maxBandwidth is what the QEMU of the traveller at hosta may send, in bytes per second.
func (w *trial) maxBandwidth() hypervisor.Bandwidth {
	w.T.Helper()
	p := w.qmp(hosta, traveller, "query-migrate-parameters")
	return hypervisor.Bandwidth(number(p, "max-bandwidth"))
}

func TestACapCapsAndIsOfOneJobOnly(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)

	w.begin("changed", vm.ID, transferOptions{Bandwidth: slow})
	w.Adjust("changed", hypervisor.SetBandwidth{Limit: slow / 2}) // libvirt still prepares the target
	w.Until(hosta, "changed", hypervisor.JobActive)
	if cap := w.maxBandwidth(); cap != slow/2 {
		t.Errorf("the cap is %v, although it was changed to %v", cap, slow/2)
	}
	w.cancelled("changed", vm.ID)

	const limit = 4 * hypervisor.Bandwidth(mib)
	began := time.Now()
	w.begin("capped", vm.ID, transferOptions{Bandwidth: limit})
	p := w.Until(hosta, "capped", hypervisor.JobSucceeded)
	took := time.Since(began)
	if least := hypervisor.Bytes(calm.Fill).At(limit); took < least || p.Sent < 8*mib {
		t.Errorf("%v went in %v, want at least %v at %v", p.Sent, took, least, limit)
	}
	t.Logf("capped at %v, %v took %v", limit, p.Sent, took)
	w.arrives("capped", vm.ID)
	w.ends(hostb, vm.ID)

	w.start(hosta, vm)
	w.moving("before", vm.ID, transferOptions{Bandwidth: slow})
	w.Adjust("before", hypervisor.SetBandwidth{Limit: slow / 2})
	w.cancelled("before", vm.ID)
	began = time.Now()
	w.begin("free", vm.ID, transferOptions{})
	w.Until(hosta, "free", hypervisor.JobSucceeded)
	if took := time.Since(began); took > hypervisor.Bytes(calm.Fill).At(slow/2) {
		t.Errorf("without a cap it took %v: it has that of an earlier job", took)
	}
	w.arrives("free", vm.ID)
}

// A cap is lifted, or a longer downtime allowed, for a guest that did not converge.
func TestLimitsAreChangedUnderWay(t *testing.T) {
	for _, row := range []struct {
		name    string
		changes []hypervisor.Adjustment
	}{
		{"the downtime is raised and the cap lifted", []hypervisor.Adjustment{ // first what lets no guest arrive that narrow holds up
			hypervisor.SetDowntime{Limit: 200 * time.Millisecond}, hypervisor.SetBandwidth{}}},
		{"the guest is paused", []hypervisor.Adjustment{hypervisor.PauseGuest{}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newTrial(t, nil)
			vm := w.vm(traveller, swift)
			w.start(hosta, vm)
			w.hopeless("job", vm.ID, narrow)
			for _, a := range row.changes {
				w.Adjust("job", a)
			}
			w.arrives("job", vm.ID)
		})
	}
}

// narrow is a wire that swift does not fit.
var narrow = transferOptions{Bandwidth: 1 << 20, Downtime: time.Millisecond}

// hopeless begins to send a guest that does not converge, and shows that.
func (w *trial) hopeless(j jobID, id vmid, o transferOptions) {
	w.T.Helper()
	w.begin(j, id, o)
	w.Eventually("its memory was sent more than twice", func() bool {
		p := w.Progress(hosta, j)
		if p.Status == hypervisor.JobSucceeded {
			w.T.Skipf("it is %v: the machine is so busy that the guest writes too slowly", p.Status)
		} else if p.Status.Final() {
			w.T.Fatalf("it is %v: %s", p.Status, p.Error)
		}
		return p.Iteration > 3
	})
}

func TestABusyGuestConvergesOnlyWhenItIsSlowedDown(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, swift)
	w.start(hosta, vm)
	w.hopeless("plain", vm.ID, narrow)
	if p := w.Progress(hosta, "plain"); p.Throttle != 0 || p.DirtyRate == 0 {
		t.Errorf("no throttle was asked for, and it writes memory: %+v", p)
	}
	if err := w.Host(hosta).Adjust(t.Context(), "plain", hypervisor.Cancel{}); errors.Is(err, hypervisor.Conflict) {
		t.Skip("the machine is so busy that the guest converges without being slowed down")
	} else if err != nil {
		t.Fatal(err)
	}
	w.Until(hosta, "plain", hypervisor.JobCancelled)
	w.stays("plain", vm.ID)

	o := narrow
	o.AutoConverge = true
	w.virsh(hosta, "qemu-monitor-command", domainOf(vm.ID), // QEMU takes its time
		`{"execute":"migrate-set-parameters","arguments":{"cpu-throttle-initial":99}}`)
	w.begin("slowed", vm.ID, o)
	throttled := 0
	w.Eventually("it has arrived", func() bool {
		p := w.Progress(hosta, "slowed")
		throttled = max(throttled, p.Throttle)
		return p.Status.Final()
	})
	if throttled < 99 {
		t.Errorf("it was slowed down by %d %%, want 99", throttled)
	}
	w.arrives("slowed", vm.ID)
}

// A guest that does not converge runs at its target at once, and the rest follows it,
// within the job's cap until that is lifted. The rest takes a quarter of a minute: what is asked meanwhile is
// asked before it has followed, on a busy machine too.
func TestPostCopyKeepsTheCap(t *testing.T) {
	w := newTrial(t, nil)
	large := swift
	large.Fill = 32 << 20
	vm := w.vm(traveller, large)
	w.start(hosta, vm)
	o := narrow
	o.PostCopy, o.Bandwidth = true, slow
	w.moving("job", vm.ID, o)
	w.Adjust("job", hypervisor.StartPostCopy{})
	w.Becomes(hostb, vm.ID, hypervisor.Running)
	if p := w.Progress(hosta, "job"); p.Mode != hypervisor.PostCopy || p.Status.Final() {
		t.Errorf("in post-copy it is %v, %v", p.Status, p.Mode)
	}
	w.Eventually("the guest beats at its target", func() bool {
		return libvirttest.HostOf(w.pulse(vm.ID).Log().From) == string(hostb)
	})
	cap := func() hypervisor.Bandwidth {
		p := w.qmp(hosta, vm.ID, "query-migrate-parameters")
		return hypervisor.Bandwidth(number(p, "max-postcopy-bandwidth"))
	}
	if got := cap(); got != slow {
		t.Errorf("in post-copy the cap is %v, want %v", got, slow)
	}
	half := hypervisor.SetBandwidth{Limit: slow / 2}
	if err := w.Host(hosta).Adjust(t.Context(), "job", half); errors.Is(err, hypervisor.Conflict) &&
		w.Progress(hosta, "job").Status == hypervisor.JobSucceeded {
		t.Skip("the machine is busy: all memory had followed before the cap was changed")
	} else if err != nil {
		t.Fatal(err)
	}
	if got := cap(); got != slow/2 {
		t.Errorf("in post-copy the new cap is %v, want %v", got, slow/2)
	}
	began := time.Now()
	w.Uncap("job")
	p := w.arrives("job", vm.ID)
	t.Logf("with the cap lifted it took %v", time.Since(began))
	if p.Mode != hypervisor.PostCopy {
		t.Errorf("it went by %v", p.Mode)
	}
	w.ends(hostb, vm.ID)
}
