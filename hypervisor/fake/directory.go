package fake

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Directory lets the host of that name answer from another directory from now on, as it does when
// its agent is started with an empty one, or with one that was moved away before. The first has
// the number 0; one that was never used is empty. Whatever runs runs on.
//
// Of a VM whose process was started from another directory the host knows nothing. It answers
// Conflict to whatever is asked of it: the process holds the VM's lock, which is outside of all
// directories. One that has no process any more is not there. It answers NotFound for a host that
// does not exist, and Invalid for a number below 0.
// Source: godwit, internal/qemu (Launcher.Unknown, Launcher.alone).
func (f *Network) Directory(host hypervisor.HostName, number int) error {
	return f.strike("Directory", host, func(h *Host) error {
		if number < 0 {
			return refuse(hypervisor.Invalid, "directory %d", number)
		}
		for len(h.shelf) <= max(number, h.directory) {
			h.shelf = append(h.shelf, nil)
		}
		h.shelf[h.directory], h.forgot = h.jobs, true
		h.jobs, h.directory = h.shelf[number], number
		if h.shelf[number] = nil; h.jobs == nil {
			h.jobs = jobs{}
		}
		all := slices.Concat(h.sorted, h.unseen)
		h.sorted, h.unseen = nil, nil
		for _, d := range all {
			if d.seen() {
				h.sorted = insertAt(roomier(h.sorted), h.place(d.VM.ID), d)
			} else {
				h.unseen = append(h.unseen, d)
			}
		}
		h.listed.Doubt()
		return nil
	})
}

// seen reports whether the host's present directory says anything of a domain.
func (d *domain) seen() bool { return d.directory == d.host.directory }

// behind returns the domain of a VM of which the present directory says nothing; nil is none.
func (h *Host) behind(vm hypervisor.VMID) *domain {
	if len(h.unseen) == 0 {
		return nil
	}
	i := slices.IndexFunc(h.unseen, func(d *domain) bool { return d.VM.ID == vm })
	if i < 0 {
		return nil
	}
	return h.unseen[i]
}

// locked refuses what is asked of a VM whose process another directory has started.
func (h *Host) locked(vm hypervisor.VMID) error {
	if d := h.behind(vm); d != nil && occupies(d.State) {
		return refuse(hypervisor.Conflict, "a process runs the VM on this machine already, of "+
			"which the directory says nothing")
	}
	return nil
}

// takeOver puts what is left of a VM without a process into the present directory.
func (d *domain) takeOver(vm hypervisor.VM, state hypervisor.DomainState) *domain {
	h := d.host
	h.unseen = slices.DeleteFunc(h.unseen, func(other *domain) bool { return other == d })
	h.sorted = insertAt(roomier(h.sorted), h.place(vm.ID), d)
	d.VM, d.directory = d.machine.as(vm), h.directory
	d.Job, d.Unresolved, d.defined, d.found = "", false, false, nil
	d.Become(state)
	return d
}
