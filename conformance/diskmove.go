package conformance

import (
	"cmp"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor"
)

// movesDisk begins to move the disk "data" of theVM, which runs on the source, to a file of its own, and
// returns its path and the VM as it was.
func movesDisk(w *world) (to string, vm hypervisor.VM) {
	w.T.Helper()
	w.Running()
	w.Do(source, theVM, hypervisor.AttachDisk{Disk: data("qcow2")})
	vm, to = w.Domain(source, theVM).VM, filepath.Join(cmp.Or(w.Images, "/images"), "moved")
	begin := hypervisor.MoveDisk{Disk: "data", To: to}
	w.Do(source, theVM, begin, begin)
	return to, vm
}

// phase waits until the disk that moves is in a phase.
func phase(w *world, want hypervisor.DiskPhase) {
	w.T.Helper()
	w.Until("the disk is "+string(want), func() bool {
		m := w.Domain(source, theVM).Moving
		if m == nil || m.Phase == hypervisor.DiskFailed && want != m.Phase {
			w.T.Fatalf("the move is %+v", m)
		}
		return m.Phase == want
	})
}

// over ends the move of the disk "data", and waits until it has ended.
func over(w *world, on string) {
	w.T.Helper()
	w.Until("the move has ended", func() bool {
		err := w.HV[source].Do(w.Ctx, theVM, hypervisor.EndDiskMove{Disk: "data", On: on})
		return err == nil && w.Domain(source, theVM).Moving == nil
	})
}

// diskMoves are cases about MoveDisk, SwitchDisk and EndDiskMove.
var diskMoves = []trial{
	{Name: "a disk moves to another image while its VM runs, and the VM moves with it",
		Able: hypervisor.CanMoveDisk | hypervisor.CanAttachDisk, Run: func(w *world) {
			to, vm := movesDisk(w)
			phase(w, hypervisor.DiskReady)
			job, address := w.Receives(move{VM: vm})
			w.Refused(w.HV[source].Migrate(w.Ctx, w.Outgoing(job, address)), hypervisor.Conflict)
			w.Do(target, theVM, hypervisor.Discard{Job: job})
			w.Do(source, theVM, hypervisor.SwitchDisk{Disk: "data"}, hypervisor.SwitchDisk{Disk: "data"})
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.EndDiskMove{Disk: "data"})
			over(w, to)
			vm = vm.AtPath("data", to)
			defined(w, vm)
			w.Sound(source)
			if w.ImagesStay {
				return
			}
			job = w.Begin(move{VM: vm})
			w.Arrives(job, hypervisor.Running)
		}},
	{Name: "a move of a disk that is cancelled leaves it where it was, and may be made later",
		Able: hypervisor.CanMoveDisk | hypervisor.CanAttachDisk, Run: func(w *world) {
			to, vm := movesDisk(w)
			over(w, "")
			defined(w, vm)
			w.Do(source, theVM, hypervisor.MoveDisk{Disk: "data", To: to})
			phase(w, hypervisor.DiskReady)
			over(w, "")
			defined(w, vm)
			w.Sound(source)
		}},
	{Name: "what cannot be moved is refused, and stays",
		Able: hypervisor.CanMoveDisk | hypervisor.CanAttachDisk, Run: func(w *world) {
			to, vm := movesDisk(w)
			w.Refuses(hypervisor.NotFound, source, theVM, hypervisor.MoveDisk{Disk: "none", To: to})
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.MoveDisk{Disk: "data", To: to + "2"},
				hypervisor.DetachDisk{Name: "data"}, hypervisor.Resize{VM: vm},
				hypervisor.EndDiskMove{Disk: "data", On: to})
			over(w, "")
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.MoveDisk{Disk: "data", To: "here"},
				hypervisor.MoveDisk{Disk: "data"})
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.SwitchDisk{Disk: "data"})
			w.Do(source, theVM, hypervisor.EndDiskMove{Disk: "data"}, hypervisor.Kill{})
			w.UntilState(source, theVM, hypervisor.Shutoff)
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.MoveDisk{Disk: "data", To: to})
			defined(w, vm)
		}},
	{Name: "a VM that stops while its disk moves starts from one image, and not from an older one",
		Able: hypervisor.CanMoveDisk | hypervisor.CanAttachDisk, Run: func(w *world) {
			to, vm := movesDisk(w)
			stop := func() {
				w.Do(source, theVM, hypervisor.Kill{})
				w.UntilState(source, theVM, hypervisor.Shutoff)
			}
			phase(w, hypervisor.DiskReady)
			stop()
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.SwitchDisk{Disk: "data"},
				hypervisor.Start{VM: vm.AtPath("data", to)})
			w.Boot(source, vm)
			phase(w, hypervisor.DiskFailed)
			w.Do(source, theVM, hypervisor.MoveDisk{Disk: "data", To: to})
			phase(w, hypervisor.DiskReady)
			w.Do(source, theVM, hypervisor.SwitchDisk{Disk: "data"})
			stop()
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Start{VM: vm})
			over(w, to)
			vm = vm.AtPath("data", to)
			defined(w, vm)
			w.Boot(source, vm)
			w.Sound(source)
		}},
}
