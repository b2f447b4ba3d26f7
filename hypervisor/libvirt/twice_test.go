//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// The lab of the conformance suite finds a guest that runs twice, and none that does not.
func TestTheLabNoticesAGuestThatRunsTwice(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm("suite/traveller", calm)
	w.start(hosta, vm)
	w.sound(hosta, vm.ID)
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.start(hostb, vm)
	w.sound(hostb, vm.ID)
	if err := w.twice(vm.ID); err != nil {
		t.Errorf("it was started elsewhere after it had died: %v", err)
	}
	w.start(hosta, vm)
	w.Eventually("it is noticed that it runs on both hosts", func() bool {
		err := w.twice(vm.ID)
		return err != nil && strings.Contains(err.Error(), "two run")
	})
}

// An operator undefines the domain of a VM, and defines it anew, with virsh. Whatever that is then,
// a start starts no second QEMU of the VM.
func TestADomainThatWasRedefinedStartsNoSecondCopy(t *testing.T) {
	uuid := func(xml string) string {
		return redefined.ReplaceAllString(xml, "<uuid>11111111-2222-4333-8444-555555555555</uuid>")
	}
	for _, row := range []struct {
		name    string
		running bool                    // it is redefined while it runs
		change  func(xml string) string // how it is defined anew
		want    bool                    // it is still the VM
	}{
		{"while it runs", true, func(xml string) string {
			return strings.Replace(xml, "<memory", "<title>changed</title><memory", 1)
		}, true},
		{"with another UUID", false, uuid, true}, // it has its name, and what it runs
		{"with another name", false, func(xml string) string {
			return strings.Replace(xml, "<name>", "<name>copy-of-", 1)
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newTrial(t, nil)
			vm := w.vm("suite/redefined", calm)
			w.start(hosta, vm)
			w.sound(hosta, vm.ID)
			xml := w.virsh(hosta, "dumpxml", "--inactive", domainOf(vm.ID))
			if !row.running {
				w.Do(hosta, vm.ID, hypervisor.Kill{})
			}
			w.virsh(hosta, "undefine", domainOf(vm.ID))
			changed := row.change(xml)
			if changed == xml {
				t.Fatal("nothing was changed")
			}
			w.virshFile(hosta, "define", changed)
			if !row.running {
				name := domainOf(vm.ID)
				if strings.Contains(changed, "<name>copy-of-") {
					name = "copy-of-" + name
				}
				w.virsh(hosta, "start", name)
			}
			err := w.Host(hosta).Do(testutil.Context(t, testutil.DefaultLimit), vm.ID,
				hypervisor.Start{VM: vm})
			if row.want && err != nil || !row.want && !errors.Is(err, hypervisor.Conflict) {
				t.Errorf("a start answers %v", err)
			}
			d, err := w.Host(hosta).Domain(testutil.Context(t, testutil.DefaultLimit), vm.ID)
			if row.want && (err != nil || d.State != hypervisor.Running) ||
				!row.want && !errors.Is(err, hypervisor.Conflict) {
				t.Errorf("it is %v: %v", d.State, err)
			}
			if runs := strings.Fields(w.virsh(hosta, "list", "--name")); len(runs) != 1 {
				t.Errorf("the domains %v run", runs)
			}
			if err := w.twice(vm.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

var redefined = regexp.MustCompile("<uuid>[^<]*</uuid>")
