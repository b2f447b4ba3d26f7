package conformance

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// lives are cases about one VM on one host.
var lives = []trial{
	{Name: "a host says who it is, what it holds and what runs its VMs", Run: func(w *world) {
		for _, h := range w.Hosts {
			if h.Name == "" || h.Memory <= 0 || h.CPUs <= 0 || h.Software == "" {
				w.T.Fatalf("%+v is incomplete", h)
			}
		}
		if w.Hosts[source].Name == w.Hosts[target].Name {
			w.T.Fatalf("both hosts are %q", w.Hosts[source].Name)
		}
	}},
	{Name: "an unknown VM is absent, and no error", Run: func(w *world) {
		d := w.Domain(source, "suite/unknown")
		if d.State != hypervisor.Absent || d.VM.ID != "suite/unknown" || d.Job != "" {
			w.T.Fatalf("it is %+v", d)
		}
		if w.Listed(source, "suite/unknown") {
			w.T.Fatalf("and it is listed")
		}
	}},
	{Name: "an unknown job was never begun, and is no error", Run: func(w *world) {
		if p := w.Progress(source, "no-job"); p.Status != hypervisor.JobNone || p.Job != "no-job" {
			w.T.Fatalf("it is %+v", p)
		}
	}},
	{Name: "a VM that is started executes, comes to run and is what was asked for",
		Run: func(w *world) {
			vm := w.Name(theVM)
			w.Do(source, theVM, hypervisor.Start{VM: vm})
			if d := w.Domain(source, theVM); !d.State.Executes() || !d.VM.Equal(vm) || d.Job != "" {
				w.T.Fatalf("it is %+v", d)
			}
			w.UntilState(source, theVM, hypervisor.Running)
			w.Sound(source)
			if !w.Listed(source, theVM) || w.Listed(target, theVM) {
				w.T.Fatalf("it is listed elsewhere")
			}
		}},
	{Name: "a start may be repeated while the VM starts and when it runs", Run: func(w *world) {
		start := hypervisor.Start{VM: w.Name(theVM)}
		w.Do(source, theVM, start, start)
		w.UntilState(source, theVM, hypervisor.Running)
		w.Do(source, theVM, start)
		w.Sound(source)
	}},
	{Name: "a stop without grace shuts off, may be repeated, and the VM stays visible",
		Run: func(w *world) {
			w.Running()
			w.Do(source, theVM, hypervisor.Stop{})
			w.UntilState(source, theVM, hypervisor.Shutoff)
			w.Do(source, theVM, hypervisor.Stop{})
			if !w.Listed(source, theVM) {
				w.T.Fatalf("it is not listed any more")
			}
		}},
	{Name: "a stop asks first, and a second one may shorten the grace", Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Stop{Grace: time.Hour})
		s := w.Domain(source, theVM).State
		if s != hypervisor.Stopping && s != hypervisor.Shutoff {
			w.T.Fatalf("it is %v", s)
		}
		w.Do(source, theVM, hypervisor.Stop{})
		w.UntilState(source, theVM, hypervisor.Shutoff)
	}},
	{Name: "a stop ends by force after its grace", Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Stop{Grace: 10 * time.Millisecond})
		w.UntilState(source, theVM, hypervisor.Shutoff)
	}},
	{Name: "a kill shuts off, may be repeated, and the VM starts anew", Run: func(w *world) {
		w.Off()
		w.Do(source, theVM, hypervisor.Kill{})
		w.Running()
		w.Sound(source)
	}},
	{Name: "a VM that starts can be killed", Run: func(w *world) {
		w.Do(source, theVM, hypervisor.Start{VM: w.Name(theVM)}, hypervisor.Kill{})
		w.UntilState(source, theVM, hypervisor.Shutoff)
		w.Rest()
		w.UntilState(source, theVM, hypervisor.Shutoff)
	}},
	{Name: "a reboot executes all the time, may be repeated, and comes to run",
		Run: func(w *world) {
			w.Running()
			for range 2 {
				w.Do(source, theVM, hypervisor.Reboot{})
				if s := w.Domain(source, theVM).State; !s.Executes() {
					w.T.Fatalf("it is %v", s)
				}
			}
			w.UntilState(source, theVM, hypervisor.Running)
		}},
	{Name: "a paused VM keeps its memory and runs on; both may be repeated", Run: func(w *world) {
		w.Running()
		w.Do(source, theVM, hypervisor.Pause{}, hypervisor.Pause{})
		w.UntilState(source, theVM, hypervisor.Paused)
		w.Do(source, theVM, hypervisor.Unpause{}, hypervisor.Unpause{})
		w.UntilState(source, theVM, hypervisor.Running)
		w.Sound(source)
	}},
	{Name: "a paused VM can be killed, and not asked to stop, reboot or start",
		Run: func(w *world) {
			w.Running()
			w.Do(source, theVM, hypervisor.Pause{})
			w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Stop{}, hypervisor.Reboot{},
				hypervisor.Start{VM: w.VM(theVM)}, hypervisor.Forget{})
			w.Do(source, theVM, hypervisor.Kill{})
			w.UntilState(source, theVM, hypervisor.Shutoff)
		}},
	{Name: "a VM that is shut off has nothing to pause or reboot", Run: func(w *world) {
		w.Off()
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Reboot{}, hypervisor.Pause{},
			hypervisor.Unpause{})
	}},
	{Name: "an unknown VM is not found", Run: func(w *world) {
		e := w.Says(hypervisor.OperatorWord, target, "job")
		w.Refuses(hypervisor.NotFound, source, "suite/unknown", hypervisor.Stop{},
			hypervisor.Kill{}, hypervisor.Reboot{}, hypervisor.Pause{}, hypervisor.Unpause{},
			hypervisor.Activate{Job: "job", Stopped: e}, hypervisor.Resume{Job: "job", NeverRan: e},
			hypervisor.Abandon{Job: "job", Dead: e})
	}},
	{Name: "a VM that is shut off is forgotten, once and again", Run: func(w *world) {
		w.Off()
		w.Do(source, theVM, hypervisor.Forget{}, hypervisor.Forget{})
		w.UntilState(source, theVM, hypervisor.Absent)
		if w.Listed(source, theVM) {
			w.T.Fatalf("it is listed all the same")
		}
	}},
	{Name: "a VM that runs is not forgotten", Run: func(w *world) {
		w.Running()
		w.Refuses(hypervisor.Conflict, source, theVM, hypervisor.Forget{})
	}},
	{Name: "no command is none", Run: func(w *world) {
		w.Running()
		w.Refused(w.HV[source].Do(w.Ctx, theVM, nil), hypervisor.Invalid, hypervisor.Unsupported)
	}},
	{Name: "domains are listed in the order of their names", Run: func(w *world) {
		for _, id := range []hypervisor.VMID{"suite/b", "suite/a", "suite/c"} {
			w.Boot(source, w.Name(id))
		}
		list, err := w.HV[source].Domains(w.Ctx)
		w.Must(err)
		var ids []hypervisor.VMID
		for _, d := range list {
			ids = append(ids, d.VM.ID)
			if one := w.Domain(source, d.VM.ID); one.State != d.State || !one.VM.Equal(d.VM) {
				w.T.Fatalf("in the list it is %+v, alone %+v", d, one)
			}
		}
		if !slices.Equal(ids, []hypervisor.VMID{"suite/a", "suite/b", "suite/c"}) {
			w.T.Fatalf("listed %v", ids)
		}
	}},
}

