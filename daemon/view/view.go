// Package view knows what is in a store: hosts, VMs, migrations, leases, and how far each
// move has come. It is what status pages and metrics are made from, and it only reads.
//
// A [Cluster] follows the store by its feeds: after the first look it reads what has
// changed. What it answers are records: nobody may change them.
package view

import (
	"context"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// A Cluster is what is stored about a cluster. The zero value has seen nothing. It belongs
// to one caller at a time.
type Cluster struct {
	records map[record.Key]record.Record
	seen    map[record.Feed]record.Revision
	strays  map[hypervisor.HostName]bool // hosts that run what they should not
	setBack error                        // why the store must not be believed
}

// Pull takes in what has changed in the store, signs of life included.
func (c *Cluster) Pull(ctx context.Context, store record.Store) error {
	if c.records == nil {
		c.records = map[record.Key]record.Record{}
		c.seen = map[record.Feed]record.Revision{}
	}
	if s, knows := store.(record.Historian); knows {
		h, instance, err := s.History(ctx)
		if err != nil {
			return err
		}
		c.setBack = nil
		if why := h.Judge(record.Mark{}, instance, 0); why != nil {
			c.setBack = why.Err
		}
	}
	for _, feed := range []record.Feed{record.Everything, record.Signs} {
		changes, err := store.Changes(ctx, feed, c.seen[feed])
		if err != nil {
			return err
		}
		c.take(feed, &changes)
	}
	return nil
}

// SetBack says why the store must not be believed, and what to do; nil is that it may be.
func (c *Cluster) SetBack() error { return c.setBack }

// Revision returns up to where the records of everything but signs of life were read.
func (c *Cluster) Revision() record.Revision { return c.seen[record.Everything] }

func (c *Cluster) take(feed record.Feed, changes *record.Changes) {
	if changes.Reset {
		maps.DeleteFunc(c.records, func(key record.Key, _ record.Record) bool {
			return isSign(key) == feed.Signs
		})
	}
	for _, r := range changes.Records {
		if old := c.records[r.Key()]; old == nil || old.At() < r.At() {
			c.records[r.Key()] = r
		}
	}
	for _, key := range changes.Gone {
		delete(c.records, key)
	}
	c.seen[feed] = changes.Next
	if !feed.Signs {
		c.astray(changes)
	}
}

// astray notes which hosts run VMs that are not to run there: nearly always none does.
func (c *Cluster) astray(changes *record.Changes) {
	if c.strays == nil || changes.Reset {
		c.strays = map[hypervisor.HostName]bool{}
	}
	for _, r := range changes.Records {
		if h, is := r.(*record.Host); is {
			c.strays[h.Host.Name] = true
		}
	}
	for host := range c.strays {
		if h := c.Host(host); h == nil || len(h.Strays) == 0 {
			delete(c.strays, host)
		}
	}
}

// RunsBeside lists the hosts whose agents say that a VM runs there although it is not to.
func (c *Cluster) RunsBeside(vm hypervisor.VMID) []hypervisor.HostName {
	var list []hypervisor.HostName
	for host := range c.strays {
		if slices.ContainsFunc(c.Host(host).Strays, func(s record.Stray) bool { return s.VM == vm }) {
			list = append(list, host)
		}
	}
	slices.Sort(list)
	return list
}

func isSign(key record.Key) bool {
	return key.Kind == record.LeaseKind || key.Kind == record.LeaderKind
}

// all lists the records of one type, ordered by name.
func all[R record.Record](c *Cluster, kind record.Kind) []R {
	var list []R
	names := slices.SortedFunc(maps.Keys(c.records), func(a, b record.Key) int {
		if a.Name < b.Name {
			return -1
		} else if a.Name > b.Name {
			return 1
		}
		return 0
	})
	for _, key := range names {
		if r, is := c.records[key].(R); is && key.Kind == kind {
			list = append(list, r)
		}
	}
	return list
}

// one returns a record of one type, or nil.
func one[R record.Record](c *Cluster, kind record.Kind, name string) (found R) {
	found, _ = c.records[record.Key{Kind: kind, Name: name}].(R)
	return found
}

// Hosts lists the hosts, ordered by name.
func (c *Cluster) Hosts() []*record.Host { return all[*record.Host](c, record.HostKind) }

// VMs lists the VMs, ordered by name.
func (c *Cluster) VMs() []*record.VM { return all[*record.VM](c, record.VMKind) }

// Rebuilds lists the VMs that were started anew elsewhere, ordered by name.
func (c *Cluster) Rebuilds() []*record.Rebuild {
	return all[*record.Rebuild](c, record.RebuildKind)
}

// Leases lists the signs of life, ordered by owner.
func (c *Cluster) Leases() []*record.Lease { return all[*record.Lease](c, record.LeaseKind) }

// Host returns a host; nil when there is none.
func (c *Cluster) Host(name hypervisor.HostName) *record.Host {
	return one[*record.Host](c, record.HostKind, string(name))
}

// VM returns a VM; nil when there is none.
func (c *Cluster) VM(id hypervisor.VMID) *record.VM {
	return one[*record.VM](c, record.VMKind, string(id))
}

// Migration returns a migration; nil when there is none.
func (c *Cluster) Migration(id migration.ID) *record.Migration {
	return one[*record.Migration](c, record.MigrationKind, string(id))
}

// Leader returns who leads the cluster; nil when nobody ever has.
func (c *Cluster) Leader() *record.Leader {
	leaders := all[*record.Leader](c, record.LeaderKind)
	if len(leaders) == 0 {
		return nil
	}
	return leaders[0]
}

// Migrations lists the migrations, oldest first.
func (c *Cluster) Migrations() []*record.Migration {
	list := all[*record.Migration](c, record.MigrationKind)
	slices.SortStableFunc(list, func(a, b *record.Migration) int {
		return a.Spec.Created.Compare(b.Spec.Created)
	})
	return list
}

// On lists the VMs on a host, ordered by name.
func (c *Cluster) On(host hypervisor.HostName) []*record.VM {
	return slices.DeleteFunc(c.VMs(), func(v *record.VM) bool { return v.Host != host })
}

// HostState says in a word how a host is.
func HostState(h *record.Host, draining bool) string {
	switch {
	case h.Fenced:
		return "fenced"
	case h.Fencing != nil:
		return "fencing"
	case h.Lost:
		return "lost"
	case draining:
		return "draining"
	case h.Closed:
		return "closed"
	}
	return "ready"
}
