package fake_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

const okay = hypervisor.Kind(255) // kindOf(nil)

// in brings the VM "vm" on n1 into a state.
func in(w *world, s hypervisor.DomainState) {
	do := func(cs ...cmd) {
		for _, c := range cs {
			w.ok(w.Host("n1").Do(ctx, "vm", c))
		}
	}
	if s == hypervisor.Absent {
		return
	}
	if s == hypervisor.Receiving || s == hypervisor.Received {
		w.boot("n2", "vm", mild)
		job := w.begin(move{vm: aVM("vm"), from: "n2", to: "n1", hold: true})
		if s == hypervisor.Received {
			w.untilStatus("n2", job, hypervisor.JobSucceeded)
		}
		return
	}
	w.boot("n1", "vm", mild)
	switch s {
	case hypervisor.Shutoff:
		do(hypervisor.Kill{})
	case hypervisor.Starting:
		do(hypervisor.Kill{}, hypervisor.Start{VM: aVM("vm")})
	case hypervisor.Paused:
		do(hypervisor.Pause{})
	case hypervisor.Stopping:
		do(hypervisor.Stop{Grace: time.Hour})
	case hypervisor.Rebooting:
		do(hypervisor.Reboot{})
	case hypervisor.Crashed:
		w.ok(w.KillDomain("n1", "vm"))
	case hypervisor.HandingOver:
		job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", hold: true})
		w.untilStatus("n1", job, hypervisor.JobSwitching)
	case hypervisor.HandedOver:
		job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2", hold: true})
		w.untilStatus("n1", job, hypervisor.JobSucceeded)
	}
}

// An outcome is what one state makes of a command.
type outcome struct {
	kind hypervisor.Kind
	then hypervisor.DomainState
}

// states are the columns of the table of commands.
var states = []hypervisor.DomainState{hypervisor.Absent, hypervisor.Shutoff, hypervisor.Starting,
	hypervisor.Running, hypervisor.Paused, hypervisor.Stopping, hypervisor.Rebooting,
	hypervisor.Receiving, hypervisor.Received, hypervisor.HandingOver, hypervisor.HandedOver,
	hypervisor.Crashed}

type commandTest struct {
	name    string
	command cmd
	want    []outcome // by state
}

func commandTests() []commandTest {
	bad := func(k hypervisor.Kind, s hypervisor.DomainState) outcome { return outcome{k, s} }
	good := func(s hypervisor.DomainState) outcome { return outcome{okay, s} }
	const conflict, absent = hypervisor.Conflict, hypervisor.NotFound
	const (
		none, off, starting, running, paused, stopping, rebooting, receiving, received, giving,
		given, crashed = hypervisor.Absent, hypervisor.Shutoff, hypervisor.Starting,
			hypervisor.Running, hypervisor.Paused, hypervisor.Stopping, hypervisor.Rebooting,
			hypervisor.Receiving, hypervisor.Received, hypervisor.HandingOver,
			hypervisor.HandedOver, hypervisor.Crashed
	)
	return []commandTest{
		{"start runs what has no process", hypervisor.Start{VM: aVM("vm")}, []outcome{
			good(starting), good(starting), good(starting), good(running), bad(conflict, paused),
			bad(conflict, stopping), good(rebooting), bad(conflict, receiving),
			bad(conflict, received), bad(conflict, giving), bad(conflict, given), good(starting)}},
		{"stop asks what runs", hypervisor.Stop{Grace: time.Hour}, []outcome{
			bad(absent, none), good(off), good(stopping), good(stopping), bad(conflict, paused),
			good(stopping), good(stopping), bad(conflict, receiving), bad(conflict, received),
			bad(conflict, giving), bad(conflict, given), good(crashed)}},
		{"kill never kills what may be the last good copy", hypervisor.Kill{}, []outcome{
			bad(absent, none), good(off), good(off), good(off), good(off), good(off), good(off),
			bad(conflict, receiving), bad(conflict, received), bad(conflict, giving),
			bad(conflict, given), good(crashed)}},
		{"reboot needs a running guest", hypervisor.Reboot{}, []outcome{
			bad(absent, none), bad(conflict, off), bad(conflict, starting), good(rebooting),
			bad(conflict, paused), bad(conflict, stopping), good(rebooting),
			bad(conflict, receiving), bad(conflict, received), bad(conflict, giving),
			bad(conflict, given), bad(conflict, crashed)}},
		{"pause needs a running guest", hypervisor.Pause{}, []outcome{
			bad(absent, none), bad(conflict, off), bad(conflict, starting), good(paused),
			good(paused), bad(conflict, stopping), bad(conflict, rebooting),
			bad(conflict, receiving), bad(conflict, received), bad(conflict, giving),
			bad(conflict, given), bad(conflict, crashed)}},
		{"unpause never runs what was received or handed over", hypervisor.Unpause{}, []outcome{
			bad(absent, none), bad(conflict, off), bad(conflict, starting), good(running),
			good(running), bad(conflict, stopping), bad(conflict, rebooting),
			bad(conflict, receiving), bad(conflict, received), bad(conflict, giving),
			bad(conflict, given), bad(conflict, crashed)}},
		{"discard never touches what executes", hypervisor.Discard{Job: "job-vm"}, []outcome{
			good(none), bad(conflict, off), bad(conflict, starting), bad(conflict, running),
			bad(conflict, paused), bad(conflict, stopping), bad(conflict, rebooting), good(none),
			good(none), bad(conflict, giving), bad(conflict, given), bad(conflict, crashed)}},
		{"release needs a source that stopped for good", hypervisor.Release{Job: "job-vm",
			Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: "vm", Host: "n2"}},
			[]outcome{good(none), good(none), bad(conflict, starting), bad(conflict, running),
				bad(conflict, paused), bad(conflict, stopping), bad(conflict, rebooting),
				bad(conflict, receiving), bad(conflict, received), bad(conflict, giving),
				good(none), good(none)}},
	}
}

