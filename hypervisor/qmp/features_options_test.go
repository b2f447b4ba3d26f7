package qmp_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// number finds a number in what QEMU answered; -1 is none.
func number(m map[string]any, path ...string) float64 {
	for _, key := range path[:len(path)-1] {
		m, _ = m[key].(map[string]any)
	}
	if n, ok := m[path[len(path)-1]].(float64); ok {
		return n
	}
	return -1
}

// A wish is options, and how QEMU shows that it has done so.
type wish struct {
	name    string
	options options
	needs   hypervisor.Abilities
	// shown judges what the source's QEMU answers about the parameters of the
	// transfer and about how it went.
	shown func(parameters, went map[string]any) bool
}

func channels(n float64) func(p, w map[string]any) bool {
	return func(p, w map[string]any) bool {
		return number(p, "multifd-channels") == n && number(w, "ram", "multifd-bytes") > 0
	}
}

func packed(method string, channels float64) func(p, w map[string]any) bool {
	return func(p, w map[string]any) bool {
		return p["multifd-compression"] == method && number(p, "multifd-channels") == channels &&
			number(w, "ram", "multifd-bytes") > 0
	}
}

func xbzrle(_, w map[string]any) bool { return number(w, "xbzrle-cache", "cache-size") > 0 }

// single is what a transfer is by default.
func single(p, w map[string]any) bool {
	return number(w, "ram", "multifd-bytes") <= 0 && number(p, "max-bandwidth") == 0 &&
		number(p, "downtime-limit") == 300 && w["xbzrle-cache"] == nil
}

const cap100 = hypervisor.Bandwidth(100 << 20)

var wishes = []wish{
	{"nothing", options{}, 0, single},
	{"a cap on bandwidth", options{Bandwidth: cap100}, 0, func(p, _ map[string]any) bool {
		return number(p, "max-bandwidth") == 100<<20
	}},
	{"a short downtime", options{Downtime: 30 * time.Millisecond}, 0,
		func(p, w map[string]any) bool { return number(p, "downtime-limit") == 30 }},
	{"two channels", options{Channels: 2}, hypervisor.CanUseChannels, channels(2)},
	{"four channels", options{Channels: 4}, hypervisor.CanUseChannels, channels(4)},
	{"zlib", options{Compression: true, Method: "zlib"}, hypervisor.CanCompress,
		packed("zlib", 2)},
	{"zstd over four channels", options{Compression: true, Method: "zstd", Channels: 4},
		hypervisor.CanCompress, packed("zstd", 4)},
	{"the default compression", options{Compression: true}, hypervisor.CanCompress,
		packed("zstd", 2)},
	{"nothing, after compression", options{}, 0, single},
	{"XBZRLE", options{XBZRLE: true}, hypervisor.CanXBZRLE, xbzrle},
	{"XBZRLE with a cap and auto-converge",
		options{XBZRLE: true, Bandwidth: cap100, AutoConverge: true},
		hypervisor.CanXBZRLE | hypervisor.CanAutoConverge, xbzrle},
	{"auto-converge with two channels", options{AutoConverge: true, Channels: 2},
		hypervisor.CanAutoConverge | hypervisor.CanUseChannels, channels(2)},
	{"post-copy allowed and not needed", options{PostCopy: true}, hypervisor.CanPostCopy,
		func(_, w map[string]any) bool { return number(w, "ram", "postcopy-requests") <= 0 }},
	{"post-copy allowed, which takes one channel", options{PostCopy: true, Channels: 4},
		hypervisor.CanPostCopy | hypervisor.CanUseChannels,
		func(_, w map[string]any) bool { return number(w, "ram", "multifd-bytes") <= 0 }},
	{"nothing, after all of that", options{}, 0, single},
}

