package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// oneOfEach is a record of every kind.
func oneOfEach() []store.Record {
	dead := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1", By: "fence_ipmilan"}
	return []store.Record{
		&store.Migration{Spec: migration.Spec{ID: "v#1", VM: "v"}}, vmOn("v", "n1"),
		&store.Host{Host: hypervisor.Host{Name: "n1"}, Fencing: &store.Fencing{Boot: "b"}},
		&store.Rebuild{VM: "v", Source: "n1", Target: "n2", Evidence: dead,
			Decided: time.Unix(9, 0).UTC()},
		&store.Lease{Owner: store.HostLease("n1"), Boot: "b", Session: "s", Beats: 7},
		&store.Leader{Name: "cluster", Holder: "controller/a", Session: "s", Term: 3},
		&store.Plan{Name: "p", Created: time.Unix(9, 1).UTC(), By: "ann", Hosts: []hypervisor.HostName{"n1"},
			Strict: true, Wish: store.PausePlan, Wave: 1, Ended: time.Unix(10, 0).UTC(),
			Moves: []store.PlannedMove{{VM: "v", Source: "n1", Target: "n2", Wave: 1, State: store.MoveSkipped,
				Asked: 2, Failed: 1, Late: true, Again: time.Unix(9, 2).UTC(), Host: "n3", Because: "full", Since: time.Unix(9, 3).UTC()}}},
		&store.Maintenance{Name: "m", Created: time.Unix(9, 1).UTC(), By: "ann", Return: true, Strict: true,
			Batches: []store.MaintenanceBatch{{Hosts: []hypervisor.HostName{"n1"}, Needs: time.Hour,
				Moves: []store.PlannedMove{{VM: "v", Source: "n1", Target: "n2"}}}},
			Home:        []store.PlannedMove{{VM: "v", Source: "n2", Target: "n1"}},
			Windows:     []store.Window{{Begin: time.Unix(9, 0).UTC(), End: time.Unix(99, 0).UTC()}},
			DrainWithin: time.Hour, HookWithin: time.Minute, BackWithin: time.Second, SameStart: true, Checked: true,
			Software: "QEMU 10", Others: []hypervisor.VMID{"w"}, Terms: evacuation.Terms{Grace: time.Minute},
			Wish: store.PausePlan, Resumes: 2, Resumed: 1, Batch: 1, Stopped: "why", Homing: true,
			Answers: []store.ServiceAnswer{{Host: "n1", Hook: 1, State: store.HookFailed, By: "ann", Began: time.Unix(10, 0).UTC(),
				Session: "s", Again: true, Passed: true, Why: "exit status 1"}},
			Hosts: []store.ServicedHost{{Name: "n1", Phase: store.ServiceCheck, Since: time.Unix(11, 0).UTC(), Used: time.Second,
				Cordoned: true, Hooks: 1, Session: "s", Guests: []hypervisor.VMID{"v"}, Because: "it is slow"}},
			Ended: time.Unix(12, 0).UTC()},
	}
}

func TestEveryKindOfRecordIsReadAsItWasWritten(t *testing.T) {
	all := oneOfEach()
	if len(all) != len(store.Kinds()) {
		t.Fatalf("%d records, and %d kinds", len(all), len(store.Kinds()))
	}
	for i, r := range all {
		text, err := store.Encode(r.WithVersion(5))
		if err != nil {
			t.Fatal(err)
		}
		if r.Key().Kind != store.Kinds()[i] {
			t.Errorf("%s is not a %s", r.Key().Kind, store.Kinds()[i])
		}
		got, err := store.Decode(r.Key(), text, 6)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.WithVersion(6), got, words); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Key().Kind, diff)
		}
	}
}

// full is a host whose agent says that it has so many VMs, as large as VMs are.
func full(vms int) *store.Host {
	h := &store.Host{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{Why: "it is older"}}
	chance := rand.New(rand.NewPCG(1, 1))
	for i := range vms {
		id := hypervisor.VMID(fmt.Sprintf("customer-%d/web-%d", i%50, i))
		var nics []hypervisor.NIC
		for range 2 {
			nics = append(nics, hypervisor.NIC{MAC: fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", chance.IntN(256),
				chance.IntN(256), chance.IntN(256), chance.IntN(256))})
		}
		v := &store.VM{VM: hypervisor.VM{ID: id, Memory: 4 << 30, CPUs: 4,
			Hardware: &hypervisor.Hardware{NICs: nics, Disks: []hypervisor.Disk{{Name: "root",
				Path: fmt.Sprintf("/srv/%016x-%016x.qcow2", chance.Uint64(), chance.Uint64()), Size: 40 << 30}}}},
			Namespace: "production", Host: "n1", Moves: i, Boots: 1, Migratable: true,
			Labels: map[string]string{"app": "web", "tier": fmt.Sprint(i % 3)}}
		h.Account.VMs = append(h.Account.VMs, store.Holding{VM: id, State: hypervisor.Running, Record: v,
			Left: &store.Departure{To: "n2", Move: migration.ID(fmt.Sprint(id, "#", i)), At: time.Unix(int64(i), 0).UTC()}})
	}
	return h
}

