package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// DefaultFill is how full hosts are made at most, where possible, in percent.
const DefaultFill = 90

// A Request asks for a plan.
type Request struct {
	Fleet *Fleet
	Hosts []hypervisor.HostName // to be serviced, each once
	// Keep is how many failures must be survived besides, at every instant; 0 is none.
	Keep      int
	Domain    string                   // what fails at once: see [FailoverQuestion]
	Protected map[hypervisor.VMID]bool // see [FailoverQuestion]
	// Fill is how full, in percent, hosts are made at most, where possible: of their memory
	// and of their CPUs. Default: [DefaultFill].
	Fill int
	// Together is how many hosts may be serviced at once; 0 is no limit.
	Together int
	// Service is how long a batch takes besides its moves, and Each how long a move does
	// when as many run at once as may. They say how many moves more a batch less is worth.
	// By default a batch is worth any number of moves.
	Service, Each time.Duration
	// Effort bounds the check of failures for an obstacle: see [FailoverQuestion]. Each
	// batch that is tried has a twentieth of it; one that is not shown to be safe is not.
	Effort int

	unbounded bool // in tests: every batch is tried
}

// A Batch is hosts that are serviced together.
type Batch struct {
	Hosts []hypervisor.HostName `json:"hosts"`
	Waves []Wave                `json:"waves"` // empty them
	// Proof is how it was shown that the failures are survived; "" when none was asked.
	Proof Proof `json:"proof,omitempty"`
	// Fill is how full, in percent, the fullest host is that took VMs.
	Fill int `json:"fullest"`
}

