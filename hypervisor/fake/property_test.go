package fake_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// dump is all that can be seen of a world.
func dump(w *world, jobs int) string {
	var b strings.Builder
	fmt.Fprintln(&b, w.Now())
	for _, h := range []name{"n1", "n2", "n3"} {
		list, err := w.Host(h).Domains(ctx)
		fmt.Fprintf(&b, "%s %+v %v\n", h, list, err)
		for i := range jobs {
			p, err := w.Host(h).Progress(ctx, hypervisor.JobID(fmt.Sprint("job-vm", i)))
			fmt.Fprintf(&b, "  %+v %v\n", p, err)
		}
	}
	return b.String()
}

// A script is what happens to a world, and when.
type script []event

type event struct {
	At   time.Duration
	What string
	I    int
}

const scripted = 4 // VMs of a script

func drawScript(t *rapid.T) script {
	var s script
	now := time.Duration(0)
	for range rapid.IntRange(1, 15).Draw(t, "events") {
		now += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "wait"))
		s = append(s, event{now, rapid.SampledFrom([]string{"migrate", "cancel", "pause",
			"unpause", "slow", "fast", "post-copy", "cut", "heal", "kill", "load", "crash",
			"restart"}).Draw(t, "what"), rapid.IntRange(0, scripted-1).Draw(t, "which")})
	}
	return s
}

// play plays a script; between its events it lets step move time.
func (s script) play(t *rapid.T, m fake.Model, step func(w *world, until time.Time)) string {
	w := newWorld(t, m)
	for i := range scripted {
		w.ok(w.Host("n1").Boot(scriptVM(i), []fake.Workload{mild, wild, {},
			{Rate: 8e8, Hot: gib, ColdRate: 1e7, Cold: gib, Zero: 300}}[i]))
	}
	for _, e := range s {
		step(w, epoch.Add(e.At))
		e.happen(w)
	}
	step(w, w.Now().Add(20*time.Second))
	return dump(w, scripted) + fmt.Sprint(w.Hints(), w.Touched())
}

// scriptVM is a VM of a script; the first has a local disk.
func scriptVM(i int) hypervisor.VM {
	if id := vmid(fmt.Sprint("vm", i)); i > 0 {
		return aVM(id)
	}
	return theFirst
}

// theFirst is one VM, so that its hardware is printed alike.
var theFirst = withDisk("vm0", 6*gib)

func (e event) happen(w *world) {
	n1 := w.Host("n1")
	id := vmid(fmt.Sprint("vm", e.I))
	job := hypervisor.JobID("job-" + id)
	switch e.What {
	case "migrate":
		a, _ := w.Host("n2").Receive(ctx, hypervisor.Incoming{Job: job, VM: scriptVM(e.I)})
		_ = n1.Migrate(ctx, hypervisor.Outgoing{Job: job, VM: id, Target: "n2", Address: a,
			Options: hypervisor.TransferOptions{PostCopy: true, AutoConverge: true}})
	case "cancel":
		_ = n1.Adjust(ctx, job, hypervisor.Cancel{})
	case "slow":
		_ = n1.Adjust(ctx, job, hypervisor.SetBandwidth{Limit: 123456789})
	case "fast":
		_ = n1.Adjust(ctx, job, hypervisor.SetBandwidth{})
	case "post-copy":
		_ = n1.Adjust(ctx, job, hypervisor.StartPostCopy{})
	case "pause":
		_ = n1.Do(ctx, id, hypervisor.Pause{})
	case "unpause":
		_ = n1.Do(ctx, id, hypervisor.Unpause{})
	case "cut":
		_ = w.CutLink("n1", "n2")
	case "heal":
		_ = w.HealLink("n1", "n2")
	case "kill":
		_ = w.KillDomain("n2", id)
	case "load":
		_ = n1.SetWorkload(id, fake.Workload{Rate: 5e8, Hot: gib})
	case "crash":
		_ = w.CrashHost("n2")
	case "restart":
		_ = w.RestartHost("n2")
	}
}

