package fake_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A host that comes with an empty directory knows nothing of what runs there, and starts none of
// it again.
func TestAnEmptyDirectorySaysNothing(t *testing.T) {
	w := newWorld(t, fake.QEMU())
	h := w.Host("n1")
	w.boot("n1", "vm", mild)
	w.ok(w.Directory("n1", 1))
	if list, err := h.Domains(ctx); err != nil || len(list) != 0 {
		t.Errorf("it knows %v: %v", list, err)
	}
	asks := map[string]func() error{
		"Domain": func() error { _, err := h.Domain(ctx, "vm"); return err },
		"Receive": func() error {
			_, err := h.Receive(ctx, hypervisor.Incoming{Job: "j", VM: aVM("vm")})
			return err
		},
	}
	for _, c := range []cmd{hypervisor.Start{VM: aVM("vm")}, hypervisor.Kill{},
		hypervisor.Stop{}, hypervisor.Discard{Job: "j"}, hypervisor.Forget{}} {
		asks[fmt.Sprintf("%T", c)] = func() error { return h.Do(ctx, "vm", c) }
	}
	for name, ask := range asks {
		if err := ask(); kindOf(err) != hypervisor.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err := h.Domain(ctx, "other"); err != nil || d.State != hypervisor.Absent {
		t.Errorf("another VM is %v: %v", d.State, err)
	}
	if c := w.Copies("vm"); len(c) != 1 || c[0].State != hypervisor.Running {
		t.Errorf("it does not run on: %v", c)
	}

	w.ok(w.KillDomain("n1", "vm"))
	if d, err := h.Domain(ctx, "vm"); err != nil || d.State != hypervisor.Absent {
		t.Errorf("its process has died, and it is %v: %v", d.State, err)
	}
	w.ok(h.Do(ctx, "vm", hypervisor.Start{VM: aVM("vm")}))
	w.ok(w.Directory("n1", 0)) // and what the other one has started is unknown here
	if _, err := h.Domain(ctx, "vm"); kindOf(err) != hypervisor.Conflict {
		t.Errorf("the first directory is back: %v", err)
	}
	w.ok(w.Directory("n1", 1))
	if d, err := h.Domain(ctx, "vm"); err != nil || d.State != hypervisor.Starting {
		t.Errorf("with the directory that has started it, it is %v: %v", d.State, err)
	}
	if n := len(w.Copies("vm")); n != 1 {
		t.Errorf("there are %d copies", n)
	}
}

// A directory that is given back says what it said, of VMs and of jobs.
func TestADirectoryThatIsGivenBack(t *testing.T) {
	w := newWorld(t, fake.QEMU())
	w.boot("n1", "vm", mild)
	job := w.begin(move{vm: aVM("vm"), from: "n1", to: "n2"})
	w.ok(w.Directory("n1", 1))
	if p, err := w.Host("n1").Progress(ctx, job); err != nil || p.Status != hypervisor.JobNone {
		t.Errorf("it knows a job: %v, %v", p, err)
	}
	w.ok(w.Directory("n1", 0))
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	for _, bad := range []struct {
		host   name
		number int
		want   hypervisor.Kind
	}{{"n9", 0, hypervisor.NotFound}, {"n1", -1, hypervisor.Invalid}} {
		if err := w.Directory(bad.host, bad.number); kindOf(err) != bad.want {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
