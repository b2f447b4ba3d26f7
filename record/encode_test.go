package record_test

import (
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

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	key := record.Key{Kind: record.VMKind, Name: "v"}
	for text, want := range map[string]string{
		"":                             "damaged",
		"{":                            "damaged",
		`{"Record":{}}`:                "format 0",
		`{"Format":2,"Record":{}}`:     "upgrade godwit",
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
