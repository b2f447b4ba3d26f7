//go:build linux

package qmp_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestConformance(t *testing.T) {
	for _, accel := range []string{"kvm", "tcg"} {
		t.Run(accel, func(t *testing.T) {
			needQEMU(t, accel)
			if accel == "tcg" {
				testutil.Emulated(t)
			}
			conformance.Hypervisor(t, func(t *testing.T) *conformance.Lab {
				return newSuiteLab(t, accel)
			})
		})
	}
}

// newSuiteLab is a world of the conformance suite: two hosts on this machine, and
// a network between them that can be cut.
func newSuiteLab(t *testing.T, accel string) *conformance.Lab {
	t.Helper()
	var wire *link
	testutil.Sample(t, 16)
	if accel == "tcg" {
		testutil.SampleEmulated(t, 4)
	}
	l := openLab(t, accel, func(c *qmp.Config) {
		if wire == nil {
			wire = newLink(t, filepath.Join(filepath.Dir(c.Dir), "l"))
		}
		c.Advertise, c.Timeout = wire.advertise, silence
	})
	small := guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true}
	return &conformance.Lab{
		Source: l.Host("n1"), Target: l.Host("n2"), Within: testutil.Limit(testutil.DefaultLimit),
		Steps: 60,
		VM:    func(id vmid) hypervisor.VM { return l.vm(id, small) },
		Slow:  1 << 20, Images: t.TempDir(),
		BusyVM: func(id vmid) hypervisor.VM {
			busy := small
			busy.WorkingSet, busy.Rate = 4<<20, 200<<20
			return l.vm(id, busy)
		},
		Verify:    l.verify,
		Alive:     l.alive,
		Twice:     l.twice,
		Reopen:    l.open,
		KillVM:    func(n name, id vmid) error { return l.signal(n, id, syscall.SIGKILL) },
		CutLink:   func() error { return wire.setCut(true) },
		MendLink:  func() error { return wire.setCut(false) },
		ResetLink: wire.reset,
		Restart:   l.restart,
		Hang: func(n name, id vmid) (func() error, error) {
			thaw := func() error { return l.signal(n, id, syscall.SIGCONT) }
			return thaw, l.signal(n, id, syscall.SIGSTOP)
		},
	}
}
