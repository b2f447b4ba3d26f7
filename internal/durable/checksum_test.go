package durable

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

type sample struct {
	VM    string
	Moves int
	Disks []string          `json:",omitempty"`
	Of    map[string]sample `json:",omitempty"`
}

// TestNoFlippedBitOfARecordGoesUnnoticed flips every bit of a record, and cuts it off everywhere: it is
// refused, or says what was written.
func TestNoFlippedBitOfARecordGoesUnnoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	want := sample{VM: "default/web", Moves: 7, Disks: []string{"a", "b"},
		Of: map[string]sample{"x": {VM: "y\n\t\"checksum\": "}}}
	if err := Write(path, want, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	try := func(what string, at int, changed []byte) {
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		var got sample
		if err := Read(path, &got); err != nil {
			refused++
		} else if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %d went unnoticed: %+v", what, at, got)
		}
	}
	for at := range text {
		for bit := range 8 {
			text[at] ^= 1 << bit
			try("a flipped bit of byte", at, text)
			text[at] ^= 1 << bit
		}
		try("an end at byte", at, text[:at])
	}
	if refused < 8*len(text) {
		t.Errorf("of %d changes %d were refused", 9*len(text), refused)
	}
}

// TestARecordWithoutASumIsRead: an earlier godwit wrote it, or an operator has repaired it.
func TestARecordWithoutASumIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	text, err := json.MarshalIndent(sample{VM: "v"}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(text), string(text) + "\n", "{\"VM\": \"v\"}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got sample
		if err := Read(path, &got); err != nil || got.VM != "v" {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}
