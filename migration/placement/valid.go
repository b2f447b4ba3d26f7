package placement

import (
	"slices"
	"strconv"

	"github.com/godwit-vm/godwit/hypervisor"
)

// check returns every reason why a request makes no sense.
func (r *Request) check(hosts []Host) []Reason {
	if r.VM == nil {
		return []Reason{{Check: "vm", Need: "a VM", Have: "none"}}
	}
	why := Contradictions(r.VM)
	if r.Force == Yes && r.Host == "" {
		why = append(why, Reason{Check: "force", Need: "a host to force", Have: "none"})
	}
	if r.Force > Yes {
		why = append(why, Reason{Check: "force", Need: "absent, no or yes",
			Have: strconv.Itoa(int(r.Force))})
	}
	if r.Host != "" && !slices.ContainsFunc(hosts, func(h Host) bool {
		return h.Name == r.Host
	}) {
		why = append(why, Reason{Check: "host", Need: "a known host",
			Have: string(r.Host)})
	}
	return why
}

// Contradictions returns every reason why a VM's size and constraints can be met
// by no host whatever; none means that a host can be thought of.
func Contradictions(vm *VM) []Reason {
	var why []Reason
	say := func(check, need, have string) {
		why = append(why, Reason{Check: check, Need: need, Have: have})
	}
	c := &vm.Constraints
	if vm.Memory < 0 || vm.CPUs < 0 || vm.CPURequest < 0 || vm.Disk < 0 || vm.Overhead < 0 || vm.Balloon < 0 {
		say("size", "no negative number", "one")
	}
	if vm.Memory >= 0 && vm.Balloon > vm.Memory {
		most, has := hypervisor.Apart(vm.Memory, vm.Balloon)
		say("balloon", "at most "+most, has)
	}
	for _, id := range c.With {
		if slices.Contains(c.Without, id) {
			say("same-host", "with "+string(id), "and without it")
		}
	}
	if slices.Contains(c.With, vm.ID) || slices.Contains(c.Without, vm.ID) {
		say("same-host", "other VMs", string(vm.ID)+" itself")
	}
	for i := range c.Groups {
		if text := contradiction(c, i); text != "" {
			say("groups", "rules that can hold together", text)
		}
	}
	if a := c.Topology; a != nil && !a.Valid(vm.Whole()) {
		say("numa", "parts that add up to "+strconv.Itoa(vm.CPUs)+" CPUs and "+
			vm.Memory.String()+", whole pages and a known policy", "another layout")
	}
	for _, d := range c.Devices {
		if d.Count < 0 {
			say("devices", "no negative number", strconv.Itoa(d.Count)+" "+d.Class)
		}
	}
	return why
}

// contradiction says what is wrong with one rule about groups; "" is nothing.
func contradiction(c *Constraints, i int) string {
	r := &c.Groups[i]
	switch r.Policy {
	case Affinity:
	case AntiAffinity, SoftAffinity, SoftAntiAffinity:
		return ""
	default:
		return "the unknown policy " + strconv.Quote(string(r.Policy)) + " for " + r.Group
	}
	if slices.Contains(c.Apart, r.Group) {
		return r.Group + " together and apart"
	}
	for _, s := range c.Groups {
		if s.Group == r.Group && s.Policy == AntiAffinity && s.Limit() == 1 &&
			(s.Domain == r.Domain || r.Domain == "") {
			return r.Group + " together and apart"
		}
	}
	return ""
}
