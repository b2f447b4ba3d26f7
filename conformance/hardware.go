package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// sizes are cases about Resize.
var sizes = []trial{
	{Name: "a VM that is shut off takes another size and starts with it",
		Able: hypervisor.CanResize, Run: func(w *world) {
			w.Off()
			vm := w.VM(theVM)
			vm.Memory, vm.CPUs = vm.Memory*2, vm.CPUs+1
			w.Do(source, theVM, hypervisor.Resize{VM: vm}, hypervisor.Resize{VM: vm})
			defined(w, vm)
			w.Boot(source, vm)
			defined(w, vm)
		}},
	{Name: "a size that does not fit changes nothing",
		Able: hypervisor.CanResize, Run: func(w *world) {
			w.Off()
			memory, cpus := w.VM(theVM), w.VM(theVM)
			memory.Memory = w.Hosts[source].Memory + hypervisor.MiB
			cpus.CPUs = w.Hosts[source].CPUs + 1
			w.Refuses(hypervisor.NoRoom, source, theVM, hypervisor.Resize{VM: memory},
				hypervisor.Resize{VM: cpus})
		}},
	{Name: "a VM that runs keeps its size", Able: hypervisor.CanResize, Run: func(w *world) {
		w.Running()
		vm := w.VM(theVM)
		vm.Memory *= 2
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Resize{VM: vm})
	}},
	{Name: "an unknown VM has no size to change", Able: hypervisor.CanResize, Run: func(w *world) {
		w.Refuses(hypervisor.NotFound, source, theVM, hypervisor.Resize{VM: w.VM(theVM)})
	}},
	{Name: "a size that is none, or another VM's, is invalid",
		Able: hypervisor.CanResize, Run: func(w *world) {
			w.Off()
			for _, change := range impossible {
				vm := w.VM(theVM)
				change(&vm)
				w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resize{VM: vm})
			}
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resize{VM: w.VM("suite/other")})
		}},
	{Name: "a disk grows and never shrinks",
		Able: hypervisor.CanResize | hypervisor.CanAttachDisk, Run: func(w *world) {
			w.Off()
			w.Do(source, theVM, hypervisor.AttachDisk{Disk: data("raw")})
			sized := func(size hypervisor.Bytes) hypervisor.VM {
				vm := w.Domain(source, theVM).VM
				hardware := *vm.Hardware
				hardware.Disks = append([]hypervisor.Disk{}, hardware.Disks...)
				hardware.Disks[len(hardware.Disks)-1].Size = size
				vm.Hardware = &hardware
				return vm
			}
			vm := sized(4 * hypervisor.MiB)
			w.Do(source, theVM, hypervisor.Resize{VM: vm}, hypervisor.Resize{VM: vm})
			defined(w, vm)
			small := sized(hypervisor.MiB)
			small.Memory *= 2
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Resize{VM: small})
		}},
}

