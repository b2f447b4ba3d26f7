package fake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// begun has "vm" on its way from n1 to n2.
func begun(t tester, load fake.Workload, o hypervisor.TransferOptions) (*world, hypervisor.JobID) {
	w := newWorld(t, sure())
	w.boot("n1", "vm", load)
	return w, w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", options: o})
}

func (w *world) wantStates(t testing.TB, source, target hypervisor.DomainState) {
	t.Helper()
	got := [2]hypervisor.DomainState{w.state("n1", "vm"), w.state("n2", "vm")}
	if want := [2]hypervisor.DomainState{source, target}; got != want {
		t.Fatalf("source and target are %v, want %v", got, want)
	}
}

func TestATransferGoesThroughItsStates(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	var got []string
	for {
		s := fmt.Sprint(w.progress("n1", job).Status, " ", w.state("n1", "vm"), " ",
			w.progress("n2", job).Status, " ", w.state("n2", "vm"))
		if !slices.Contains(got, s) {
			got = append(got, s)
		}
		next, some := w.Next()
		if !some {
			break
		}
		w.AdvanceTo(next)
	}
	want := []string{
		"Setup Running Setup Receiving",
		"Active Running Active Receiving",
		"Switching HandingOver Switching Receiving",
		"Switching HandingOver Succeeded Running",
		"Succeeded HandedOver Succeeded Running",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestTheDowntimeIsExact(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.untilStatus("n1", job, hypervisor.JobSwitching)
	stopped := w.Now()
	w.until("it runs again", func() bool { return w.state("n2", "vm") == hypervisor.Running })
	want := w.Now().Sub(stopped)
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	w.pass(time.Hour)
	for _, h := range []name{"n1", "n2"} {
		if got := w.progress(h, job).Downtime; got != want {
			t.Errorf("%s says %v, the guest stood %v", h, got, want)
		}
	}
}

func TestAHeldTargetWaitsForActivateWithEvidence(t *testing.T) {
	w := newWorld(t, sure())
	w.boot("n1", "vm", mild)
	job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", hold: true})
	activate := func(e hypervisor.Evidence) error {
		return w.Host("n2").Do(ctx, "vm", hypervisor.Activate{Job: job, Stopped: e})
	}
	proof := hypervisor.Evidence{Proof: hypervisor.SourceStopped, VM: "vm", Host: "n1", Job: job}
	wantKind(t, activate(proof), hypervisor.Conflict) // it is incomplete
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	w.wantStates(t, hypervisor.HandedOver, hypervisor.Received)
	w.pass(time.Minute)
	wantKind(t, activate(hypervisor.Evidence{}), hypervisor.Invalid)
	wantKind(t, activate(hypervisor.Evidence{Proof: hypervisor.SourceStopped, VM: "other",
		Host: "n1"}), hypervisor.Conflict)
	wantKind(t, activate(hypervisor.Evidence{Proof: hypervisor.SourceStopped, VM: "vm",
		Host: "n3"}), hypervisor.Conflict)
	w.wantStates(t, hypervisor.HandedOver, hypervisor.Received)
	w.ok(activate(proof))
	w.ok(activate(proof))
	w.wantStates(t, hypervisor.HandedOver, hypervisor.Running)
	source, target := w.progress("n1", job).Downtime, w.progress("n2", job).Downtime
	if source >= time.Second || target < time.Minute {
		t.Errorf("the source's downtime is %v, the target's %v; only the latter lasts until "+
			"the activation", source, target)
	}
	w.ok(w.Host("n1").Do(ctx, "vm", hypervisor.Release{Job: job, Moved: hypervisor.Evidence{
		Proof: hypervisor.RunsAtTarget, VM: "vm", Host: "n2"}}))
	w.wantStates(t, hypervisor.Absent, hypervisor.Running)
}

func TestACancelKeepsTheSourceUntilItIsTooLate(t *testing.T) {
	w, job := begun(t, mild, hypervisor.TransferOptions{})
	w.untilStatus("n1", job, hypervisor.JobActive)
	for range 2 {
		w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
	}
	w.wantStates(t, hypervisor.Running, hypervisor.Absent)
	if got := w.progress("n1", job).Status; got != hypervisor.JobCancelled {
		t.Errorf("the job is %v", got)
	}
	for _, s := range []hypervisor.JobStatus{hypervisor.JobSwitching, hypervisor.JobSucceeded} {
		w, job := begun(t, mild, hypervisor.TransferOptions{})
		w.untilStatus("n1", job, s)
		before := w.state("n1", "vm")
		wantKind(t, w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}), hypervisor.Conflict)
		w.wantStates(t, before, w.state("n2", "vm"))
	}
}

