package simtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// The laws that [Check] holds in every world beside godwit's invariants. They are about
// liveness: godwit's invariants say that nothing wrong happens, the laws that something happens,
// and not for ever. [Without] leaves one out where it is broken on purpose.
const (
	// DrainsEnd: where nothing breaks, a drained host is empty in the end, as far as other hosts
	// have room and godwit's own decisions would have emptied it in the same world. A VM that
	// something else holds (a backup, a hot-plug, utility volumes) may stay, and so may one that waits
	// for the place of its migration.
	DrainsEnd = "drains-end"
	// WorkIsBounded: of one VM no more attempts end within ten minutes than [MaxAttempts] says.
	WorkIsBounded = "work-is-bounded"
	// TimeAdvances: at one moment no more happens than a world of that size can need.
	TimeAdvances = "time-advances"
	// WorldsEnd: a world comes to an end, within thirty days of virtual time, and within the
	// time that the test has by the clock on the wall.
	WorldsEnd = ending
)

// Without leaves laws out, by their names.
func Without(laws ...string) Option {
	return func(s *settings) { s.without = append(s.without, laws...) }
}

// MaxAttempts says how many attempts to migrate one VM may end within ten virtual minutes.
// Default: 60. godwit's own back-off makes fewer than ten.
func MaxAttempts(n int) Option { return func(s *settings) { s.attempts = n } }

// holds reports whether a law was not left out.
func (s *settings) holds(law string) bool { return !slices.Contains(s.without, law) }

// attemptSpan is the time over which attempts are counted.
const attemptSpan = 10 * time.Minute

// work counts what is done for each VM, and at one moment.
type work struct {
	ended map[hypervisor.VMID][]time.Duration // when the last attempts ended, oldest first
	storm string                              // the VM of which too many have, and how many
	at    time.Duration
	same  int // events at that time
}

// attempt notes that an attempt has ended. most is how many may within the span.
func (k *work) attempt(at time.Duration, vm hypervisor.VMID, most int) {
	if k.ended == nil {
		k.ended = map[hypervisor.VMID][]time.Duration{}
	}
	list := append(k.ended[vm], at)
	for len(list) > most+1 {
		list = list[1:]
	}
	k.ended[vm] = list
	if len(list) > most && at-list[0] <= attemptSpan && k.storm == "" {
		k.storm = fmt.Sprintf("%d attempts to migrate %s have ended within %v: a policy that tries "+
			"again waits in between", len(list), vm, at-list[0])
	}
}

// watched counts attempts, and lets a caller that watches a configuration already go on.
func (r *run) watched(theirs func(time.Duration, *store.Migration, *store.Migration),
) func(time.Duration, *store.Migration, *store.Migration) {
	return func(at time.Duration, before, after *store.Migration) {
		if !before.State.Phase.Final() && after.State.Phase.Final() {
			r.work.attempt(at, after.Spec.VM, r.attempts)
		}
		if theirs != nil {
			theirs(at, before, after)
		}
	}
}

// moments is how much may happen at one moment, for each host and VM, and besides.
const moments = 1000

// laws judges a world after an event.
func (r *run) laws(w *sim.World) {
	if r.work.storm != "" && r.holds(WorkIsBounded) {
		r.fail(WorkIsBounded, w.Now(), r.work.storm)
	}
	if now := w.Now(); now != r.work.at {
		r.work.at, r.work.same = now, 0
	}
	r.work.same++
	if most := moments * (r.size + 10); r.work.same > most && r.holds(TimeAdvances) {
		r.fail(TimeAdvances, w.Now(), fmt.Sprintf("%d events, and virtual time stands still: "+
			"a participant that asks to be woken now, or at a time that has passed, is woken again at once. %s",
			r.work.same, busiest(w)))
	}
}

// busiest says what is done at the moment.
func busiest(w *sim.World) string {
	moving := w.Moving()
	names := make([]string, 0, len(moving))
	for _, m := range moving {
		names = append(names, fmt.Sprintf("%s (%s)", m.Spec.ID, m.State.Phase))
	}
	if len(names) == 0 {
		return "no VM moves"
	}
	return "on their way: " + strings.Join(names[:min(len(names), 5)], ", ")
}

