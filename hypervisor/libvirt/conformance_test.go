//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestConformance(t *testing.T) {
	for _, accel := range []string{domxml.KVM, domxml.QEMU} {
		t.Run(accel, func(t *testing.T) {
			if accel == domxml.QEMU {
				testutil.Emulated(t)
			}
			t.Parallel() // each has hosts of its own
			conformance.Hypervisor(t, func(t *testing.T) *conformance.Lab {
				return newSuiteLab(t, accel)
			})
		})
	}
}

// newSuiteLab is a world of the conformance suite.
func newSuiteLab(t *testing.T, accel string) *conformance.Lab {
	t.Helper()
	testutil.Sample(t, 30)
	if accel == domxml.QEMU {
		testutil.SampleEmulated(t, 4)
	}
	w := worldOf(t, libvirttest.Options{Name: accel}, accel, nil)
	small := guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true}
	return &conformance.Lab{
		Source: w.Host(hosta), Target: w.Host(hostb), Within: testutil.Limit(testutil.DefaultLimit), Steps: 60,
		VM:   func(id vmid) hypervisor.VM { return w.vm(id, small) },
		Slow: 1 << 20, Images: w.SharedDir(), ImagesStay: true,
		BusyVM: func(id vmid) hypervisor.VM {
			busy := small
			busy.WorkingSet, busy.Rate = 4<<20, 200<<20
			return w.vm(id, busy)
		},
		Verify:      w.verify,
		Alive:       w.alive,
		Twice:       w.twice,
		Reopen:      w.open,
		KillVM:      func(n name, id vmid) error { return w.signal(n, id, syscall.SIGKILL) },
		CutLink:     func() error { w.CutLink(); return nil },
		PeerTimeout: libvirttest.PeerTimeout,
		MendLink:    func() error { w.MendLink(); return nil },
		ResetLink:   func() error { w.ResetLink(); return nil },
		Restart:     w.restart,
		Hang: func(n name, id vmid) (func() error, error) {
			thaw := func() error { return w.signal(n, id, syscall.SIGCONT) }
			return thaw, w.signal(n, id, syscall.SIGSTOP)
		},
	}
}
