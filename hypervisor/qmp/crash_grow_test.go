//go:build linux

package qmp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A shape is how much of a growth a QEMU has.
type shape struct {
	disk        hypervisor.Bytes
	dimms, cpus int
}

// shape asks a QEMU, through a monitor of the test's own, what it has.
func (p *observer) shape(ctx context.Context) (has shape, err error) {
	q := qemu.QEMU{Conn: p.client}
	nodes, err := q.QueryNamedNodes(ctx)
	if err != nil {
		return has, err
	}
	for _, n := range nodes {
		if n.Name == qemu.NodeName("data") {
			has.disk = n.Image.Size
		}
	}
	modules, err := q.QueryMemoryDevices(ctx)
	if err != nil {
		return has, err
	}
	var cpus []any
	err = p.client.Execute(ctx, "query-cpus-fast", nil, &cpus)
	has.dimms, has.cpus = len(modules), len(cpus)
	return has, err
}

// A process that is killed between the commands of a growth, as soon as QEMU is seen to have a part of
// it, leaves a VM that is known for what it has, that grows on when it is asked again, and that moves.
func TestDyingWhileAVMGrows(t *testing.T) {
	testutil.Long(t)
	s := newScene(t)
	const before, after = 4 * mib, 8 * mib
	for i, part := range []func(shape) bool{
		func(shape) bool { return true }, // perhaps before anything is done
		func(h shape) bool { return h.disk == after },
		func(h shape) bool { return h.dimms >= 1 },
		func(h shape) bool { return h.cpus >= 2 }, // on a busy machine the third may be there, too
		func(h shape) bool { return h.cpus >= 3 },
	} {
		vm := backendtest.WithDisks(s.vm(vmid(fmt.Sprintf("crash/grower%d", i)), crashGuest),
			hypervisor.Disk{Name: "data", Format: "qcow2", Size: before})
		vm.Hardware.MaxMemory, vm.Hardware.MaxCPUs = hypervisor.GiB, 3
		bigger := backendtest.WithDisks(vm, hypervisor.Disk{Name: "data", Format: "qcow2", Size: after})
		bigger.Memory, bigger.CPUs = vm.Memory+hypervisor.DIMMUnit, 3
		grown, err := vm.Grow(bigger)
		must(t, err)
		must(t, s.do(source, vm.ID, hypervisor.Start{VM: vm}))
		p, err := observe(t.Context(), s.secondMonitor(source), "n1", func(string) {})
		must(t, err)
		agent := s.hosts[source].Agent()
		asked := make(chan error, 1)
		go func() { asked <- s.hosts[source].Do(t.Context(), vm.ID, hypervisor.Resize{VM: bigger}) }()
		ctx := testutil.Context(t, testutil.DefaultLimit)
		for has := (shape{}); !part(has); {
			has, err = p.shape(ctx)
			must(t, err)
		}
		agent.Kill()
		told := <-asked
		must(t, s.hosts[source].Start())
		s.await(t, source, vm.ID, hypervisor.Running)
		var has shape
		testutil.Eventually(t, "the host knows what QEMU has", func() error {
			if has, err = p.shape(t.Context()); err != nil {
				return err
			}
			d, err := s.domain(source, vm.ID)
			h := d.VM.Hardware
			if err == nil && (h == nil || has != shape{h.Disks[0].Size, len(h.DIMMs), d.VM.CPUs} ||
				d.VM.BootMemory() != vm.Memory) {
				err = fmt.Errorf("QEMU has %+v, and the host says %+v with %+v", has, d.VM, h)
			}
			return err
		})
		t.Logf("killed in part %d (%v), it has %+v", i, told, has)
		must(t, s.do(source, vm.ID, hypervisor.Resize{VM: bigger}))
		if has, err = p.shape(t.Context()); err != nil || has != (shape{after, 1, 3}) {
			t.Errorf("repeated, QEMU has %+v, %v", has, err)
		}
		p.close()
		s.send(t, hypervisor.JobID(fmt.Sprint("job", i)), grown, source, target)
		s.await(t, target, vm.ID, hypervisor.Running)
		if d, err := s.domain(target, vm.ID); err != nil || !d.VM.Equal(grown) {
			t.Errorf("it has arrived as %+v with %+v, %v", d.VM, d.VM.Hardware, err)
		}
		must(t, s.do(target, vm.ID, hypervisor.Kill{}))
	}
}
