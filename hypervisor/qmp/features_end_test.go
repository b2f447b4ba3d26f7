package qmp_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// powersOff lets the guest of a VM shut down whose host is closed, and waits until it has.
func (l *lab) powersOff(n name, id vmid) {
	l.T.Helper()
	sockets, err := filepath.Glob(filepath.Join(l.dir, string(n), "vms", "*", "qmp.sock"))
	if err != nil || len(sockets) != 1 {
		l.T.Fatalf("the monitors of %s are %v: %v", id, sockets, err)
	}
	m, err := qemu.Dial(l.T.Context(), qemu.Config{Path: sockets[0]})
	must(l.T, err)
	defer m.Close()
	q := qemu.QEMU{Conn: m}
	before, err := q.Status(l.T.Context())
	must(l.T, err)
	must(l.T, q.SystemPowerdown(l.T.Context()))
	var now qemu.RunState
	l.T.Cleanup(func() {
		if l.T.Failed() {
			l.T.Logf("QEMU was %s when the button was pressed, and is %s; of the guest is heard %+v",
				before, now, l.pulse(id).Log())
		}
	})
	l.Eventually("the guest shuts down", func() bool {
		now, err = q.Status(l.T.Context())
		return err == nil && now == qemu.Shutdown
	})
}

// A VM that has come by a migration and shuts down while its disks are copied for the next one
// is at rest: what QEMU has completed is the migration before.
func TestAVMThatCameAndShutsDownWhileItsDisksAreCopiedIsAtRest(t *testing.T) {
	l, wire := linked(t, nil)
	brake := slow(wire)
	brake.Store(false)
	defer brake.Store(false)
	vm := backendtest.WithDisks(l.vm("suite/sleeper", calm), twoDisks[1])
	contents := l.furnish("n2", vm)
	l.start("n2", vm)
	l.moveWith("there", vm, [2]name{"n2", "n1"}, options{})
	l.release("there", vm.ID, "n2", "n1")
	brake.Store(true)
	l.copies("back", vm.ID)
	l.ask("n1", vm.ID, "system_powerdown", nil)
	l.Eventually("it is at rest", func() bool {
		s := l.Domain("n1", vm.ID).State
		if s == hypervisor.HandingOver {
			t.Fatal("it is handed over before its memory moves")
		}
		return s == hypervisor.Shutoff
	})
	brake.Store(false)
	l.Until("n1", "back", hypervisor.JobFailed)
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "back"})
	l.same("n1", contents)
	l.start("n1", vm)
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

// The same, where we died after the next migration was noted and before it began: it is not said
// to its target that the guest has stopped for it.
func TestAVMThatCameAndShutsDownBeforeTheNextMigrationBeginsIsAtRest(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/sleeper", calm)
	l.start("n2", vm)
	l.moveWith("there", vm, [2]name{"n2", "n1"}, options{})
	l.release("there", vm.ID, "n2", "n1")
	l.Becomes("n1", vm.ID, hypervisor.Running) // a guest that stands sees no button
	address := l.receive("back", vm)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) {
		d.Job = "back"
		path := filepath.Join(l.dir, "n1", "jobs", durable.Name(string(d.Job)))
		must(t, durable.Write(path, &qmp.Job{Job: qmp.BaseJob{ID: d.Job, VM: vm, Role: qmp.Source,
			Stage: qmp.Sending, Target: "n2", Address: address}}, true))
		l.powersOff("n1", vm.ID)
	})
	l.Becomes("n1", vm.ID, hypervisor.Shutoff)
	l.Until("n1", "back", hypervisor.JobFailed)
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "back"})
	l.ends("n1", vm.ID)
}

// A guest that shuts down just before the switch-over is off when that fails, or boots if it was
// to: QEMU would let it run on behind its end.
func TestAGuestThatShutsDownBeforeASwitchOverThatFailsIsOff(t *testing.T) {
	for _, row := range []struct {
		name  string
		ask   func(*qmpHost, context.Context, vmid) error // which takes a while
		state hypervisor.DomainState
	}{
		{"by itself", func(h *qmpHost, ctx context.Context, _ vmid) error {
			return h.Adjust(ctx, "job", hypervisor.SetDowntime{Limit: time.Second})
		}, hypervisor.Shutoff},
		{"to reboot", func(h *qmpHost, ctx context.Context, id vmid) error {
			return h.Do(ctx, id, hypervisor.Reboot{})
		}, hypervisor.Running},
	} {
		t.Run(row.name, func(t *testing.T) {
			var noted atomic.Pointer[func()]
			l := newLab(t, accelerator(t), whenNoted(&noted))
			vm := l.vm("suite/sleeper", calm)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{HoldSwitchOver: true, Bandwidth: 1 << 20})
			l.Until("n1", "job", hypervisor.JobActive)
			begun, ended := make(chan struct{}), make(chan struct{})
			then := func() { close(begun); <-ended }
			noted.Store(&then)
			done := make(chan error)
			go func() { done <- row.ask(l.hosts["n1"], t.Context(), vm.ID) }()
			<-begun // meanwhile nothing looks
			l.ask("n1", vm.ID, "system_powerdown", nil)
			is := func(query, status string) func() bool {
				return func() bool { return l.ask("n1", vm.ID, query, nil)["status"] == status }
			}
			l.Eventually("it shuts down", is("query-status", "shutdown"))
			l.set("n1", vm.ID, map[string]any{"max-bandwidth": 1 << 40})
			l.Eventually("it stands", is("query-migrate", "pre-switchover"))
			l.ask("n1", vm.ID, "migrate_cancel", nil)
			l.Eventually("it has failed", is("query-migrate", "cancelled"))
			close(ended)
			must(t, <-done)
			l.Becomes("n1", vm.ID, row.state)
		})
	}
}
