package explore

import (
	"context"
	"unsafe"

	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/explore/internal/checkpoint"
	"github.com/godwit-vm/godwit/sim/explore/internal/fingerprint"
	"github.com/godwit-vm/godwit/sim/explore/internal/stage"
)

// fixed are the types that nobody changes, or that belong to another part.
var fixed = []string{
	"stage.line", "stage.phone", "stage.World",
	"record.Migration", "record.VM", "record.Host", "record.Rebuild",
	"policy.Cluster", "policy.Set", "migration.Config", "controller.Config",
	"placement.VM", "placement.Facts", "hypervisor.Hardware", "fake.Model",
	"choose.Config", "books.Config",
}

// rules say what of the stage.Parts makes a state.
var rules = fingerprint.Rules{
	Epoch: stage.Epoch.UnixNano(),
	Held:  []string{"record.Migration", "record.VM", "record.Host", "record.Rebuild"},
	Skip: []string{
		// Records: versions say only who has read what, which is found by comparing.
		"record.Migration.Version", "record.VM.Version", "record.Host.Version",
		"record.Rebuild.Version",
		// The store: who has read how much of the feeds is a process's.
		"record.Memory.feeds", "record.Memory.all", "record.Memory.revision",
		"record.Memory.changed", "record.Memory.told", "record.Memory.answers",
		// Participants: what is given, and what follows from the rest.
		"agent.Agent.host", "agent.Agent.config", "agent.Agent.hv", "agent.Agent.store",
		"agent.Agent.noter", "agent.Agent.seen", "agent.Agent.byVM",
		"controller.Controller.config", "controller.Controller.core",
		"controller.Controller.limits", "controller.Controller.policies",
		"controller.Controller.store", "controller.Controller.noter",
		"controller.Controller.seen", "controller.Controller.sight",
		"controller.Controller.answer", "controller.Controller.options",
		"controller.Controller.next", "agent.Agent.draft",
		"controller.view.slots", "controller.view.drain", "controller.view.eager",
		"controller.view.unfinished", "controller.view.nowhere", "controller.view.moves",
		"controller.guest.place", "controller.guest.flights",
		"controller.guest.site", "controller.flight.guest", "controller.site.guests",
		"controller.site.marked",
		"books.Books.config", "books.Books.chooser", "books.Books.index",
		"books.Books.ledger", "books.Books.hosts",
		"books.entry.vm", "books.Standing.VM",
		"queue.Queue[*github.com/godwit-vm/godwit/controller.flight].bySource",
		"due.Work[github.com/godwit-vm/godwit/hypervisor.HostName].in",
		"due.Work[github.com/godwit-vm/godwit/record.Key].in",
		"due.Work[github.com/godwit-vm/godwit/hypervisor.JobID].in",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.HostName].queue",
		"due.Timers[github.com/godwit-vm/godwit/record.Key].queue",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.JobID].queue",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.HostName].seq",
		"due.Timers[github.com/godwit-vm/godwit/record.Key].seq",
		"due.Timers[github.com/godwit-vm/godwit/hypervisor.JobID].seq",
		"due.wish.seq",
		// Hypervisors: what is given, what leads back, and what follows from the rest.
		"fake.Fabric.mu", "fake.Fabric.model", "fake.Fabric.touched", "fake.Fabric.hinted",
		"fake.Fabric.told", "fake.Fabric.given",
		"fake.Host.fabric", "fake.Host.host", "fake.Host.life", "fake.Host.busy",
		"fake.machine.domains", "fake.machine.touched",
		"fake.domain.host", "fake.domain.machine", "fake.domain.hinted",
		"transfer.World.Now", "transfer.World.Start", "transfer.World.Agenda",
		"transfer.World.costs", "transfer.World.network",
		"transfer.World.racks", "transfer.World.shared",
		"transfer.Host.up", "transfer.Host.down", "transfer.Host.rack",
		"transfer.Host.transfers",
		"transfer.Transfer.world", "transfer.Transfer.VM", "transfer.Transfer.flow",
		"transfer.Transfer.alone",
		"transfer.Transfer.options",
		"agenda.Timer.order", "agenda.Timer.Fire",
		"memory.Stream.Options",
	},
	Times: []string{
		"due.wish.at", "agenda.Timer.At",
		"transfer.Transfer.begun", "transfer.Transfer.stopped", "transfer.Transfer.wakes",
		"memory.guest.at", "memory.pass.began", "memory.pass.at", "memory.pace.origin",
		"memory.gauge.origin", "memory.brake.judged",
	},
	Named: map[string]string{
		"controller.flight": "rec.Spec.ID", "transfer.Transfer": "Job",
		"transfer.Host": "Name", "fake.domain": "",
	},
	Own: []string{"controller.view.flights", "fake.Host.domains", "fake.Host.jobs"},
	Over: map[string]fingerprint.Over{
		"agenda.Timer":      {Field: "place", Is: 0},
		"transfer.Transfer": {Field: "stage", Is: 7, Only: ended},
	},
}

// ended is what counts of a transfer that is over.
var ended = []string{"Job", "Address", "Hold", "From", "To", "Refused", "stage", "status",
	"failure", "mode"}

// keeper keeps and brings back the states of one world, and tells them apart.
type keeper struct {
	w      *stage.World
	images *checkpoint.Keeper
	maker  *fingerprint.Maker
	now    [stage.Parts]*shared // what each part is known to hold; nil is something else
	prints [stage.Parts]fingerprint.Print
	fresh  uint // stage.Parts whose print is out of date
	known  map[unsafe.Pointer]*fingerprint.Print
	idle   []*checkpoint.Image
}

// shared is an image that several snapshots may have.
type shared struct {
	*checkpoint.Image
	users int
}

