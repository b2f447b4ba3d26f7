package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// drawRecord draws a writing of one of three records.
func drawRecord(t *rapid.T) store.Record {
	few := rapid.SampledFrom([]string{"", "a", "kubevirt.io/x", "null", "ü\"<"})
	number := rapid.Int64().Draw(t, "number")
	v := store.Version(rapid.Uint64Range(1, 9).Draw(t, "version"))
	switch rapid.SampledFrom([]string{"vm", "host", "migration"}).Draw(t, "kind") {
	case "vm":
		r := &store.VM{Version: v, VM: hypervisor.VM{ID: "v", Memory: hypervisor.Bytes(number)}}
		if rapid.Bool().Draw(t, "labels") {
			r.Labels = migration.Labels{few.Draw(t, "key"): few.Draw(t, "value")}
		}
		if rapid.Bool().Draw(t, "hardware") {
			r.VM.Hardware = &hypervisor.Hardware{Disks: []hypervisor.Disk{{Name: few.Draw(t, "d")}}}
		}
		return r
	case "host":
		r := &store.Host{Version: v, Host: hypervisor.Host{Name: "h", CPUs: int(number)}}
		if rapid.Bool().Draw(t, "taints") {
			r.Taints = make([]placement.Taint, rapid.IntRange(0, 2).Draw(t, "n"))
		}
		return r
	}
	m := &store.Migration{Version: v, Spec: migration.Spec{ID: "v#1", VM: "v"},
		Source: store.SourceReport{Sent: hypervisor.Bytes(number), Error: few.Draw(t, "error")}}
	if rapid.Bool().Draw(t, "options") {
		m.Options = &migration.Options{MaxDowntime: time.Duration(number)}
	}
	if rapid.Bool().Draw(t, "decision") {
		m.Decision = &placement.Decision{Why: []hypervisor.Reason{{Check: few.Draw(t, "check")}}}
	}
	return m
}

// TestWhatIsToldIsHeard to the last byte, through JSON, whatever was told before; a small
// change is told in few words.
func TestWhatIsToldIsHeard(t *testing.T) {
	patches := 0
	rapid.Check(t, func(t *rapid.T) {
		var writer, reader audit.DeltaLog
		for range rapid.IntRange(1, 12).Draw(t, "writings") {
			r := drawRecord(t)
			if rapid.IntRange(0, 5).Draw(t, "gone") == 5 {
				writer.Forget(r.Key())
				reader.Forget(r.Key())
				continue
			}
			c, err := writer.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			writer.Remember(r)
			if c.Patch != nil {
				patches++
			}
			line, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var read audit.Change
			if err := json.Unmarshal(line, &read); err != nil {
				t.Fatal(err)
			}
			got, err := reader.Decode(read, store.Format)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			reader.Remember(got)
			want, _ := store.Encode(r)
			if text, _ := store.Encode(got); !bytes.Equal(text, want) || got.RecordVersion() != r.RecordVersion() {
				t.Fatalf("%s is heard as\n%s, want\n%s", line, text, want)
			}
		}
	})
	if patches == 0 {
		t.Error("everything is told in full")
	}
	var told audit.DeltaLog
	vm := &store.VM{VM: hypervisor.VM{ID: "default/web"}, Host: "n1", ActiveMigration: "x"}
	told.Remember(vm)
	next := *vm
	next.Host, next.ActiveMigration = "n2", ""
	if c, err := told.Encode(&next); err != nil || string(c.Patch) != `{"Claim":null,"Host":"n2"}` ||
		c.Text != nil {
		t.Errorf("told as %s and %s, %v", c.Patch, c.Text, err)
	}
}

// TestWhatMakesNoSenseIsNotHeard.
func TestWhatMakesNoSenseIsNotHeard(t *testing.T) {
	var told audit.DeltaLog
	told.Remember(&store.VM{VM: hypervisor.VM{ID: "v"}})
	for want, c := range map[string]audit.Change{
		"names no record": {Record: "house v", Text: []byte("{}")},
		"is missing":      {Record: "vm w", Patch: []byte("{}")},
		"its patch":       {Record: "vm v", Patch: []byte("[]")},
		`it holds vm "w"`: {Record: "vm v", Patch: []byte(`{"VM":{"ID":"w"}}`)},
		"it is damaged":   {Record: "vm v", Text: []byte(`{"Boots":"many"}`)},
	} {
		if r, err := told.Decode(c, store.Format); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v is heard as %v, %v; want %q", c, r, err, want)
		}
	}
	if _, err := told.Decode(audit.Change{Record: "vm v"}, 99); !errors.Is(err, store.Unreadable) {
		t.Errorf("another format is heard: %v", err)
	}
}

// TestAnswersHaveWords, and words stand for answers.
func TestAnswersHaveWords(t *testing.T) {
	for k := store.Unanswered; k <= store.Forbidden; k++ {
		word := audit.Failure(&store.StoreError{Kind: k})
		if got, known := audit.FailureKind(word); word == "" || !known || got != k {
			t.Errorf("%v is %q, which is %v", k, word, got)
		}
	}
	if word := audit.Failure(&store.StoreError{Kind: store.Forbidden + 1}); word == "" {
		t.Error("an error of a kind that is new reads as success")
	}
	if audit.Failure(nil) != "" || audit.Failure(io.EOF) != "unanswered" {
		t.Error("what is no answer has another word")
	}
	if _, known := audit.FailureKind("tired"); known {
		t.Error("any word is an answer")
	}
}

// TestAJournalThatIsTooLongIsLeftOut, and the line is kept.
func TestAJournalThatIsTooLongIsLeftOut(t *testing.T) {
	path := t.TempDir() + "/log"
	f := open(t, path)
	long, _ := json.Marshal(strings.Repeat("x", 2<<20))
	if err := f.Append(audit.Line{What: "one", Journal: &audit.Journal{
		Write: &audit.Change{Text: long}}}, audit.Line{What: "two"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	kept := lines(t, path)
	if len(kept) != 2 || kept[0].What != "one" || kept[0].Journal != nil {
		t.Errorf("%+v", kept)
	}
}
