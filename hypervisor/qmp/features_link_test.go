package qmp_test

import (
	"errors"
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
	l.begin("job", vm.ID, options{Bandwidth: 4 << 20})
	l.eventually("memory moves", func() bool { return l.progress("n1", "job").Sent > 0 })
	if err := wire.setCut(true); err != nil {
		t.Fatal(err)
	}
	// All that is left fits into such a downtime: QEMU switches over.
	l.adjust("job", hypervisor.SetDowntime{Limit: 6 * time.Second})
	source, began := l.hosts["n1"], time.Now()
	l.eventually("the source does not answer", func() bool {
		_, err := source.Domain(t.Context(), vm.ID)
		return errors.Is(err, hypervisor.Transient)
	})
	silent := time.Now()
	l.eventually("the source answers", func() bool {
		_, err := source.Domain(t.Context(), vm.ID)
		return err == nil
	})
	t.Logf("the source was silent after %v, and for %v", silent.Sub(began).Round(time.Millisecond),
		time.Since(silent).Round(time.Millisecond))
	evidence := hypervisor.Evidence{Proof: hypervisor.TargetDiscarded, VM: vm.ID, Host: "n2",
		Job: "job"}
	l.do("n2", vm.ID, hypervisor.Discard{Job: "job"})
	if d := l.domain("n1", vm.ID); d.State != hypervisor.Running {
		l.do("n1", vm.ID, hypervisor.Resume{Job: "job", NeverRan: evidence})
	}
	l.until("n1", "job", hypervisor.JobFailed)
	l.becomes("n1", vm.ID, hypervisor.Running)
	l.sound("n1", vm.ID)
	l.becomes("n2", vm.ID, hypervisor.Absent)
}