// One guest moves there and back, each time in another way. What it moved by
// before must not show.
func TestAMigrationHasEveryOption(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	able, err := l.hosts["n1"].Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vm := l.vm("suite/traveller", busy)
	l.start("n1", vm)
	from, to := name("n1"), name("n2")
	for _, w := range wishes {
		t.Run(w.name, func(t *testing.T) {
			if !able.Abilities.Has(w.needs) {
				t.Skipf("this QEMU cannot do it: %v", (w.needs &^ able.Abilities).Names())
			}
			j := job("job: " + w.name)
			j = l.moveWith(j, vm, [2]name{from, to}, w.options)
			parameters := l.ask(from, vm.ID, "query-migrate-parameters", nil)
			went := l.ask(from, vm.ID, "query-migrate", nil)
			if !w.shown(parameters, went) {
				t.Errorf("QEMU did not do it: %v\n%v", parameters, went)
			}
			l.sound(to, vm.ID)
			l.release(j, vm.ID, from, to)
			from, to = to, from
		})
	}
	l.ends(from, vm.ID)
}

// moveWith moves a VM with options, from the first host to the second, and returns
// the job that did it. Now and then QEMU 7.2 fails one over several channels at its
// very end: the target has everything, and a channel that is being closed breaks
// (EPIPE). The VM then runs on at its source, and is moved again, as an agent would.
func (l *lab) moveWith(j job, vm hypervisor.VM, way [2]name, o options) job {
	l.T.Helper()
	l.Repeat("the migration begins", func() error {
		address, err := l.Host(way[1]).Receive(l.T.Context(), hypervisor.Incoming{Job: j, VM: vm})
		if err != nil {
			return err
		}
		return l.hosts[way[0]].Migrate(l.T.Context(), hypervisor.Outgoing{Job: j, VM: vm.ID,
			Target: way[1], Address: address, Options: o})
	})
	const again = ", again"
	first := !strings.HasSuffix(string(j), again)
	if (o.Channels > 1 || o.Compression) && first && l.fails(way[0], j) {
		l.Eventually("the target is gone", func() bool {
			return l.Domain(way[1], vm.ID).State == hypervisor.Absent
		})
		l.T.Logf("%s failed over several channels: it is tried again", j)
		return l.moveWith(j+again, vm, way, o)
	}
	l.Until(way[0], j, hypervisor.JobSucceeded)
	return j
}

// fails waits until a job has ended, and reports whether it failed.
func (l *lab) fails(n name, j job) (failed bool) {
	l.T.Helper()
	l.Eventually("the job ends", func() bool {
		s := l.Progress(n, j).Status
		failed = s == hypervisor.JobFailed
		return s.Final()
	})
	return failed
}

// Memory that is mostly zeros takes less of the wire when it is compressed. QEMU's
// own figures do not show that: they count pages as they were.
func TestCompressionMakesLessOfMemory(t *testing.T) {
	sparse := guest.Params{Fill: 16 << 20, WorkingSet: 1 << 20}
	var passed [2]int64
	for i, compress := range []bool{false, true} {
		var count atomic.Int64
		l, wire := linked(t, nil)
		if why := supports(l, hypervisor.CanCompress); why != "" {
			t.Skip(why)
		}
		wire.overhear = func(b []byte) { count.Add(int64(len(b))) }
		vm := l.vm("suite/traveller", sparse)
		l.start("n1", vm)
		l.begin("job", vm.ID, options{Channels: 2, Compression: compress})
		l.arrives("job", vm.ID)
		passed[i] = count.Load()
	}
	t.Logf("%d KiB without compression, %d KiB with it", passed[0]>>10, passed[1]>>10)
	if passed[0] < sparse.Fill || passed[1] > sparse.Fill/4 {
		t.Errorf("%d and %d bytes passed for %d", passed[0], passed[1], sparse.Fill)
	}
}

// supports returns why a lab's hosts lack an ability; "" is that they have it.
func supports(l *lab, a hypervisor.Abilities) string {
	host, err := l.hosts["n1"].Host(l.T.Context())
	if err != nil {
		l.T.Fatal(err)
	}
	if host.Abilities.Has(a) {
		return ""
	}
	return host.Software + " cannot do it here"
}

// swift is a guest that writes faster than the narrow wire below carries.
var (
	swift  = guest.Params{Fill: 8 << 20, WorkingSet: 4 << 20, Rate: 200 << 20, Random: true}
	narrow = options{Bandwidth: 8 << 20, Downtime: 10 * time.Millisecond}
)

