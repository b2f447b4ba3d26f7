package audit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

func TestFieldsAreWhereRecordsDiffer(t *testing.T) {
	a := &store.VM{VM: hypervisor.VM{ID: "default/a", CPUs: 1}, Host: "n1"}
	b := &store.VM{VM: hypervisor.VM{ID: "default/a", CPUs: 2}, Host: "n1", ActiveMigration: "default/a#1"}
	want := []audit.KnownField{{Path: "Claim", To: `"default/a#1"`},
		{Path: "VM.CPUs", From: "1", To: "2"}}
	got := audit.Fields(a, b)
	for i := range got { // whether an empty claim is written at all is the record's affair
		if got[i].From == `""` {
			got[i].From = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fields (-want +got):\n%s", diff)
	}
	if got := audit.Fields(a, a); len(got) > 0 {
		t.Errorf("a record differs from itself in %v", got)
	}
	if got := audit.Fields(nil, a); len(got) == 0 || got[0].From != "" {
		t.Errorf("nothing differs from a record in %v", got)
	}
}

// TestAHostIsToldWithWhatMoves: a VM that moves takes room on both hosts.
func TestAHostIsToldWithWhatMoves(t *testing.T) {
	all := audit.Records{}
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 8 << 30, CPUs: 1}},
		&store.VM{VM: hypervisor.VM{ID: "default/a", Memory: 1 << 30, CPUs: 1}, Host: "n1"},
		&store.VM{VM: hypervisor.VM{ID: "default/b", Memory: 2 << 30, CPUs: 1}, Host: "n2"},
		&store.Migration{Spec: migration.Spec{ID: "b#1", VM: "default/b"}, State: migration.State{
			Phase: migration.Running, Source: "n2", Target: "n1"}},
	} {
		all[r.Key()] = r
	}
	const want = "host n1: 8GiB and 1 CPU; 1 VM, 3GiB given away; 0 migrations from here, 1 to here"
	if got := all.Host("n1"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := all.Host("n9"); got != "host n9 is not known" || all.UnderWay() != 1 {
		t.Errorf("%s, %d under way", got, all.UnderWay())
	}
	if text, host := all.VM("default/x"); text != "VM default/x is not known" || host != "" {
		t.Errorf("%s on %q", text, host)
	}
}