// limits are cases about what is no VM and what does not fit.
var limits = []trial{
	{Name: "a VM without a name, or under another name, is invalid", Run: func(w *world) {
		w.Refuses(hypervisor.Invalid, source, "", hypervisor.Start{VM: w.VM("")})
		w.Refuses(hypervisor.Invalid, source, "suite/x", hypervisor.Start{VM: w.VM("suite/y")})
	}},
	{Name: "a VM without memory or with fewer than no CPUs is invalid", Run: func(w *world) {
		for _, change := range impossible {
			vm := w.Name(theVM)
			change(&vm)
			w.Refuses(hypervisor.Invalid, source, theVM, hypervisor.Start{VM: vm})
		}
	}},
	{Name: "a VM with more memory than the host has does not fit", Run: func(w *world) {
		for _, much := range []hypervisor.Bytes{w.Hosts[source].Memory + hypervisor.MiB,
			math.MaxInt64 &^ (hypervisor.MiB - 1)} {
			vm := w.Name(theVM)
			vm.Memory = much
			w.Refuses(hypervisor.NoRoom, source, theVM, hypervisor.Start{VM: vm})
		}
	}},
	{Name: "a VM with more CPUs than the host has does not fit", Run: func(w *world) {
		vm := w.Name(theVM)
		vm.CPUs = w.Hosts[source].CPUs + 1
		w.Refuses(hypervisor.NoRoom, source, theVM, hypervisor.Start{VM: vm})
	}},
	{Name: "what runs takes room until it is shut off", Run: func(w *world) {
		hog := hog(w, source)
		w.Boot(source, hog)
		w.Refuses(hypervisor.NoRoom, source, theVM, hypervisor.Start{VM: w.Name(theVM)})
		w.Do(source, hog.ID, hypervisor.Kill{})
		w.UntilState(source, hog.ID, hypervisor.Shutoff)
		w.Running()
		w.Refuses(hypervisor.NoRoom, source, hog.ID, hypervisor.Start{VM: hog})
	}},
}

// impossible makes of a VM something that is none.
var impossible = []func(*hypervisor.VM){
	func(vm *hypervisor.VM) { vm.Memory = 0 },
	func(vm *hypervisor.VM) { vm.Memory = -hypervisor.GiB },
	func(vm *hypervisor.VM) { vm.CPUs = -1 },
}

// hog is a VM that leaves its host no room for another.
func hog(w *world, s side) hypervisor.VM {
	vm := w.Name("suite/hog")
	free := w.Hosts[s].Memory - vm.Memory/2
	vm.Memory = free - free%hypervisor.MiB
	return vm
}
