package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/audit"
)

// TestTheLinesOfAVMHaveWhatBecameOfItsHosts: of its own host, and of the target of its migration while there is one.
func TestTheLinesOfAVMHaveWhatBecameOfItsHosts(t *testing.T) {
	record := func(kind string, host hypervisor.HostName, vm vmid, m hypervisor.JobID, what string) audit.Line {
		return audit.Line{Kind: "write", Record: kind, VM: vm, Host: host, Migration: m, What: what}
	}
	note := func(host hypervisor.HostName, what string) audit.Line {
		return audit.Line{Kind: audit.NoteKind, Host: host, What: what}
	}
	lines := []audit.Line{
		note("n1", "too early: it is not known where a runs"),
		record("vm default/a", "n1", "default/a", "", "on n1"),
		record("vm default/b", "n3", "default/b", "", "another VM"),
		note("n2", "too early: a does not go there"),
		record("vm default/a", "n1", "default/a", "a#1", "claimed"),
		record("migration a#1", "n2", "default/a", "a#1", "Scheduling n1→n2"),
		record("migration b#1", "n4", "default/b", "b#1", "another migration"),
		note("n2", "is lost"),
		note("n1", "drains"),
		note("n4", "another host"),
		{Kind: "look", Host: "n1", What: "no note"},
		record("migration a#1", "n2", "default/a", "a#1", "Failed n1→n2: target-down"),
		record("vm default/a", "n1", "default/a", "", "on n1"),
		note("n2", "too late: a does not go there any more"),
		note("n1", "is lost"),
	}
	var log, out bytes.Buffer
	for i, l := range lines {
		l.Seq = uint64(i + 1)
		if err := json.NewEncoder(&log).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := search(&out, &log, "default/a", false); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, what, _ := strings.Cut(strings.TrimSpace(line), "    ") // without a participant
		got = append(got, strings.Join(strings.Fields(what), " "))
	}
	want := []string{"write on n1", "write claimed", "write Scheduling n1→n2", "note n2 is lost", "note n1 drains",
		"write Failed n1→n2: target-down", "write on n1", "note n1 is lost"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