// hopeless begins to send a guest that does not converge, and shows that.
func (l *lab) hopeless(j job, id vmid, o options) {
	l.T.Helper()
	l.begin(j, id, o)
	l.Eventually("the memory was sent three times over", func() bool {
		p := l.Progress("n1", j)
		if p.Status == hypervisor.JobSucceeded {
			l.T.Skipf("it is %v: the machine is so busy that the guest writes too slowly", p.Status)
		} else if p.Status.Final() {
			l.T.Fatalf("it is %v: %s", p.Status, p.Error)
		}
		return p.Iteration > 4
	})
}

func TestABusyGuestConvergesOnlyWhenItIsSlowedDown(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	if err := supports(l, hypervisor.CanAutoConverge); err != "" {
		t.Skip(err)
	}
	vm := l.vm("suite/traveller", swift)
	l.start("n1", vm)
	plain := narrow
	plain.HoldSwitchOver = true // should it converge, it can still be cancelled
	l.hopeless("plain", vm.ID, plain)
	if p := l.Progress("n1", "plain"); p.Throttle != 0 {
		t.Errorf("no throttle was asked for, and there is one of %d %%", p.Throttle)
	}
	l.Adjust("plain", hypervisor.Cancel{})
	l.Until("n1", "plain", hypervisor.JobCancelled)
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "plain"})

	o := narrow
	o.AutoConverge, o.HoldSwitchOver = true, true
	l.set("n1", vm.ID, map[string]any{"cpu-throttle-initial": 99}) // QEMU takes its time
	for i := range 5 {
		j := job(fmt.Sprintf("slowed-%d", i))
		l.begin(j, vm.ID, o)
		if !l.enabled("n1", vm.ID, "auto-converge") {
			t.Fatal("QEMU was not asked to slow the guest down")
		}
		l.Becomes("n1", vm.ID, hypervisor.HandingOver) // QEMU slows it down until it has arrived
		throttle := l.Progress("n1", j).Throttle
		t.Logf("slowed down by %d %%", throttle)
		if throttle > 0 {
			l.Adjust(j, hypervisor.SwitchOver{})
			l.arrives(j, vm.ID)
			return
		}
		l.Adjust(j, hypervisor.Cancel{})
		l.Until("n1", j, hypervisor.JobCancelled)
		l.Do("n2", vm.ID, hypervisor.Discard{Job: j})
	}
	t.Skip("the machine is so busy that the guest converges without being slowed down")
}

// enabled reports whether the QEMU of a VM has a capability of migrations switched on.
func (l *lab) enabled(n name, id vmid, capability string) bool {
	l.T.Helper()
	var all []struct {
		Capability string
		State      bool
	}
	m, err := l.hosts[n].Monitor(id)
	must(l.T, err)
	must(l.T, m.Execute(l.T.Context(), "query-migrate-capabilities", nil, &all))
	for _, c := range all {
		if c.Capability == capability {
			return c.State
		}
	}
	return false
}

// The limits of a job under way can be changed, and a guest that did not converge
// then does.
func TestLimitsAreChangedUnderWay(t *testing.T) {
	for _, row := range []struct {
		name    string
		changes []hypervisor.Adjustment
	}{
		{"the cap is lifted and the downtime raised",
			[]hypervisor.Adjustment{hypervisor.SetBandwidth{},
				hypervisor.SetDowntime{Limit: 2 * time.Second}}},
		{"the guest is paused", []hypervisor.Adjustment{hypervisor.PauseGuest{}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/traveller", swift)
			l.start("n1", vm)
			l.hopeless("job", vm.ID, narrow)
			for _, a := range row.changes {
				l.Adjust("job", a)
			}
			l.arrives("job", vm.ID)
		})
	}
}

