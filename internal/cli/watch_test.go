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

// TestADrainNamesTheRefusalOfNowAndNoWithdrawal: a migration that was replaced or canceled has not failed, and what
// refuses the one of now is said at once when the wait ends.
func TestADrainNamesTheRefusalOfNowAndNoWithdrawal(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	host := func(name hypervisor.HostName, memory hypervisor.Bytes) *store.Host {
		return &store.Host{Host: hypervisor.Host{Name: name, Memory: memory, CPUs: 8}}
	}
	failed := func(id migration.ID, because string, ago time.Duration) *store.Migration {
		return &store.Migration{Spec: migration.Spec{ID: id, VM: "default/web", Created: now.Add(-ago)},
			State: migration.State{Phase: migration.Failed, Because: because, Entered: now.Add(-ago)}}
	}
	records := store.NewMemory()
	for _, r := range []store.Record{host("rd1", hypervisor.GiB), host("rd2", 128*hypervisor.MiB),
		&store.VM{VM: hypervisor.VM{ID: "default/web", Memory: 256 * hypervisor.MiB, CPUs: 1}, Host: "rd1", Boots: 1,
			Migratable: true, Strategy: evacuation.LiveMigrate},
		failed("default/web#1", "replaced", time.Minute), failed("default/web#2", "canceled", time.Second),
		&store.Migration{Spec: migration.Spec{ID: "default/web#3", VM: "default/web", Created: now},
			State: migration.State{Phase: migration.Pending, Entered: now, Deadline: now.Add(time.Hour)}}} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	var out, told bytes.Buffer
	d := &session{Client: client.Client{Store: records, Now: func() time.Time { now = now.Add(time.Millisecond); return now }},
		out: &out, err: &told}
	if err := d.empty(t.Context(), "rd1", time.Nanosecond); !errors.Is(err, ErrNotDone) {
		t.Errorf("the error is %v", err)
	}
	const why = "default/web waits on rd1: rd2: memory: needs 256MiB, has 128MiB\n"
	if out.String() != why || strings.Contains(told.String(), "failed before") {
		t.Errorf("it says %q and then %q, want %q", told.String(), out.String(), why)
	}
	out.Reset()
	if err := d.explain(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "needs to succeed") ||
		!strings.Contains(text, "  rd2: memory: needs 256MiB, has 128MiB\n") {
		t.Errorf("it explains\n%s", text)
	}
}