// ticks stops a world that does not end within what its test has, by the clock on the wall. It
// is asked every few thousand events.
func (r *run) ticks(theirs func(*sim.World) bool) func(*sim.World) bool {
	began := time.Now()
	return func(w *sim.World) bool {
		if took := time.Since(began); r.budget > 0 && took > r.budget && r.holds(WorldsEnd) {
			r.fail(ending, w.Now(), fmt.Sprintf("it has not come to an end in %v, after %d events: %s",
				took.Round(time.Millisecond), w.Result().Events, busiest(w)))
			return false
		}
		return theirs == nil || theirs(w)
	}
}

// drained judges a world that has ended: what is left on drained hosts has no room elsewhere, or
// godwit's own decisions leave it there as well.
func (r *run) drained(w *sim.World, parsed *config.Scenario) {
	if !r.holds(DrainsEnd) || len(r.plugs) == 0 || w.Faulty() || r.failed != nil {
		return
	}
	held, shared := heldUp(w), sharesLinks(parsed)
	left := slices.DeleteFunc(roomFor(w), func(s rest) bool { return s.keptBy(held, w, shared) })
	if len(left) == 0 {
		return
	}
	own := *r.settings
	own.plugs, own.without = nil, append(slices.Clone(own.without), DrainsEnd)
	own.always, own.atRest, own.promises = nil, nil, nil
	with := &stage{settings: &own, policyCheck: &PolicyCheck{}}
	if f, err := with.scene(parsed); f != nil || err != nil || with.world.Faulty() {
		return
	}
	stays := map[hypervisor.VMID]bool{}
	for _, s := range onDrained(with.world) {
		stays[s.vm] = true
	}
	for _, s := range left {
		if !stays[s.vm] {
			r.fail(DrainsEnd, w.Now(), fmt.Sprintf("%s is left on %s, which is drained, and %s has "+
				"room for it. godwit's own decisions move it in the same world. Where that is meant, "+
				"give Without(DrainsEnd)", s.vm, s.on, s.room))
			return
		}
	}
}

// heldUp lists the migrations that do not end because something holds their VM, as a change of its CPUs does
// that is not made: they keep their places from others for as long.
func heldUp(w *sim.World) []*store.Migration {
	return slices.DeleteFunc(w.Moving(), func(m *store.Migration) bool {
		v := w.VM(m.Spec.VM)
		return v == nil || v.Blockers == (store.Blockers{})
	})
}

// keptBy reports whether one of these migrations may keep from a VM what it needs to leave: a place within a
// limit, its host's link or that of the host with room, or a link that hosts share.
func (s *rest) keptBy(held []*store.Migration, w *sim.World, shared bool) bool {
	if len(held) == 0 {
		return false
	}
	if shared || w.Slots().Admit(w.Limits(), s.on) != migration.Open {
		return true
	}
	return slices.ContainsFunc(held, func(m *store.Migration) bool {
		return m.State.Source == s.on || m.State.Target == s.room
	})
}

// sharesLinks tells whether migrations between different hosts use one link.
func sharesLinks(c *config.Scenario) bool {
	return c.Controller.Network > 0 || slices.ContainsFunc(c.Fleet.Hosts, func(h inventory.Host) bool {
		return h.Facts != nil && h.Facts.Rack != ""
	})
}

// A rest is a VM that is at home on a drained host.
type rest struct {
	vm       hypervisor.VMID
	on, room hypervisor.HostName // room: a host that could hold it
}

// onDrained lists the VMs that are at home on drained hosts.
func onDrained(w *sim.World) (all []rest) {
	for _, host := range w.Hosts() {
		if !w.Draining(host) {
			continue
		}
		for _, vm := range w.VMsOn(host) {
			if v := w.VM(vm); v != nil && !v.Ended && !v.Off() && len(w.RunsOn(vm)) > 0 {
				all = append(all, rest{vm: vm, on: host})
			}
		}
	}
	return all
}

// roomFor lists the VMs on drained hosts that nothing holds and for which another host has room, with
// that host.
func roomFor(w *sim.World) (all []rest) {
	for _, s := range onDrained(w) {
		v := w.VM(s.vm)
		if v.Blockers != (store.Blockers{}) {
			continue // whether its migration began before it was held is a matter of moments
		}
		place := v.Place()
		for _, host := range w.Hosts() {
			h := w.HostRecord(host)
			if h == nil || h.Cordoned || w.Draining(host) || host == s.on {
				continue
			}
			home, coming := w.Demand(host)
			if place.Demand() <= h.Host.Memory-home-coming {
				s.room = host
				all = append(all, s)
				break
			}
		}
	}
	return all
}
