package life_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/life"
)

// The flag -rewrite of package datadriven writes this golden file, too.
func rewrites() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if rewrites() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// columns are the jobs that a domain may take part in, in the order of the table.
var columns = []struct {
	name string
	j    *journal.Job
}{
	{"no job", nil},
	{"sending", &journal.Job{Role: journal.Source, Stage: journal.Sending,
		Last: last(hypervisor.JobSetup)}},
	{"stranded", &journal.Job{Role: journal.Source, Stage: journal.Stranded}},
	{"kept", &journal.Job{Role: journal.Source, Stage: journal.Kept}},
	{"moved", &journal.Job{Role: journal.Source, Stage: journal.Moved}},
	{"resumed", &journal.Job{Role: journal.Source, Stage: journal.Resumed}},
	{"abandoned", &journal.Job{Role: journal.Source, Stage: journal.Abandoned}},
	{"left", &journal.Job{Role: journal.Source, Stage: journal.Left}},
	{"listening", &journal.Job{ID: "job", Role: journal.Target, Stage: journal.Listening}},
	{"held", &journal.Job{ID: "job", Role: journal.Target, Stage: journal.Listening,
		Hold: true}},
	{"arrived", &journal.Job{Role: journal.Target, Stage: journal.Arrived}},
	{"discarded", &journal.Job{Role: journal.Target, Stage: journal.Discarded}},
}

// TestStates prints what every domain is in every job, of a VM that ran.
func TestStates(t *testing.T) {
	var b strings.Builder
	row := func(first string, cell func(*journal.Job, string) string) {
		fmt.Fprintf(&b, "%-21s", first)
		for _, c := range columns {
			fmt.Fprintf(&b, "%-12s", cell(c.j, c.name))
		}
		b.WriteString("\n")
	}
	row("", func(_ *journal.Job, name string) string { return name })
	for run := life.Gone; run <= life.ShuttingDown; run++ {
		row(run.String(), func(j *journal.Job, _ string) string {
			l := life.Look{Run: run, Job: "job", Defined: run != life.Gone}
			return life.State(&journal.Domain{Ran: true}, j, l).String()
		})
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n")+"\n")
	}
	checkGolden(t, "states.golden", strings.Join(lines, ""))
}

// words are what the package comment says: by libvirt's words, what the domain is as
// a source, as a target, and otherwise. "~" is not said, or does not happen.
var words = []struct {
	libvirt                   string
	runs                      []life.Run
	source, target, otherwise string
}{
	{"shut off (crashed)", []life.Run{life.ShutoffCrashed}, "Crashed", "Crashed", "Crashed"},
	{"shut off (shutdown, destroyed, saved, from snapshot)", []life.Run{life.ShutoffClean},
		"Shutoff", "Shutoff", "Shutoff"},
	{"shut off (failed)", []life.Run{life.ShutoffFailed}, "Shutoff", "Receiving", "Shutoff"},
	{"shut off (migrated)", []life.Run{life.ShutoffMigrated}, "HandedOver", "~", "Shutoff"},
	{"shut off (unknown)", []life.Run{life.ShutoffUnknown}, "Crashed", "Crashed", "Crashed"},
	{"running (any reason)", []life.Run{life.Runs, life.RunsCancelled, life.RunsMigrated},
		"Running", "Running", "Running"},
	{"running (post-copy [failed])", []life.Run{life.RunsPostCopy, life.RunsPostCopyFailed},
		"~", "Running", "Running"},
	{"paused (user)", []life.Run{life.PausedUser}, "Paused", "Paused", "Paused"},
	{"paused (migrating)", []life.Run{life.PausedMigration}, "HandingOver", "Receiving",
		"HandingOver"},
	{"paused (post-copy [failed])", []life.Run{life.PausedPostCopy, life.PausedPostCopyFailed},
		"HandingOver", "~", "HandingOver"},
	{"paused (starting up)", []life.Run{life.PausedStarting}, "Starting", "Receiving",
		"Starting"},
	{"paused (unknown)", []life.Run{life.PausedUnknown}, "HandingOver", "Receiving", "Paused"},
	{"paused (I/O error, watchdog, crashed, snapshot, dump)", []life.Run{life.PausedTrouble},
		"Paused", "Paused", "Paused"},
	{"shutdown, in shutdown", []life.Run{life.ShuttingDown}, "Stopping", "Stopping", "Stopping"},
}

// TestWords: what the package comment says is what is answered.
func TestWords(t *testing.T) {
	jobs := map[string]*journal.Job{}
	for _, c := range columns {
		jobs[c.name] = c.j
	}
	for _, row := range words {
		for _, run := range row.runs {
			for job, want := range map[string]string{"sending": row.source,
				"listening": row.target, "no job": row.otherwise} {
				l := life.Look{Run: run, Job: "job", Defined: true}
				is := life.State(&journal.Domain{Ran: true}, jobs[job], l).String()
				if want != "~" && is != want {
					t.Errorf("%s, %v, %s: %s, want %s", row.libvirt, run, job, is, want)
				}
			}
		}
	}
	covered := 1 // Gone is told apart by the laws
	for _, row := range words {
		covered += len(row.runs)
	}
	if covered != int(life.ShuttingDown)+1 {
		t.Errorf("%d of %d runs", covered, life.ShuttingDown+1)
	}
}

// TestWhatWasAsked: a domain is what it was asked to become, until it is.
func TestWhatWasAsked(t *testing.T) {
	for _, doing := range []hypervisor.DomainState{hypervisor.Starting, hypervisor.Stopping,
		hypervisor.Rebooting} {
		d := &journal.Domain{Doing: doing}
		for run := life.Gone; run <= life.ShuttingDown; run++ {
			is := life.State(d, nil, life.Look{Run: run})
			want := life.State(&journal.Domain{}, nil, life.Look{Run: run})
			executes := slices.Contains(executing, run)
			switch {
			case executes && (run != life.ShuttingDown || doing == hypervisor.Rebooting):
				want = doing
			case doing == hypervisor.Starting && (run == life.ShutoffUnknown ||
				run == life.ShutoffClean || run == life.ShutoffMigrated):
				want = doing
			}
			if is != want {
				t.Errorf("%v is %v when %v was asked, want %v", run, is, doing, want)
			}
		}
	}
}
