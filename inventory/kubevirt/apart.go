package kubevirt

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	virtv1 "kubevirt.io/api/core/v1"

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

// antiAffinity collects conditions of the kind "on no node with a pod like that".
// Kubernetes holds them both ways: whoever is like that cannot come, either.
type antiAffinity struct {
	terms map[string]*apartTerm
	order []*apartTerm
}

// apartTerm is one condition, and the VMs that have it.
type apartTerm struct {
	name       string // canonical: namespaces and selector
	namespaces []string
	selector   labels.Selector
	carriers   []int // indices of VMs
	line       int   // of the first carrier
	field      string
}

const apartField = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"

// add takes the conditions of the VM that gets this index.
func (a *antiAffinity) add(o *object, index int, vmi *virtv1.VirtualMachineInstance) {
	affinity := vmi.Spec.Affinity
	if affinity == nil {
		return
	}
	if p := affinity.PodAffinity; p != nil &&
		len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		o.warnf("spec.affinity.podAffinity", "affinity to other pods is not supported; left out")
	}
	if affinity.PodAntiAffinity == nil {
		return
	}
	required := affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i, term := range required {
		field := fmt.Sprintf("%s[%d]", apartField, i)
		switch {
		case term.TopologyKey != hostnameLabel:
			o.warnf(field, "anti-affinity per %s is not supported, only per %s; left out",
				term.TopologyKey, hostnameLabel)
		case term.NamespaceSelector != nil:
			o.warnf(field, "a namespaceSelector of anti-affinity is not supported; left out")
		case len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) > 0:
			o.warnf(field, "matchLabelKeys of anti-affinity are not supported; left out")
		default:
			a.term(o, field, index, term)
		}
	}
}

func (a *antiAffinity) term(o *object, field string, index int, term corev1.PodAffinityTerm) {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
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
	if len(name) > maxGroupName {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	t := a.terms[name]
	if t == nil {
		t = &apartTerm{
			name: name, namespaces: namespaces, selector: selector,
			line: o.line, field: o.field(field),
		}
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
			f.Errorf(t.line, t.field, "there is too much anti-affinity to look at")
			return
		}
		t.group(f, t.matched(f.vms, likely))
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
	var label [2]string
	requirements, _ := t.selector.Requirements()
	for _, r := range requirements {
		values := r.ValuesUnsorted()
		isEqual := r.Operator() == selection.Equals || r.Operator() == selection.In
		if isEqual && len(values) == 1 {
			label = [2]string{r.Key(), values[0]}
			break
		}
	}
	var all []int
	for _, namespace := range t.namespaces {
		all = append(all, where[[3]string{namespace, label[0], label[1]}]...)
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
		f.join(t.name, matched...)
		return
	}
	if len(matched)*len(t.carriers) > maxPairs {
		all := slices.Concat(matched, t.carriers)
		slices.Sort(all)
		f.join(t.name, slices.Compact(all)...)
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
			f.join(fmt.Sprintf("%s %s %s", t.name, f.vms[carrier].ID, f.vms[other].ID),
				carrier, other)
		}
	}
}

// matched returns those of the likely VMs that the condition is about.
func (t *apartTerm) matched(vms []vm, likely []int) []int {
	var all []int
	for _, i := range likely {
		if t.selector.Matches(labels.Set(vms[i].pod)) {
			all = append(all, i)
		}
	}
	return all
}

func (f *fleetReader) join(group string, members ...int) {
	for _, i := range members {
		constraints := &f.vms[i].Placement
		constraints.Apart = append(constraints.Apart, group)
	}
}

// podLabels are the labels of a VM's pod: its own and those that KubeVirt adds.
// Source: KubeVirt v1.9.0 pkg/virt-controller/services/template.go (podLabels).
func podLabels(vmi *virtv1.VirtualMachineInstance) placement.Labels {
	all := make(placement.Labels, len(vmi.Labels)+3)
	for name, value := range vmi.Labels {
		all[name] = value
	}
	all[virtv1.AppLabel] = "virt-launcher"
	all[virtv1.CreatedByLabel] = string(vmi.UID)
	all[virtv1.DeprecatedVirtualMachineNameLabel] = vmi.Name
	return all
}
