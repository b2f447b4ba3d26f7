package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

func explainDown(*VM, *Host, Options) (need, have string) { return "a live host", "down" }

func explainCordoned(*VM, *Host, Options) (need, have string) {
	return "an uncordoned host", "cordoned"
}

func explainSource(_ *VM, host *Host, _ Options) (need, have string) {
	return "another host", "the source " + string(host.Name)
}

func explainAvoided(_ *VM, host *Host, _ Options) (need, have string) {
	return "a host that has not failed this VM", string(host.Name)
}

func explainInbound(_ *VM, host *Host, o Options) (need, have string) {
	return fmt.Sprintf("fewer than %d incoming", o.Inbound), strconv.Itoa(host.Incoming)
}

func explainMemory(vm *VM, host *Host, _ Options) (need, have string) {
	return hypervisor.Apart(vm.Demand(), host.FreeMemory())
}

func explainCPUs(vm *VM, host *Host, _ Options) (need, have string) {
	return strconv.Itoa(vm.DemandCPUs()), strconv.Itoa(host.FreeCPUs())
}

// explainSelector names the labels that differ, and only those.
func explainSelector(vm *VM, host *Host, _ Options) (need, have string) {
	var keys, wants []string
	selector := vm.Constraints.Selector
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if value, ok := host.Labels[key]; !ok || value != selector[key] {
			keys = append(keys, key)
			wants = append(wants, key+"="+selector[key])
		}
	}
	return strings.Join(wants, ", "), labelsText(keys, host.Labels)
}

// explainTaints names the taints that repel, and only those.
func explainTaints(vm *VM, host *Host, _ Options) (need, have string) {
	var repelled, tolerated []string
	for i := range host.Taints {
		if t := &host.Taints[i]; repels(t, vm.Constraints.Tolerations) {
			repelled = append(repelled, markText(t.Key, "="+t.Value, t.Effect))
		}
	}
	for _, l := range vm.Constraints.Tolerations {
		value := "=" + l.Value
		if l.Exists {
			value = ""
		}
		tolerated = append(tolerated, markText(cmp.Or(l.Key, "*"), value, l.Effect))
	}
	have = cmp.Or(strings.Join(tolerated, ", "), "none")
	return "toleration of " + strings.Join(repelled, ", "), have
}

// markText writes a taint or a toleration the way that kubectl does.
func markText(key, value string, effect Effect) string {
	if value == "=" {
		value = ""
	}
	if effect == "" {
		return key + value
	}
	return key + value + ":" + string(effect)
}

// explainAffinity names all conditions: none of the lists holds, and any of
// them would do.
func explainAffinity(vm *VM, host *Host, _ Options) (need, have string) {
	var keys, lists []string
	for _, all := range vm.Constraints.Affinity {
		var texts []string
		for _, r := range all {
			texts = append(texts, requirementText(r))
			if !slices.Contains(keys, r.Key) {
				keys = append(keys, r.Key)
			}
		}
		list := strings.Join(texts, " and ")
		lists = append(lists, cmp.Or(list, "an empty list, which never holds"))
	}
	slices.Sort(keys)
	need, have = strings.Join(lists, ", or "), labelsText(keys, host.Labels)
	return need, cmp.Or(have, "its labels")
}

func requirementText(r Requirement) string {
	text := r.Key + " " + string(r.Operator)
	if len(r.Values) > 0 {
		text += " " + strings.Join(r.Values, "|")
	}
	return text
}

// explainApart names the groups that are taken, and only those.
func explainApart(vm *VM, host *Host, _ Options) (need, have string) {
	var free, taken []string
	for _, group := range distinct(vm.Constraints.Apart) {
		if n := host.Groups[group]; n > 0 {
			free = append(free, group)
			taken = append(taken, fmt.Sprintf("%d of %s", n, group))
		}
	}
	return "no VM of " + strings.Join(free, ", "), strings.Join(taken, ", ")
}

// labelsText says what the host has for each key.
func labelsText(keys []string, labels Labels) string {
	var texts []string
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			texts = append(texts, key+"="+value)
		} else {
			texts = append(texts, "no "+key)
		}
	}
	return strings.Join(texts, ", ")
}

// distinct returns the sorted texts, each once.
func distinct(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