// disks are cases about AttachDisk, DetachDisk and Snapshot.
var disks = []trial{
	{Name: "a disk comes to a VM that is shut off, and goes; both may be repeated",
		Able: hypervisor.CanAttachDisk, Run: func(w *world) {
			w.Off()
			before, disk := w.Domain(source, theVM).VM, data("raw")
			w.Do(source, theVM, hypervisor.AttachDisk{Disk: disk},
				hypervisor.AttachDisk{Disk: disk})
			if n := copiesOf(w, disk); n != 1 {
				w.T.Fatalf("%d disks of that description", n)
			}
			other := disk
			other.Size *= 2
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.AttachDisk{Disk: other})
			w.Do(source, theVM, hypervisor.DetachDisk{Name: disk.Name},
				hypervisor.DetachDisk{Name: disk.Name})
			defined(w, before)
		}},
	{Name: "a disk comes to a VM that runs, and the guest is asked to let it go",
		Able: hypervisor.CanAttachDisk, Run: func(w *world) {
			w.Running()
			disk := data("raw")
			w.Do(source, theVM, hypervisor.AttachDisk{Disk: disk},
				hypervisor.AttachDisk{Disk: disk})
			w.Until("the disk is there", func() bool { return copiesOf(w, disk) == 1 })
			w.Do(source, theVM, hypervisor.DetachDisk{Name: disk.Name})
			w.Sound(source)
		}},
	{Name: "a disk that is none is invalid", Able: hypervisor.CanAttachDisk, Run: func(w *world) {
		w.Running()
		for _, change := range []func(*hypervisor.Disk){
			func(d *hypervisor.Disk) { d.Name = "" },
			func(d *hypervisor.Disk) { d.Name = "../Data,if=none" },
			func(d *hypervisor.Disk) { d.Size = -1 },
			func(d *hypervisor.Disk) { d.Format = "floppy" },
		} {
			disk := data("raw")
			change(&disk)
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.AttachDisk{Disk: disk})
		}
	}},
	{Name: "an unknown VM has no disks", Able: hypervisor.CanAttachDisk, Run: func(w *world) {
		w.Refuses(hypervisor.NotFound, source, theVM, hypervisor.AttachDisk{Disk: data("raw")},
			hypervisor.DetachDisk{Name: "data"})
	}},
	{Name: "a snapshot keeps a disk, once and again, and needs one",
		Able: hypervisor.CanSnapshot | hypervisor.CanAttachDisk, Run: func(w *world) {
			w.Off()
			w.Do(source, theVM, hypervisor.AttachDisk{Disk: data("qcow2")})
			keep := hypervisor.Snapshot{Disk: "data", Name: "before"}
			w.Do(source, theVM, keep, keep)
			w.Refused(w.HV[source].Do(w.Ctx, theVM, hypervisor.Snapshot{Disk: "none", Name: "x"}),
				hypervisor.NotFound, hypervisor.Invalid)
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Snapshot{Disk: "data"})
			drop := hypervisor.DeleteSnapshot{Disk: "data", Name: "before"}
			w.Do(source, theVM, hypervisor.RevertSnapshot{Disk: "data", Name: "before"}, drop, drop)
		}},
}

// measurements are cases about MeasureDirtyRate.
var measurements = []trial{
	{Name: "how fast a guest writes is measured, and says when",
		Able: hypervisor.CanMeasureDirtyRate, Run: func(w *world) {
			w.Running()
			measures(w)
		}},
	{Name: "a busy guest is measured to write",
		Needs: needBusy, Able: hypervisor.CanMeasureDirtyRate, Run: func(w *world) {
			w.Name(theVM)
			w.Boot(source, w.BusyVM(theVM))
			w.Until("it is found to write", func() bool { return measures(w) > 0 }) // once it is up
		}},
	{Name: "a VM that is shut off is not measured, and none for no time",
		Able: hypervisor.CanMeasureDirtyRate, Run: func(w *world) {
			w.Running()
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.MeasureDirtyRate{},
				hypervisor.MeasureDirtyRate{For: -time.Second})
			w.Do(source, theVM, hypervisor.Kill{})
			w.UntilState(source, theVM, hypervisor.Shutoff)
			w.Refuses(hypervisor.Conflict, source, theVM,
				hypervisor.MeasureDirtyRate{For: time.Second})
		}},
}

// measures measures theVM, asked twice, and returns what was found.
func measures(w *world) hypervisor.Bandwidth {
	w.T.Helper()
	before := w.Domain(source, theVM).Measured
	m := hypervisor.MeasureDirtyRate{For: time.Second}
	w.Do(source, theVM, m, m)
	w.Until("it is measured", func() bool {
		return !w.Domain(source, theVM).Measured.Equal(before)
	})
	w.UntilState(source, theVM, hypervisor.Running)
	return w.Domain(source, theVM).DirtyRate
}

// data is a small local disk.
func data(format string) hypervisor.Disk {
	return hypervisor.Disk{Name: "data", Format: format, Size: 2 * hypervisor.MiB}
}

