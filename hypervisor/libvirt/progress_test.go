//go:build linux && libvirt_dlopen

package libvirt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
)

// On a busy machine the figures of a migration come after its call has returned, and after the source is seen shut off.
func TestFiguresThatComeLateAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		look  domainLook
		after time.Duration // until the figures come
		want  bool
		cold  bool
	}{
		{"they are there", domainLook{Run: runShutoffClean}, 0, true, false},
		{"while libvirt's call is under way", domainLook{Run: runShutoffMigrated, Call: calling}, 2 * time.Second, true, false},
		{"after the call has returned", domainLook{Run: runShutoffMigrated, Call: callSucceeded}, 2 * time.Second, true, false},
		{"after the definition has gone", domainLook{Run: runGone, Call: callSucceeded}, 2 * time.Second, true, false},
		{"too late", domainLook{Run: runShutoffMigrated, Call: callSucceeded}, time.Minute, false, false},
		{"another process called", domainLook{Run: runShutoffMigrated, Call: callNone}, time.Millisecond, false, false},
		{"none come of a definition alone", domainLook{Run: runShutoffClean, Call: callSucceeded}, time.Second, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := move{&domain{call: &call{done: c.look.Call != calling}}}
				told := func() {
					d.mu.Lock()
					defer d.mu.Unlock()
					d.stats = &conn.JobStats{MemoryTotal: 1}
				}
				if c.after == 0 {
					told()
				} else {
					time.AfterFunc(c.after, told)
				}
				job, begin := &jobRecord{}, time.Now()
				job.Cold = c.cold
				if got := d.told(t.Context(), job, observation{domainLook: c.look}) != nil; got != c.want {
					t.Errorf("figures: %t after %v, want %t", got, time.Since(begin), c.want)
				}
				if took := time.Since(begin); took > figuresSoon || c.cold && took > 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
