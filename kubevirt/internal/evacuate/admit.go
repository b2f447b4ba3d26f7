package evacuate

import (
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// held is a VM that package evacuation would let go, and the cluster would not.
type held struct {
	reasons []placement.Reason
	help    []string
	blocks  bool      // until something is changed
	until   time.Time // when it is over by itself; zero is not known
}

// hold returns what keeps a VM from being migrated now, besides the limits, or nil.
func (s *site) hold(v *vm) *held {
	if s.node != nil {
		if r := notReady(s.node); r != nil {
			return &held{reasons: []placement.Reason{*r}, help: []string{helpNode}, blocks: true}
		}
	}
	if at := v.retryAt(nameOf(v.object, v.attempt()), s.Now); !at.IsZero() {
		return &held{until: at, reasons: []placement.Reason{{Check: "back-off", Need: "none",
			Have: fmt.Sprintf("its last migrations have failed: the next is created at %s",
				at.UTC().Format(time.RFC3339))}}}
	}
	if h := s.Refused[v.object.UID].held(s.Now, "migration", helpRefused); h != nil {
		return h
	}
	return s.holding()
}

// admit asks package evacuation which VMs go now, until quotas and disruption budgets admit all of them.
// Those that they do not admit take no place from others.
func (s *site) admit(params evacuation.Params, host evacuation.Host, guests []evacuation.VM,
	load evacuation.Load, holds map[hypervisor.VMID]*held, byID map[hypervisor.VMID]*vm) evacuation.Decision {
	for {
		var free []evacuation.VM
		for _, g := range guests {
			if holds[g.ID] == nil {
				free = append(free, g)
			}
		}
		d := evacuation.Plan(params, host, free, load)
		refused, budgets := false, s.budgets()
		for i, c := range d.Create {
			v := byID[c.VM]
			if h := s.refuse(v, budgets); h != nil {
				h.blocks = s.alone(d.Create[:i])
				holds[c.VM], refused = h, true
				continue
			}
			s.quota.Set(c.VM, v.known.Placement.Charges, 2)
			budgets.take(v)
		}
		if !refused {
			return d
		}
		for _, c := range d.Create { // none of them is created yet
			if holds[c.VM] == nil {
				s.quota.Set(c.VM, byID[c.VM].known.Placement.Charges, 1)
			}
		}
	}
}

// refuse returns what quotas and disruption budgets have against a migration of a VM, or nil.
func (s *site) refuse(v *vm, b *budgets) *held {
	h := &held{}
	if lacks := s.quota.Lacks(v.known.Placement.Charges); len(lacks) > 0 {
		h.reasons, h.help = append(h.reasons, lacks...), append(h.help, helpQuota)
	}
	if lacks := b.lacks(v); len(lacks) > 0 {
		h.reasons, h.help = append(h.reasons, lacks...), append(h.help, helpBudget)
	}
	if len(h.reasons) == 0 {
		return nil
	}
	return h
}

// alone reports whether no migration runs or begins, so that what is refused now will be later, too.
func (s *site) alone(before []evacuation.MigrationRequest) bool {
	return len(before)+len(s.unfinished) == 0
}

// budgets are the disruption budgets with how many of their VMs are under way.
type budgets struct {
	all []budget
	pod func(*vm) labels.Set
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
	moving   int
}

// budgets counts the VMs under way. A live migration is no eviction, but while it goes on the VM
// depends on two nodes: so at most as many VMs of a budget move at once as it allows to be
// disrupted, and always one, since otherwise a VM with a budget of its own would never leave.
func (s *site) budgets() *budgets {
	b := &budgets{pod: func(v *vm) labels.Set {
		if v.pod != nil {
			return v.pod.Labels
		}
		return v.object.Labels
	}}
	for i := range s.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(s.Budgets[i].Spec.Selector)
		if err != nil {
			continue // the API server does not store one
		}
		b.all = append(b.all, budget{&s.Budgets[i], selector, 0})
	}
	for _, v := range s.index.vms {
		if v.current != nil {
			b.take(v)
		}
	}
	for _, v := range s.begun { // off other nodes
		b.take(v)
	}
	return b
}

func (b *budgets) take(v *vm) {
	for i := range b.all {
		if b.all[i].covers(v, b.pod(v)) {
			b.all[i].moving++
		}
	}
}

func (b *budget) covers(v *vm, pod labels.Set) bool {
	return b.Namespace == v.object.Namespace && b.selector.Matches(pod)
}

// lacks returns a reason for every budget that does not allow one more to move.
func (b *budgets) lacks(v *vm) (why []placement.Reason) {
	for i := range b.all {
		one := &b.all[i]
		allowed := max(1, int(one.Status.DisruptionsAllowed))
		if one.moving >= allowed && one.covers(v, b.pod(v)) {
			why = append(why, placement.Reason{Check: "disruption budget",
				Need: "one more VM that may move", Have: fmt.Sprintf("%s allows %d at once, %d move",
					one.Name, allowed, one.moving)})
		}
	}
	return why
}
