//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// undefineAll removes all that libvirt keeps besides the definition. The variables of
// a firmware stay: they may be on storage that the VM uses elsewhere.
const undefineAll = libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA |
	libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.DOMAIN_UNDEFINE_KEEP_NVRAM

// Erase removes the domain from libvirt, with what is left of its process. One that
// has a saved state is refused: it is the VM's memory; unless that is outdated.
func (d *domain) Erase(ctx context.Context, s observation, outdated bool) error {
	flags := undefineAll
	if outdated {
		flags |= libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE
	}
	err := d.Do(ctx, func(dom *libvirt.Domain) error {
		if s.Run.Alive() {
			if err := dom.Destroy(); err != nil {
				return err
			}
		}
		defined, err := dom.IsPersistent()
		if err != nil || !defined {
			return err
		}
		return dom.UndefineFlags(flags)
	})
	if errors.Is(err, hypervisor.NotFound) {
		return nil
	}
	return err
}

// tombstoneTag is the element of a tombstone's metadata that says what it is.
const tombstoneTag = domxml.MarkPrefix + ":bar"

// tombstone is a definition that keeps libvirt from receiving a domain of a name: it
// has another UUID, and nothing that could run.
func tombstone(name, kind string) (string, error) {
	title := "godwit: not to be received here any more"
	t := lx.Domain{Type: cmp.Or(kind, domxml.KVM), Name: name, Title: title,
		UUID:   domxml.UUIDOf(hypervisor.VMID("/barred/" + name)),
		Memory: &lx.DomainMemory{Value: 1, Unit: "MiB"},
		OS:     &lx.DomainOS{Type: &lx.DomainOSType{Arch: "x86_64", Type: "hvm"}},
		Metadata: &lx.DomainMetadata{XML: "<" + tombstoneTag + " xmlns:" + domxml.MarkPrefix + "='" +
			domxml.MarkURI + "'/>"}}
	return t.Marshal()
}

// isTombstone reports whether a domain is a tombstone. libvirt escapes every other "<".
func isTombstone(xml string) bool { return strings.Contains(xml, "<"+tombstoneTag+" ") }

// clearTombstone removes the tombstone of a name, if there is one.
func clearTombstone(c *conn.Connect, name string) error {
	s, err := look(c, name, false)
	if err != nil || s.Tombstone == "" {
		return err
	}
	dom, err := c.LookupDomainByUUIDString(s.Tombstone)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dom.Free() }()
	return dom.Undefine()
}

// Expire removes the tombstone of a name when nothing that was sent before it was
// made can still be on its way.
func (n *node) Expire(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tombstones == nil {
		n.tombstones = map[string]time.Time{}
	}
	n.tombstones[name] = time.Now().Add(n.TombstoneTTL)
}

// Sweep removes tombstones whose time is over, those of earlier processes, too, and
// returns when it was interrupted.
func (n *node) Sweep(ctx context.Context) {
	defer n.Running.Done()
	tick := time.NewTicker(max(n.TombstoneTTL/10, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.sweep(ctx)
		}
	}
}

func (n *node) sweep(ctx context.Context) {
	for _, name := range n.overdue() {
		_, release, err := n.Lock(ctx, domxml.IDOf(n.Namespace, name))
		if err != nil {
			continue
		}
		err = n.Conn.Act(ctx, func(c *conn.Connect) error { return clearTombstone(c, name) })
		release()
		n.mu.Lock()
		if err == nil && time.Now().After(n.tombstones[name]) {
			delete(n.tombstones, name)
		}
		n.mu.Unlock()
	}
}

// overdue returns the names whose tombstones have done their work.
func (n *node) overdue() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for name, end := range n.tombstones {
		if time.Now().After(end) {
			names = append(names, name)
		}
	}
	return names
}

// FindBarred looks for tombstones of earlier processes.
func (n *node) FindBarred(ctx context.Context) error {
	names, err := conn.Ask(ctx, n.Conn, func(c *conn.Connect) ([]string, error) {
		doms, err := c.ListAllDomains(libvirt.CONNECT_LIST_DOMAINS_INACTIVE)
		var names []string
		for i := range doms {
			s, errObserved := observationOf(&doms[i], false)
			name, errName := doms[i].GetName()
			_ = doms[i].Free()
			if errObserved == nil && errName == nil && s.Tombstone != "" {
				names = append(names, name)
			}
		}
		return names, err
	})
	for _, name := range names {
		n.Expire(name)
	}
	return err
}

// Check refuses a VM that libvirt would not take.
func (n *node) Check(vm hypervisor.VM) error {
	if vm.ID == "" || vm.Memory <= 0 || vm.CPUs < 1 {
		return backend.Errorf(hypervisor.Invalid, "VM %q with %v and %d CPUs",
			vm.ID, vm.Memory, vm.CPUs)
	}
	_, err := domxml.Build(vm, n.Settings, domxml.Mark{})
	if err == nil {
		return nil
	}
	kind := hypervisor.Invalid
	if errors.Is(err, hypervisor.Unsupported) {
		kind = hypervisor.Unsupported
	}
	return backend.Errorf(kind, "%w", err)
}

// Sent keeps the most that was sent in the present migration: it never becomes less.
func (d *domain) Sent(now hypervisor.Bytes) hypervisor.Bytes {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = max(d.sent, now)
	return d.sent
}

// Reach connects to another host's libvirtd. The connection is kept. One that hangs keeps
// no caller waiting that asks another.
func (n *node) Reach(ctx context.Context, peer string) (*conn.Conn, error) {
	uri := n.Translate(peer)
	n.peersMu.Lock()
	kept := n.peers[uri]
	n.peersMu.Unlock()
	if kept != nil {
		return kept, nil
	}
	c, err := conn.Open(ctx, conn.Config{URI: uri, Timeout: n.Timeout})
	if err != nil {
		return nil, backend.Errorf(backend.KindOf(err), "ask the target: %w", backend.Bare(err))
	}
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	if kept = n.peers[uri]; kept != nil { // another caller was first
		n.Running.Go(func() { _ = c.Close() }) // it is not used
		return kept, nil
	}
	if n.peers == nil {
		n.peers = map[string]*conn.Conn{}
	}
	n.peers[uri] = c
	return c, nil
}

// Part lets go of all connections to other hosts.
func (n *node) Part() error {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	var bad []error
	for _, c := range n.peers {
		bad = append(bad, c.Close())
	}
	n.peers = nil
	return errors.Join(bad...)
}
