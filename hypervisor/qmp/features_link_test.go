package qmp_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// A QEMU that sends the last of its guest does nothing else, and its guest stands. When the
// link takes nothing any more, without a word, it is not left waiting for it: soon it can be
// asked again, and its VM runs where it was, once its target is known to never have run.
func TestALinkThatFallsSilentAtTheSwitchOverIsGivenUp(t *testing.T) {
	const timeout = 2 * time.Second
	var wire *link
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		if wire == nil {
			wire = newLink(t, filepath.Join(filepath.Dir(c.Dir), "l"))
		}
		c.Advertise, c.Timeout = wire.advertise, timeout
	})
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	source, began := l.hosts["n1"], time.Now()
	mute := func() bool {
		_, err := source.Domain(t.Context(), vm.ID)
		return errors.Is(err, hypervisor.Transient)
	}
	job := silenced(l, wire, vm.ID, mute)
	silent := time.Now()
	l.Eventually("the source answers", func() bool {
		_, err := source.Domain(t.Context(), vm.ID)
		return err == nil
	})
	t.Logf("the source was silent after %v, and for %v", silent.Sub(began).Round(time.Millisecond),
		time.Since(silent).Round(time.Millisecond))
	evidence := hypervisor.Evidence{Proof: hypervisor.TargetDiscarded, VM: vm.ID, Host: "n2",
		Job: job}
	l.Do("n2", vm.ID, hypervisor.Discard{Job: job})
	if d := l.Domain("n1", vm.ID); d.State != hypervisor.Running {
		l.Do("n1", vm.ID, hypervisor.Resume{Job: job, NeverRan: evidence})
	}
	l.Until("n1", job, hypervisor.JobFailed)
	l.Becomes("n1", vm.ID, hypervisor.Running)
	l.sound("n1", vm.ID)
	l.Becomes("n2", vm.ID, hypervisor.Absent)
}

// silenced cuts the link of a transfer just before its switch-over, and returns the job when the source
// is mute. A source whose link is full before it has begun its switch-over does not come to it: the
// transfer is cancelled, and another is begun.
func silenced(l *lab, wire *link, id vmid, mute func() bool) hypervisor.JobID {
	l.T.Helper()
	for i := range 10 {
		job := hypervisor.JobID(fmt.Sprint("job-", i))
		l.begin(job, id, options{Bandwidth: 4 << 20})
		l.Eventually("memory moves", func() bool { return l.Progress("n1", job).Sent > 0 })
		must(l.T, wire.setCut(true))
		if l.Progress("n1", job).Status.Final() {
			l.T.Skip("the machine is busy: the transfer was over before its link was cut")
		}
		// All that is left fits into such a downtime: QEMU switches over.
		l.Adjust(job, hypervisor.SetDowntime{Limit: 6 * time.Second})
		for began := time.Now(); time.Since(began) < 8*time.Second; {
			if mute() {
				return job
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.Adjust(job, hypervisor.Cancel{})
		l.Until("n1", job, hypervisor.JobCancelled)
		must(l.T, wire.setCut(false))
		l.Becomes("n2", id, hypervisor.Absent)
	}
	l.T.Fatal("the link was full before the switch-over, in ten transfers")
	return ""
}
