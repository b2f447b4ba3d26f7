package backendtest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// ID draws an id that JSON can keep.
var ID = rapid.OneOf(rapid.StringN(0, 20, -1),
	rapid.SampledFrom([]string{"", "../x", "\x00", "ü"}))

// Flag draws a yes or a no.
func Flag(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

// Time draws a time, or none.
func Time(t *rapid.T, label string) time.Time {
	if Flag(t, label) {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, label), 1).UTC()
}

// VM draws a VM, which need not make sense.
func VM(t *rapid.T) hypervisor.VM {
	vm := hypervisor.VM{ID: hypervisor.VMID(ID.Draw(t, "vm")),
		Memory: hypervisor.Bytes(rapid.Int64().Draw(t, "memory")),
		CPUs:   rapid.Int().Draw(t, "cpus")}
	if Flag(t, "hardware") {
		vm.Hardware = &hypervisor.Hardware{Machine: ID.Draw(t, "machine"),
			Pins:      [][]int{{0, 1}, {2}},
			Disks:     []hypervisor.Disk{{Name: "a", Size: hypervisor.GiB, ReadOnly: true}},
			NICs:      []hypervisor.NIC{{MAC: "52:54:00:12:34:56"}},
			DebugPort: rapid.Uint16().Draw(t, "port")}
	}
	return vm
}

// Domain draws what every backend keeps of a VM.
func Domain(t *rapid.T) backend.Domain {
	return backend.Domain{VM: VM(t), Job: hypervisor.JobID(ID.Draw(t, "names")),
		Unresolved: Flag(t, "unresolved"), Ran: Flag(t, "ran"), Doing: State(t, "doing"),
		By: Time(t, "by"), Asked: Time(t, "asked"), Measuring: Time(t, "measuring"),
		DirtyRate: hypervisor.Bandwidth(rapid.Int64().Draw(t, "rate")),
		Measured:  Time(t, "measured")}
}

// State draws a state of a domain.
func State(t *rapid.T, label string) hypervisor.DomainState {
	return hypervisor.DomainState(rapid.IntRange(0, 11).Draw(t, label))
}

// Job draws what every backend keeps of a migration.
func Job[S ~string](t *rapid.T) backend.Job[S] {
	roles := []backend.Role{backend.NoRole, backend.Source, backend.Target}
	return backend.Job[S]{ID: hypervisor.JobID(ID.Draw(t, "job")), VM: VM(t),
		Role: rapid.SampledFrom(roles).Draw(t, "role"), Stage: S(ID.Draw(t, "stage")),
		Refused: Flag(t, "refused"), Started: Time(t, "started"), Cold: Flag(t, "cold"),
		Last: hypervisor.Progress{Error: ID.Draw(t, "error"), Started: Time(t, "last"),
			Status: hypervisor.JobStatus(rapid.IntRange(0, 7).Draw(t, "status"))},
		Hold: Flag(t, "hold"), Token: ID.Draw(t, "token"),
		Target:  hypervisor.HostName(ID.Draw(t, "host")),
		Address: hypervisor.Address(ID.Draw(t, "address")), Options: Options(t),
		GuestPaused: Flag(t, "paused"), Cancelled: Flag(t, "cancelled"),
		PostCopied: Flag(t, "post-copied")}
}

// Options draws options of a transfer.
func Options(t *rapid.T) hypervisor.TransferOptions {
	return hypervisor.TransferOptions{Method: ID.Draw(t, "method"),
		Downtime: time.Duration(rapid.Int64().Draw(t, "downtime")), PostCopy: Flag(t, "post-copy")}
}

// A Journal is a backend's.
type Journal[D backend.DomainRecord, J backend.JobRecord] interface {
	io.Closer
	Put(d D, synced bool) error
	PutJob(j J, synced bool) error
	Domains() ([]D, error)
	Jobs(now time.Time) ([]J, error)
	Path(kind, id string) string
}

// RoundTrip checks that the records that are put are those that are read, after a restart, too.
func RoundTrip[D backend.DomainRecord, J backend.JobRecord, K Journal[D, J]](t *testing.T,
	open func(dir string) (K, error), draw func(*rapid.T) (D, J)) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), "journal")
		d, job := draw(rt)
		synced := Flag(rt, "synced")
		for range 2 { // replaced by itself, too
			j, err := open(dir)
			if err == nil {
				err = errors.Join(j.Put(d, synced), j.PutJob(job, synced), j.Close())
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		reads(rt, dir, open, d, job)
	})
}

// Recorded checks that the files domain and job of testdata/journal, which an earlier version has
// written, are read as the records d and job, of the VM "ns/web" and the job "job".
func Recorded[D backend.DomainRecord, J backend.JobRecord, K Journal[D, J]](t *testing.T,
	open func(dir string) (K, error), d D, job J) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := open(dir)
	if err == nil {
		err = errors.Join(j.Put(d, false), j.PutJob(job, false))
	}
	for path, name := range map[string]string{j.Path("vms", "ns/web"): "domain",
		j.Path("jobs", "job"): "job"} {
		if i, errStat := os.Stat(path); errStat == nil && i.IsDir() {
			path = filepath.Join(path, name)
		}
		text, errRead := os.ReadFile(filepath.Join("testdata", "journal", name))
		err = errors.Join(err, errRead, os.WriteFile(path, text, 0o600))
	}
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	reads(t, dir, open, d, job)
}

// reads checks what is in a journal.
func reads[D backend.DomainRecord, J backend.JobRecord, K Journal[D, J]](t rapid.TB, dir string,
	open func(dir string) (K, error), d D, job J) {
	j, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	domains, err := j.Domains()
	if diff := cmp.Diff([]D{d}, domains); diff != "" || err != nil {
		t.Errorf("domain (-want +got): %v\n%s", err, diff)
	}
	jobs, err := j.Jobs(time.Now())
	if diff := cmp.Diff([]J{job}, jobs); diff != "" || err != nil {
		t.Errorf("job (-want +got): %v\n%s", err, diff)
	}
}
