package conformance

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// roomy is theVM with room to grow while it runs: four modules of memory, and two CPUs.
func roomy(w *world) hypervisor.VM {
	vm := w.Name(theVM)
	hardware := hypervisor.Hardware{}
	if vm.Hardware != nil {
		hardware = *vm.Hardware
	}
	const unit = hypervisor.DIMMUnit
	hardware.MaxMemory, hardware.MaxCPUs = (vm.Memory/unit+5)*unit, vm.CPUs+2
	vm.Hardware = &hardware
	return vm
}

// larger is a VM with more memory and CPUs.
func larger(vm hypervisor.VM, memory hypervisor.Bytes, cpus int) hypervisor.VM {
	vm.Memory += memory
	vm.CPUs += cpus
	return vm
}

// hotplugs are cases about Resize of a VM that runs.
var hotplugs = []trial{
	{Name: "a VM that runs grows, arrives as it is, and grows there",
		Able: hypervisor.CanResizeLive, Run: func(w *world) {
			vm := roomy(w)
			w.Boot(source, vm)
			vm = grows(w, source, vm)
			job := w.Begin(move{VM: vm})
			w.Arrives(job, hypervisor.Running)
			grows(w, target, vm)
		}},
	{Name: "a VM that has grown starts with all its memory in one",
		Able: hypervisor.CanResizeLive, Run: func(w *world) {
			vm := roomy(w)
			w.Boot(source, vm)
			grown := grows(w, source, vm)
			w.Do(source, theVM, hypervisor.Kill{})
			w.UntilState(source, theVM, hypervisor.Shutoff)
			w.Boot(source, grown)
			defined(w, grown.Started())
		}},
	{Name: "a VM that runs neither shrinks nor outgrows its room",
		Able: hypervisor.CanResizeLive, Run: func(w *world) {
			vm := roomy(w)
			w.Boot(source, vm)
			for _, to := range []hypervisor.VM{larger(vm, 6*hypervisor.DIMMUnit, 0), larger(vm, 0, 3),
				larger(vm, hypervisor.MiB, 0), larger(vm, hypervisor.DIMMUnit, -1), larger(vm, -hypervisor.MiB, 0)} {
				if to.CPUs > 0 && to.Memory > 0 {
					w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Resize{VM: to})
				}
			}
		}},
	{Name: "a VM that runs does not outgrow its host", Able: hypervisor.CanResizeLive, Run: func(w *world) {
		vm := roomy(w)
		const unit = hypervisor.DIMMUnit
		all := (w.Hosts[source].Memory/unit + 1) * unit
		vm.Hardware.MaxMemory = vm.Memory/unit*unit + all + unit
		w.Boot(source, vm)
		w.Refuses(hypervisor.NoRoom, source, theVM, hypervisor.Resize{VM: larger(vm, all, 0)})
	}},
	{Name: "a disk of a VM that runs grows, never shrinks, and arrives as large",
		Able: hypervisor.CanResizeLive | hypervisor.CanAttachDisk, Run: func(w *world) {
			w.Running()
			before, disk := w.Domain(source, theVM).VM, data("qcow2")
			w.Do(source, theVM, hypervisor.AttachDisk{Disk: disk})
			sized := func(size hypervisor.Bytes) hypervisor.VM {
				disk.Size = size
				return before.WithDisks(append(slices.Clone(before.Disks()), disk))
			}
			vm := sized(4 * hypervisor.MiB)
			w.Do(source, theVM, hypervisor.Resize{VM: vm}, hypervisor.Resize{VM: vm})
			defined(w, vm)
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resize{VM: sized(3 * hypervisor.MiB)})
			if !w.Hosts[source].Abilities.Has(hypervisor.CanCopyStorage) {
				return
			}
			job := w.Begin(move{VM: vm})
			w.Arrives(job, hypervisor.Running)
			vm = sized(8 * hypervisor.MiB)
			w.Do(target, theVM, hypervisor.Resize{VM: vm})
			if d := w.Domain(target, theVM); !d.VM.Equal(vm) {
				w.T.Fatalf("it is %+v, want %+v", d.VM, vm)
			}
		}},
	{Name: "a VM that moves does not grow", Able: hypervisor.CanResizeLive, Run: func(w *world) {
		vm := roomy(w)
		w.Boot(source, vm)
		job, address := w.Receives(move{VM: vm})
		out := w.Outgoing(job, address)
		out.Options.Bandwidth = w.Slow // it is not over before it is asked
		w.Must(w.HV[source].Migrate(w.Ctx, out))
		if w.Progress(source, job).Status.Final() {
			w.Skip("it has moved before it could be asked")
			return
		}
		w.Refuses(hypervisor.Conflict, source, theVM,
			hypervisor.Resize{VM: larger(vm, hypervisor.DIMMUnit, 1)})
		w.Uncap(job)
		w.Arrives(job, hypervisor.Running)
	}},
}

// grows gives theVM one module of memory and one CPU while it runs, twice, and returns it.
func grows(w *world, s side, vm hypervisor.VM) hypervisor.VM {
	w.T.Helper()
	bigger := larger(vm, hypervisor.DIMMUnit, 1)
	want, err := vm.Grow(bigger)
	w.Must(err)
	w.Do(s, theVM, hypervisor.Resize{VM: bigger}, hypervisor.Resize{VM: bigger})
	if d := w.Domain(s, theVM); !d.VM.Equal(want) || d.State != hypervisor.Running {
		w.T.Fatalf("it is %+v, want %+v", d, want)
	}
	return want
}
