package agent_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A host of which no more than its size is known lacks memory, and nothing else, exactly when
// what comes needs more than is left by what runs there and by what rests there and shall run.
func TestWhatIsLeftOfAHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(what string, most int) hypervisor.Bytes {
			return hypervisor.Bytes(rapid.IntRange(0, most).Draw(t, what))
		}
		var home agent.LocalVMs
		host := agent.Present{Home: &home,
			Size: hypervisor.Host{Name: "n1", Memory: size("host", 40)}}
		left := host.Size.Memory
		for i := range rapid.IntRange(0, 4).Draw(t, "domains") {
			d := hypervisor.Domain{State: rapid.SampledFrom([]hypervisor.DomainState{
				hypervisor.Running, hypervisor.Receiving, hypervisor.Shutoff,
				hypervisor.Crashed}).Draw(t, "state")}
			d.VM.ID, d.VM.Memory = hypervisor.VMID(fmt.Sprint("v", i)), size("memory", 16)
			host.Domains = append(host.Domains, d)
			needs, waits := d.VM.Memory, false
			if rapid.Bool().Draw(t, "at home") {
				v := &store.VM{VM: d.VM, Ended: rapid.Bool().Draw(t, "ended")}
				v.Overhead, v.Balloon = size("overhead", 9), size("balloon", int(d.VM.Memory))
				home.Put(&store.VM{VM: d.VM, Overhead: 50}) // written anew
				home.Put(v)
				needs, waits = needs+v.Overhead-v.Balloon, !v.Ended
			}
			if waits || d.State != hypervisor.Shutoff && d.State != hypervisor.Crashed {
				left -= needs
			}
		}
		home.Put(&store.VM{VM: hypervisor.VM{ID: "gone"}, Overhead: 50})
		home.Drop("gone")
		home.Drop("never there")
		comes := &store.VM{VM: hypervisor.VM{ID: "new", Memory: size("comes", 20)},
			Overhead: size("overhead", 4)}
		needs := comes.VM.Memory + comes.Overhead
		why := host.Lacks(&store.Migration{}, comes, &store.Host{})
		lacks := needs > 0 && needs > left
		if lacks != (len(why) > 0) || lacks && host.Spacious(&store.Migration{}, comes) {
			t.Fatalf("%v of %v for %v: it lacks %v", left, host.Size.Memory, needs, why)
		}
		if len(why) > 0 && (len(why) > 1 || why[0].Check != "memory") {
			t.Fatalf("it lacks %v", why)
		}
	})
}

// What a sum over a host tells is what a look at every record tells, of hosts of which all is
// known: a VM that has a device somewhere makes it look. They are as good as full.
func TestASumTellsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(what string, least, most int) int {
			return rapid.IntRange(least, most).Draw(t, what)
		}
		random := func(name string) *store.VM {
			v := &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name), CPUs: number("CPUs", 0, 4),
				Memory: hypervisor.Bytes(number("memory", 1, 16))}}
			v.Overhead = hypervisor.Bytes(number("overhead", 0, 3))
			if rapid.Bool().Draw(t, "with a disk") {
				v.Disk = hypervisor.Bytes(number("of", 1, 9))
			}
			return v
		}
		var home agent.LocalVMs
		comes := random("new")
		memory, cpus, disk, vms := comes.VM.Memory+comes.Overhead, comes.VM.CPUs, comes.Disk, 1
		var domains []hypervisor.Domain
		for i := range number("domains", 0, 4) {
			v := random(fmt.Sprint("v", i))
			memory, cpus, vms = memory+v.VM.Memory, cpus+v.VM.CPUs, vms+1
			if rapid.Bool().Draw(t, "at home") {
				home.Put(v)
				memory, disk = memory+v.Overhead, disk+v.Disk
			}
			domains = append(domains, hypervisor.Domain{VM: v.VM, State: hypervisor.Running})
		}
		spare := func(what string) int { return number(what+" to spare", -1, 1) }
		facts := &placement.Facts{MaxVMs: max(0, vms+spare("VMs")),
			Disk: placement.DeviceInventory{Total: int64(disk) + int64(spare("disk"))}}
		host := agent.Present{Home: &home, Facts: facts, Domains: domains,
			Size: hypervisor.Host{Name: "n1", CPUs: cpus + spare("CPUs"),
				Memory: memory + hypervisor.Bytes(spare("memory"))}}
		m, source := &store.Migration{}, &store.Host{Host: hypervisor.Host{Name: "n0"}}
		sum := host.Lacks(m, comes, source)
		for check, lacks := range map[string]bool{
			"memory":  host.Size.Memory < memory,
			"disk":    comes.Disk > 0 && facts.Disk.Total > 0 && facts.Disk.Total < int64(disk),
			"max-vms": facts.MaxVMs > 0 && facts.MaxVMs < vms,
		} {
			said := func(r placement.Reason) bool { return r.Check == check }
			if slices.ContainsFunc(sum, said) != lacks {
				t.Fatalf("it lacks %v, of %s: %t", sum, check, lacks)
			}
		}
		home.Put(&store.VM{VM: hypervisor.VM{ID: "elsewhere"},
			Placement: &placement.Constraints{}})
		if look := host.Lacks(m, comes, source); !reflect.DeepEqual(sum, look) {
			t.Fatalf("a sum tells %v, a look %v", sum, look)
		}
	})
}

