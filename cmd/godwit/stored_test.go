package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// stored returns the path of a file that the first release wrote.
func stored(name string) string { return filepath.Join("testdata/stored", name) }

// unpacked returns the path of a copy of the packed store.
func unpacked(t *testing.T) string {
	t.Helper()
	f, err := os.Open(stored("cluster.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cluster.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAStoreOfTheFirstReleaseIsRead: every field of every kind of record is read, and written
// again under the name that it has in the file.
func TestAStoreOfTheFirstReleaseIsRead(t *testing.T) {
	s, err := boltstore.Open(unpacked(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := os.ReadFile(stored("records.txt"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(line, "\t")
		name, want, _ := strings.Cut(rest, "\t")
		kinds[kind] = true
		key, err := audit.Key(kind + " " + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(context.Background(), key)
		if err != nil || r == nil {
			t.Fatalf("%s %s: %v, %v", kind, name, r, err)
		}
		got, err := store.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		keeps(t, kind, object(t, []byte(want)), object(t, got))
	}
	if len(kinds) != len(store.Kinds())-2 /* plans and maintenance came later */ {
		t.Errorf("the file has records of the kinds %v", kinds)
	}
}

func object(t *testing.T, text []byte) any {
	t.Helper()
	var o any
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// keeps checks that everything in the JSON value old is in now, at the same place.
func keeps(t *testing.T, at string, old, now any) {
	t.Helper()
	switch old := old.(type) {
	case map[string]any:
		fields, _ := now.(map[string]any)
		for name, v := range old {
			keeps(t, at+"."+name, v, fields[name])
		}
	case []any:
		list, _ := now.([]any)
		if len(list) != len(old) {
			t.Errorf("%s: %d elements became %d", at, len(old), len(list))
			return
		}
		for i, v := range old {
			keeps(t, at+"[]", v, list[i])
		}
	default:
		if old != now {
			t.Errorf("%s: %v became %v", at, old, now)
		}
	}
}

// TestAnAuditLogOfTheFirstReleaseIsReplayed: every line is read, every decision is made again, and
// what happened is a scenario that can be simulated.
func TestAnAuditLogOfTheFirstReleaseIsReplayed(t *testing.T) {
	log, err := os.ReadFile(stored("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.Replay(bytes.NewReader(log), audit.Options{All: true,
		Configure: func(text string) (controller.Config, error) {
			s, err := config.ParseSettings("log", []byte(text))
			return s.Controller, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Same() || r.Terms != 1 || r.Looks != 13 || r.Writes != 16 {
		t.Errorf("%+v", r)
	}
	text, err := audit.Scenario(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(again, text, 0o600); err != nil {
		t.Fatal(err)
	}
	keeps(t, "simulated", object(t, []byte(`{"ending": "at rest", "invariantViolations": [],
		"migrations": {"total": 2, "succeeded": 2}}`)), simulated(t, again))
}

// simulated runs a scenario and returns the JSON document.
func simulated(t *testing.T, path string) any {
	t.Helper()
	c := simulateCommand()
	var out, warnings bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&warnings)
	c.SetArgs([]string{path, "--json"})
	if err := c.ExecuteContext(context.Background()); err != nil {
		t.Fatalf("%v\n%s", err, &warnings)
	}
	return object(t, out.Bytes())
}

// TestAScenarioOfTheFirstReleaseIsSimulated: every verb is understood, and has the same effect.
func TestAScenarioOfTheFirstReleaseIsSimulated(t *testing.T) {
	keeps(t, "simulated", object(t, []byte(`{"ending": "at rest", "virtualSeconds": 4800,
		"migrations": {"total": 8, "succeeded": 7, "failed": 0, "aborted": 1},
		"evacuations": [{"host": "n1", "emptySeconds": 14.44, "left": []}], "down": [],
		"downtimeMilliseconds": {"p50": 110.649, "p99": 118.049, "max": 118.049},
		"outages": {"count": 9, "totalSeconds": 1820.685}, "bytesTransferred": 33405832389,
		"invariantViolations": []}`)), simulated(t, stored("scenario.yaml")))
}

// TestAConfigurationOfTheFirstReleaseIsRead.
func TestAConfigurationOfTheFirstReleaseIsRead(t *testing.T) {
	s, err := config.ReadSettings(stored("controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Controller
	if got := c.Evacuation; got.Order != evacuation.SmallestFirst || got.Mode != evacuation.FreeSpots ||
		got.Terms != (evacuation.Terms{OnUnmovable: evacuation.Restart, Grace: 5 * time.Minute}) {
		t.Errorf("evacuation: %+v", got)
	}
	if p := c.Policies; len(p) != 1 || p[0].Name != "slow" || !*p[0].AllowPostCopy {
		t.Errorf("policies: %+v", p)
	}
	if diff := cmp.Diff([]any{12 * time.Hour, 2 * time.Hour, 20 * time.Second, 5 * time.Minute, 3,
		hypervisor.Bandwidth(250_000_000), convergence.Forecast},
		[]any{c.Migration.Timeouts.Pending, c.Migration.Timeouts.Transfer, c.Migration.BackoffBase,
			c.Migration.BackoffCap, c.Migration.Keep,
			c.Cluster.Options().Bandwidth, c.Cluster.Options().Convergence}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := s.Failover; f.Grace != 30*time.Second || f.FenceAfter != time.Minute || f.StormShare != 0.34 {
		t.Errorf("failover: %+v", f)
	}
}
