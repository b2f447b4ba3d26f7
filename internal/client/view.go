package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A Cluster is a cache of the records of a cluster. The zero value is empty. It is not safe for
// concurrent use.
type Cluster struct {
	records map[store.Key]store.Record
	seen    map[store.Feed]store.Revision
	strays  map[hypervisor.HostName]bool // hosts that run what they should not
	setBack error                        // why the store must not be believed

	// What was computed from the records since they last changed.
	lists map[store.Kind]any // ordered
	on    map[hypervisor.HostName][]*store.VM
}

// Pull reads the changes in the store, heartbeats included.
func (c *Cluster) Pull(ctx context.Context, records store.Store) error {
	if c.records == nil {
		c.records = map[store.Key]store.Record{}
		c.seen = map[store.Feed]store.Revision{}
	}
	if s, knows := records.(store.Historian); knows {
		h, instance, err := s.History(ctx)
		if err != nil {
			return err
		}
		c.setBack = nil
		if why := h.Judge(store.Mark{}, instance, 0); why != nil {
			c.setBack = why.Err
		}
	}
	for _, feed := range []store.Feed{store.Everything, store.Leases} {
		changes, err := records.Changes(ctx, feed, c.seen[feed])
		if err != nil {
			return err
		}
		c.take(feed, &changes)
	}
	return nil
}

// SetBack returns why the store cannot be trusted, and what to do; nil if it can.
func (c *Cluster) SetBack() error { return c.setBack }

// Revision returns up to where all records but heartbeats were read.
func (c *Cluster) Revision() store.Revision { return c.seen[store.Everything] }

func (c *Cluster) take(feed store.Feed, changes *store.Changes) {
	if changes.Reset || len(changes.Records)+len(changes.Gone) > 0 {
		c.lists, c.on = nil, nil
	}
	if changes.Reset {
		maps.DeleteFunc(c.records, func(key store.Key, _ store.Record) bool {
			return isSign(key) == feed.Leases
		})
	}
	for _, r := range changes.Records {
		if old := c.records[r.Key()]; old == nil || old.RecordVersion() < r.RecordVersion() {
			c.records[r.Key()] = r
		}
	}
	for _, key := range changes.Gone {
		delete(c.records, key)
	}
	c.seen[feed] = changes.Next
	if !feed.Leases {
		c.astray(changes)
	}
}

// astray notes which hosts run VMs that are not to run there: nearly always none does.
func (c *Cluster) astray(changes *store.Changes) {
	if c.strays == nil || changes.Reset {
		c.strays = map[hypervisor.HostName]bool{}
	}
	for _, r := range changes.Records {
		if h, is := r.(*store.Host); is {
			c.strays[h.Host.Name] = true
		}
	}
	for host := range c.strays {
		if h := c.Host(host); h == nil || len(h.Strays) == 0 {
			delete(c.strays, host)
		}
	}
}

// runsBeside lists the hosts whose agents say that a VM runs there although it is not to.
func (c *Cluster) runsBeside(vm hypervisor.VMID) []hypervisor.HostName {
	var list []hypervisor.HostName
	for host := range c.strays {
		if slices.ContainsFunc(c.Host(host).Strays, func(s store.Stray) bool { return s.VM == vm }) {
			list = append(list, host)
		}
	}
	slices.Sort(list)
	return list
}

func isSign(key store.Key) bool {
	return key.Kind == store.LeaseKind || key.Kind == store.LeaderKind
}

// all lists the records of one type, ordered by name. The list is the caller's.
func all[R store.Record](c *Cluster, kind store.Kind) []R {
	return slices.Clone(ordered(c, kind, func(a, b R) int {
		return cmp.Compare(a.Key().Name, b.Key().Name)
	}))
}

// oldest lists the records of one type, the oldest first. The list is the caller's.
func oldest[R store.Record](c *Cluster, kind store.Kind, created func(R) time.Time) []R {
	list := all[R](c, kind)
	slices.SortFunc(list, func(a, b R) int { return created(a).Compare(created(b)) })
	return list
}

// ordered lists the records of one type. The list is shared: it must not be changed.
func ordered[R store.Record](c *Cluster, kind store.Kind, compare func(a, b R) int) []R {
	if known, is := c.lists[kind].([]R); is {
		return known
	}
	var list []R
	for key, r := range c.records {
		if r, is := r.(R); is && key.Kind == kind {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, compare)
	if c.lists == nil {
		c.lists = map[store.Kind]any{}
	}
	c.lists[kind] = list
	return list
}

// one returns a record of one type, or nil.
func one[R store.Record](c *Cluster, kind store.Kind, name string) (found R) {
	found, _ = c.records[store.Key{Kind: kind, Name: name}].(R)
	return found
}

// Hosts lists the hosts, ordered by name.
func (c *Cluster) Hosts() []*store.Host { return all[*store.Host](c, store.HostKind) }

// VMs lists the VMs, ordered by name.
func (c *Cluster) VMs() []*store.VM { return all[*store.VM](c, store.VMKind) }

// Rebuilds lists the VMs that were restarted elsewhere, ordered by name.
func (c *Cluster) Rebuilds() []*store.Rebuild {
	return all[*store.Rebuild](c, store.RebuildKind)
}

// Leases lists the heartbeats, ordered by owner.
func (c *Cluster) Leases() []*store.Lease { return all[*store.Lease](c, store.LeaseKind) }

// Host returns a host; nil when there is none.
func (c *Cluster) Host(name hypervisor.HostName) *store.Host {
	return one[*store.Host](c, store.HostKind, string(name))
}

// VM returns a VM; nil when there is none.
func (c *Cluster) VM(id hypervisor.VMID) *store.VM {
	return one[*store.VM](c, store.VMKind, string(id))
}

// Migration returns a migration; nil when there is none.
func (c *Cluster) Migration(id migration.ID) *store.Migration {
	return one[*store.Migration](c, store.MigrationKind, string(id))
}

// Leader returns the leader of the cluster; nil if there never was one.
func (c *Cluster) Leader() *store.Leader {
	leaders := all[*store.Leader](c, store.LeaderKind)
	if len(leaders) == 0 {
		return nil
	}
	return leaders[0]
}

// Migrations lists the migrations, oldest first.
func (c *Cluster) Migrations() []*store.Migration { return slices.Clone(c.migrations()) }

func (c *Cluster) migrations() []*store.Migration {
	return ordered(c, store.MigrationKind, func(a, b *store.Migration) int {
		return cmp.Or(a.Spec.Created.Compare(b.Spec.Created), cmp.Compare(a.Spec.ID, b.Spec.ID))
	})
}

// On lists the VMs on a host, ordered by name.
func (c *Cluster) On(host hypervisor.HostName) []*store.VM {
	if c.on == nil {
		c.on = map[hypervisor.HostName][]*store.VM{}
		for _, v := range c.VMs() {
			c.on[v.Host] = append(c.on[v.Host], v)
		}
	}
	return slices.Clone(c.on[host])
}

// HostState returns the state of a host in one word.
func HostState(h *store.Host, draining bool) string {
	switch {
	case h.Fenced:
		return "fenced"
	case h.Fencing != nil:
		return "fencing"
	case h.NotReady:
		return "lost"
	case draining:
		return "draining"
	case h.Cordoned:
		return "cordoned"
	}
	return "ready"
}