// A cap that is changed while local disks are copied counts at once for them, and then for the memory; and in
// post-copy it is the same cap.
func TestACapIsChangedWhileDisksAreCopied(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/traveller", calm), twoDisks...)
	contents := l.furnish("n1", vm)
	l.start("n1", vm)
	limits := func(mirror, memory int64) {
		t.Helper()
		m, err := l.hosts["n1"].Monitor(vm.ID)
		must(t, err)
		var copies []struct{ Speed int64 }
		must(t, m.Execute(t.Context(), "query-block-jobs", nil, &copies))
		for _, c := range copies {
			if c.Speed != mirror {
				t.Errorf("a disk is copied at %d, want %d", c.Speed, mirror)
			}
		}
		p := l.ask("n1", vm.ID, "query-migrate-parameters", nil)
		if len(copies) != len(twoDisks) || number(p, "max-bandwidth") != float64(memory) ||
			number(p, "max-postcopy-bandwidth") != float64(memory) {
			t.Errorf("%d disks are copied, and memory moves within %v; want %d", len(copies), p, memory)
		}
	}
	l.begin("job", vm.ID, options{Bandwidth: 1 << 20})
	limits(1<<19, 1<<20)
	l.Adjust("job", hypervisor.SetBandwidth{Limit: 2 << 20})
	limits(1<<20, 2<<20)
	if err := l.hosts["n1"].Adjust(t.Context(), "job", hypervisor.SetBandwidth{Limit: -1}); !errors.Is(err,
		hypervisor.Invalid) {
		t.Errorf("a limit that is none: %v", err)
	}
	l.Uncap("job")
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.sound("n2", vm.ID)
	l.afterwards("job", vm.ID, contents)
}

// A held job stands before its switch-over whatever else it does.
func TestAHeldSwitchOverGoesTogetherWithOtherOptions(t *testing.T) {
	for _, row := range []struct {
		name    string
		options options
		goesOn  bool
	}{
		{"it goes on", options{}, true},
		{"it is cancelled", options{}, false},
		{"over channels it goes on", options{Channels: 2}, true},
		{"over channels it is cancelled", options{Channels: 2}, false},
		{"compressed it goes on", options{Compression: true}, true},
		{"with XBZRLE it is cancelled", options{XBZRLE: true}, false},
		{"with post-copy allowed it goes on", options{PostCopy: true}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/traveller", busy)
			l.start("n1", vm)
			row.options.HoldSwitchOver = true
			l.begin("job", vm.ID, row.options)
			l.Becomes("n1", vm.ID, hypervisor.HandingOver)
			if s := l.Domain("n2", vm.ID).State; s != hypervisor.Receiving {
				t.Errorf("the target is %v", s)
			}
			if row.goesOn {
				l.Adjust("job", hypervisor.SwitchOver{})
				l.arrives("job", vm.ID)
				return
			}
			l.Adjust("job", hypervisor.Cancel{})
			l.Until("n1", "job", hypervisor.JobCancelled)
			l.stays("job", vm.ID)
		})
	}
}

// A VM whose QEMU is older than what its host starts now takes one connection where the others
// take several: it could wait for ever for one that breaks.
func TestAVMThatIsOlderThanItsHostTakesOneConnection(t *testing.T) {
	for _, newer := range []bool{false, true} {
		l := newLab(t, accelerator(t), func(c *qmp.Config) {
			if f := *c.Features(); newer {
				f.Version = qemu.EndsChannels
				c.SetFeatures(&f)
			}
		})
		c := l.config("n1")
		switch f := c.Features(); {
		case f.Version.Compare(qemu.EndsChannels) >= 0 != newer:
			t.Skip("the QEMU that is installed can lose connections")
		case newer && !f.Abilities().Has(hypervisor.CanLoseChannels):
			t.Skip("no KVM here: such a host does not say that connections can be lost")
		}
		vm := l.vm("suite/old", calm)
		l.start("n1", vm)
		l.begin("job", vm.ID, options{Channels: 4, Bandwidth: 4 << 20})
		l.Eventually("memory moves", func() bool { return l.Progress("n1", "job").Sent > 0 })
		if several := l.enabled("n1", vm.ID, "multifd"); several == newer {
			t.Errorf("newer host: %v, several connections: %v", newer, several)
		}
		l.Uncap("job")
		l.Until("n1", "job", hypervisor.JobSucceeded)
		l.arrives("job", vm.ID)
	}
}