func TestWhatDoesNotConvergeCanBeHelped(t *testing.T) {
	tests := []struct {
		name    string
		options hypervisor.TransferOptions
		adjust  hypervisor.Adjustment
		mode    hypervisor.Mode
		ends    bool
	}{
		{"left alone it goes on", hypervisor.TransferOptions{}, nil, hypervisor.PreCopy, false},
		{"auto-converge slows the guest down", hypervisor.TransferOptions{AutoConverge: true},
			nil, hypervisor.PreCopy, true},
		{"post-copy runs the target", hypervisor.TransferOptions{PostCopy: true},
			hypervisor.StartPostCopy{}, hypervisor.PostCopy, true},
		{"a paused guest dirties nothing", hypervisor.TransferOptions{},
			hypervisor.PauseGuest{}, hypervisor.PausedCopy, true},
		{"a longer downtime may be allowed", hypervisor.TransferOptions{},
			hypervisor.SetDowntime{Limit: 4 * time.Second}, hypervisor.PreCopy, true},
		{"a cap can be lifted", hypervisor.TransferOptions{Bandwidth: 1e6, Downtime: time.Minute},
			hypervisor.SetBandwidth{}, hypervisor.PreCopy, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, job := begun(t, wild, test.options)
			w.pass(10 * time.Second)
			if test.adjust != nil {
				w.ok(w.Host("n1").Adjust(ctx, job, test.adjust))
			}
			w.pass(10 * time.Minute)
			p := w.progress("n1", job)
			if got := p.Status == hypervisor.JobSucceeded; got != test.ends || p.Mode != test.mode {
				t.Errorf("the job is %v in mode %v", p.Status, p.Mode)
			}
			if test.ends {
				w.wantStates(t, hypervisor.HandedOver, hypervisor.Running)
			}
		})
	}
}

func TestAutoConvergeTakesTwentyThenTenUpTo99Percent(t *testing.T) {
	w, job := begun(t, fake.Workload{ColdRate: 1e12, Cold: 4 * gib},
		hypervisor.TransferOptions{AutoConverge: true})
	var got []int
	for range 3600 {
		w.pass(time.Second)
		p := w.progress("n1", job)
		if len(got) == 0 || got[len(got)-1] != p.Throttle {
			got = append(got, p.Throttle)
		}
	}
	want := []int{0, 20, 30, 40, 50, 60, 70, 80, 90, 99}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("throttle (-want +got):\n%s", diff)
	}
}

func TestPostCopyHasNoWayBack(t *testing.T) {
	w, job := begun(t, wild, hypervisor.TransferOptions{PostCopy: true})
	h := w.Host("n1")
	wantKind(t, h.Adjust(ctx, job, hypervisor.StartPostCopy{}), hypervisor.Conflict) // set-up
	w.pass(5 * time.Second)
	for range 2 {
		w.ok(h.Adjust(ctx, job, hypervisor.StartPostCopy{}))
	}
	w.until("the target runs", func() bool { return w.state("n2", "vm") == hypervisor.Running })
	w.wantStates(t, hypervisor.HandingOver, hypervisor.Running)
	p := w.progress("n1", job)
	if p.Status != hypervisor.JobActive || p.Mode != hypervisor.PostCopy || p.Remaining == 0 {
		t.Errorf("progress %+v", p)
	}
	wantKind(t, h.Adjust(ctx, job, hypervisor.Cancel{}), hypervisor.Conflict)
	wantKind(t, h.Do(ctx, "vm", hypervisor.Resume{Job: job, NeverRan: hypervisor.Evidence{
		Proof: hypervisor.OperatorWord, Host: "n2"}}), hypervisor.Conflict)
	wantKind(t, h.Do(ctx, "vm", hypervisor.Release{Job: job, Moved: hypervisor.Evidence{
		Proof: hypervisor.RunsAtTarget, VM: "vm", Host: "n2"}}), hypervisor.Conflict)
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	if got := w.progress("n1", job); got.Downtime != p.Downtime || got.Remaining != 0 {
		t.Errorf("in the end %+v", got)
	}
}

func TestPostCopyMustBeAllowed(t *testing.T) {
	w, job := begun(t, wild, hypervisor.TransferOptions{})
	w.pass(time.Second)
	wantKind(t, w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}), hypervisor.Invalid)
}