func jump(w *world, until time.Time) { w.AdvanceTo(until) }

func anyModel(t *rapid.T) fake.Model {
	return rapid.SampledFrom([]fake.Model{{}, sure(), fake.QEMU()}).Draw(t, "model")
}

// Property 5.
func TestTheSameCallsGiveTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := drawScript(t), anyModel(t)
		if diff := cmp.Diff(s.play(t, m, jump), s.play(t, m, jump)); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
	})
}

// Property 6.
func TestAJumpEqualsManySmallSteps(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		s, m := drawScript(t), anyModel(t)
		most := rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, time.Minute}).
			Draw(t, "most")
		steps := s.play(t, m, func(w *world, until time.Time) {
			for w.Now().Before(until) {
				d := time.Duration(rapid.Int64Range(1, int64(most)).Draw(t, "step"))
				to := w.Now().Add(d)
				if to.After(until) {
					to = until
				}
				dump(w, scripted) // looking changes nothing
				w.AdvanceTo(to)
			}
			w.AdvanceTo(until)
		})
		if diff := cmp.Diff(s.play(t, m, jump), steps); diff != "" {
			t.Fatalf("a jump and small steps differ:\n%s", diff)
		}
	})
}

// Property 7.
func TestNothingHappensBeforeNext(t *testing.T) {
	domains := func(w *world) string {
		return fmt.Sprint(w.Copies("vm0"), w.Copies("vm1"), w.Hints())
	}
	rapid.Check(t, func(t *rapid.T) {
		drawScript(t).play(t, anyModel(t), func(w *world, until time.Time) {
			w.Hints()
			before := domains(w)
			if next, some := w.Next(); some && next.Before(until) && next.After(w.Now()) {
				w.AdvanceTo(next.Add(-1))
			}
			if after := domains(w); before != after {
				t.Fatalf("before the next event %s became %s", before, after)
			}
			w.AdvanceTo(until)
		})
	})
}

// Property 8: what Touched does not name has not changed.
func TestTouchedNamesAllThatChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := map[vmid]string{}
		drawScript(t).play(t, anyModel(t), func(w *world, until time.Time) {
			w.AdvanceTo(until)
			touched := w.Touched()
			for i := range scripted {
				id := vmid(fmt.Sprint("vm", i))
				now := fmt.Sprint(w.Copies(id))
				named := strings.Contains(fmt.Sprint(touched, " "), string(id))
				if before[id] != now && !named {
					t.Fatalf("%s went from %s to %s untouched", id, before[id], now)
				}
				before[id] = now
			}
		})
	})
}

// Property 9.
func TestARepeatedCallChangesNothing(t *testing.T) {
	commands := []cmd{hypervisor.Start{VM: aVM("vm0")}, hypervisor.Stop{Grace: time.Second},
		hypervisor.Kill{}, hypervisor.Reboot{}, hypervisor.Pause{}, hypervisor.Unpause{},
		hypervisor.Discard{Job: "job-vm0"}, hypervisor.Activate{Job: "job-vm0",
			Stopped: hypervisor.Evidence{Proof: hypervisor.OperatorWord, Host: "n1"}},
		hypervisor.Resume{Job: "job-vm0",
			NeverRan: hypervisor.Evidence{Proof: hypervisor.OperatorWord, VM: "vm0", Host: "n2",
				Job: "job-vm0"}},
		hypervisor.Abandon{Job: "job-vm0",
			Dead: hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n2"}},
		hypervisor.Release{Job: "job-vm0",
			Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: "vm0", Host: "n2"}}}
	adjustments := []hypervisor.Adjustment{hypervisor.Cancel{}, hypervisor.StartPostCopy{},
		hypervisor.PauseGuest{}, hypervisor.SetDowntime{Limit: time.Second},
		hypervisor.SetBandwidth{Limit: 1e8}}
	rapid.Check(t, func(t *rapid.T) {
		var w *world
		drawScript(t).play(t, sure(), func(x *world, until time.Time) { w = x; x.AdvanceTo(until) })
		h := w.Host(rapid.SampledFrom([]name{"n1", "n2"}).Draw(t, "host"))
		i := rapid.IntRange(0, len(commands)+len(adjustments)-1).Draw(t, "call")
		call := func() error {
			if i < len(commands) {
				return h.Do(ctx, "vm0", commands[i])
			}
			return h.Adjust(ctx, "job-vm0", adjustments[i-len(commands)])
		}
		first := call()
		then := dump(w, scripted)
		second := call()
		if kindOf(first) != kindOf(second) || dump(w, scripted) != then {
			t.Fatalf("first %v, then %v\n%s", first, second, cmp.Diff(then, dump(w, scripted)))
		}
	})
}

