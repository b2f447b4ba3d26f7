package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/plan"
)

// A Goal is to have the hosts empty in time, with a probability.
type Goal struct {
	Within     time.Duration
	Confidence float64 // from 0 to 1
	Samples    int     // worlds for each trial
	Seed       uint64
}

// A Trial is settings and what came of them.
type Trial struct {
	Settings Settings `json:"settings"`
	// EmptySeconds is when the hosts are empty with nothing drawn; null is never.
	EmptySeconds *float64 `json:"emptySeconds"`
	// InTime counts the worlds that were empty in time, of Runs. A trial that is late
	// with nothing drawn is not played in any.
	InTime int `json:"inTime"`
	Runs   int `json:"runs"`
	// AtLeast is the probability to be in time, at least, with 95 % confidence.
	AtLeast float64 `json:"probabilityAtLeast"`
}

// A Search is what a search for settings came to.
type Search struct {
	// Found are the settings that make it; nil is none. They were confirmed in worlds
	// that they were not chosen by.
	Found *Trial
	// Trials are those that were tried, the gentlest first.
	Trials []Trial
	// Obstacles stand in the way when nothing was found, and Remedies are what would meet the goal then.
	Obstacles []Obstacle
	Remedies  []DeadlineRemedy
}

// Search looks for the gentlest settings that reach a goal: as few migrations at once
// as possible, and caps of bandwidth kept if that is possible.
func (p *Play) Search(
	ctx context.Context, g Goal, solos map[hypervisor.VMID]MoveResult,
) (*Search, error) {
	alone, err := p.uncapped(solos).Solos(ctx)
	if err != nil {
		return nil, err
	}
	s := &Search{Obstacles: p.obstacles(g.Within, alone)}
	if len(s.Obstacles) == 0 {
		late := lateness{}
		if s, err = p.gentlest(ctx, g, solos, p.candidates(), late); err != nil || s.Found != nil {
			return s, err
		}
		s.Obstacles = append(late.obstacles(), p.links(0)...)
		s.Obstacles = s.Obstacles[:min(len(s.Obstacles), mostObstacles)]
	}
	s.Remedies, err = p.rescues(ctx, g, solos, s.Trials)
	return s, err
}

// gentlest looks for the first of some settings that reach a goal. late counts which VMs keep the others from
// it.
func (p *Play) gentlest(
	ctx context.Context, g Goal, solos map[hypervisor.VMID]MoveResult, all []Settings, late lateness,
) (*Search, error) {
	s := &Search{}
	var played []time.Duration
	for _, settings := range all {
		play := p.With(settings, solos)
		if settings.Order != LargestFirst {
			settings.Order = LargestFirst // which a controller knows, and needs no simulation
			if largest := p.With(settings, solos); !slices.EqualFunc(largest.Waves, play.Waves,
				slices.Equal) {
				settings.Order = LongestFirst
			}
		}
		if slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.Settings == settings }) {
			continue
		}
		run, err := play.Nominal(ctx)
		if err != nil {
			return nil, err
		}
		trial := Trial{Settings: settings, EmptySeconds: seconds(run.Empty)}
		again := slices.ContainsFunc(played, func(d time.Duration) bool {
			return (d - run.Empty).Abs() <= d/200 // it changes nothing
		})
		switch {
		case run.Empty < 0 || run.Empty > g.Within:
			late.add(run, g.Within)
		case !again:
			played = append(played, run.Empty)
			if trial, err = play.try(ctx, trial, g, late); err != nil {
				return nil, err
			}
		}
		if s.Trials = append(s.Trials, trial); trial.met(&g) {
			s.Found = &trial
			return s, nil
		}
	}
	return s, nil
}

// uncapped returns the play without the cluster's cap of bandwidth.
func (p *Play) uncapped(solos map[hypervisor.VMID]MoveResult) *Play {
	settings := p.Present()
	settings.Bandwidth = 0
	return p.With(settings, solos)
}

// mostObstacles is how many are told when none of them alone is certain to be one.
const mostObstacles = 4

func (t *Trial) met(g *Goal) bool {
	return t.Runs == g.Samples && float64(t.InTime) >= g.Confidence*float64(t.Runs)-rounding
}

// missed reports whether so many worlds are late that no other can change it.
func (t *Trial) missed(g *Goal) bool {
	return float64(t.Runs-t.InTime) > (1-g.Confidence)*float64(g.Samples)+rounding
}

// try plays settings in the worlds of a goal, and in as many others if they make it.
// It ends as soon as too many worlds are late.
func (p *Play) try(ctx context.Context, t Trial, g Goal, late lateness) (Trial, error) {
	short := *p
	scene := *p.Scenario
	scene.Until = min(scene.Until, g.Within+time.Second) // what comes later does not matter
	short.Scenario = &scene
	for round := range uint64(2) {
		t.InTime, t.Runs = 0, 0
		for t.Runs < g.Samples {
			runs, err := short.samples(ctx, g.Seed+round, t.Runs, min(g.Samples, t.Runs+chunk))
			if err != nil {
				return t, err
			}
			for _, r := range runs {
				late.add(r, g.Within)
			}
			t.Runs += len(runs)
			t.InTime += InTime(runs, g.Within)
			t.AtLeast = AtLeast(t.InTime, t.Runs)
			if t.missed(&g) {
				return t, nil
			}
		}
	}
	return t, nil
}

// chunk is how many worlds are played before it is asked whether to go on.
const chunk = 20

// lateness counts, of the worlds that are late, those in which a VM took longest.
type lateness map[hypervisor.VMID]int

