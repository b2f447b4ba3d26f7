package hypervisor_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
)

// about says what a proof is about: the very thing in question, another one, or
// nothing in particular.
type about uint8

const (
	same about = iota
	other
	none
)

func (a about) of(thing string) string { return [...]string{thing, "other", ""}[a] }

// subject is what evidence is about: VM, host and job.
type subject struct{ vm, host, job about }

// every is each combination of what evidence may be about.
func every() []subject {
	var all []subject
	for n := range 27 {
		all = append(all, subject{about(n / 9), about(n / 3 % 3), about(n % 3)})
	}
	return all
}

// only lists the subjects whose parts are all among those given.
func only(vm, host, job []about) []subject {
	return slices.DeleteFunc(every(), func(s subject) bool {
		return !slices.Contains(vm, s.vm) || !slices.Contains(host, s.host) ||
			!slices.Contains(job, s.job)
	})
}

// TestWhatEvidenceProves is the full table: every proof with everything that it
// may be about, 27 subjects each, and the answer to each of the three questions.
func TestWhatEvidenceProves(t *testing.T) {
	this, any := []about{same}, []about{same, other, none}
	thisOrAll := []about{same, none}
	tests := []struct {
		name                  string
		proof                 hypervisor.Proof
		dead, neverRan, moved []subject
	}{
		{"no proof proves nothing", hypervisor.NoProof, nil, nil, nil},
		{"a discarded copy is dead, and for its own job never ran", hypervisor.TargetDiscarded,
			only(this, this, any), only(this, this, this), nil},
		{"a reaped process is dead, but has run", hypervisor.ProcessReaped,
			only(this, this, any), nil, nil},
		{"a fenced host is dead with all that was on it", hypervisor.HostFenced,
			only(thisOrAll, this, any), nil, nil},
		{"an expired lease is dead like a fenced host", hypervisor.LeaseExpired,
			only(thisOrAll, this, any), nil, nil},
		{"an operator's word about a host is about all of it, but never ran is about one copy",
			hypervisor.OperatorWord, only(thisOrAll, this, any), only(this, this, this), nil},
		{"a stopped source is not dead: it may be resumed", hypervisor.SourceStopped,
			nil, nil, nil},
		{"what runs at a target has moved from every other host", hypervisor.RunsAtTarget,
			nil, nil, only(this, []about{other}, any)},
		{"a proof that is not known proves nothing", hypervisor.RunsAtTarget + 1, nil, nil, nil},
	}
	for n, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if int(tt.proof) != n {
				t.Fatalf("the table leaves out proofs: row %d is %s", n, tt.proof)
			}
			for _, s := range every() {
				e := hypervisor.Evidence{Proof: tt.proof, VM: hypervisor.VMID(s.vm.of("web")),
					Host: hypervisor.HostName(s.host.of("n1")),
					Job:  hypervisor.JobID(s.job.of("m1")), By: "operator alice"}
				for _, q := range []struct {
					asked string
					want  []subject
					got   bool
				}{
					{"dead", tt.dead, e.Dead("web", "n1")},
					{"never ran", tt.neverRan, e.NeverRan("web", "n1", "m1")},
					{"moved", tt.moved, e.Moved("web", "n1")},
				} {
					if want := slices.Contains(q.want, s); q.got != want {
						t.Errorf("%+v: %s is %t, want %t", e, q.asked, q.got, want)
					}
				}
			}
		})
	}
}

// drawnEvidence draws from few names, so that they often agree.
func drawnEvidence(t *rapid.T) hypervisor.Evidence {
	return hypervisor.Evidence{
		Proof: hypervisor.Proof(rapid.IntRange(0, 8).Draw(t, "proof")),
		VM:    rapid.SampledFrom([]hypervisor.VMID{"", "a", "b"}).Draw(t, "VM"),
		Host:  rapid.SampledFrom([]hypervisor.HostName{"", "n1", "n2"}).Draw(t, "host"),
		Job:   rapid.SampledFrom([]hypervisor.JobID{"", "m1", "m2"}).Draw(t, "job"),
		By:    rapid.SampledFrom([]string{"", "agent/n1"}).Draw(t, "by"),
	}
}

// TestEvidenceDoesNotContradictItself: the same words must not let a source resume
// and be removed, and they are the same for every operator.
func TestEvidenceDoesNotContradictItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawnEvidence(t)
		const vm, host, job = hypervisor.VMID("a"), hypervisor.HostName("n1"),
			hypervisor.JobID("m1")
		if e.NeverRan(vm, host, job) && !e.Dead(vm, host) {
			t.Errorf("%+v: it never ran, and yet is not dead", e)
		}
		if e.Dead(vm, host) && e.Moved(vm, "n2") {
			t.Errorf("%+v: it has moved to a copy that is dead", e)
		}
		anonymous := e
		anonymous.By = ""
		if anonymous.Dead(vm, host) != e.Dead(vm, host) ||
			anonymous.NeverRan(vm, host, job) != e.NeverRan(vm, host, job) ||
			anonymous.Moved(vm, host) != e.Moved(vm, host) {
			t.Errorf("%+v proves something else without an operator", e)
		}
	})
}

func TestTheZeroEvidenceProvesNothing(t *testing.T) {
	var e hypervisor.Evidence
	if e.Dead("", "") || e.NeverRan("", "", "") || e.Moved("", "") || e.Moved("", "n1") {
		t.Error("the zero value proves something about nothing")
	}
}

// The target's host was fenced: its copy of the VM is dead, but may have run and
// changed the disks, so that the source must not resume with its old memory.
func ExampleEvidence() {
	e := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n2", By: "fence_ipmilan"}
	fmt.Println("dead:", e.Dead("default/web", "n2"))
	fmt.Println("never ran:", e.NeverRan("default/web", "n2", "m1"))
	// Output:
	// dead: true
	// never ran: false
}

func ExampleEvidence_Moved() {
	e := hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: "default/web", Host: "n2",
		Job: "m1", By: "agent/n2"}
	fmt.Println(e.Moved("default/web", "n1"), e.Moved("default/web", "n2"))
	// Output: true false
}

func ExampleDomainState() {
	for _, s := range []hypervisor.DomainState{hypervisor.Running, hypervisor.Receiving,
		hypervisor.HandedOver} {
		fmt.Printf("%s: executes %t, holds the VM's state %t\n", s, s.Executes(), s.HoldsState())
	}
	// Output:
	// Running: executes true, holds the VM's state true
	// Receiving: executes false, holds the VM's state false
	// HandedOver: executes false, holds the VM's state true
}

func TestEvidenceIsAboutAJobOrAboutAll(t *testing.T) {
	for _, test := range []struct {
		job  hypervisor.JobID
		want bool
	}{{"", true}, {"j1", true}, {"j2", false}} {
		if got := (hypervisor.Evidence{Job: test.job}).About("j1"); got != test.want {
			t.Errorf("evidence for job %q is about j1: %t", test.job, got)
		}
	}
}
