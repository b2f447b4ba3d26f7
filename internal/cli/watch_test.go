package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// TestADrainSaysWhyNoHostTakesAVM, while it waits and when it gives up.
func TestADrainSaysWhyNoHostTakesAVM(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	host := func(name hypervisor.HostName, cpus int) *store.Host {
		return &store.Host{Host: hypervisor.Host{Name: name, Memory: hypervisor.GiB, CPUs: cpus}}
	}
	records := store.NewMemory()
	for _, r := range []store.Record{host("n1", 4), host("n2", 1),
		&store.VM{VM: hypervisor.VM{ID: "default/web", Memory: hypervisor.MiB, CPUs: 2}, Host: "n1", Boots: 1, Migratable: true,
			Strategy: evacuation.LiveMigrate},
		&store.Migration{Spec: migration.Spec{ID: "default/web#1", VM: "default/web", Created: now.Add(-time.Minute)},
			State: migration.State{Phase: migration.Pending, Entered: now.Add(-time.Minute), Deadline: now.Add(time.Hour)}}} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var out, told bytes.Buffer
	d := &session{Client: client.Client{Store: records, Now: func() time.Time { now = now.Add(time.Second); return now }},
		out: &out, err: &told}
	if err := d.empty(t.Context(), "n1", time.Nanosecond); !errors.Is(err, ErrNotDone) {
		t.Errorf("the error is %v", err)
	}
	const why = "n2: cpus: needs 2, has 1"
	if !strings.Contains(told.String(), "1 without a place: default/web: "+why) ||
		!strings.Contains(out.String(), "default/web waits on n1: "+why) {
		t.Errorf("it says %q and then %q", told.String(), out.String())
	}
}