func (l lateness) add(r *Run, within time.Duration) {
	var slowest hypervisor.VMID
	if r.Empty >= 0 && r.Empty <= within {
		return
	}
	for _, vm := range slices.Sorted(maps.Keys(r.Results)) {
		if slowest == "" || r.Results[vm].Busy > r.Results[slowest].Busy {
			slowest = vm
		}
	}
	l[slowest]++
}

// obstacles lists the VMs that took longest most often.
func (l lateness) obstacles() []Obstacle {
	var all []Obstacle
	worlds := 0
	for _, n := range l {
		worlds += n
	}
	for _, vm := range slices.Sorted(maps.Keys(l)) {
		all = append(all, Obstacle{VM: vm, Text: fmt.Sprintf(
			"%s took longest in %d of the %d worlds that were late", vm, l[vm], worlds)})
	}
	slices.SortStableFunc(all, func(a, b Obstacle) int { return cmp.Compare(l[b.VM], l[a.VM]) })
	return all[:min(len(all), mostObstacles-1)]
}

// candidates lists settings, the present ones and then the gentlest first.
func (p *Play) candidates() []Settings {
	present := p.Present()
	longest := present
	longest.Order = LongestFirst
	all := []Settings{present, longest}
	moves := 0 // out of one host; more at once means nothing
	for _, host := range p.Hosts {
		n := 0
		for _, m := range slices.Concat(p.Waves...) {
			if m.Source == host {
				n++
			}
		}
		moves = max(moves, n)
	}
	for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32} {
		if n > max(moves, 1) {
			break
		}
		next := longest
		next.PerSource = n
		next.PerCluster = max(present.PerCluster, n*len(p.Hosts))
		if !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	if present.Bandwidth > 0 {
		for _, s := range all[1:] {
			s.Bandwidth = 0
			all = append(all, s)
		}
	}
	return all
}

// An Obstacle keeps the hosts from being empty in time.
type Obstacle struct {
	VM   hypervisor.VMID     `json:"vm,omitempty"`
	Link hypervisor.HostName `json:"link,omitempty"` // of this host
	// Seconds is how long it takes at least; 0 is that it does not end.
	Seconds float64 `json:"seconds,omitempty"`
	Text    string  `json:"text"`
}

// obstacles lists what alone takes longer than there is time: VMs with the links for
// themselves, and links that carry every byte once.
func (p *Play) obstacles(
	within time.Duration, solos map[hypervisor.VMID]MoveResult,
) []Obstacle {
	var all []Obstacle
	for _, vm := range slices.Sorted(maps.Keys(solos)) {
		switch solo := solos[vm]; {
		case !solo.Done:
			all = append(all, Obstacle{VM: vm, Text: fmt.Sprintf(
				"%s does not converge even alone, and is given up after %s: allow post-copy or "+
					"auto-converge for it, or stop it", vm, solo.Busy.Round(time.Second))})
		case solo.Took > within:
			all = append(all, Obstacle{VM: vm, Seconds: solo.Took.Seconds(), Text: fmt.Sprintf(
				"%s takes %s alone", vm, solo.Took.Round(time.Second))})
		}
	}
	return append(all, p.links(within)...)
}

// least returns how little a move of a VM sends: its memory may be compressed, if its policy says so.
func least(s *config.Scenario, v *inventory.VM, m plan.Move) hypervisor.Bytes {
	all, remains := v.Workload.Least(v.VM), hypervisor.Bytes(s.Model.Compression)
	compresses := func(y migration.Policy) bool {
		return y.Experimental != nil && y.Experimental.Compression != nil && y.Experimental.Compression.On()
	}
	c := &s.Controller
	if remains == 0 || !slices.ContainsFunc(c.Policies, compresses) {
		return all
	}
	matcher := migration.PolicyMatcher{Compatible: c.Migration.Compatible}
	options, _ := matcher.Resolve(*c.Cluster, c.Policies,
		migration.PolicyLabels(migration.Labels(v.Labels), m.Source, m.Target), migration.Labels(c.Namespaces[v.Namespace]))
	if !options.Compression.On() {
		return all
	}
	disks := v.LocalSize()
	return (all-disks)/1000*remains + disks
}

// links lists the hosts whose links take longer than a time, the slowest first.
func (p *Play) links(than time.Duration) []Obstacle {
	vms := map[hypervisor.VMID]*inventory.VM{}
	for i := range p.Scenario.Fleet.VMs {
		vms[p.Scenario.Fleet.VMs[i].ID] = &p.Scenario.Fleet.VMs[i]
	}
	out := map[hypervisor.HostName]hypervisor.Bytes{}
	in := map[hypervisor.HostName]hypervisor.Bytes{}
	for _, m := range slices.Concat(p.Waves...) {
		v := vms[m.VM]
		if v == nil || p.Stops.restarts(m.VM) { // a restart sends no memory
			continue
		}
		bytes := least(p.Scenario, v, m)
		out[m.Source] += bytes
		in[m.Target] += bytes
	}
	var all []Obstacle
	for i := range p.Scenario.Fleet.Hosts {
		h := &p.Scenario.Fleet.Hosts[i]
		bytes := max(out[h.Name], in[h.Name])
		if h.Link <= 0 || bytes == 0 {
			continue
		}
		if took := bytes.At(h.Link); took > than {
			all = append(all, Obstacle{Link: h.Name, Seconds: took.Seconds(), Text: fmt.Sprintf(
				"the link of %s takes %s for %v at %v", h.Name, took.Round(time.Second), bytes,
				h.Link)})
		}
	}
	slices.SortStableFunc(all, func(a, b Obstacle) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return all
}
