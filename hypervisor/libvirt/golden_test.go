package libvirt_test

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
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
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
	j    *libvirt.Job
}{
	{"no job", nil},
	{"sending", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Sending,
		Last: last(hypervisor.JobSetup)}}},
	{"stranded", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Stranded}}},
	{"kept", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Kept}}},
	{"moved", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Moved}}},
	{"resumed", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Resumed}}},
	{"abandoned", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source,
		Stage: libvirt.Abandoned}}},
	{"left", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.Source, Stage: libvirt.Left}}},
	{"listening", &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.JobTarget,
		Stage: libvirt.Listening}}},
	{"held", &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.JobTarget,
		Stage: libvirt.Listening, Hold: true}}},
	{"arrived", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.JobTarget,
		Stage: libvirt.Arrived}}},
	{"discarded", &libvirt.Job{Job: libvirt.BaseJob{Role: libvirt.JobTarget,
		Stage: libvirt.Discarded}}},
}

// TestStates prints what every domain is in every job, of a VM that ran.
func TestStates(t *testing.T) {
	var b strings.Builder
	row := func(first string, cell func(*libvirt.Job, string) string) {
		fmt.Fprintf(&b, "%-21s", first)
		for _, c := range columns {
			fmt.Fprintf(&b, "%-12s", cell(c.j, c.name))
		}
		b.WriteString("\n")
	}
	row("", func(_ *libvirt.Job, name string) string { return name })
	for run := libvirt.Gone; run <= libvirt.ShuttingDown; run++ {
		row(run.String(), func(j *libvirt.Job, _ string) string {
			l := libvirt.Look{Run: run, Job: "job", Defined: run != libvirt.Gone}
			return libvirt.State(&libvirt.DomainRecord{Domain: backend.Domain{Ran: true}}, j,
				l).String()
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
	runs                      []libvirt.Run
	source, target, otherwise string
}{
	{"shut off (crashed)", []libvirt.Run{libvirt.ShutoffCrashed}, "Crashed", "Crashed", "Crashed"},
	{"shut off (shutdown, destroyed, saved, from snapshot)", []libvirt.Run{libvirt.ShutoffClean},
		"Shutoff", "Shutoff", "Shutoff"},
	{"shut off (failed)", []libvirt.Run{libvirt.ShutoffFailed}, "Shutoff", "Receiving", "Shutoff"},
	{"shut off (migrated)", []libvirt.Run{libvirt.ShutoffMigrated}, "HandedOver", "~", "Shutoff"},
	{"shut off (unknown)", []libvirt.Run{libvirt.ShutoffUnknown}, "Crashed", "Crashed", "Crashed"},
	{"running (any reason)", []libvirt.Run{libvirt.Runs, libvirt.RunsCancelled, libvirt.RunsMigrated},
		"Running", "Running", "Running"},
	{"running (post-copy [failed])", []libvirt.Run{libvirt.RunsPostCopy, libvirt.RunsPostCopyFailed},
		"~", "Running", "Running"},
	{"paused (user)", []libvirt.Run{libvirt.PausedUser}, "Paused", "Paused", "Paused"},
	{"paused (migrating)", []libvirt.Run{libvirt.PausedMigration}, "HandingOver", "Receiving",
		"HandingOver"},
	{"paused (post-copy [failed])", []libvirt.Run{libvirt.PausedPostCopy, libvirt.PausedPostCopyFailed},
		"HandingOver", "~", "HandingOver"},
	{"paused (starting up)", []libvirt.Run{libvirt.PausedStarting}, "Starting", "Receiving",
		"Starting"},
	{"paused (unknown)", []libvirt.Run{libvirt.PausedUnknown}, "HandingOver", "Receiving", "Paused"},
	{"paused (I/O error, watchdog, crashed, snapshot, dump)", []libvirt.Run{libvirt.PausedTrouble},
		"Paused", "Paused", "Paused"},
	{"shutdown, in shutdown", []libvirt.Run{libvirt.ShuttingDown}, "Stopping", "Stopping", "Stopping"},
}

// TestWords: what the package comment says is what is answered.
func TestWords(t *testing.T) {
	jobs := map[string]*libvirt.Job{}
	for _, c := range columns {
		jobs[c.name] = c.j
	}
	for _, row := range words {
		for _, run := range row.runs {
			for job, want := range map[string]string{"sending": row.source,
				"listening": row.target, "no job": row.otherwise} {
				l := libvirt.Look{Run: run, Job: "job", Defined: true}
				is := libvirt.State(&libvirt.DomainRecord{Domain: backend.Domain{Ran: true}},
					jobs[job], l).String()
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
	if covered != int(libvirt.ShuttingDown)+1 {
		t.Errorf("%d of %d runs", covered, libvirt.ShuttingDown+1)
	}
}

// TestWhatWasAsked: a domain is what it was asked to become, until it is.
func TestWhatWasAsked(t *testing.T) {
	for _, doing := range []hypervisor.DomainState{hypervisor.Starting, hypervisor.Stopping,
		hypervisor.Rebooting} {
		d := &libvirt.DomainRecord{Domain: backend.Domain{Doing: doing}}
		for run := libvirt.Gone; run <= libvirt.ShuttingDown; run++ {
			is := libvirt.State(d, nil, libvirt.Look{Run: run})
			want := libvirt.State(&libvirt.DomainRecord{}, nil, libvirt.Look{Run: run})
			executes := slices.Contains(executing, run)
			switch {
			case executes && (run != libvirt.ShuttingDown || doing == hypervisor.Rebooting):
				want = doing
			case doing == hypervisor.Starting && (run == libvirt.ShutoffUnknown ||
				run == libvirt.ShutoffClean || run == libvirt.ShutoffMigrated):
				want = doing
			}
			if is != want {
				t.Errorf("%v is %v when %v was asked, want %v", run, is, doing, want)
			}
		}
	}
}
