package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Certificate proves that the VMs of some hosts cannot all leave them, in whatever
// order and whatever else is moved. It can be checked without the planner: see
// package verify.
type Certificate struct {
	Kind Kind `json:"kind"`
	// VMs are those that the proof is about.
	VMs []hypervisor.VMID `json:"vms,omitempty"`

	// Hosts are, for Short, those that the VMs could be on at the end: all others
	// are to be emptied, or refuse each of the VMs even with no other VM there.
	Hosts []hypervisor.HostName `json:"hosts,omitempty"`
	// Resource is what is short: Memory, CPUs or Places.
	Resource Resource `json:"resource,omitempty"`
	// Group is, for Places, the group whose members must be apart.
	Group string `json:"group,omitempty"`
	// Unit, when it is positive, counts VMs that need at least so much each instead
	// of adding up: a host with room for 3.5 units takes three.
	Unit int64 `json:"unit,omitempty"`
	Need int64 `json:"need,omitempty"` // bytes or CPUs; VMs when they are counted
	Have int64 `json:"have,omitempty"` // the same, of the hosts together

	// Pinned is, for Stuck, why the only VM cannot move at all; "" is that it could.
	Pinned string `json:"pinned,omitempty"`
	// Kept are the reasons, where the VM could move and yet no drain moves it.
	Kept []placement.Reason `json:"kept,omitempty"`
	// Refusals are, for Stuck, why no other host takes the first of the VMs.
	Refusals []Refusal `json:"refusals,omitempty"`
	// States is, for Exhausted, how many arrangements of the VMs can be reached.
	States int `json:"states,omitempty"`
}

// A Refusal is why a host does not take a VM: every reason.
type Refusal struct {
	Host hypervisor.HostName `json:"host"`
	Why  []placement.Reason  `json:"reasons"`
}

// A Kind is the way in which a certificate proves.
type Kind string

// The kinds.
const (
	// Stuck: none of the VMs can be the first of them to move: no host would take
	// it even if all others that can move were gone. One of them must leave.
	Stuck Kind = "stuck"
	// Short: the VMs need more together than the hosts have that they could be on.
	Short Kind = "short"
	// Exhausted: no arrangement that moves can reach has the hosts empty.
	Exhausted Kind = "exhausted"
)

// A Resource is something that runs out.
type Resource string

// The resources. Places are for VMs of a group that must be apart.
const (
	Memory Resource = "memory"
	CPUs   Resource = "cpus"
	Places Resource = "places"
)

// Amount returns what a VM counts for in a Short certificate, and whether it may be
// counted at all.
func (c *Certificate) Amount(vm *placement.VM) (int64, bool) {
	var amount int64
	switch c.Resource {
	case Memory:
		amount = int64(vm.Demand())
	case CPUs:
		amount = int64(vm.DemandCPUs())
	case Places:
		return 1, limit(vm, c.Group) > 0
	default:
		return 0, false
	}
	if c.Unit > 0 {
		return 1, amount >= c.Unit
	}
	return amount, true
}

// Room returns how much of the certificate's VMs a host has room for now.
func (c *Certificate) Room(host *placement.Host, f *Fleet) int64 {
	var room int64
	switch c.Resource {
	case Memory:
		room = int64(host.FreeMemory())
	case CPUs:
		room = int64(host.FreeCPUs())
	case Places:
		for _, vm := range f.byID(c.VMs) {
			room = max(room, int64(limit(&f.VMs[vm].VM, c.Group)))
		}
		room -= int64(host.Groups[c.Group])
	}
	if c.Unit > 0 && room > 0 {
		room /= c.Unit
	}
	return max(0, room)
}

// limit returns how many VMs of a group a host may have with vm among them; 0 is that
// the group does not keep vm from any host.
func limit(vm *placement.VM, group string) int {
	if slices.Contains(vm.Constraints.Apart, group) {
		return 1
	}
	most := 0
	for i := range vm.Constraints.Groups {
		r := &vm.Constraints.Groups[i]
		if r.Group == group && r.Policy == placement.AntiAffinity && r.Domain == "" &&
			(most == 0 || r.Limit() < most) {
			most = r.Limit()
		}
	}
	return most
}

// String says in words what the certificate proves.
func (c *Certificate) String() string {
	switch {
	case len(c.Kept) > 0:
		return fmt.Sprintf("%s stays: %s", humanize.List(c.VMs), c.Pinned)
	case c.Pinned != "":
		return fmt.Sprintf("%s cannot move while it runs: %s", humanize.List(c.VMs), c.Pinned)
	case c.Kind == Stuck && len(c.VMs) == 1:
		return fmt.Sprintf("no other host would take %s, even if it were empty", c.VMs[0])
	case c.Kind == Stuck:
		return fmt.Sprintf("none of %s can be the first to move: they wait for each other",
			humanize.List(c.VMs))
	case c.Kind == Exhausted:
		return fmt.Sprintf("moves can reach %s of the VMs, and in none are the hosts empty",
			humanize.Count(c.States, "arrangement"))
	}
	they := "they"
	if len(c.VMs) == 1 {
		they = "it"
	}
	if len(c.Hosts) == 0 {
		return fmt.Sprintf("%s; there is no host that %s could be on", c.short(), they)
	}
	have := c.apart(c.Have, cmp.Or(c.Unit, c.Need))
	switch {
	case c.Resource == Places:
		have = humanize.Count(int(c.Have), "place")
	case c.Unit > 0:
		have = fmt.Sprintf("room for %d", c.Have)
	}
	return fmt.Sprintf("%s; the hosts that %s could be on have %s: %s", c.short(), they, have,
		humanize.List(c.Hosts))
}

// short says what the VMs of a Short certificate need.
func (c *Certificate) short() string {
	switch one := len(c.VMs) == 1; {
	case one && c.Resource == Places:
		return fmt.Sprintf("%s must be apart from others of group %s", c.VMs[0], c.Group)
	case one && c.Unit > 0:
		return fmt.Sprintf("%s needs %s", c.VMs[0], c.apart(c.Unit, c.Have))
	case one:
		return fmt.Sprintf("%s needs %s", c.VMs[0], c.apart(c.Need, c.Have))
	case c.Resource == Places:
		return fmt.Sprintf("%d VMs of group %s must be apart", c.Need, c.Group)
	case c.Unit > 0:
		return fmt.Sprintf("%d VMs need at least %s each", c.Need, c.amount(c.Unit))
	}
	return fmt.Sprintf("%d VMs need %s together", len(c.VMs), c.apart(c.Need, c.Have))
}

// apart writes n so that it can be told apart from what it is compared with.
func (c *Certificate) apart(n, with int64) string {
	if c.Resource == Memory {
		text, _ := hypervisor.Apart(hypervisor.Bytes(n), hypervisor.Bytes(with))
		return text + " of memory"
	}
	return c.amount(n)
}

func (c *Certificate) amount(n int64) string {
	if c.Resource == Memory {
		return hypervisor.Bytes(n).String() + " of memory"
	}
	return humanize.Count(int(n), "CPU")
}