// Property 10.
func TestACancelBeforeTheSourceStopsKeepsItRunning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, job := begun(t, wild, hypervisor.TransferOptions{})
		w.pass(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "when")))
		if rapid.Bool().Draw(t, "paused") {
			w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.PauseGuest{}))
			w.pass(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "then")))
		}
		early := w.state("n1", "vm") == hypervisor.Running || w.state("n1", "vm") ==
			hypervisor.Paused
		err := w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{})
		if early != (err == nil) || !early && kindOf(err) != hypervisor.Conflict {
			t.Fatalf("early %v, error %v", early, err)
		}
		w.pass(time.Minute)
		if got := w.state("n1", "vm"); early && got != hypervisor.Running {
			t.Fatalf("after the cancel it is %v", got)
		}
	})
}

// Property 11: alone on the wire a downtime is never longer than was allowed.
func TestTheDowntimeIsAsShortAsWasAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(5, 2000).Draw(t, "limit")) * ms
		rate := hypervisor.Bandwidth(rapid.Int64Range(0, 1000e6).Draw(t, "rate"))
		w := newWorld(t, fake.Model{})
		w.boot("n1", "vm", fake.Workload{Rate: rate, Hot: gib})
		job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2",
			options: hypervisor.TransferOptions{Downtime: limit}})
		w.untilStatus("n1", job, hypervisor.JobSucceeded)
		if p := w.progress("n1", job); p.Downtime > limit || p.Sent < p.Total {
			t.Fatalf("limit %v, progress %+v", limit, p)
		}
	})
}

// Property 12: a card is never idle while a transfer has to send, so that it takes
// as long as its bytes, in whatever shares.
func TestWorkIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, fake.Model{})
		var total hypervisor.Bytes
		n := rapid.IntRange(1, 8).Draw(t, "flows")
		for i := range n {
			vm := hypervisor.VM{ID: vmid(fmt.Sprint("vm", i)),
				Memory: mib * hypervisor.Bytes(rapid.IntRange(1, 4096).Draw(t, "MiB"))}
			if disk := rapid.IntRange(0, 4096).Draw(t, "MiB on disk"); disk > 0 {
				size := mib * hypervisor.Bytes(disk)
				vm = vm.WithDisks([]hypervisor.Disk{{Name: "d", Size: size}})
			}
			from := rapid.SampledFrom([]name{"n1", "n2"}).Draw(t, "from")
			w.ok(w.Host(from).Boot(vm, fake.Workload{}))
			w.begin(move{vm: vm, from: from, to: "n3"})
			total += vm.Memory + vm.LocalSize()
		}
		// A pass lasts a millisecond at least; each share loses a byte per second.
		var last time.Time
		for next, some := w.Next(); some; next, some = w.Next() {
			w.AdvanceTo(next)
			last = next
		}
		got, want := last.Sub(epoch), total.At(10*hypervisor.Gbit)
		if got < want || got > want+time.Duration(3*n)*ms {
			t.Fatalf("%d flows with %v took %v, the card needs %v", n, total, got, want)
		}
	})
}
