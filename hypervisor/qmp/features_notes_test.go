package qmp_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
)

// A target that has heard that its source has stopped, and cannot note that the VM has come,
// does not thank for it: the source keeps the only disks that are sure. When it can, both agree.
func TestAnArrivalThatCannotBeNotedIsNotAcknowledged(t *testing.T) {
	var obstacle string
	var once sync.Once
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		if c.Name != "n2" {
			return
		}
		note := filepath.Join(c.Dir, "jobs", durable.Name("job"))
		obstacle = note + durable.Unfinished
		c.Changed = func(vmid) {
			if text, _ := os.ReadFile(note); bytes.Contains(text, []byte(`"Stopped": true`)) {
				once.Do(func() { _ = os.Mkdir(obstacle, 0o700) })
			}
		}
	})
	vm := backendtest.WithDisks(l.vm("suite/rests", calm), twoDisks...)
	contents := l.furnish("n1", vm)
	l.begin("job", vm.ID, options{})
	l.Eventually("the disk of the target is full", func() bool {
		_, err := os.Stat(obstacle)
		return err == nil
	})
	for range 30 {
		p, err := l.hosts["n1"].Progress(t.Context(), "job")
		if err != nil || p.Status == hypervisor.JobSucceeded {
			t.Fatalf("the source says %+v, %v", p, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.Becomes("n2", vm.ID, hypervisor.Shutoff)
	l.release("job", vm.ID, "n1", "n2")
	l.same("n2", contents)
}

// While a target that did not come cannot be cleared away, nothing is done to the VM that the
// host had before. Its job has failed, and may be discarded.
func TestWhatIsLeftOfATargetIsNotTakenForTheVMBefore(t *testing.T) {
	l, ctx := newLab(t, accelerator(t), nil), t.Context()
	vm := l.vm("suite/before", calm)
	l.start("n1", vm)
	l.begin("there", vm.ID, options{})
	l.Until("n1", "there", hypervisor.JobSucceeded)
	l.Do("n2", vm.ID, hypervisor.Kill{})
	l.Becomes("n2", vm.ID, hypervisor.Shutoff)
	h := l.hosts["n2"]
	if _, err := h.Receive(ctx, hypervisor.Incoming{Job: "back", VM: vm}); err != nil {
		t.Fatal(err)
	}
	clearing := l.diesUncleared("n2", vm.ID, "back")
	for _, c := range []hypervisor.Command{hypervisor.Kill{}, hypervisor.Start{VM: vm},
		hypervisor.Release{Job: "there", Moved: hypervisor.Evidence{VM: vm.ID, Host: "n1",
			Proof: hypervisor.RunsAtTarget, Job: "there"}}} {
		if err := h.Do(ctx, vm.ID, c); !errors.Is(err, hypervisor.Transient) {
			t.Errorf("%T: %v", c, err)
		}
	}
	d, err := h.Domain(ctx, vm.ID)
	p, told := h.Progress(ctx, "back")
	if err != nil || told != nil || d.State != hypervisor.Shutoff || d.Job != "there" ||
		p.Status != hypervisor.JobFailed {
		t.Fatalf("it is %+v, %v; its job %+v, %v", d, err, p, told)
	}
	clearing()
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "back"}, hypervisor.Discard{Job: "back"})
	l.Becomes("n2", vm.ID, hypervisor.Shutoff)
	l.start("n2", vm)
	l.sound("n2", vm.ID)
}