// TestWhatAHostWithManyVMsSaysIsStored: it is packed, and what would not fit is refused with words.
func TestWhatAHostWithManyVMsSaysIsStored(t *testing.T) {
	testutil.Unraced(t)
	sizes := []int{0, 100, 1500, 8000}
	if testutil.Raced {
		sizes = sizes[:testutil.Rounds(t, 3, 4)]
	}
	for _, vms := range sizes {
		h := full(vms)
		text, err := store.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := json.Marshal(h)
		t.Logf("%d VMs take %d bytes, and %d as they are", vms, len(text), len(plain))
		if err := store.Fits(h); err != nil {
			t.Errorf("%d VMs: %v", vms, err)
		}
		got, err := store.Decode(h.Key(), text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := store.Encode(got); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%d VMs are not what was stored: %v", vms, err)
		}
		if vms > 100 {
			continue // a comparison of fields takes seconds
		}
		if diff := cmp.Diff(store.Record(h), got, words); diff != "" {
			t.Errorf("%d VMs (-want +got):\n%.2000s", vms, diff)
		}
	}
	err := store.Fits(full(20_000))
	if err == nil || !strings.Contains(err.Error(), "host n1 takes ") {
		t.Errorf("20,000 VMs: %v", err)
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	key := store.Key{Kind: store.VMKind, Name: "v"}
	for text, want := range map[string]string{
		"":                             "damaged",
		"{":                            "damaged",
		`{"Record":{}}`:                "format 0",
		`{"Format":3,"Record":{}}`:     "upgrade godwit",
		`{"Format":2,"Record":{}}`:     "it is packed, and only the record of a host may be",
		`{"Format":2,"Packed":"AAAA"}`: "it is packed, and only the record of a host may be",
		`{"Format":1,"Record":{}}`:     `holds vm ""`,
		`{"Format":1,"Record":"v"}`:    "damaged",
		`{"Format":1,"Record":{"VM":`:  "damaged",
		`{"Format":1e9,"Record":null}`: "damaged",
	} {
		_, err := store.Decode(key, []byte(text), 1)
		wantKind(t, err, store.Unreadable)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := store.Decode(store.Key{Kind: 99}, []byte(`{"Format":1,"Record":{}}`), 1)
	wantKind(t, err, store.Unreadable)
	for _, text := range []string{`{"Format":2,"Record":{}}`, `{"Format":2,"Packed":"AAAA"}`} {
		_, err := store.Decode(store.Key{Kind: store.HostKind, Name: "n1"}, []byte(text), 1)
		if wantKind(t, err, store.Unreadable); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s of a host: %v", text, err)
		}
	}
}

// TestAHostNamesNotAnyNumberOfVMs: what would take gigabytes is refused before it is read, however it is written.
func TestAHostNamesNotAnyNumberOfVMs(t *testing.T) {
	key := store.Key{Kind: store.HostKind, Name: "n1"}
	const most = 1 << 16
	list := func(of string, n int) string { return strings.TrimSuffix(strings.Repeat(of+", ", n), ", ") }
	for name, c := range map[string]struct {
		text string
		fits bool
	}{
		"as many strays as may be": {`"Strays":[` + list(`{}`, most) + `]`, true},
		"one more":                 {`"Strays":[` + list(`{}`, most+1) + `]`, false},
		"by another name":          {`"strays":[` + list(`{}`, most+1) + `]`, false},
		"by an escaped name":       {`"\u0053trays":[` + list(`{"VM":"],\""}`, most+1) + `]`, false},
		"a short list after them":  {`"Strays":[` + list(`{}`, most+1) + `],"Strays":[]`, false},
		"of VMs":                   {`"Account":{"VMs":[` + list(`{"Record":{}}`, most) + `]}`, true},
		"one more VM":              {`"Account":{"VMs":[` + list(`{"Record":{}}`, most+1) + `]}`, false},
	} {
		_, err := store.Decode(key, []byte(`{"Format":1,"Record":{"Host":{"Name":"n1"},`+c.text+`}}`), 1)
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "it names 65537 VMs") {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := &store.Host{Host: hypervisor.Host{Name: "n1"}, Strays: make([]store.Stray, most+1)}
	if err := store.Fits(h); err == nil || !strings.Contains(err.Error(), "names 65537 VMs") {
		t.Errorf("it fits: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range oneOfEach() {
		text, _ := store.Encode(r)
		f.Add(uint8(r.Key().Kind), r.Key().Name, text)
	}
	f.Fuzz(func(t *testing.T, kind uint8, name string, text []byte) {
		key := store.Key{Kind: store.Kind(kind), Name: name}
		r, err := store.Decode(key, text, 3)
		if err != nil {
			wantKind(t, err, store.Unreadable)
			return
		}
		again, err := store.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Decode(key, again, 3); err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}
