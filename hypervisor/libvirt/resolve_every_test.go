package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A puppet says of the VM what it is told to, obeys every command but one, and notes it.
type puppet struct {
	hypervisor.Hypervisor
	name   hypervisor.HostName
	domain hypervisor.Domain
	job    hypervisor.Progress
	did    *[]string
	refuse string // the command that it refuses
}

func (p puppet) Host(context.Context) (hypervisor.Host, error) {
	return hypervisor.Host{Name: p.name}, nil
}

func (p puppet) Domain(context.Context, hypervisor.VMID) (hypervisor.Domain, error) {
	return p.domain, nil
}

func (p puppet) Progress(context.Context, hypervisor.JobID) (hypervisor.Progress, error) {
	return p.job, nil
}

func (p puppet) Do(_ context.Context, _ hypervisor.VMID, c hypervisor.Command) error {
	name := strings.TrimPrefix(fmt.Sprintf("%T", c), "hypervisor.")
	*p.did = append(*p.did, string(p.name)+" "+name)
	if name == p.refuse {
		return &hypervisor.Error{Op: name, Host: p.name, Kind: hypervisor.NoRoom}
	}
	return nil
}

// puppets are one host with everything that it can say of a VM and a job.
func puppets(name hypervisor.HostName, did *[]string, unresolved ...bool) []puppet {
	var all []puppet
	for state := hypervisor.Absent; state <= hypervisor.Crashed; state++ {
		for status := hypervisor.JobNone; status <= hypervisor.JobBroken; status++ {
			for _, job := range []hypervisor.JobID{j1, "j2"} {
				for _, open := range unresolved {
					d := hypervisor.Domain{State: state, Job: job, Unresolved: open}
					if state == hypervisor.Absent {
						d.Job, d.Unresolved = "", false
					}
					all = append(all, puppet{name: name, did: did, domain: d,
						job: hypervisor.Progress{Status: status}})
				}
			}
		}
	}
	return all
}

// lives reports whether the VM executes, or is paused by its operator.
func (p puppet) lives() bool {
	return p.domain.State.Executes() || p.domain.State == hypervisor.Paused
}

// rests reports whether the VM is there without a process.
func (p puppet) rests() bool {
	return p.domain.State == hypervisor.Shutoff || p.domain.State == hypervisor.Crashed
}

// own reports whether what is there is so by the job.
func (p puppet) own() bool { return p.domain.Job == j1 }

// TestResolveDoesOnlyWhatIsSafe asks hosts that say everything there is to say, and
// obey: whatever is done must be right.
func TestResolveDoesOnlyWhatIsSafe(t *testing.T) {
	testutil.Unraced(t)
	var did []string
	count := map[string]int{}
	check := func(s, to puppet) {
		did = did[:0]
		out, err := libvirt.Resolve(t.Context(), s, to, web, j1)
		what := strings.Join(did, ", ")
		count[what]++
		kept := err == nil && out.Evidence.Proof == hypervisor.NoProof
		if !safe(what, s, to) || kept && !safeToKeep(s, to) {
			t.Fatalf("%+v %+v\n%+v %+v\n%q, %v", s.domain, s.job, to.domain, to.job, what, err)
		}
	}
	for _, s := range puppets("n1", &did, false, true) {
		for _, to := range puppets("n2", &did, false) {
			check(s, to)
			if !to.lives() {
				continue // then it does not matter how memory moved
			}
			both := [2]puppet{s, to}
			for i := range both {
				p := both
				p[i].job.Mode = hypervisor.PostCopy
				check(p[0], p[1])
			}
		}
	}
	for _, want := range []string{"", "n1 Release", "n2 Activate, n1 Release",
		"n2 Discard, n1 Resume", "n2 Discard, n2 Discard, n1 Resume",
		"n2 Discard, n1 Abandon", "n2 Discard"} {
		if count[want] == 0 {
			t.Errorf("never done: %q", want)
		}
		delete(count, want)
	}
	if len(count) > 0 {
		t.Errorf("done: %v", count)
	}
}

// safe says whether all that was done was right, in other words than Resolve's own.
func safe(did string, s, t puppet) bool {
	moving := s.job.Status == hypervisor.JobSetup || s.job.Status == hypervisor.JobActive ||
		s.job.Status == hypervisor.JobSwitching
	held := t.domain.State == hypervisor.Received && t.own()
	empty := t.domain.State == hypervisor.Absent ||
		t.domain.State == hypervisor.Receiving && t.own()
	came := t.job.Status == hypervisor.JobSucceeded
	switch did {
	case "":
		return true
	case "n1 Release": // the VM is there, all of it, and nowhere else
		half := (s.job.Mode == hypervisor.PostCopy || t.job.Mode == hypervisor.PostCopy) &&
			t.lives() && !came
		there := t.own() && (t.lives() || t.rests()) || t.lives() && came
		both := failed(s) && s.own() && !s.domain.Unresolved && s.rests() && t.rests()
		return !moving && !half && there && !both && !s.lives()
	case "n2 Activate, n1 Release":
		return !moving && held && s.domain.State == hypervisor.HandedOver && s.own()
	case "n2 Discard, n1 Resume":
		return !moving && s.domain.State == hypervisor.HandingOver && s.own() &&
			(empty && !came || held)
	case "n2 Discard, n2 Discard, n1 Resume": // it vouches twice that it never ran
		return !moving && s.domain.State == hypervisor.HandingOver && s.own() && t.own() &&
			t.rests()
	case "n2 Discard, n1 Abandon":
		return !moving && empty && !came && s.rests() && s.own() && s.domain.Unresolved
	case "n2 Discard":
		return !moving && empty && !s.domain.Unresolved && (s.lives() || s.rests())
	}
	return false
}

