package store

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// Release is an operator's confirmation that a VM's claim is stale: the migration that it names is not there
// any more. It takes effect when the agent of the VM's host has confirmed it.
// Source: Incus and Proxmox VE (qm unlock), which take a lock back at an operator's command alone.
type Release struct {
	By    string
	Claim migration.ID // the claim that is to be taken back, and no later one
}

// Holder returns why the claim of a VM is not stale, or cannot be shown to be; "" is that an
// operator may ask for its release. claimant is the record of the migration that the claim names,
// home that of the VM's host; nil is that there is none.
func Holder(v *VM, claimant *Migration, home *Host) string {
	switch {
	case v.ActiveMigration == "":
		return "no migration has claimed it"
	case claimant != nil && !claimant.State.Phase.Final():
		return "migration " + string(v.ActiveMigration) + " is " + claimant.State.Phase.String() +
			": wait, or godwit cancel it"
	case claimant != nil:
		return "migration " + string(v.ActiveMigration) + " has ended and is still known: the controller takes " +
			"the claim back when it knows where the VM is"
	case home == nil:
		return "its host " + string(v.Host) + " is not known, and cannot say whether the VM is there"
	case home.NotReady || home.Fenced || home.Fencing != nil:
		return "its host " + string(v.Host) + " is lost: only its agent can say whether the VM is " +
			"there. Wait until the host is back"
	}
	return ""
}

// Releasing reports whether an operator has asked for the release of the VM's claim, and its host's
// agent has not confirmed that it is stale.
func (v *VM) Releasing() bool {
	return v.ActiveMigration != "" && v.Release != nil && v.Release.Claim == v.ActiveMigration && v.Unclaimed != v.ActiveMigration
}

// Released reports whether the claim of the VM is stale by the confirmation of an operator and by that of
// its host's agent.
func (v *VM) Released() bool {
	return v.ActiveMigration != "" && v.Release != nil && v.Release.Claim == v.ActiveMigration && v.Unclaimed == v.ActiveMigration
}

// Unheld reports whether the migration that has claimed the VM holds nothing of it, by what the VM's host
// knows: the VM executes there and no transfer of that name is under way, or it rests there and none
// was ever begun. p is how that migration goes by the host.
func (v *VM) Unheld(d hypervisor.Domain, p hypervisor.Progress) bool {
	switch {
	case d.Unresolved:
		return false
	case d.State.Rests():
		return p.Status == hypervisor.JobNone && d.Job != v.ActiveMigration
	case d.State.Executes(): // the source keeps the VM when a job has failed
		return p.Status == hypervisor.JobNone || p.Status == hypervisor.JobFailed ||
			p.Status == hypervisor.JobCancelled
	}
	return false
}
