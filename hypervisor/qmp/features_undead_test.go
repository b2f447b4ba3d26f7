package qmp_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// trace traces a process until standard input ends: what traces a process that has ended keeps
// it from its parent.
func trace(pid string) int {
	runtime.LockOSThread()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = unix.PtraceSeize(n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("traced")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// undead keeps a QEMU that is killed from ending, as storage that hangs does, until the answer
// is called.
func (l *lab) undead(n name, id vmid) (dies func() bool) {
	l.T.Helper()
	pid, err := l.pid(n, id)
	must(l.T, err)
	self, err := os.Executable()
	must(l.T, err)
	cmd := exec.Command(self, strconv.Itoa(pid))
	cmd.Env = append(os.Environ(), roleKey+"=tracer")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(l.T, err)
	out, err := cmd.StdoutPipe()
	must(l.T, err)
	must(l.T, cmd.Start())
	_, _ = out.Read(make([]byte, 1))
	return func() bool {
		in.Close()
		return cmd.Wait() == nil
	}
}

// No call waits for long for a QEMU that was killed and that its kernel does not let end: the
// caller is told, and others are answered.
func TestAQEMUThatCannotBeKilledIsNotWaitedForForLong(t *testing.T) {
	type ask = func(l *lab, ctx context.Context, vm hypervisor.VM) error
	kill := func(l *lab, ctx context.Context, vm hypervisor.VM) error {
		return l.hosts["n1"].Do(ctx, vm.ID, hypervisor.Kill{})
	}
	for _, row := range []struct {
		name   string
		before func(*lab, hypervisor.VM)
		ask    ask
	}{
		{"of a VM that runs", func(l *lab, vm hypervisor.VM) { l.start("n1", vm) }, kill},
		{"that copies the disks of a VM at rest", func(l *lab, vm hypervisor.VM) {
			l.furnish("n1", vm)
			l.copies("job", vm.ID)
		}, func(l *lab, _ context.Context, vm hypervisor.VM) error {
			l.Adjust("job", hypervisor.Cancel{})
			l.Eventually("it is killed", func() bool {
				_, err := l.hosts["n1"].Domain(t.Context(), vm.ID)
				return err != nil
			})
			return nil
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, wire := linked(t, func(c *qmp.Config) { c.Timeout = time.Second })
			slow(wire)
			vm := backendtest.WithDisks(l.vm("suite/undead", calm), twoDisks[1])
			row.before(l, vm)
			dies := l.undead("n1", vm.ID)
			for _, ask := range []ask{row.ask, kill} {
				began := time.Now()
				err := ask(l, testutil.Context(t, testutil.DefaultLimit), vm)
				if took := time.Since(began); took > testutil.Limit(30*time.Second) {
					t.Errorf("it took %v: %v", took, err)
				}
			}
			if dies() {
				l.Eventually("it has ended", func() bool {
					return l.Host("n1").Do(t.Context(), vm.ID, hypervisor.Forget{}) == nil
				})
			}
		})
	}
}
