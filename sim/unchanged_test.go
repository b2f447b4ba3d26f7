package sim_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// A record that was stored is shared: by the store, the controller's cache, agents and invariants.
// Whatever happens, none of them changes one.
func TestStoredRecordsAreNotChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simtest.Turmoil().Make(simtest.Drawn(t))
		parsed, err := s.Scenario("world")
		if err != nil {
			t.Fatal(err)
		}
		var kept []storedRecord
		keep := func(r store.Record) { kept = append(kept, storedRecord{r, encoded(t, r)}) }
		c := parsed.Config(s.Seed)
		c.Watch = func(_ time.Duration, _, after *store.Migration) { keep(after) }
		c.WatchVM = func(_ time.Duration, _, after *store.VM) { keep(after) }
		w, err := parsed.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(time.Hour)
		for _, host := range w.Hosts() {
			keep(w.HostRecord(host))
		}
		w.Run(2 * time.Hour)
		for _, k := range kept {
			if now := encoded(t, k.record); !bytes.Equal(now, k.was) {
				t.Fatalf("stored as\n%s\nand changed to\n%s\n%s", k.was, now, s)
			}
		}
	})
}

// A storedRecord is a record with what it said when it was stored.
type storedRecord struct {
	record store.Record
	was    []byte
}

func encoded(t *rapid.T, r store.Record) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