func TestCommandsInEveryState(t *testing.T) {
	for _, test := range commandTests() {
		for i, state := range states {
			t.Run(test.name+", from "+state.String(), func(t *testing.T) {
				w := newWorld(t, sure())
				in(w, state)
				if got := w.state("n1", "vm"); got != state {
					t.Fatalf("the test's world is %v", got)
				}
				for _, turn := range []string{"first", "second"} {
					err := w.Host("n1").Do(ctx, "vm", test.command)
					got := outcome{kindOf(err), w.state("n1", "vm")}
					if want := test.want[i]; got != want && (turn == "first" || want.kind == okay) {
						t.Errorf("the %s time: %v and error %v, want %v and %v", turn, got.then,
							err, want.then, want.kind)
					}
				}
			})
		}
	}
}

func TestStatesEndInTime(t *testing.T) {
	tests := []struct {
		name  string
		state hypervisor.DomainState
		more  cmd
		after time.Duration
		then  hypervisor.DomainState
	}{
		{"a start takes the boot time", hypervisor.Starting, nil, 10 * time.Second,
			hypervisor.Running},
		{"a guest shuts down in its own time", hypervisor.Stopping, nil, 5 * time.Second,
			hypervisor.Shutoff},
		{"a second stop may shorten the grace", hypervisor.Stopping,
			hypervisor.Stop{Grace: time.Second}, time.Second, hypervisor.Shutoff},
		{"a second stop does not lengthen the grace", hypervisor.Stopping,
			hypervisor.Stop{Grace: time.Hour}, 5 * time.Second, hypervisor.Shutoff},
		{"a reboot takes the shutdown and the boot time", hypervisor.Rebooting, nil,
			15 * time.Second, hypervisor.Running},
		{"a stop during the boot comes first", hypervisor.Starting,
			hypervisor.Stop{Grace: time.Second}, time.Second, hypervisor.Shutoff},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, sure())
			in(w, test.state)
			if test.more != nil {
				w.ok(w.Host("n1").Do(ctx, "vm", test.more))
			}
			w.pass(test.after - 1)
			if got := w.state("n1", "vm"); got == test.then {
				t.Fatalf("it is %v too early", got)
			}
			w.pass(1)
			if got := w.state("n1", "vm"); got != test.then {
				t.Errorf("after %v it is %v, want %v", test.after, got, test.then)
			}
		})
	}
}

func TestRoomIsCounted(t *testing.T) {
	w := newWorld(t, sure())
	w.host(hypervisor.Host{Name: "small", Memory: 8 * gib, CPUs: 3, Link: 1e9})
	small := w.Host("small")
	start := func(id vmid, memory hypervisor.Bytes, cpus int) error {
		return small.Do(ctx, id, hypervisor.Start{VM: hypervisor.VM{ID: id, Memory: memory,
			CPUs: cpus}})
	}
	w.ok(start("a", 4*gib, 1))
	wantKind(t, start("b", 4*gib+1, 1), hypervisor.NoRoom)
	wantKind(t, start("b", 1*gib, 3), hypervisor.NoRoom)
	wantKind(t, small.Boot(hypervisor.VM{ID: "b", Memory: 5 * gib}, mild), hypervisor.NoRoom)
	in := hypervisor.Incoming{Job: "j", VM: hypervisor.VM{ID: "c", Memory: 4 * gib, CPUs: 2}}
	_, err := small.Receive(ctx, in)
	w.ok(err)
	wantKind(t, start("b", 1, 0), hypervisor.NoRoom)
	w.ok(small.Do(ctx, "c", hypervisor.Discard{Job: "j"}))
	w.ok(start("b", 4*gib, 2))
	w.ok(small.Do(ctx, "a", hypervisor.Kill{}))
	w.ok(start("d", 4*gib, 1))
	wantKind(t, start("a", 4*gib, 1), hypervisor.NoRoom)
}

