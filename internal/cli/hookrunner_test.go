package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// A run stops because the hook of n1 failed. n2 and n3 are being checked: the command still checks n2, which has time, and
// does not wait for n3, whose time is over.
func TestARunThatStopsStillChecksItsHosts(t *testing.T) {
	now := time.Now()
	records, err := boltstore.Open(filepath.Join(t.TempDir(), "d", "c.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	m := &store.Maintenance{Name: "patch", Checked: true, BackWithin: time.Minute, Stopped: "the hook of n1 failed",
		Batches: []store.MaintenanceBatch{{Hosts: []hypervisor.HostName{"n1", "n2", "n3"}}},
		Hosts: []store.ServicedHost{{Name: "n1", Phase: store.ServiceHook, Since: now, Hooks: 1},
			{Name: "n2", Phase: store.ServiceCheck, Since: now, Hooks: 1},
			{Name: "n3", Phase: store.ServiceCheck, Since: now.Add(-2 * time.Minute), Hooks: 1}},
		Answers: []store.ServiceAnswer{{Host: "n1", Hook: 1, State: store.HookFailed},
			{Host: "n2", Hook: 1, State: store.HookDone}, {Host: "n3", Hook: 1, State: store.HookDone}}}
	if _, err := records.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer // written to between looks only
	called := filepath.Join(t.TempDir(), "called")
	h := &hookRunner{name: "patch", check: []string{"test", "n2", "="}, onFailure: []string{"sh", "-c", "echo x >> " + called},
		session: &session{out: &out, err: &out, Client: client.Client{Store: records, Now: time.Now}}}
	if err := h.follow(t.Context()); !errors.Is(err, ErrNotDone) {
		t.Errorf("%v, want %v", err, ErrNotDone)
	}
	m, err = store.MaintenanceNamed(t.Context(), records, "patch")
	if err != nil {
		t.Fatal(err)
	}
	if !m.Answer(m.Host("n2")).Passed || m.Answer(m.Host("n3")).Passed {
		t.Errorf("n2 %+v, n3 %+v\n%s", m.Answer(m.Host("n2")), m.Answer(m.Host("n3")), out.String())
	}
	if text, err := os.ReadFile(called); err != nil || string(text) != "x\n" {
		t.Errorf("--on-failure: %q, %v", text, err)
	}
}

// A host is checked, too, whose hook runs here when the run stops, or has just ended.
func TestAHostWhoseHookRunsIsCheckedAfterIt(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name  string
		state store.HookState
		mine  bool
		check []string
		want  bool
	}{
		{"it runs here", store.HookBegan, true, []string{"true"}, true},
		{"it runs elsewhere", store.HookBegan, false, []string{"true"}, false},
		{"it has ended", store.HookDone, false, []string{"true"}, true},
		{"it has failed", store.HookFailed, false, []string{"true"}, false},
		{"it waits", store.HookWaits, false, []string{"true"}, false},
		{"nothing checks", store.HookDone, true, nil, false},
	} {
		m := &store.Maintenance{Name: "patch", Checked: true, BackWithin: time.Minute, Stopped: "the hook of n1 failed",
			Hosts:   []store.ServicedHost{{Name: "n2", Phase: store.ServiceHook, Since: now, Hooks: 1}},
			Answers: []store.ServiceAnswer{{Host: "n2", Hook: 1, State: c.state}}}
		h := &hookRunner{check: c.check, busy: map[hypervisor.HostName]bool{"n2": c.mine},
			session: &session{Client: client.Client{Now: time.Now}}}
		if got := h.checks(m); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
