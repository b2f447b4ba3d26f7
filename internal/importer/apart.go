package importer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/kubeobject"
	"github.com/godwit-vm/godwit/migration/placement"
)

// Limits on what anti-affinity may cost.
const (
	// maxPairs is for how many pairs of VMs one condition is kept exactly.
	maxPairs = 1000
	// maxGroupName is from which length on the name of a group is a digest.
	maxGroupName = 100
	// maxMatches is how often a VM is looked at to see whether it is meant.
	maxMatches = 50_000_000
)

// affinities collects conditions of the kinds "on no node with a pod like that", which
// Kubernetes holds both ways, since a pod like that cannot come, either, and
// "on a node with one", which it does not.
type affinities struct {
	terms map[string]*apartTerm
	order []*apartTerm
}

// apartTerm is one condition, and the VMs that have it.
type apartTerm struct {
	name       string // canonical: namespaces and selector, kind and domain
	together   bool   // the condition is to be with such a pod
	domain     string // the label of what nodes share; "" is the node itself
	namespaces []string
	selector   *kubeobject.Selector
	carriers   []int // indices of VMs
	line       int   // of the first carrier
	field      string
}

const (
	requiredField = ".requiredDuringSchedulingIgnoredDuringExecution"
	apartField    = "spec.affinity.podAntiAffinity" + requiredField
	togetherField = "spec.affinity.podAffinity" + requiredField
)

// add takes the conditions of the VM that gets this index.
func (a *affinities) add(o *object, index int, vmi *kubeobject.VirtualMachineInstance) {
	affinity := vmi.Spec.Affinity
	if affinity == nil {
		return
	}
	if p := affinity.PodAffinity; p != nil {
		for i, term := range p.RequiredDuringSchedulingIgnoredDuringExecution {
			a.term(o, index, &apartTerm{together: true,
				field: fmt.Sprintf("%s[%d]", togetherField, i)}, term)
		}
	}
	if p := affinity.PodAntiAffinity; p != nil {
		for i, term := range p.RequiredDuringSchedulingIgnoredDuringExecution {
			a.term(o, index, &apartTerm{field: fmt.Sprintf("%s[%d]", apartField, i)}, term)
		}
	}
}

// term adds the VM with this index to a condition, which is t when it is new.
func (a *affinities) term(o *object, index int, t *apartTerm, term kubeobject.PodAffinityTerm) {
	field := t.field
	switch {
	case term.TopologyKey == "":
		o.errorf(field, "a topologyKey is missing")
		return
	case term.NamespaceSelector != nil:
		o.warnf(field, "a namespaceSelector of affinity is not supported; left out")
		return
	case len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) > 0:
		o.warnf(field, "matchLabelKeys of affinity are not supported; left out")
		return
	}
	if term.TopologyKey != hostnameLabel {
		t.domain = term.TopologyKey
	}
	selector, err := term.LabelSelector.Compile()
	if err != nil {
		o.errorf(field+".labelSelector", "%v", err)
		return
	}
	namespaces := slices.Sorted(slices.Values(term.Namespaces))
	if len(namespaces) == 0 {
		own, _, _ := strings.Cut(string(o.id), "/")
		namespaces = []string{own}
	}
	name := strings.Join(namespaces, "+") + "/" + selector.String()
	if t.domain != "" {
		name += " per " + t.domain
	}
	if t.together {
		name = "with " + name
	}
	if len(name) > maxGroupName {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	if known := a.terms[name]; known != nil {
		t = known
	} else {
		t.name, t.namespaces, t.selector = name, namespaces, selector
		t.line, t.field = o.line, o.field(field)
		if a.terms == nil {
			a.terms = make(map[string]*apartTerm)
		}
		a.terms[name] = t
		a.order = append(a.order, t)
	}
	if !slices.Contains(t.carriers[max(0, len(t.carriers)-1):], index) { // listed twice
		t.carriers = append(t.carriers, index)
	}
}

// addGroups gives the VMs the groups in which they must be apart.
func (f *fleetReader) addGroups() {
	if len(f.apart.order) == 0 {
		return
	}
	where := indexLabels(f.vms)
	matches := 0
	for _, t := range f.apart.order {
		likely := where.likely(t)
		if matches += len(likely); matches > maxMatches {
			f.Errorf(t.line, t.field, "there is too much affinity to look at")
			return
		}
		matched := t.matched(f.vms, likely)
		if t.together {
			t.join(f, matched)
		} else {
			t.group(f, matched)
		}
	}
}