func TestHome(t *testing.T) {
	var home agent.LocalVMs
	if home.Get("a") != nil || home.Len() != 0 || len(home.Sorted()) != 0 {
		t.Error("a VM is at home from the start")
	}
	for _, vm := range []hypervisor.VMID{"b", "a", "b"} {
		home.Put(&store.VM{VM: hypervisor.VM{ID: vm}})
	}
	if all := home.Sorted(); len(all) != 2 || all[0].VM.ID != "a" || all[1] != home.Get("b") {
		t.Errorf("at home are %v", all)
	}
	if home.Clear(); home.Len() != 0 || home.Get("a") != nil {
		t.Error("a VM is at home after Clear")
	}
}

// A host is undisturbed exactly when a look at each of its VMs and of its domains finds nothing,
// whatever has come, changed and gone.
func TestAnUndisturbedHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var home agent.LocalVMs
		there := map[hypervisor.VMID]*store.VM{}
		name := rapid.StringMatching("[a-d]")
		t.Repeat(map[string]func(*rapid.T){
			"one comes, or changes": func(t *rapid.T) {
				v := &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name.Draw(t, "name"))}}
				v.Stopped, v.Overhead = rapid.Bool().Draw(t, "stopped"), 7
				home.Put(v)
				there[v.VM.ID] = v
			},
			"one goes": func(t *rapid.T) {
				vm := hypervisor.VMID(name.Draw(t, "name"))
				home.Drop(vm)
				delete(there, vm)
			},
			"all go": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "really") {
					home.Clear()
					clear(there)
				}
			},
			"": func(t *rapid.T) {
				names := slices.Sorted(maps.Keys(there))
				var all []*store.VM
				var domains []hypervisor.Domain
				calm := true
				for _, vm := range names {
					all = append(all, there[vm])
					d := hypervisor.Domain{VM: there[vm].VM, State: hypervisor.Running}
					if rapid.IntRange(0, 9).Draw(t, "amiss") == 0 {
						d.State = hypervisor.Crashed
					}
					calm = calm && d.State == hypervisor.Running && !there[vm].Stopped
					domains = append(domains, d)
				}
				switch n := len(domains); {
				case n > 0 && rapid.IntRange(0, 9).Draw(t, "missing") == 0:
					domains, calm = domains[1:], false
				case n > 0 && rapid.IntRange(0, 9).Draw(t, "another") == 0:
					domains[n-1].VM.ID, calm = "e", false
				}
				if home.Undisturbed(domains) != calm {
					t.Fatalf("undisturbed: %t, with %v at home and %v", !calm, all, domains)
				}
				if !slices.Equal(home.Sorted(), all) || home.Len() != len(all) {
					t.Fatalf("at home are %v, not %v", home.Sorted(), all)
				}
			},
		})
	})
}