// failed reports whether the source says that it kept the VM.
func failed(s puppet) bool {
	return s.job.Status == hypervisor.JobFailed || s.job.Status == hypervisor.JobCancelled
}

// safeToKeep says whether it is true that the source alone has the VM.
func safeToKeep(s, t puppet) bool {
	switch {
	case s.domain.Unresolved, s.own() && s.job.Status == hypervisor.JobSucceeded:
		return false
	case s.lives():
		return !t.lives()
	}
	return failed(s) && s.own() && s.rests() && !t.lives() && !(t.own() && t.rests())
}

// TestResolveStopsAtARefusal: what a host refuses is the error, and nothing follows.
func TestResolveStopsAtARefusal(t *testing.T) {
	is := func(state hypervisor.DomainState, status hypervisor.JobStatus) puppet {
		d := hypervisor.Domain{State: state, Job: j1, Unresolved: status == hypervisor.JobBroken}
		return puppet{domain: d, job: hypervisor.Progress{Job: j1, Status: status}}
	}
	for refuse, tt := range map[string]struct {
		source, target puppet
		did, says      string
	}{
		"Release": {is(hypervisor.HandedOver, hypervisor.JobSucceeded),
			is(hypervisor.Running, hypervisor.JobSucceeded), "n1 Release",
			"n2 has the VM, and n1 cannot be released: Release on n1: no room"},
		"Activate": {is(hypervisor.HandedOver, hypervisor.JobSucceeded),
			is(hypervisor.Received, hypervisor.JobSucceeded), "n2 Activate",
			"n2 holds the VM and does not start it: Activate on n2: no room"},
		"Discard": {is(hypervisor.HandingOver, hypervisor.JobBroken),
			is(hypervisor.Receiving, hypervisor.JobBroken), "n2 Discard",
			"n2 does not discard the VM: Discard on n2: no room"},
		"Resume": {is(hypervisor.HandingOver, hypervisor.JobBroken),
			is(hypervisor.Receiving, hypervisor.JobBroken), "n2 Discard, n1 Resume",
			"n1 does not resume it: Resume on n1: no room"},
		"Abandon": {is(hypervisor.Crashed, hypervisor.JobBroken),
			is(hypervisor.Receiving, hypervisor.JobBroken), "n2 Discard, n1 Abandon",
			"n1 does not give it up: Abandon on n1: no room"},
	} {
		var did []string
		for i, p := range []*puppet{&tt.source, &tt.target} {
			p.name, p.did, p.refuse = [2]hypervisor.HostName{"n1", "n2"}[i], &did, refuse
		}
		out, err := libvirt.Resolve(t.Context(), tt.source, tt.target, web, j1)
		if out.Host != "" || strings.Join(did, ", ") != tt.did {
			t.Errorf("%s: done: %q, got %+v", refuse, did, out)
		}
		wantRefusal(t, err, hypervisor.NoRoom, []string{tt.says})
	}
}

// A changing is a host that says something else after its first answer.
type changing struct {
	puppet
	then  puppet
	asked *int
}

func (c changing) now() puppet {
	if *c.asked++; *c.asked > 1 {
		return c.then
	}
	return c.puppet
}

func (c changing) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	return c.now().Domain(ctx, vm)
}

func (c changing) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	return c.now().Progress(ctx, job)
}

// A source that has died, and notes between two answers that its target may have the VM, is not taken for one
// that nothing is open about: it would refuse to start the VM.
func TestResolveDoesNotTakeTheStartOfAJobWithTheEndOfIt(t *testing.T) {
	var did []string
	source := changing{asked: new(int),
		puppet: puppet{name: "n1", did: &did, domain: hypervisor.Domain{State: hypervisor.Crashed, Job: j1},
			job: hypervisor.Progress{Status: hypervisor.JobActive}},
		then: puppet{name: "n1", did: &did, domain: hypervisor.Domain{State: hypervisor.Crashed, Job: j1, Unresolved: true},
			job: hypervisor.Progress{Status: hypervisor.JobBroken}}}
	target := puppet{name: "n2", did: &did, job: hypervisor.Progress{Status: hypervisor.JobFailed}}
	for range 2 {
		_, err := libvirt.Resolve(t.Context(), source, target, web, j1)
		if abandoned := strings.Contains(strings.Join(did, " "), "n1 Abandon"); (err == nil) != abandoned {
			t.Errorf("done: %q, error %v", did, err)
		}
	}
	if len(did) == 0 {
		t.Error("the VM was not given up")
	}
}

func TestResolveAsksForNames(t *testing.T) {
	for _, job := range []hypervisor.JobID{"", j1} {
		for _, vm := range []hypervisor.VMID{"", web} {
			_, err := libvirt.Resolve(t.Context(), puppet{}, puppet{}, vm, job)
			if bad := vm == "" || job == ""; errors.Is(err, hypervisor.Invalid) != bad {
				t.Errorf("job %q of VM %q: got %v", job, vm, err)
			}
		}
	}
}
