package libvirt_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// TestRoundTrip: what was put is what is read, after a restart, too.
func TestRoundTrip(t *testing.T) {
	backendtest.RoundTrip(t, libvirt.Open, func(t *rapid.T) (*libvirt.DomainRecord, *libvirt.Job) {
		flag := func(name string) bool { return backendtest.Flag(t, name) }
		return &libvirt.DomainRecord{Domain: backendtest.Domain(t),
				Name: backendtest.ID.Draw(t, "name"), UUID: backendtest.ID.Draw(t, "uuid"),
				Crashed: flag("crashed"), Autostart: flag("autostart"),
				Boot: rapid.IntRange(-1, 9).Draw(t, "boot")},
			&libvirt.Job{Job: backendtest.Job[libvirt.Stage](t), Seen: flag("seen"),
				Unborn: flag("unborn"), Aborted: flag("aborted"), Again: flag("again"),
				Stopped: flag("stopped"), Resting: flag("resting")}
	})
}

// TestRecordedJournal: records that an earlier version has written are read.
func TestRecordedJournal(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 5, time.UTC)
	vm := hypervisor.VM{ID: "ns/web", Memory: hypervisor.GiB, CPUs: 2}
	options := hypervisor.TransferOptions{Bandwidth: 9, Downtime: time.Second, PostCopy: true}
	backendtest.Recorded(t, libvirt.Open, &libvirt.DomainRecord{
		Domain: backend.Domain{VM: vm, Job: "job", Unresolved: true, Ran: true,
			Doing: hypervisor.Stopping, By: at, Asked: at, Measuring: at, DirtyRate: 7,
			Measured: at},
		Name: "ns_web", UUID: "uuid", Crashed: true, Autostart: true},
		&libvirt.Job{Job: libvirt.BaseJob{ID: "job", VM: vm, Role: backend.Target,
			Stage: libvirt.Listening, Refused: true, Started: at, Cold: true, Hold: true,
			Last: hypervisor.Progress{Job: "job", Status: hypervisor.JobActive,
				Total: hypervisor.GiB, Started: at},
			Token: "token", Target: "n2", Address: "x", Options: options, GuestPaused: true,
			Cancelled: true, PostCopied: true},
			Seen: true, Unborn: true, Aborted: true, Again: true, Stopped: true, Resting: true})
}

// TestContinues: saved memory is continued by the start that follows the last one here, and by none that may
// follow one elsewhere. A caller that does not count continues it.
func TestContinues(t *testing.T) {
	for _, row := range []struct {
		last, boot int
		want       bool
	}{{0, 0, true}, {5, 0, true}, {0, 1, true}, {5, 6, true}, {5, 7, false}, {5, 5, false}, {5, 1, false},
		{0, 2, false}, {libvirt.Unsure, 1, false}, {libvirt.Unsure, 6, false}} {
		if got := libvirt.Continues(row.last, row.boot); got != row.want {
			t.Errorf("start %d after %d continues: %v", row.boot, row.last, got)
		}
	}
}

// TestLiveStages: only a stage of a transfer under way is live, and who sends is not
// who receives.
func TestLiveStages(t *testing.T) {
	for _, stage := range []libvirt.Stage{"", libvirt.Listening, libvirt.Arrived,
		libvirt.Discarded, libvirt.Sending, libvirt.Stranded, libvirt.Kept, libvirt.Moved,
		libvirt.Resumed, libvirt.Abandoned, libvirt.Left} {
		live := stage == libvirt.Sending || stage == libvirt.Listening
		if stage.Live() != live {
			t.Errorf("%q is live: %v", stage, stage.Live())
		}
		for _, role := range []libvirt.Role{libvirt.NoRole, libvirt.Source, libvirt.JobTarget} {
			j := &libvirt.Job{Job: libvirt.BaseJob{Role: role, Stage: stage}}
			sends := role == libvirt.Source && stage == libvirt.Sending
			receives := role == libvirt.JobTarget && stage == libvirt.Listening
			if j.Sends() != sends || j.Receives() != receives {
				t.Errorf("%q %q sends: %v, receives: %v", role, stage, j.Sends(), j.Receives())
			}
		}
	}
	if none := (*libvirt.Job)(nil); none.Sends() || none.Receives() {
		t.Error("no job sends or receives")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
