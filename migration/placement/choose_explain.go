package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Explanation says why a decision is what it is. It is for people, and costs
// a look at every host by every filter.
type Explanation struct {
	Decision Decision     `json:"decision"`
	Hosts    []HostResult `json:"verdicts,omitempty"` // of every host, by name
	// Histogram counts the hosts that each filter refuses, most frequent first.
	Histogram []Count `json:"histogram,omitempty"`
	// Nearest are the hosts that nearly take the VM, the nearest first; none
	// when a host takes it.
	Nearest []NearMiss `json:"nearest,omitempty"`
}

// A HostResult is what is to be said about one host.
type HostResult struct {
	Host hypervisor.HostName `json:"host"`
	// Why has every reason against the host; none means that it takes the VM.
	Why   []Reason `json:"why,omitempty"`
	Score float64  `json:"score"` // among those that take the VM
}

// A NearMiss is what it would take for a host to take the VM.
type NearMiss struct {
	Host   hypervisor.HostName `json:"host"`
	Memory hypervisor.Bytes    `json:"memory,omitempty"` // so much more
	CPUs   int                 `json:"cpus,omitempty"`
	Disk   hypervisor.Bytes    `json:"disk,omitempty"`
	// Unless are the reasons that more room does not cure.
	Unless []Reason `json:"unless,omitempty"`
	// Moved is the smallest VM there whose departure alone would do; "" is none.
	Moved hypervisor.VMID `json:"moved,omitempty"`
}

// String says it in one line: "n3 fits with 3GiB more memory, or if vm-17 moved".
func (m NearMiss) String() string {
	var more, refusing []string
	if m.Memory > 0 {
		more = append(more, m.Memory.String()+" more memory")
	}
	if m.CPUs > 0 {
		more = append(more, fmt.Sprintf("%d more CPUs", m.CPUs))
	}
	if m.Disk > 0 {
		more = append(more, m.Disk.String()+" more disk")
	}
	for _, r := range m.Unless {
		refusing = append(refusing, r.Check)
	}
	text := string(m.Host) + " fits"
	if len(more) > 0 {
		text += " with " + strings.Join(more, " and ")
	}
	if len(refusing) > 0 {
		text += " if it did not refuse for " + strings.Join(refusing, ", ")
	}
	if m.Moved != "" {
		text += ", or if " + string(m.Moved) + " moved"
	}
	return text
}

// nearest is how many misses an explanation has.
const nearest = 3

// Explain decides as Decide does, and says why for every host; for a request
// that names a host, about that host only.
func Explain(c *Config, r *Request, hosts []Host) Explanation {
	e := Explanation{Decision: Decide(c, r, hosts)}
	if e.Decision.Outcome == BadRequest {
		return e
	}
	q := newQuestion(c, r, hosts)
	if r.Host != "" {
		i := slices.IndexFunc(hosts, q.isNamed)
		q.hosts = hosts[i : i+1]
	}
	scores := map[hypervisor.HostName]float64{}
	for _, ranked := range Rank(q.weighers, q.VM, q.hosts, q.candidates(), q.o) {
		scores[ranked.Host] = ranked.Score
	}
	for i := range q.hosts {
		h := &q.hosts[i]
		v := HostResult{Host: h.Name, Why: CheckAll(q.filters, q.VM, h, q.o)}
		if slices.Contains(q.Ignored, h.Name) {
			v.Why = append([]Reason{ignored(h.Name)}, v.Why...)
		}
		v.Score = scores[h.Name]
		e.Hosts = append(e.Hosts, v)
	}
	slices.SortFunc(e.Hosts, func(a, b HostResult) int { return cmp.Compare(a.Host, b.Host) })
	e.Histogram = q.histogram()
	if len(scores) == 0 {
		e.Nearest = q.misses()
	}
	return e
}

// histogram counts the hosts that each filter refuses, and the ignored ones.
func (q *question) histogram() []Count {
	counts := CountRefusals(q.filters, q.VM, q.hosts, q.o)
	out := 0
	for i := range q.hosts {
		if slices.Contains(q.Ignored, q.hosts[i].Name) {
			out++
		}
	}
	if out > 0 {
		counts = append(counts, Count{Check: "ignored", Hosts: out})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), cmp.Compare(a.Check, b.Check))
	})
	return counts
}

// misses returns the nearest misses: fewest reasons that room does not cure,
// then the least memory, CPUs and disk, then the name.
func (q *question) misses() []NearMiss {
	var all []NearMiss
	for i := range q.hosts {
		if !slices.Contains(q.Ignored, q.hosts[i].Name) && q.hosts[i].Name != q.Source {
			all = append(all, q.miss(&q.hosts[i]))
		}
	}
	slices.SortFunc(all, func(a, b NearMiss) int {
		return cmp.Or(cmp.Compare(len(a.Unless), len(b.Unless)), cmp.Compare(a.Memory, b.Memory),
			cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.Disk, b.Disk), cmp.Compare(a.Host, b.Host))
	})
	all = all[:min(len(all), nearest)]
	for i := range all {
		for k := range q.hosts {
			if q.hosts[k].Name == all[i].Host {
				all[i].Moved = q.blocker(&q.hosts[k])
			}
		}
	}
	return all
}

// miss gives a host what it lacks, and sees what is left.
func (q *question) miss(h *Host) NearMiss {
	lack := lack(q.filters, q.VM, h, q.o)
	larger := lack.added(h)
	return NearMiss{Host: h.Name, Memory: lack.Memory, CPUs: lack.CPUs, Disk: lack.Disk,
		Unless: CheckAll(q.filters, q.VM, &larger, q.o)}
}

// blocker returns the smallest VM on a host without which it takes the VM.
func (q *question) blocker(h *Host) hypervisor.VMID {
	if h.Load == nil {
		return ""
	}
	var best *VM
	for id, held := range h.Load.Held {
		if id == q.VM.ID || held.VM == nil || best != nil && bySize(best, held.VM) < 0 {
			continue
		}
		without, ok := h.Without(held.VM, false)
		if !ok {
			continue
		}
		o := q.o
		o.Move = q.surveyWithout(&without)
		if FitsAll(q.filters, q.VM, &without, o) {
			best = held.VM
		}
	}
	if best == nil {
		return ""
	}
	return best.ID
}

// surveyWithout looks at the fleet anew, with one host replaced, where groups
// matter.
func (q *question) surveyWithout(host *Host) *Move {
	if len(q.VM.Constraints.Groups) == 0 {
		return q.o.Move
	}
	others := slices.Clone(q.hosts)
	for i := range others {
		if others[i].Name == host.Name {
			others[i] = *host
		}
	}
	m := CompareHosts(q.VM, q.Source, others)
	m.Rebuild, m.Source = q.Rebuild, q.o.Move.Source
	return m
}

func bySize(a, b *VM) int {
	return cmp.Or(cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.CPUs, b.CPUs),
		cmp.Compare(a.ID, b.ID))
}