// snapshot is a state that can be brought back.
type snapshot struct {
	stage.State
	images [stage.Parts]*shared
	prints [stage.Parts]fingerprint.Print
}

func newKeeper(w *stage.World) *keeper {
	w.Touched = 0
	return &keeper{w: w, images: checkpoint.New(fixed...), maker: fingerprint.New(rules),
		fresh: ^uint(0), known: map[unsafe.Pointer]*fingerprint.Print{}}
}

// notice takes in what has changed.
func (k *keeper) notice() {
	for part := range stage.Parts {
		if k.w.Touched>>part&1 == 1 {
			k.now[part] = nil
		}
	}
	k.fresh |= k.w.Touched
	k.w.Touched = 0
}

// keep returns the present state. Its prints have been made.
func (k *keeper) keep() *snapshot {
	k.notice()
	s := &snapshot{State: k.w.State, prints: k.prints}
	for part := range stage.Parts {
		if k.now[part] == nil {
			if root := k.w.Part(part); root != nil {
				k.now[part] = &shared{Image: k.images.Keep(root, k.spare())}
			}
		}
		if s.images[part] = k.now[part]; s.images[part] != nil {
			s.images[part].users++
		}
	}
	return s
}

func (k *keeper) spare() *checkpoint.Image {
	n := len(k.idle)
	if n == 0 {
		return nil
	}
	i := k.idle[n-1]
	k.idle = k.idle[:n-1]
	return i
}

// restore brings a state back.
func (k *keeper) restore(s *snapshot) {
	k.notice()
	for part, i := range s.images {
		if i != nil && k.now[part] != i {
			i.Restore()
			k.w.Restored(part)
		}
	}
	k.now, k.w.State, k.w.Broken = s.images, s.State, nil
	k.prints, k.fresh = s.prints, 0
}

// drop lets a snapshot go.
func (k *keeper) drop(s *snapshot) {
	for part, i := range s.images {
		if i == nil {
			continue
		}
		if i.users--; i.users == 0 {
			k.idle = append(k.idle, i.Image)
			if k.now[part] == i {
				k.now[part] = nil
			}
		}
	}
}

// print returns the number of the present state.
func (k *keeper) print() uint64 {
	k.notice()
	now := k.w.Now.UnixNano()
	sum := uint64(0)
	if k.w.Waits {
		sum = 1
	}
	if late := k.w.Now.Sub(k.w.Since); late < stage.Enough {
		sum += uint64(late) << 1
	}
	left := uint64(k.w.Faults)<<8 ^ uint64(k.w.Odd)
	sum += fingerprint.Mix(uint64(k.w.Script)<<32^left, uint64(k.w.Cut))
	for v, hosts := range k.w.Older {
		sum += fingerprint.Mix(uint64(v)+51, uint64(hosts))
	}
	for part := range stage.Parts {
		root := k.w.Part(part)
		if root == nil {
			sum += uint64(part) << 40
			continue
		}
		p := &k.prints[part]
		if k.fresh>>part&1 == 1 {
			*p = k.maker.Of(root, nil)
		}
		whole := p.At(now)
		for _, h := range p.Held {
			whole += fingerprint.Mix(h.Path, k.record(h, now))
		}
		sum += fingerprint.Mix(uint64(part)+11, whole)
	}
	k.fresh = 0
	for p := range k.w.Len() {
		sum += fingerprint.Mix(uint64(p)+31, k.process(p))
	}
	return sum
}

// record returns the number of a record that a part has: of what it says, and whether
// that is what is stored.
func (k *keeper) record(h fingerprint.Held, now int64) uint64 {
	p := k.known[h.To]
	r := asRecord(h)
	if p == nil {
		if len(k.known) > 1<<17 {
			clear(k.known)
		}
		made := k.maker.Of(r, nil)
		p = &made
		k.known[h.To] = p
	}
	stored, _ := k.w.Store.Get(context.Background(), r.Key())
	n := p.At(now)
	if stored != r {
		n ^= 0xa5a5a5a5
	}
	return n
}

func asRecord(h fingerprint.Held) record.Record {
	switch h.Type.Name() {
	case "Migration":
		return (*record.Migration)(h.To)
	case "VM":
		return (*record.VM)(h.To)
	case "Host":
		return (*record.Host)(h.To)
	}
	return (*record.Rebuild)(h.To)
}

// process returns the number of a process, and of what it has not read yet.
func (k *keeper) process(p int) uint64 {
	proc := &k.w.Procs[p]
	n := fingerprint.Mix(uint64(proc.Hints), 1)
	if proc.Told {
		n++
	}
	if proc.Off {
		n += 2
	}
	if proc.Hung {
		n += 8
	}
	if proc.Brain == nil {
		return n
	}
	switch wait := proc.Wake.Sub(k.w.Now); {
	case proc.Wake.IsZero():
	case wait <= 0:
		n += 4
	default:
		n = fingerprint.Mix(n, uint64(wait))
	}
	if proc.Seen == 0 {
		return n
	}
	c, _ := k.w.Store.Changes(context.Background(), record.Feed{Host: k.w.HostOf(p)}, proc.Seen)
	for _, r := range c.Records {
		key := r.Key()
		if !k.has(p, r) {
			n = fingerprint.Mix(n, fingerprint.String(key.Name)+uint64(key.Kind))
		}
	}
	for _, key := range c.Gone {
		n = fingerprint.Mix(n, fingerprint.String(key.Name)-uint64(key.Kind))
	}
	return n
}

// has reports whether a process has a record as it is stored: it wrote it itself.
func (k *keeper) has(p int, r record.Record) bool {
	for _, h := range k.prints[p].Held {
		if asRecord(h) == r {
			return true
		}
	}
	return false
}
