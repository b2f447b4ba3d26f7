package qmp_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// TestRoundTrip: what was put is what is read, after a restart, too.
func TestRoundTrip(t *testing.T) {
	backendtest.RoundTrip(t, qmp.Open, func(t *rapid.T) (*qmp.DomainRecord, *qmp.Job) {
		flag := func(name string) bool { return backendtest.Flag(t, name) }
		d := &qmp.DomainRecord{Domain: backendtest.Domain(t), Own: flag("own"),
			Rest: backendtest.State(t, "rest"), Boot: backendtest.ID.Draw(t, "boot"),
			Ending: flag("ending"), Leaving: flag("leaving"), Paused: flag("operator paused")}
		if flag("before") {
			d.Before = &qmp.DomainRecord{Domain: backendtest.Domain(t)}
		}
		j := &qmp.Job{Job: backendtest.Job[qmp.Stage](t), Stopped: flag("stopped"),
			Resting: flag("resting"), Heard: backendtest.Time(t, "heard"),
			Source: hypervisor.HostName(backendtest.ID.Draw(t, "source")),
			Parked: backendtest.Time(t, "parked"), Released: flag("released"),
			Acknowledged: flag("acknowledged")}
		if flag("prepared") {
			j.Prepared = &qmp.Prepared{URI: backendtest.ID.Draw(t, "uri"),
				Disks: backendtest.ID.Draw(t, "disks"), Options: backendtest.Options(t)}
		}
		return d, j
	})
}

// TestRecordedJournal: records that an earlier version has written are read.
func TestRecordedJournal(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 5, time.UTC)
	vm := hypervisor.VM{ID: "ns/web", Memory: hypervisor.GiB, CPUs: 2}
	options := hypervisor.TransferOptions{Bandwidth: 9, Downtime: time.Second, PostCopy: true}
	backendtest.Recorded(t, qmp.Open, &qmp.DomainRecord{
		Domain: backend.Domain{VM: vm, Job: "job", Unresolved: true, Ran: true,
			Doing: hypervisor.Stopping, By: at, Asked: at, Measuring: at, DirtyRate: 7,
			Measured: at},
		Own: true, Rest: hypervisor.Shutoff, Boot: "boot", Ending: true, Leaving: true,
		Paused:  true,
		Before:  &qmp.DomainRecord{Domain: backend.Domain{VM: vm}, Rest: hypervisor.Crashed},
		Growing: []hypervisor.Disk{{Name: "a", Size: 512}}},
		&qmp.Job{Job: qmp.BaseJob{ID: "job", VM: vm, Role: backend.Target,
			Stage: qmp.Activating, Refused: true, Started: at, Cold: true, Hold: true,
			Last: hypervisor.Progress{Job: "job", Status: hypervisor.JobActive,
				Total: hypervisor.GiB, Started: at},
			Token: "token", Target: "n2", Address: "qmp://x", Options: options, GuestPaused: true,
			Cancelled: true, PostCopied: true},
			Source: "n1", Prepared: &qmp.Prepared{Options: options, URI: "uri", Disks: "disks"},
			Stopped: true, Resting: true, Heard: at, Parked: at, Released: true,
			Acknowledged: true})
}