// labelIndex says which VMs of a namespace have a label, by the three words.
// Without label and value it says which VMs a namespace has.
type labelIndex map[[3]string][]int

func indexLabels(vms []vm) labelIndex {
	where := make(labelIndex)
	for i, v := range vms {
		all := [3]string{v.Namespace}
		where[all] = append(where[all], i)
		for name, value := range v.pod {
			key := [3]string{v.Namespace, name, value}
			where[key] = append(where[key], i)
		}
	}
	return where
}

// likely returns VMs among which are all that a condition is about, in order.
func (where labelIndex) likely(t *apartTerm) []int {
	key, value := t.selector.Label()
	var all []int
	for _, namespace := range t.namespaces {
		all = append(all, where[[3]string{namespace, key, value}]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// group turns one condition into groups with at most one VM on a host. Mostly
// the VMs that have the condition are those that it is about: then one group says
// it all. Otherwise each pair of a carrier and a VM that it is about is a group,
// which is exact, too; where that would be too many, one group of all is stricter
// than the condition, and a warning.
func (t *apartTerm) group(f *fleetReader, matched []int) {
	if slices.Equal(matched, t.carriers) {
		f.join(t, t.name, matched...)
		return
	}
	if len(matched)*len(t.carriers) > maxPairs {
		all := slices.Concat(matched, t.carriers)
		slices.Sort(all)
		f.join(t, t.name, slices.Compact(all)...)
		f.Warnf(t.line, t.field, "not all VMs that it selects have it; "+
			"all of them are kept apart from each other")
		return
	}
	for _, carrier := range t.carriers {
		for _, other := range matched {
			if carrier == other || other < carrier && slices.Contains(t.carriers, other) &&
				slices.Contains(matched, carrier) {
				continue // alone, or a pair that has been seen from the other side
			}
			f.join(t, fmt.Sprintf("%s %s %s", t.name, f.vms[carrier].ID, f.vms[other].ID),
				carrier, other)
		}
	}
}

// matched returns those of the likely VMs that the condition is about.
func (t *apartTerm) matched(vms []vm, likely []int) []int {
	var all []int
	for _, i := range likely {
		if t.selector.Matches(vms[i].pod) {
			all = append(all, i)
		}
	}
	return all
}

// join makes VMs members of a group that is apart, or together.
func (f *fleetReader) join(t *apartTerm, group string, members ...int) {
	rule := placement.GroupRule{Group: group, Policy: placement.AntiAffinity, Domain: t.domain}
	if t.together {
		rule.Policy = placement.Affinity
	}
	for _, i := range members {
		constraints := &f.vms[i].Placement
		if t.together || t.domain != "" {
			constraints.Groups = append(constraints.Groups, rule)
		} else {
			constraints.Apart = append(constraints.Apart, group)
		}
	}
}

// join turns one condition to be together into constraints. VMs that are all alike
// are a group, whose first member may be anywhere. A VM that wants to be with others on
// one node names them. What is left cannot be said.
func (t *apartTerm) join(f *fleetReader, matched []int) {
	switch {
	case slices.Equal(matched, t.carriers):
		f.join(t, t.name, matched...)
		return
	case len(matched) == 0:
		f.Warnf(t.line, t.field, "no VM is meant, and other pods are not known; left out")
		return
	case t.domain != "":
		f.Warnf(t.line, t.field, "affinity per %s to VMs that do not have it, too, is not "+
			"supported; left out", t.domain)
		return
	case len(matched)*len(t.carriers) > maxPairs:
		f.Warnf(t.line, t.field, "affinity of so many VMs to so many is not supported; left out")
		return
	}
	for _, carrier := range t.carriers {
		var company []hypervisor.VMID
		for _, other := range matched {
			if other != carrier {
				company = append(company, f.vms[other].ID)
			}
		}
		c := &f.vms[carrier].Placement
		if len(c.With) > 0 && len(company) > 0 {
			f.Warnf(t.line, t.field, "only one affinity of a VM to others is supported; left out")
			continue
		}
		c.With = append(c.With, company...)
	}
}