func TestArgumentsAreChecked(t *testing.T) {
	w := newWorld(t, sure())
	h := w.Host("n1")
	w.boot("n1", "vm", mild)
	_, err := w.AddHost(hypervisor.Host{})
	wantKind(t, err, hypervisor.Invalid)
	_, err = w.AddHost(hypervisor.Host{Name: "n1"})
	wantKind(t, err, hypervisor.Conflict)
	_, err = h.Receive(ctx, hypervisor.Incoming{})
	wantKind(t, err, hypervisor.Invalid)
	_, err = h.Receive(ctx, hypervisor.Incoming{Job: "j", VM: aVM("vm")})
	wantKind(t, err, hypervisor.Conflict)
	wantKind(t, h.Boot(aVM("vm"), mild), hypervisor.Conflict)
	wantKind(t, h.Boot(aVM("x"), fake.Workload{Zero: 1001}), hypervisor.Invalid)
	wantKind(t, h.SetWorkload("x", mild), hypervisor.NotFound)
	wantKind(t, h.SetWorkload("vm", fake.Workload{Hot: -1}), hypervisor.Invalid)
	wantKind(t, h.Do(ctx, "vm", nil), hypervisor.Unsupported)
	wantKind(t, h.Do(ctx, "x", nil), hypervisor.Invalid)
	wantKind(t, h.Do(ctx, "x", hypervisor.Start{VM: aVM("y")}), hypervisor.Invalid)
	wantKind(t, h.Migrate(ctx, hypervisor.Outgoing{}), hypervisor.Invalid)
	wantKind(t, h.Migrate(ctx, hypervisor.Outgoing{Job: "j", VM: "x"}), hypervisor.NotFound)
	wantKind(t, h.Migrate(ctx, hypervisor.Outgoing{Job: "j", VM: "vm", Address: "a"}),
		hypervisor.Transient)
	wantKind(t, h.Adjust(ctx, "j", hypervisor.Cancel{}), hypervisor.NotFound)
	wantKind(t, w.Inject(fake.Fault{Host: "n1"}), hypervisor.Invalid)
	wantKind(t, w.Inject(fake.Fault{Host: "x", How: fake.Hang}), hypervisor.NotFound)
	wantKind(t, w.CutLink("n1", "n1"), hypervisor.NotFound)
}

func TestAStartElsewhereIsPossible(t *testing.T) {
	w := newWorld(t, sure())
	w.boot("n1", "vm", mild)
	w.ok(w.Host("n2").Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}))
	for _, c := range w.Copies("vm") {
		if !c.State.Executes() {
			t.Errorf("%s is %v; a real hypervisor cannot know, and starts", c.Host, c.State)
		}
	}
}

// A list that was answered stays what it was, whatever changes afterwards.
func TestAListOfDomainsIsNotChangedAfterwards(t *testing.T) {
	w := newWorld(t, fake.Model{})
	list := func() []hypervisor.Domain {
		t.Helper()
		l, err := w.Host("n1").Domains(ctx)
		w.ok(err)
		return l
	}
	if l := list(); l == nil || len(l) > 0 {
		t.Errorf("without VMs the list is %#v", l)
	}
	for _, id := range []vmid{"a", "b"} {
		w.ok(w.Host("n1").Boot(hypervisor.VM{ID: id, Memory: gib}, fake.Workload{}))
	}
	before := list()
	w.ok(w.KillDomain("n1", "b"))
	after := list()
	if before[1].State != hypervisor.Running || after[1].State != hypervisor.Crashed {
		t.Errorf("b was %v and is %v", before[1].State, after[1].State)
	}
	w.ok(w.Host("n1").Boot(hypervisor.VM{ID: "c", Memory: gib}, fake.Workload{}))
	if l := list(); len(after) != 2 || len(l) != 3 || l[2].VM.ID != "c" {
		t.Errorf("there were %d and are %+v", len(after), l)
	}
}
