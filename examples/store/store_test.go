package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/store"
)

// broken says in the environment which of the wrong stores is to be tested.
const broken = "GODWIT_EXAMPLE_STORE"

// wrongs are the wrong stores, and a case that each of them fails.
var wrongs = []struct {
	name  string
	wrap  func(*Store) store.Store
	fails string
}{
	{"careless", func(s *Store) store.Store { return careless{s} },
		"compare_and_swap/a_write_holds_only_while_others_are_as_they_were_read"},
	{"hasty", func(s *Store) store.Store { return &hasty{Store: s} },
		"compare_and_swap/what_is_gone_may_be_deleted_again,_and_does_not_come_back"},
	{"forgetful", func(s *Store) store.Store { return forgetful{s} },
		"stale_reads/a_reader_that_is_far_behind"},
}

// TestConformance is all that a store's author writes. A store with a server of its own would
// also have Cut and Heal.
func TestConformance(t *testing.T) {
	wrap := func(s *Store) store.Store { return s }
	for _, w := range wrongs {
		if os.Getenv(broken) == w.name {
			wrap = w.wrap
		}
	}
	conformance.Store(t, func(t *testing.T) conformance.Subject {
		path := filepath.Join(t.TempDir(), "records")
		var s *Store
		open := func(t *testing.T) store.Store {
			opened, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			s = opened
			t.Cleanup(func() { _ = opened.Close() }) // it may have crashed: closed already
			return wrap(s)
		}
		return conformance.Subject{Store: open(t), Again: open,
			Crash: func() { _ = s.Close() }}
	})
}

// The suite finds out about each of the wrong stores. It ends the test that it runs in, so
// that it runs in a process of its own here.
func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			group, _, _ := strings.Cut(w.fails, "/")
			c := exec.CommandContext(t.Context(), os.Args[0], "-rapid.nofailfile",
				"-test.run=^TestConformance$/^"+group+"$")
			c.Env = append(os.Environ(), broken+"="+w.name)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestConformance/"+w.fails) {
				t.Errorf("%v, want the failure of %s:\n%s", err, w.fails, out)
			}
		})
	}
}

// A line that was not written to its end was not acknowledged: it is cut off, and the next
// one begins where it did.
func TestATornLineIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	for _, owner := range []string{"a", "b"} {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &store.Lease{Owner: owner}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.file.WriteString(`{"Kind":"lease","Na`); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.records) != 2 || s.last != 2 {
		t.Errorf("%d records after write %d, want both leases", len(s.records), s.last)
	}
}

// A damaged line is said with its number; nothing is guessed.
func TestADamagedLineIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(path, []byte("{}x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("error %v, want one that names line 1", err)
	}
}
