package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// TestAMarkThatCannotBeKeptIsTold: the daemon is not ready, and its log says so once, and once that it can again.
func TestAMarkThatCannotBeKeptIsTold(t *testing.T) {
	dir := t.TempDir()
	records, err := boltstore.Open(filepath.Join(dir, "store", "godwit.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	seen := filepath.Join(dir, "mark", "seen")
	gate, err := Remember(t.Context(), records, seen, "agent/n1")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	log, err := Logger(&text, Text, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{Dependencies: &Dependencies{Log: log}, health: NewHealth(time.Now, late)}
	w.remembers(gate)
	write := func(name string) {
		t.Helper()
		gate.at = time.Time{} // it is due
		if _, err := gate.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	if s := w.health.IsReady(t.Context()); !s.OK || len(s.Parts) != 1 || text.Len() > 0 {
		t.Fatalf("%+v, and its log says %s", s, text.String())
	}
	blocked := seen + durable.Unfinished
	if err := os.Mkdir(blocked, 0o700); err != nil { // as a full file system does
		t.Fatal(err)
	}
	write("b")
	write("c")
	s := w.health.IsReady(t.Context())
	if s.OK || !strings.Contains(s.Parts[0].Error, "what was seen of the store cannot be kept") {
		t.Errorf("it is ready: %+v", s)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	write("d")
	if s := w.health.IsReady(t.Context()); !s.OK || gate.Unkept() != nil {
		t.Errorf("it is kept again, and %+v", s)
	}
	if said := text.String(); strings.Count(said, "may not be recognised") != 1 || strings.Count(said, "keeps again") != 1 {
		t.Errorf("its log says %s", said)
	}
}
