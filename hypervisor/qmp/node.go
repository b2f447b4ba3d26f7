//go:build linux

package qmp

import (
	"context"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/monitor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A node is what the domains of one host share.
type node struct {
	Name     hypervisor.HostName
	Memory   hypervisor.Bytes // what VMs may use together
	CPUs     int
	Here     url.URL       // where other hosts find this one
	Listen   string        // the IP address of this host; "" is unix sockets only
	Timeout  time.Duration // how long a QEMU or another host may take to answer
	Patience time.Duration // how long a target's host may be out of reach
	// Dial makes connections to other hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Advertise returns the address at which other hosts reach one of ours.
	Advertise func(address string) string
	Changed   func(hypervisor.VMID) // is told that a VM or its job has changed
	QEMU      *qemu.Launcher
	Journal   *journal
	Boot      string          // names the present start of the machine
	Life      context.Context // ends when everything is to be let go
	Running   sync.WaitGroup  // what must have ended then
	// Move does a step of a migration. Who calls it holds the domain's turn.
	Move func(context.Context, *domain, nextStep, monitor.Migration) error

	mu      sync.Mutex
	domains map[hypervisor.VMID]*domain
	jobs    map[hypervisor.JobID]*jobRecord // each is replaced, never changed
	closed  bool
}

// Find returns the domain of a VM, or nil.
func (n *node) Find(vm hypervisor.VMID) *domain {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.domains[vm]
}

// All returns all domains, in no order.
func (n *node) All() []*domain {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.domains))
}

// Close lets go of every QEMU and of every target's host, when nothing of ours runs any
// more and no turn is held. No turn is given afterwards.
func (n *node) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Running.Wait()
	for _, d := range n.All() {
		d.HangUp()
		if vm := d.Process(); vm != nil {
			vm.LetGo()
		}
	}
}

// Job returns what is kept of a job, or nil.
func (n *node) Job(id hypervisor.JobID) *jobRecord {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.jobs[id]
}

// PutJob keeps a job.
func (n *node) PutJob(j *jobRecord, durable bool) error {
	if err := n.Journal.PutJob(j, durable); err != nil {
		return qemu.Refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	n.mu.Lock()
	n.jobs[j.ID] = j
	n.mu.Unlock()
	return nil
}

// ForgetJob removes a job that is not known elsewhere.
func (n *node) ForgetJob(id hypervisor.JobID) error {
	n.mu.Lock()
	delete(n.jobs, id)
	n.mu.Unlock()
	if err := n.Journal.RemoveJob(id); err != nil {
		return qemu.Refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	return nil
}

// Check refuses a VM that QEMU will not take.
func (n *node) Check(vm hypervisor.VM) error {
	if vm.ID == "" || vm.Memory <= 0 || vm.CPUs < 1 {
		return qemu.Refuse(hypervisor.Invalid,
			"VM %q with %v and %d CPUs", vm.ID, vm.Memory, vm.CPUs)
	}
	if err := qemu.Check(vm, n.QEMU.Settings(vm.ID)); err != nil {
		return qemu.Refuse(hypervisor.Invalid, "%w", err)
	}
	if hw := n.QEMU.Resolved(vm).Hardware; hw.Machine != "" {
		if _, known := n.QEMU.Features.Machine(hw.Machine); !known {
			return qemu.Refuse(hypervisor.Unsupported, "%s has no machine type %q",
				n.QEMU.Features.Software(), hw.Machine)
		}
	}
	return nil
}

// Reserve takes memory and CPUs for a domain, or answers NoRoom.
func (n *node) Reserve(d *domain, vm hypervisor.VM) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory, cpus := n.Memory, n.CPUs
	for _, o := range n.domains {
		if o != d {
			memory -= o.memory
			cpus -= o.cpus
		}
	}
	switch {
	case vm.Memory > memory:
		need, has := hypervisor.Apart(vm.Memory, max(0, memory))
		return qemu.Refuse(hypervisor.NoRoom, "memory needs %s has %s", need, has)
	case vm.CPUs > cpus:
		return qemu.Refuse(hypervisor.NoRoom, "CPUs needs %d has %d", vm.CPUs, max(0, cpus))
	}
	d.memory, d.cpus = vm.Memory, vm.CPUs
	return nil
}

// Unreserve gives back what a domain had reserved.
func (n *node) Unreserve(d *domain) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d.memory, d.cpus = 0, 0
}

// Reach connects to a target's host.
func (n *node) Reach(ctx context.Context, address hypervisor.Address) (*peerConn, error) {
	u, err := url.Parse(string(address))
	token := ""
	if err == nil {
		token = u.Query().Get("token")
	}
	if err != nil || token == "" || u.Scheme != "qmp" && u.Scheme != "qmp+unix" {
		return nil, qemu.Refuse(hypervisor.Invalid,
			"%q is no address that Receive answered", address)
	}
	network, where := "tcp", u.Host
	if u.Scheme == "qmp+unix" {
		network, where = "unix", u.Path
	}
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	conn, err := n.Dial(ctx, network, where)
	if err != nil {
		return nil, qemu.Refuse(hypervisor.Transient, "reach the target's host: %v", err)
	}
	return newConn(conn, token), nil
}
