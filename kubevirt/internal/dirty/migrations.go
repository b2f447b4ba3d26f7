package dirty

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Migrations returns what past migrations say about VMs with so much memory, for links of a speed and a cluster
// that caps each migration; a cap of 0 is none. A migration that sends at speed b while the guest writes at d takes
// memory/(b-d). The last migration of a VM that says something counts. Those say nothing
//
//   - that began and ended within a second, or of which the guest was stopped or fetched from the target;
//   - of which the bandwidth is not known: the nodes are not, or others used the same link meanwhile, and no cap kept them from sharing it;
//   - that were faster than their bandwidth: not all memory was sent.
func Migrations(all []virtv1.VirtualMachineInstanceMigration, memory map[hypervisor.VMID]hypervisor.Bytes,
	link, bandwidthCap hypervisor.Bandwidth) map[hypervisor.VMID]Rate {
	rates := map[hypervisor.VMID]Rate{}
	transfers := transfersOf(all, bandwidthCap)
	links := linksOf(transfers)
	for i := range all {
		m, t := &all[i], &transfers[i]
		s := m.Status.MigrationState
		id := hypervisor.VMID(m.Namespace + "/" + m.Spec.VMIName)
		if s == nil || m.Status.Phase != virtv1.MigrationSucceeded || s.StartTimestamp == nil || s.EndTimestamp == nil ||
			s.Mode != "" && s.Mode != virtv1.MigrationPreCopy || memory[id] <= 0 {
			continue
		}
		took, at := s.EndTimestamp.Sub(s.StartTimestamp.Time), s.EndTimestamp.Time
		if old, known := rates[id]; took < time.Second || known && !at.After(old.At) {
			continue
		}
		sent := hypervisor.Bandwidth(float64(memory[id]) / took.Seconds())
		if had := t.bandwidth(links, link); had > sent {
			rates[id] = Rate{had - sent, "migration " + m.Namespace + "/" + m.Name, at}
		}
	}
	return rates
}

// A transfer is when a migration used which links, and how much of them at most.
type transfer struct {
	from, to       string // nodes; "" is not known
	began, ended   time.Time
	limit          hypervisor.Bandwidth // 0 is none
	begun, unknown bool                 // unknown: it is not known what its limit was
}

// forever is when a transfer ends that has not ended yet.
var forever = time.Unix(1<<40, 0)

// transfersOf returns the transfers of migrations.
func transfersOf(all []virtv1.VirtualMachineInstanceMigration, bandwidthCap hypervisor.Bandwidth) []transfer {
	transfers := make([]transfer, len(all))
	for i := range all {
		t, m := &transfers[i], &all[i]
		t.limit, t.ended = bandwidthCap, forever
		for _, p := range m.Status.PhaseTransitionTimestamps {
			switch p.Phase {
			case virtv1.MigrationRunning:
				t.begun, t.began = true, p.PhaseTransitionTimestamp.Time
			case virtv1.MigrationSucceeded, virtv1.MigrationFailed:
				t.ended = p.PhaseTransitionTimestamp.Time
			}
		}
		if s := m.Status.MigrationState; s != nil {
			t.state(s)
		}
	}
	return transfers
}

// state takes in what the nodes have written about a migration.
func (t *transfer) state(s *virtv1.VirtualMachineInstanceMigrationState) {
	t.from, t.to = s.SourceNode, s.TargetNode
	set := func(to *time.Time, from *metav1.Time) bool {
		if from != nil {
			*to = from.Time
		}
		return from != nil
	}
	t.begun = set(&t.began, s.StartTimestamp) || t.begun
	set(&t.ended, s.EndTimestamp)
	switch {
	case s.MigrationConfiguration == nil:
		t.unknown = s.MigrationPolicyName != nil && *s.MigrationPolicyName != ""
	case s.MigrationConfiguration.BandwidthPerMigration == nil:
		t.limit = 0
	default:
		t.limit = hypervisor.Bandwidth(max(0, s.MigrationConfiguration.BandwidthPerMigration.Value()))
	}
}

// links are the transfers that use those of nodes.
type links struct {
	from, to map[string][]*transfer
	anywhere []*transfer
}

func linksOf(all []transfer) *links {
	l := &links{from: map[string][]*transfer{}, to: map[string][]*transfer{}}
	for i := range all {
		switch t := &all[i]; {
		case !t.begun:
		case t.from == "" || t.to == "":
			l.anywhere = append(l.anywhere, t)
		default:
			l.from[t.from], l.to[t.to] = append(l.from[t.from], t), append(l.to[t.to], t)
		}
	}
	return l
}

// bandwidth returns what a transfer had for itself; 0 is that it is not known. A node has one link, which carries
// as much out as in.
func (t *transfer) bandwidth(all *links, link hypervisor.Bandwidth) hypervisor.Bandwidth {
	if t.unknown || t.from == "" || t.to == "" {
		return 0
	}
	had := link
	if t.limit > 0 {
		had = min(link, t.limit)
	}
	for _, sharing := range [][]*transfer{all.from[t.from], all.to[t.to]} {
		left := link - had
		for _, o := range slices.Concat(sharing, all.anywhere) {
			if o == t || !t.meets(o) {
				continue
			}
			if left -= o.limit; o.unknown || o.limit == 0 || left < 0 {
				return 0
			}
		}
	}
	return had
}

// meets reports whether two transfers went on at the same time.
func (t *transfer) meets(o *transfer) bool { return t.began.Before(o.ended) && o.began.Before(t.ended) }