// copiesOf counts the disks of theVM that are like disk.
func copiesOf(w *world, disk hypervisor.Disk) int {
	w.T.Helper()
	n := 0
	if h := w.Domain(source, theVM).VM.Hardware; h != nil {
		for _, d := range h.Disks {
			if d == disk {
				n++
			}
		}
	}
	return n
}

// defined wants theVM at the source to be what vm describes.
func defined(w *world, vm hypervisor.VM) {
	w.T.Helper()
	if d := w.Domain(source, theVM); !d.VM.Equal(vm) {
		w.T.Fatalf("the host has %+v, want %+v", d.VM, vm)
	}
}

// answersUnsupported gives a host what it says that it cannot do. That it cannot
// take a VM back is seen at the end of a migration, in cases of their own.
func answersUnsupported(w *world, s side, missing hypervisor.Abilities) {
	w.T.Helper()
	if missing == hypervisor.CanTakeBack {
		return
	}
	id := hypervisor.VMID("suite/plain")
	vm := w.Name(id)
	w.Boot(s, vm)
	for _, c := range [...]struct {
		ability hypervisor.Abilities
		command hypervisor.Command
	}{
		{hypervisor.CanSnapshot, hypervisor.Snapshot{Disk: "data", Name: "a"}},
		{hypervisor.CanAttachDisk, hypervisor.AttachDisk{Disk: data("raw")}},
		{hypervisor.CanAttachDisk, hypervisor.DetachDisk{Name: "data"}},
		{hypervisor.CanMeasureDirtyRate, hypervisor.MeasureDirtyRate{For: time.Second}},
	} {
		if missing.Has(c.ability) {
			w.Refuses(hypervisor.Unsupported, s, id, c.command)
		}
	}
	for ability, o := range needing {
		if missing.Has(ability) {
			migrationIsUnsupported(w, s, vm, o)
		}
	}
	if missing&(hypervisor.CanResize|hypervisor.CanMoveCold) == 0 {
		return
	}
	w.Do(s, id, hypervisor.Kill{})
	w.UntilState(s, id, hypervisor.Shutoff)
	if missing.Has(hypervisor.CanResize) {
		w.Refuses(hypervisor.Unsupported, s, id, hypervisor.Resize{VM: vm})
	}
	if missing.Has(hypervisor.CanMoveCold) {
		migrationIsUnsupported(w, s, vm, hypervisor.TransferOptions{})
	}
}

// needing are options that need an ability.
var needing = map[hypervisor.Abilities]hypervisor.TransferOptions{
	hypervisor.CanAutoConverge:   {AutoConverge: true},
	hypervisor.CanPostCopy:       {PostCopy: true},
	hypervisor.CanUseChannels:    {Channels: 2},
	hypervisor.CanCompress:       {Compression: true},
	hypervisor.CanXBZRLE:         {XBZRLE: true},
	hypervisor.CanHoldSwitchOver: {HoldSwitchOver: true},
	hypervisor.CanEncrypt:        {Encryption: hypervisor.EncryptRequired},
}

// migrationIsUnsupported wants a migration to be refused by its source, and ends
// the target.
func migrationIsUnsupported(w *world, s side, vm hypervisor.VM,
	o hypervisor.TransferOptions) {
	w.T.Helper()
	before := w.Domain(s, vm.ID).State
	job, address := w.Receives(move{VM: vm, From: s})
	w.Refused(w.HV[s].Migrate(w.Ctx, hypervisor.Outgoing{Job: job, VM: vm.ID,
		Target: w.Hosts[s.Other()].Name, Address: address, Options: o}), hypervisor.Unsupported)
	w.Do(s.Other(), vm.ID, hypervisor.Discard{Job: job})
	if after := w.Domain(s, vm.ID).State; after != before {
		w.T.Fatalf("it was %v and is %v", before, after)
	}
}