// An Obstacle is why a host cannot be serviced, after all batches.
type Obstacle struct {
	Host hypervisor.HostName `json:"host"`
	// Left are VMs that have to stay on it, and Proof why, unless that is not known. Cannot are
	// those of them that can never move; which others stay is a choice.
	Left   []hypervisor.VMID `json:"left"`
	Cannot []hypervisor.VMID `json:"cannotLeave,omitempty"`
	Proof  *Certificate      `json:"proof,omitempty"`
	// Failures are those that would not be survived while it is serviced alone, after
	// the Moves that empty it; nil when no proof was found.
	Failures *Counterexample `json:"failures,omitempty"`
	Moves    []Move          `json:"moves"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// An Answer is a plan, as far as there is one.
type MaintenancePlan struct {
	Batches   []Batch    `json:"batches"`
	Obstacles []Obstacle `json:"obstacles"`
	VMs       int        `json:"vms"`   // that have to move
	Moves     int        `json:"moves"` // of all batches
	// Most is a bound on how many of the hosts can be serviced together, and Least one on
	// the number of batches, by what VMs need and hosts have.
	Most  int `json:"mostTogether"`
	Least int `json:"leastBatches"`
	// After is the fleet after all batches.
	After *Fleet `json:"-"`
}

// Validate returns an error when the request makes no sense.
func (r *Request) Validate() error {
	seen := map[hypervisor.HostName]bool{}
	for _, name := range r.Hosts {
		at, ok := r.Fleet.HostAt(name)
		switch {
		case !ok:
			return fmt.Errorf("there is no host %q among %d", name, len(r.Fleet.Hosts))
		case seen[name]:
			return fmt.Errorf("host %s is named twice", name)
		case r.Fleet.Hosts[at].Down:
			return fmt.Errorf("host %s is down: nothing can be moved off it; leave it out", name)
		}
		seen[name] = true
	}
	switch {
	case len(r.Fleet.Hosts) == 0:
		return fmt.Errorf("the fleet has no hosts: nothing can be serviced")
	case len(r.Hosts) == 0:
		return fmt.Errorf("no host is to be serviced: name some")
	case r.Keep < 0 || r.Together < 0:
		return fmt.Errorf("neither the failures to survive nor the hosts at once can be negative")
	case r.Fill < 0 || r.Fill > 100:
		return fmt.Errorf("hosts cannot be %d %% full: use 1 to 100", r.Fill)
	case r.Keep > 0:
		q := r.question(r.Fleet)
		if err := q.Validate(); err != nil {
			return fmt.Errorf("survive %s: %w", humanize.Count(r.Keep, "failure"), err)
		}
	}
	return nil
}

func (r *Request) question(f *Fleet) FailoverQuestion {
	return FailoverQuestion{Fleet: f, Failures: r.Keep, Domain: r.Domain, Protected: r.Protected,
		Effort: r.Effort}
}

// Maintenance plans for a request, which must be valid. It tries several ways: from one host at
// once whose VMs move again, to as many as possible, whenever that makes larger batches. It
// takes the one that costs least.
func Maintenance(r *Request) MaintenancePlan {
	b := newAssignment(r.Fleet, binding(r.Fleet))
	best := newPlanner(r, b, 1)
	best.plan()
	for first := 4; first < 4*len(r.Hosts); first *= 4 {
		p := newPlanner(r, b, first)
		p.eager = first >= len(r.Hosts)
		if p.plan(); p.better(best) {
			best = p
		}
	}
	return best.answer()
}

// better reports whether p leaves fewer hosts than other, or as many at less cost.
func (p *maintenancePlanner) better(other *maintenancePlanner) bool {
	return cmp.Or(cmp.Compare(len(p.waiting), len(other.waiting)),
		cmp.Compare(p.cost(), other.cost()), cmp.Compare(len(p.trials), len(other.trials)),
		cmp.Compare(len(p.moves), len(other.moves))) < 0
}

// cost weighs batches against moves.
func (p *maintenancePlanner) cost() time.Duration {
	return time.Duration(len(p.trials))*p.Service + time.Duration(len(p.moves))*p.Each
}

// answer writes the plan down, with waves and obstacles.
func (p *maintenancePlanner) answer() MaintenancePlan {
	a := MaintenancePlan{Batches: []Batch{}, Obstacles: []Obstacle{}, Moves: len(p.moves), After: p.Fleet}
	for _, name := range p.Hosts {
		at, _ := p.Fleet.HostAt(name)
		for vm := range p.Fleet.VMs {
			if p.Fleet.VMs[vm].Home == p.Fleet.Hosts[at].Name {
				a.VMs++
			}
		}
	}
	for _, t := range p.trials {
		b := Batch{Proof: t.proof, Fill: t.fill, Waves: p.waves(a.After, t)}
		for _, h := range t.hosts {
			b.Hosts = append(b.Hosts, p.Fleet.Hosts[h].Name)
		}
		slices.Sort(b.Hosts)
		a.Batches = append(a.Batches, b)
		a.After = after(a.After, t.moves)
	}
	for _, h := range p.waiting {
		a.Obstacles = append(a.Obstacles, p.obstacle(a.After, h))
	}
	a.Most, a.Least = bounds(p.Request)
	return a
}

// waves sorts the moves of a batch. Those of VMs that only need room, off hosts that no VM
// enters, are possible in any order, and are one wave.
func (p *maintenancePlanner) waves(now *Fleet, t *trial) []Wave {
	s, simple := Begin(now), true
	for _, h := range t.hosts {
		s.Cordon(h, true)
	}
	for _, m := range t.moves {
		vm, _ := now.VMAt(m.VM)
		source, _ := now.HostAt(m.Source)
		simple = simple && !p.b.bound[vm] && slices.Contains(t.hosts, source)
	}
	switch {
	case len(t.moves) == 0:
		return []Wave{}
	case simple:
		return []Wave{t.moves}
	}
	waves, _ := Waves(s, t.moves)
	return waves
}

// bounds returns how many of the hosts can be away at once, by what all VMs need, and how
// many batches there are at least.
func bounds(r *Request) (most, least int) {
	most = len(r.Hosts)
	for _, of := range []func(h int) (used, has int64){
		func(h int) (used, has int64) {
			x := &r.Fleet.Hosts[h]
			return int64(x.UsedMemory), int64(max(x.Memory, x.UsedMemory))
		},
		func(h int) (used, has int64) {
			x := &r.Fleet.Hosts[h]
			return int64(x.UsedCPUs), int64(max(x.CPUs, x.UsedCPUs))
		},
	} {
		most = min(most, away(r, of))
	}
	if r.Together > 0 {
		most = min(most, r.Together)
	}
	if most <= 0 {
		return 0, 0
	}
	return most, (len(r.Hosts) + most - 1) / most
}

// away returns how many hosts can be away by one resource: the smallest ones first.
func away(r *Request, of func(h int) (used, has int64)) int {
	spare := int64(0)
	for h := range r.Fleet.Hosts {
		if used, has := of(h); !r.Fleet.Hosts[h].Down {
			spare += has - used
		}
	}
	var sizes []int64
	for _, name := range r.Hosts {
		at, _ := r.Fleet.HostAt(name)
		_, has := of(at)
		sizes = append(sizes, has)
	}
	slices.Sort(sizes)
	n := 0
	for n < len(sizes) && sizes[n] <= spare {
		spare -= sizes[n]
		n++
	}
	return n
}
