//go:build linux && libvirt_dlopen

package libvirt

// This file is the VMs of one libvirtd: their records, their locks, and a worker for
// each, a goroutine that performs its next steps.
//
//	look → next step (statemachine.go) → do it → look …
//
// libvirt keeps the domains; the journal keeps what libvirt does not: jobs, and why
// something was done. A change of a domain holds its lock. Readers do not: a
// record is replaced and never changed. Dying at any instruction does no harm.

import (
	"context"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// A node is what the domains of one host share.
type node struct {
	backend.Node[*domain, *jobRecord]
	QEMU      uint32          // which one is installed, in libvirt's notation: 7002022 is 7.2.22
	Libvirt   uint32          // and which libvirt
	Namespace string          // of domains whose names have none
	Settings  domxml.Settings // of the machines that are made here
	DebugDir  string          // where debug ports are heard
	Peer      string          // how another host's libvirtd reaches this one
	Timeout   time.Duration
	// Grace is how long after a beginning of ours, or of libvirtd's, nothing is
	// concluded from what is not there yet.
	Grace time.Duration
	// TombstoneTTL is how long a tombstone keeps a VM from being received.
	TombstoneTTL time.Duration
	// Direct: this process leads migrations, and they end with it.
	Direct bool
	// TLS: migrations are encrypted.
	TLS bool
	// Rewrite changes what a VM is made of at a target. Nil changes nothing.
	Rewrite func(target hypervisor.HostName, xml string) (string, error)
	// Translate returns how this process reaches what libvirtd calls peer.
	Translate func(peer string) string
	Conn      *conn.Conn
	Journal   *journal

	mu         sync.Mutex
	born       time.Time
	caps       string               // what libvirtd says of the host; "": it was not asked since born
	tombstones map[string]time.Time // when the tombstone of a name is to go

	peersMu sync.Mutex
	peers   map[string]*conn.Conn // by URI
}

// Open reads the journal. Afterwards everything that was under way goes on. Events may
// come meanwhile.
func (n *node) Open() error {
	domains, err := n.Journal.Domains()
	if err != nil {
		return err
	}
	jobs, err := n.Journal.Jobs(time.Now())
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.born = time.Now()
	n.mu.Unlock()
	for _, j := range jobs {
		if j.Receives() {
			n.Keep(j.VM)
		}
	}
	all := make(map[hypervisor.VMID]*domain, len(domains))
	for _, rec := range domains {
		all[rec.VM.ID] = n.domain(rec.VM.ID, rec.Name, rec)
	}
	n.Fill(jobs, all)
	return nil
}

func (n *node) domain(id hypervisor.VMID, name string, rec *domainRecord) *domain {
	return &domain{DomainLock: backend.NewDomainLock(), Node: n, ID: id, Name: name, rec: rec}
}

// began returns when this process, or the libvirtd that it talks to, began.
func (n *node) began() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.born
}

// Capabilities returns what libvirtd says of the host. It takes long to tell, and tells the
// same as long as it lives.
func (n *node) Capabilities(c *conn.Connect) (string, error) {
	n.mu.Lock()
	known, born := n.caps, n.born
	n.mu.Unlock()
	if known != "" {
		return known, nil
	}
	caps, err := c.GetCapabilities()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.born.Equal(born) {
		n.caps = caps
	}
	return caps, err
}

// Reborn looks at everything anew: libvirtd was out of reach, and events are lost.
func (n *node) Reborn() {
	n.mu.Lock()
	n.born, n.caps = time.Now(), ""
	n.mu.Unlock()
	for _, d := range n.All() {
		d.mu.Lock()
		d.blind = true
		d.mu.Unlock()
	}
	n.TriggerAll()
}

// TriggerAll triggers the worker of every domain.
func (n *node) TriggerAll() {
	for _, d := range n.All() {
		d.Trigger()
	}
}

// HandleEvent looks at the domain that an event is about, unless the event says all that there is
// to know: a look while libvirt switches over makes the guest stand longer.
func (n *node) HandleEvent(e conn.Event) {
	id := domxml.IDOf(n.Namespace, e.Domain)
	if d := n.Find(id); d != nil {
		if d.hear(e) {
			return
		}
		d.Trigger()
	}
	n.Changed(id)
}

// Reserve promises room to a VM, or answers NoRoom. What runs takes room, whatever
// started it.
func (n *node) Reserve(ctx context.Context, vm hypervisor.VM) error {
	used, err := n.used(ctx)
	if err != nil {
		return err
	}
	return n.Node.Reserve(vm, used)
}

// used returns what runs, as far as it takes room.
func (n *node) used(ctx context.Context) (map[hypervisor.VMID]hypervisor.VM, error) {
	return conn.Ask(ctx, n.Conn, func(c *conn.Connect) (map[hypervisor.VMID]hypervisor.VM, error) {
		doms, err := c.ListAllDomains(libvirt.CONNECT_LIST_DOMAINS_ACTIVE)
		if err != nil {
			return nil, err
		}
		used := map[hypervisor.VMID]hypervisor.VM{}
		for i := range doms {
			name, errName := doms[i].GetName()
			info, errInfo := doms[i].GetInfo()
			_ = doms[i].Free()
			if errName == nil && errInfo == nil { // otherwise it went in between
				used[domxml.IDOf(n.Namespace, name)] = hypervisor.VM{CPUs: int(info.NrVirtCpu),
					Memory: hypervisor.Bytes(info.MaxMem) * hypervisor.KiB}
			}
		}
		return used, nil
	})
}

// Domains shows all domains: those that libvirt knows, and those that are only kept.
func (n *node) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	names, err := conn.Ask(ctx, n.Conn, func(c *conn.Connect) ([]string, error) {
		doms, err := c.ListAllDomains(0)
		var names []string
		for i := range doms {
			if name, err := doms[i].GetName(); err == nil {
				names = append(names, name)
			}
			_ = doms[i].Free()
		}
		return names, err
	})
	if err != nil {
		return nil, err
	}
	all := map[hypervisor.VMID]*domain{}
	for _, name := range names {
		id := domxml.IDOf(n.Namespace, name)
		all[id] = n.domain(id, name, nil)
	}
	for _, d := range n.All() {
		all[d.ID] = d
	}
	var list []hypervisor.Domain
	for _, id := range slices.Sorted(maps.Keys(all)) {
		d, err := all[id].Answer(ctx)
		if err != nil {
			return nil, err
		}
		if d.State != hypervisor.Absent {
			list = append(list, d)
		}
	}
	return list, nil
}

// DebugSocket returns where the debug port of a domain is heard; "" is nowhere.
func (n *node) DebugSocket(name string) string {
	if n.DebugDir == "" {
		return ""
	}
	return path.Join(n.DebugDir, name+".debug")
}

// Spot returns the domain of a VM, to look at. The error says that no domain can have
// its name.
func (n *node) Spot(vm hypervisor.VMID) (*domain, error) {
	if d := n.Find(vm); d != nil {
		return d, nil
	}
	return n.place(vm)
}

// place makes the place for a VM. The error says that no domain can have its name.
func (n *node) place(vm hypervisor.VMID) (*domain, error) {
	name, err := domxml.NameOf(n.Namespace, vm)
	return n.domain(vm, name, nil), err
}
