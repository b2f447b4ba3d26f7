package agent_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A host confirms that a claim is stale only of what it can see: the VM is there, and nothing that it
// has begun may have taken the VM elsewhere.
func TestAStaleClaimIsConfirmedOnlyOfAVMThatIsThere(t *testing.T) {
	none, failed := hypervisor.JobNone, hypervisor.JobFailed
	for _, r := range []struct {
		name   string
		state  hypervisor.DomainState
		job    hypervisor.JobID
		status hypervisor.JobStatus
		open   bool
		want   bool
	}{
		{"it runs, and no such job was begun", hypervisor.Running, "", none, false, true},
		{"it runs, and the job has failed", hypervisor.Running, job, failed, false, true},
		{"it runs, and the job was cancelled", hypervisor.Running, job, hypervisor.JobCancelled, false,
			true},
		{"memory moves", hypervisor.Running, job, hypervisor.JobActive, false, false},
		{"it is switching over", hypervisor.Paused, job, hypervisor.JobSwitching, false, false},
		{"it has arrived elsewhere", hypervisor.Shutoff, job, hypervisor.JobSucceeded, false, false},
		{"the link broke after it had stopped", hypervisor.Paused, job, hypervisor.JobBroken, true,
			false},
		{"it has stopped, and where it runs is not known", hypervisor.Running, job, none, true, false},
		{"it is not there", hypervisor.Absent, "", none, false, false},
		{"it comes from elsewhere", hypervisor.Receiving, "other", none, false, false},
		{"it has crashed, and no such job was begun", hypervisor.Crashed, "", none, false, true},
		{"it has crashed under that job", hypervisor.Crashed, job, none, false, false},
		{"it is off after that job has failed", hypervisor.Shutoff, job, failed, false, false},
	} {
		v := store.VM{ActiveMigration: job}
		d := hypervisor.Domain{State: r.state, Job: r.job, Unresolved: r.open}
		if got := v.Unheld(d, hypervisor.Progress{Status: r.status}); got != r.want {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
}

func TestAReleaseOfAnotherClaimIsNotConfirmed(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.changeVM(func(v *store.VM) {
		v.ActiveMigration, v.Release = "now", &store.Release{By: "alice", Claim: "before"}
	})
	s.reconciles("n1")
	if v := s.vm(); v.Unclaimed != "" || v.Released() {
		t.Errorf("%+v", v)
	}
	s.changeVM(func(v *store.VM) { v.Release = &store.Release{By: "alice", Claim: "now"} })
	s.reconciles("n1")
	if v := s.vm(); v.Unclaimed != "now" || !v.Released() {
		t.Errorf("%+v", v)
	}
}
