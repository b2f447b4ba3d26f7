package record_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
)

// oneOfEach is a record of every kind.
func oneOfEach() []record.Record {
	dead := hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1", By: "fence_ipmilan"}
	return []record.Record{
		&record.Migration{Spec: migration.Spec{ID: "v#1", VM: "v"}}, vmOn("v", "n1"),
		&record.Host{Host: hypervisor.Host{Name: "n1"}, Fencing: &record.Fencing{Boot: "b"}},
		&record.Rebuild{VM: "v", Source: "n1", Target: "n2", Evidence: dead,
			Decided: time.Unix(9, 0).UTC()},
		&record.Lease{Owner: record.HostLease("n1"), Boot: "b", Session: "s", Beats: 7},
		&record.Leader{Name: "cluster", Holder: "controller/a", Session: "s", Term: 3},
	}
}

func TestEveryKindOfRecordIsReadAsItWasWritten(t *testing.T) {
	all := oneOfEach()
	if len(all) != len(record.Kinds()) {
		t.Fatalf("%d records, and %d kinds", len(all), len(record.Kinds()))
	}
	for i, r := range all {
		text, err := record.Encode(r.With(5))
		if err != nil {
			t.Fatal(err)
		}
		if r.Key().Kind != record.Kinds()[i] {
			t.Errorf("%s is not a %s", r.Key().Kind, record.Kinds()[i])
		}
		got, err := record.Decode(r.Key(), text, 6)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.With(6), got, words); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Key().Kind, diff)
		}
	}
}

// full is a host whose agent says that it has so many VMs, as large as VMs are.
func full(vms int) *record.Host {
	h := &record.Host{Host: hypervisor.Host{Name: "n1"}, Account: &record.Account{Why: "it is older"}}
	chance := rand.New(rand.NewPCG(1, 1))
	for i := range vms {
		id := hypervisor.VMID(fmt.Sprintf("customer-%d/web-%d", i%50, i))
		var nics []hypervisor.NIC
		for range 2 {
			nics = append(nics, hypervisor.NIC{MAC: fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", chance.IntN(256),
				chance.IntN(256), chance.IntN(256), chance.IntN(256))})
		}
		v := &record.VM{VM: hypervisor.VM{ID: id, Memory: 4 << 30, CPUs: 4,
			Hardware: &hypervisor.Hardware{NICs: nics, Disks: []hypervisor.Disk{{Name: "root",
				Path: fmt.Sprintf("/srv/%016x-%016x.qcow2", chance.Uint64(), chance.Uint64()), Size: 40 << 30}}}},
			Namespace: "production", Host: "n1", Moves: i, Boots: 1, Migratable: true,
			Labels: map[string]string{"app": "web", "tier": fmt.Sprint(i % 3)}}
		h.Account.VMs = append(h.Account.VMs, record.Holding{VM: id, State: hypervisor.Running, Record: v,
			Left: &record.Left{To: "n2", Move: migration.ID(fmt.Sprint(id, "#", i)), At: time.Unix(int64(i), 0).UTC()}})
	}
	return h
}

// TestWhatAHostWithManyVMsSaysIsStored: it is packed, and what would not fit is refused with words.
func TestWhatAHostWithManyVMsSaysIsStored(t *testing.T) {
	for _, vms := range []int{0, 100, 1500, 8000} {
		h := full(vms)
		text, err := record.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := json.Marshal(h)
		t.Logf("%d VMs take %d bytes, and %d as they are", vms, len(text), len(plain))
		if err := record.Fits(h); err != nil {
			t.Errorf("%d VMs: %v", vms, err)
		}
		got, err := record.Decode(h.Key(), text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(record.Record(h), got, words); diff != "" {
			t.Errorf("%d VMs (-want +got):\n%.2000s", vms, diff)
		}
	}
	err := record.Fits(full(20_000))
	if err == nil || !strings.Contains(err.Error(), "host n1 takes ") {
		t.Errorf("20,000 VMs: %v", err)
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	key := record.Key{Kind: record.VMKind, Name: "v"}
	for text, want := range map[string]string{
		"":                             "damaged",
		"{":                            "damaged",
		`{"Record":{}}`:                "format 0",
		`{"Format":3,"Record":{}}`:     "upgrade godwit",
		`{"Format":2,"Record":{}}`:     "damaged",
		`{"Format":2,"Packed":"AAAA"}`: "damaged",
		`{"Format":1,"Record":{}}`:     `holds vm ""`,
		`{"Format":1,"Record":"v"}`:    "damaged",
		`{"Format":1,"Record":{"VM":`:  "damaged",
		`{"Format":1e9,"Record":null}`: "damaged",
	} {
		_, err := record.Decode(key, []byte(text), 1)
		wantKind(t, err, record.Unreadable)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := record.Decode(record.Key{Kind: 99}, []byte(`{"Format":1,"Record":{}}`), 1)
	wantKind(t, err, record.Unreadable)
}

func FuzzDecode(f *testing.F) {
	for _, r := range oneOfEach() {
		text, _ := record.Encode(r)
		f.Add(uint8(r.Key().Kind), r.Key().Name, text)
	}
	f.Fuzz(func(t *testing.T, kind uint8, name string, text []byte) {
		key := record.Key{Kind: record.Kind(kind), Name: name}
		r, err := record.Decode(key, text, 3)
		if err != nil {
			wantKind(t, err, record.Unreadable)
			return
		}
		again, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Decode(key, again, 3); err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}
