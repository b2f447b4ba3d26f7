package whatif

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/plan"
)

// A DeadlineRemedy is what lets hosts be empty in time where no limits and no order do, as it was tried in
// the simulator. Like them it was confirmed in worlds that it was not chosen by.
type DeadlineRemedy struct {
	// Option is the field of a migration policy, or of the cluster, that is to be true; "moveBefore": the VMs,
	// which are on other hosts and have to make room, are moved before the drain begins; or "restart": the VMs
	// are shut down and started on their targets.
	Option string            `json:"option"`
	VMs    []hypervisor.VMID `json:"vms,omitempty"` // none is all that the plan moves
	// BeforeSeconds is how long moveBefore takes.
	BeforeSeconds float64 `json:"beforeSeconds,omitempty"`
	Trial         Trial   `json:"trial"`
	// Risk is what may happen besides; "" is nothing.
	Risk string `json:"risk,omitempty"`
}

// moveBefore is the option of bystanders that are moved beforehand.
const moveBefore = "moveBefore"

// mostStopped is how many VMs are shut down at most to meet a deadline.
const mostStopped = 4

// a rescue is a play with a remedy.
type rescue struct {
	play   *Play
	remedy DeadlineRemedy
}

// rescues tries what else meets a deadline, the cheapest first: what disturbs no guest of the hosts, then a
// guest that is slower, one that is at risk, and the fewest that are shut down.
func (p *Play) rescues(
	ctx context.Context, g Goal, solos map[hypervisor.VMID]MoveResult, tried []Trial,
) ([]DeadlineRemedy, error) {
	var all []DeadlineRemedy
	before, err := p.before(ctx)
	if err != nil {
		return nil, err
	}
	list := before
	for _, o := range options {
		list = append(list, rescue{p.allowed(o.cluster, o.policy), DeadlineRemedy{Option: o.name, Risk: o.risk}})
	}
	stopped := false
	for _, r := range append(list, p.stopped(solos)...) {
		if r.remedy.Option == restarting && stopped {
			break // with fewer it is met
		}
		met, err := r.meets(ctx, g, p.most(tried))
		if err != nil {
			return nil, err
		}
		if met {
			all = append(all, r.remedy)
			stopped = r.remedy.Option == restarting
		}
	}
	return all, nil
}

// most returns the present settings, and those with which the hosts were empty soonest: without any that were
// tried, the widest.
func (p *Play) most(tried []Trial) []Settings {
	all := p.candidates()
	soonest := all[len(all)-1]
	known := slices.DeleteFunc(slices.Clone(tried), func(t Trial) bool { return t.EmptySeconds == nil })
	if len(known) > 0 {
		soonest = slices.MinFunc(known, func(a, b Trial) int {
			return cmp.Compare(*a.EmptySeconds, *b.EmptySeconds)
		}).Settings
	}
	return []Settings{all[0], soonest}
}

// meets reports whether a remedy meets a goal with some settings, and notes them.
func (r *rescue) meets(ctx context.Context, g Goal, with []Settings) (bool, error) {
	solos, err := r.play.Solos(ctx)
	if err != nil {
		return false, err
	}
	s, err := r.play.gentlest(ctx, g, solos, with, lateness{})
	if err != nil || s.Found == nil {
		return false, err
	}
	r.remedy.Trial = *s.Found
	return true, nil
}

// before returns the play after the moves of VMs on other hosts, which the plan has make room, if there are
// such moves and they come about before those of the drain.
func (p *Play) before(ctx context.Context) ([]rescue, error) {
	bystander := func(m plan.Move) bool { return !slices.Contains(p.Hosts, m.Source) }
	first, rest := &Play{Scenario: p.Scenario, Stops: p.Stops.alone(), once: true}, *p
	rest.Waves = nil
	var vms []hypervisor.VMID
	for _, wave := range p.Waves {
		for _, m := range wave {
			if bystander(m) {
				vms = append(vms, m.VM)
			}
		}
		rest.Waves = append(rest.Waves, slices.DeleteFunc(slices.Clone(wave), bystander))
		first.Waves = append(first.Waves, slices.DeleteFunc(slices.Clone(wave),
			func(m plan.Move) bool { return !bystander(m) }))
	}
	if len(vms) == 0 {
		return nil, nil
	}
	run, err := first.Nominal(ctx)
	if err != nil {
		return nil, err
	}
	r := rescue{&rest, DeadlineRemedy{Option: moveBefore, VMs: vms}}
	for _, vm := range vms {
		result := run.Results[vm]
		if !result.Done {
			return nil, nil
		}
		r.remedy.BeforeSeconds = max(r.remedy.BeforeSeconds, (result.Began + result.Took).Seconds())
	}
	scene := *p.Scenario
	scene.Fleet = after(scene.Fleet, first.Waves, nil)
	rest.Scenario = &scene
	return []rescue{r}, nil
}

// stopped returns the play with the slowest VMs shut down instead of migrated: with one, then with more.
func (p *Play) stopped(solos map[hypervisor.VMID]MoveResult) []rescue {
	var vms []hypervisor.VMID
	for _, m := range slices.Concat(p.Waves...) {
		if slices.Contains(p.Hosts, m.Source) && !p.Stops.restarts(m.VM) && !slices.Contains(vms, m.VM) {
			vms = append(vms, m.VM)
		}
	}
	slices.SortStableFunc(vms, func(a, b hypervisor.VMID) int {
		x, y := solos[a], solos[b]
		if x.Done != y.Done {
			return cmp.Or(map[bool]int{false: -1, true: 1}[x.Done])
		}
		return cmp.Compare(y.Took, x.Took)
	})
	var all []rescue
	for n := 1; n <= min(mostStopped, len(vms)); n *= 2 {
		with, stops := *p, &Stops{Terms: p.Stops.terms(), Restart: map[hypervisor.VMID]bool{}}
		if p.Stops != nil {
			*stops = *p.Stops
			stops.Restart = maps.Clone(p.Stops.Restart)
		}
		for _, vm := range vms[:n] {
			stops.Restart[vm] = true
		}
		with.Stops = stops
		all = append(all, rescue{&with, DeadlineRemedy{Option: restarting, VMs: vms[:n:n], Risk: restartRisk}})
	}
	return all
}
