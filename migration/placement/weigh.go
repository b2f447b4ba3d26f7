package placement

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Weigher is one preference among hosts.
type Weigher struct {
	Name string
	// Multiplier is how much it counts; a negative one prefers the opposite.
	Multiplier float64
	// FromZero: the lowest number is 0 and not that of the worst host, so that
	// a small difference between full hosts is not blown up.
	FromZero bool
	// Of returns the host's number; more is better.
	Of func(*VM, *Host, Options) float64
}

// weighers lists all preferences with Nova's multipliers; cost is godwit's own.
var weighers = []Weigher{
	{"memory", 1, true, weighFreeMemory},
	{"cpus", 1, true, weighFreeCPUs},
	{"disk", 1, true, weighFreeDisk},
	{"version", 1, false, version},
	{"busy", -1, false, busy},
	{"vms", 0, false, vms},
	{"special", 1, true, plain},
	{"soft-affinity", 1, false, friends},
	{"soft-anti-affinity", 1, false, rivals},
	{"cost", 1, false, cost},
}

// Spread returns all preferences with their defaults: VMs go where most is free.
func Spread() []Weigher { return slices.Clone(weighers) }

// Pack returns all preferences so that VMs go where least is free.
func Pack() []Weigher {
	all := Spread()
	for i := range all {
		if slices.Contains([]string{"memory", "cpus", "disk"}, all[i].Name) {
			all[i].Multiplier *= -1
		}
	}
	return all
}

// SelectWeighers returns Spread with other multipliers, by name. An unknown name is an
// error that lists the known ones, and a multiplier that is no number another.
func SelectWeighers(multipliers map[string]float64) ([]Weigher, error) {
	all := Spread()
	for _, name := range slices.Sorted(maps.Keys(multipliers)) {
		i := slices.IndexFunc(all, func(w Weigher) bool { return w.Name == name })
		if i < 0 {
			var known []string
			for _, w := range all {
				known = append(known, w.Name)
			}
			return nil, fmt.Errorf("no weigher is called %q: choose among %s", name,
				strings.Join(known, ", "))
		}
		m := multipliers[name]
		if math.IsNaN(m) || math.IsInf(m, 0) {
			return nil, fmt.Errorf("the multiplier of %q is %v: give a finite number", name, m)
		}
		all[i].Multiplier = m
	}
	return all, nil
}

// scores returns the score of each of the given hosts, in their order; at are
// positions in hosts.
// Source: Nova nova/weights.py (get_weighed_objects).
func scores(
	ws []Weigher, vm *VM, hosts []Host, at []int, o Options,
) []float64 {
	scores, raw := make([]float64, len(at)), make([]float64, len(at))
	for w := range ws {
		if ws[w].Multiplier == 0 || weighIdle(&ws[w], vm) {
			continue
		}
		for k, i := range at {
			raw[k] = finite(ws[w].Of(vm, &hosts[i], o))
		}
		normalise(raw, ws[w].FromZero)
		for k := range raw {
			scores[k] += ws[w].Multiplier * raw[k]
		}
	}
	return scores
}

// weighIdle reports whether a weigher finds all hosts alike, whatever they are.
func weighIdle(w *Weigher, vm *VM) bool {
	return len(vm.Constraints.Groups) == 0 &&
		(w.Name == "soft-affinity" || w.Name == "soft-anti-affinity")
}

// bestOf returns the position in hosts of the best of the given ones; false when
// none is given. It is the first of [Rank].
func bestOf(
	ws []Weigher, vm *VM, hosts []Host, at []int, o Options,
) (int, bool) {
	if len(at) == 0 {
		return 0, false
	}
	best, scores := 0, scores(ws, vm, hosts, at, o)
	for k := range at {
		if byScore(scores[k], scores[best], &hosts[at[k]], &hosts[at[best]]) < 0 {
			best = k
		}
	}
	return at[best], true
}

// A Ranked is a host and its score.
type Ranked struct {
	Host  hypervisor.HostName
	Score float64
}

// Rank returns the given hosts, best first.
func Rank(
	ws []Weigher, vm *VM, hosts []Host, at []int, o Options,
) []Ranked {
	var all []Ranked
	for k, score := range scores(ws, vm, hosts, at, o) {
		all = append(all, Ranked{hosts[at[k]].Name, score})
	}
	slices.SortFunc(all, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Host, b.Host))
	})
	return all
}

func byScore(a, b float64, hostA, hostB *Host) int {
	return cmp.Or(cmp.Compare(b, a), cmp.Compare(hostA.Name, hostB.Name))
}

// normalise maps numbers to [0, 1]: the worst to 0, the best to 1, and all to 0
// when they are equal. With fromZero 0 maps to 0, and less than it counts as 0.
// Source: Nova nova/weights.py (normalize; weigh_objects for minval).
func normalise(numbers []float64, fromZero bool) {
	if len(numbers) == 0 {
		return
	}
	if fromZero {
		for i := range numbers {
			numbers[i] = max(0, numbers[i])
		}
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	if fromZero {
		low = 0
	}
	for i := range numbers {
		if low == high {
			numbers[i] = 0
		} else {
			numbers[i] = (numbers[i] - low) / (high - low)
		}
	}
}

// finite keeps a number within what can be subtracted and divided.
func finite(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return min(max(f, -1e300), 1e300)
}
