package domxml_test

import (
	"errors"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

func seed(f *testing.F) {
	for _, text := range foreign(f) {
		f.Add(text)
	}
	f.Add(built(f, hypervisor.VM{ID: "shop/web", Memory: hypervisor.GiB, CPUs: 1}, settings))
	f.Add(domain("<vcpu current='-1'>99999999999999999999</vcpu>"))
	f.Add("<domain xmlns='a'><memory unit=''/><x:y z:z=''/></domain>")
	for _, text := range odd {
		f.Add(domain(text))
	}
}

// FuzzRead: whatever comes in, there is an answer or an Invalid.
func FuzzRead(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		facts, err := domxml.Read(text, settings)
		if err != nil {
			if !errors.Is(err, hypervisor.Invalid) {
				t.Errorf("%v is not Invalid", err)
			}
			return
		}
		if facts.VM.Memory < 0 || facts.VM.CPUs < 1 || facts.VM.Hardware.Hugepages < 0 {
			t.Errorf("a VM that cannot be: %+v", facts.VM)
		}
		if facts.Mark != nil {
			domxml.Reconcile(facts.Mark.VM, facts)
		}
		if vm := domxml.Reconcile(facts.VM, facts); !vm.Equal(facts.VM) {
			t.Errorf("%+v is not itself, but %+v", facts.VM, vm)
		}
	})
}

// FuzzChange: what is not changed is the same, and what is changed can be read.
func FuzzChange(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string) {
		same, err := domxml.Change(text, domxml.Changes{})
		if err == nil && same != text {
			t.Errorf("%q became %q", text, same)
		}
		facts, err := domxml.Read(text, settings)
		if err != nil {
			return
		}
		change := domxml.Changes{Nodes: []int{1}, Disks: map[string]string{}}
		for name := range facts.Images {
			change.Disks[name] = "/new/" + name
		}
		changed, err := domxml.Change(text, change)
		if err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		after, err := domxml.Read(changed, settings)
		if err != nil {
			t.Fatalf("%v: %q", err, changed)
		}
		for name := range facts.Images {
			if after.Images[name] != "/new/"+name {
				t.Errorf("disk %q is at %q", name, after.Images[name])
			}
		}
		marked, err := domxml.SetMark(changed, domxml.Mark{VM: facts.VM})
		if err != nil {
			t.Fatal(err)
		}
		if after, err = domxml.Read(marked, settings); err != nil || after.Mark == nil {
			t.Errorf("the mark is not read: %v, %v", err, after.MarkError)
		}
	})
}
