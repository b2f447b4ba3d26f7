package qmp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// TestAnAgentMeasuresHowFastAGuestWrites: the judge is the guest, which writes each page of 64 MiB many times in a
// second: as many bytes are found in the second that is measured. QEMU looks at a sample of the pages, and on a busy
// machine its second is longer: it measures again until it has found that.
func TestAnAgentMeasuresHowFastAGuestWrites(t *testing.T) {
	testutil.Long(t)
	l := newLab(t, accelerator(t), nil)
	const set = 64 << 20
	vm := l.vm("suite/writer", guest.Params{Fill: 128 << 20, WorkingSet: set, Rate: guest.MaxRate})
	l.start("n1", vm)
	records := store.NewMemory()
	put := &store.VM{VM: vm, Host: "n1", Migratable: true}
	if _, err := records.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	a := agent.New("n1", agent.Config{MeasureEvery: time.Second}, l.Host("n1"), records,
		store.DiscardEvents{})
	testutil.Eventually(t, "the guest is measured", func() error {
		if _, err := a.Reconcile(t.Context(), time.Now()); err != nil {
			return err
		}
		r, err := records.Get(t.Context(), put.Key())
		if err != nil {
			return err
		}
		d := r.(*store.VM).Dirtied
		if rate := hypervisor.Bandwidth(set); d == nil || d.Rate < rate*6/10 || d.Rate > rate*14/10 {
			return fmt.Errorf("%+v, want about %v", d, rate)
		}
		return nil
	})
}
