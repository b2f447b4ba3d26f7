package qmp

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// dueUnanswered returns the next step of a QEMU that is alive and does not answer: to end it, if it
// was meant to end or its guest has had its time to stop. One that moves a VM is waited for:
// it is not known how far it has come, and it may hold the only copy.
func dueUnanswered(d *domainRecord, j *jobRecord, now time.Time) nextStep {
	if d.Ending || d.Doing == hypervisor.Stopping && d.Late(now) && !sends(j) && !receives(j) {
		return stepQuit
	}
	return stepNone
}
