package qmp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// unwritable keeps the record of a VM from being written until the answer is called: what is
// being written then, or next, fails as the last on a full disk, and what follows does not.
func (l *lab) unwritable(n name, vm vmid) (last func()) {
	l.T.Helper()
	path := filepath.Join(l.config(n).Dir, "vms", durable.Name(string(vm)),
		"domain"+durable.Unfinished)
	must(l.T, os.Mkdir(path, 0o700))
	return func() {
		must(l.T, os.Remove(path))
		must(l.T, syscall.Mkfifo(path, 0o600))
		go func() { // the writer waits for the reader
			if pipe, err := os.Open(path); err == nil {
				pipe.Close()
			}
		}()
	}
}

// A VM that was handed over and runs at its target does not get a second life at its source, whose
// QEMU has ended, by a command that comes when that end could not be noted.
func TestASourceWhoseEndIsNotNotedHasHandedOver(t *testing.T) {
	for _, row := range []struct {
		name string
		ask  func(context.Context, *lab, hypervisor.VM) error
	}{
		{"it is to start", func(ctx context.Context, l *lab, vm hypervisor.VM) error {
			return l.hosts["n1"].Do(ctx, vm.ID, hypervisor.Start{VM: vm})
		}},
		{"it is to come", func(ctx context.Context, l *lab, vm hypervisor.VM) error {
			_, err := l.hosts["n1"].Receive(ctx, hypervisor.Incoming{Job: "back", VM: vm})
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/twice", calm)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{})
			l.Until("n1", "job", hypervisor.JobSucceeded)
			last := l.unwritable("n1", vm.ID)
			must(t, l.signal("n1", vm.ID, syscall.SIGKILL))
			l.Becomes("n1", vm.ID, hypervisor.Crashed)
			time.Sleep(100 * time.Millisecond) // its host has tried to note it
			last()
			err := row.ask(testutil.Context(t, testutil.DefaultLimit), l, vm)
			refused := errors.Is(err, hypervisor.Transient) || errors.Is(err, hypervisor.Conflict)
			if d := l.Domain("n1", vm.ID); !refused || !d.Unresolved {
				t.Errorf("%v; the source has %+v", err, d)
			}
			l.arrives("job", vm.ID)
		})
	}
}