func TestWhoPausedTheGuestDecidesWhetherItRunsAfterwards(t *testing.T) {
	pause, unpause := hypervisor.Pause{}, hypervisor.Unpause{}
	tests := []struct {
		name   string
		before []cmd // before PauseGuest
		after  []cmd
		cancel bool
		want   hypervisor.DomainState
	}{
		{"paused to converge it runs at the target", nil, nil, false, hypervisor.Running},
		{"paused to converge it runs after a cancel", nil, nil, true, hypervisor.Running},
		{"paused by its operator it rests at the target", []cmd{pause}, nil, false,
			hypervisor.Paused},
		{"paused by its operator it rests after a cancel", []cmd{pause}, nil, true,
			hypervisor.Paused},
		{"paused by both it rests at the target", nil, []cmd{pause}, false, hypervisor.Paused},
		{"paused by both it rests after a cancel", nil, []cmd{pause}, true, hypervisor.Paused},
		{"unpaused by its operator it runs on", nil, []cmd{unpause}, true, hypervisor.Running},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, job := begun(t, wild, hypervisor.TransferOptions{})
			w.pass(time.Second)
			for _, c := range test.before {
				w.ok(w.Host("n1").Do(ctx, "vm", c))
			}
			w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.PauseGuest{}))
			for _, c := range test.after {
				w.ok(w.Host("n1").Do(ctx, "vm", c))
			}
			if test.cancel {
				w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.Cancel{}))
				w.wantStates(t, test.want, hypervisor.Absent)
				return
			}
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			w.wantStates(t, hypervisor.HandedOver, test.want)
		})
	}
}

func TestOptionsChangeWhatIsSent(t *testing.T) {
	m := fake.Model{PerChannel: 500e6, Compression: 250, PageOverhead: 8}
	tests := []struct {
		name    string
		options hypervisor.TransferOptions
		want    time.Duration
	}{
		{"one connection is as fast as one connection", hypervisor.TransferOptions{}, 8607 * ms},
		{"two connections are twice as fast", hypervisor.TransferOptions{Channels: 2}, 4303 * ms},
		{"four are limited by the link", hypervisor.TransferOptions{Channels: 4}, 3443 * ms},
		{"compression sends a quarter", hypervisor.TransferOptions{Compression: true}, 2164 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, m)
			w.boot("n1", "vm", fake.Workload{})
			job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", options: test.options})
			w.untilStatus("n1", job, hypervisor.JobSucceeded)
			if got := w.Now().Sub(epoch); (got - test.want).Abs() > 2*ms {
				t.Errorf("took %v, want %v", got, test.want)
			}
		})
	}
}

func TestHintsSayWhatChangedOnce(t *testing.T) {
	w, job := begun(t, fake.Workload{}, hypervisor.TransferOptions{})
	w.Hints()
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	want := []fake.Hint{
		{Host: "n1", VM: "vm", What: fake.PassFinished},
		{Host: "n1", VM: "vm", What: fake.DomainChanged},
		{Host: "n2", VM: "vm", What: fake.DomainChanged},
		{Host: "n2", VM: "vm", What: fake.JobChanged},
		{Host: "n1", VM: "vm", What: fake.JobChanged},
	}
	if diff := cmp.Diff(want, w.Hints()); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	if again := w.Hints(); len(again) > 0 {
		t.Errorf("hints are not cleared: %v", again)
	}
	if diff := cmp.Diff([]vmid{"vm"}, w.Touched()); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
	if again := w.Touched(); len(again) > 0 {
		t.Errorf("touched is not cleared: %v", again)
	}
	if got := fmt.Sprint(want[3].What, want[0].What, want[1].What, fake.HintKind(9)); got !=
		"job changed pass finished domain changed invalid" {
		t.Errorf("names %q", got)
	}
}

// A job that breaks is hinted at, as one that ends is; that it goes on is no news.
func TestABrokenJobIsHintedAt(t *testing.T) {
	w, job := begun(t, fake.Workload{}, hypervisor.TransferOptions{})
	w.untilStatus("n1", job, hypervisor.JobSwitching)
	changed := fake.Hint{Host: "n1", VM: "vm", What: fake.JobChanged}
	if slices.Contains(w.Hints(), changed) {
		t.Error("a job that goes on is hinted at")
	}
	w.ok(w.KillDomain("n2", "vm"))
	if hints := w.Hints(); !slices.Contains(hints, changed) {
		t.Errorf("hints %v, want one about the job", hints)
	}
	if s := w.progress("n1", job).Status; s != hypervisor.JobBroken {
		t.Errorf("the job is %v", s)
	}
}

// A VM that has gone while it was being measured leaves nothing to the next one.
func TestAMeasurementEndsWithItsDomain(t *testing.T) {
	w := newWorld(t, sure())
	h := w.Host("n1")
	w.boot("n1", "a", fake.Workload{Rate: 1e6, Hot: gib})
	w.ok(h.Do(ctx, "a", hypervisor.MeasureDirtyRate{For: time.Minute}))
	w.ok(h.Do(ctx, "a", hypervisor.Kill{}))
	w.ok(h.Do(ctx, "a", hypervisor.Forget{}))
	w.Hints()
	w.boot("n1", "b", fake.Workload{Rate: 1e6, Hot: gib})
	w.pass(2 * time.Minute)
	d, err := h.Domain(ctx, "b")
	if w.ok(err); !d.Measured.IsZero() || d.DirtyRate != 0 {
		t.Errorf("the next VM was measured: %+v", d)
	}
}
