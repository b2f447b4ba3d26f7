package fake_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Whatever comes, goes and changes between two answers, an answer is what there is, no earlier
// one has changed, and it is another list only if it differs.
func TestAnAnswerIsWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list fake.List
		over := rapid.Bool().Draw(t, "over")
		there := []*hypervisor.Domain{} // ordered by VM
		var last, copied []hypervisor.Domain
		name := rapid.Custom(func(t *rapid.T) hypervisor.VMID {
			return hypervisor.VMID('a' + rune(rapid.IntRange(0, 25).Draw(t, "vm")))
		})
		find := func(vm hypervisor.VMID) (int, bool) {
			return slices.BinarySearchFunc(there, vm, func(d *hypervisor.Domain,
				vm hypervisor.VMID) int {
				return int(d.VM.ID[0]) - int(vm[0])
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"one comes, or changes": func(t *rapid.T) {
				vm := name.Draw(t, "name")
				i, is := find(vm)
				if !is {
					there = slices.Insert(there, i, &hypervisor.Domain{})
					there[i].VM.ID = vm
				}
				there[i].State = hypervisor.DomainState(rapid.IntRange(1, 3).Draw(t, "state"))
				list.Mark(vm)
			},
			"one goes": func(t *rapid.T) {
				vm := name.Draw(t, "name")
				if i, is := find(vm); is {
					there = slices.Delete(there, i, i+1)
				}
				list.Mark(vm)
			},
			"all may change": func(t *rapid.T) {
				for _, d := range there {
					d.Unresolved = rapid.Bool().Draw(t, "unresolved")
				}
				list.Doubt()
			},
			"": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "the list is not read") {
					return
				}
				got := list.Now(len(there), listingAt(there), over)
				same := func(g hypervisor.Domain, is *hypervisor.Domain) bool { return g == *is }
				if !slices.EqualFunc(got, there, same) {
					t.Fatalf("Now() = %v", got)
				}
				if !over && !slices.Equal(last, copied) {
					t.Fatalf("an earlier answer has become %v, it was %v", last, copied)
				}
				if len(last) > 0 && slices.Equal(got, last) && &got[0] != &last[0] {
					t.Fatal("nothing has changed, and it is another list")
				}
				last, copied = got, slices.Clone(got)
			},
		})
	})
}

func listingAt(there []*hypervisor.Domain) func(int) hypervisor.Domain {
	return func(i int) hypervisor.Domain { return *there[i] }
}

// However many have changed, all of them are in the answer.
func TestManyChanges(t *testing.T) {
	var list fake.List
	there := make([]*hypervisor.Domain, 60)
	for i := range there {
		there[i] = &hypervisor.Domain{VM: hypervisor.VM{ID: hypervisor.VMID(rune('0' + i))}}
	}
	list.Now(len(there), listingAt(there), false)
	for i := range there {
		there[i].State = hypervisor.Running
		list.Mark(there[i].VM.ID)
	}
	for i, d := range list.Now(len(there), listingAt(there), false) {
		if d != *there[i] {
			t.Errorf("%d: %v", i, d)
		}
	}
}
