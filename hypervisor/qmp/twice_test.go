//go:build linux

package qmp_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// The lab of the conformance suite finds a guest that runs twice, and none that does not.
func TestTheLabNoticesAGuestThatRunsTwice(t *testing.T) {
	testutil.Sample(t, 5)
	small := guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true}
	for _, row := range []struct {
		name string
		goes func(*lab, hypervisor.VM)
		says string // "" is that it runs once
	}{
		{"it moves there and back", func(l *lab, vm hypervisor.VM) {
			l.move("there", vm, "n1", "n2")
			l.release("there", vm.ID, "n1", "n2")
			l.move("back", vm, "n2", "n1")
		}, ""},
		{"it dies, and is started elsewhere", func(l *lab, vm hypervisor.VM) {
			l.Do("n1", vm.ID, hypervisor.Kill{})
			l.Becomes("n1", vm.ID, hypervisor.Shutoff)
			l.start("n2", vm)
		}, ""},
		{"its source is let run after it has moved", func(l *lab, vm hypervisor.VM) {
			l.move("there", vm, "n1", "n2")
			l.ask("n1", vm.ID, "cont", nil)
		}, "two run"},
		{"it is started elsewhere while it runs", func(l *lab, vm hypervisor.VM) {
			l.start("n2", vm)
		}, "two run"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := openLab(t, accelerator(t), nil)
			vm := l.vm("suite/traveller", small)
			l.start("n1", vm)
			row.goes(l, vm)
			if row.says == "" {
				if err := l.twice(vm.ID); err != nil {
					t.Errorf("it runs once: %v", err)
				}
				return
			}
			l.Eventually("it is noticed", func() bool {
				err := l.twice(vm.ID)
				return err != nil && strings.Contains(err.Error(), row.says)
			})
		})
	}
}
