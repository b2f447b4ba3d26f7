package qmp_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// corruptions are what can become of a file, and what is said of it.
var corruptions = []struct {
	name  string
	spoil func(t *testing.T, path string)
	want  string // besides the file
}{
	{"an empty file", write(""), ":1: EOF: repair the file"},
	{"garbage", write("\x00\x01garbage"), ":1: invalid character"},
	{"an unfinished object", write("{\n\t\"ID\": \"x\",\n"), ":3: unexpected EOF"},
	{"an unknown field", write("{\n\n\t\"Color\": 1\n}\n"), `: json: unknown field "Color"`},
	{"a field of the wrong type", write("{\n\t\"VM\": {\n\t\t\"CPUs\": \"two\"\n\t}\n}\n"),
		":3: json: cannot unmarshal string"},
	{"a word that no state has",
		write("{\"Rest\": \"Dancing\", \"Last\": {\"Status\": \"Dancing\"}}"), "repair the file"},
	{"a number that is too large", write("{\"VM\": {\"CPUs\": 1e99}}"),
		":1: json: cannot unmarshal"},
	{"an array", write("[]"), ":1: json: cannot unmarshal array"},
	{"nothing at all in JSON", write("null"), "belongs elsewhere"},
	{"an empty object", write("{}"), "belongs elsewhere"},
	{"another VM's record", write("{\"VM\": {\"ID\": \"other\"}}"), "belongs elsewhere"},
	{"two records", func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, append(text, text...), 0o600))
	}, "something after the record"},
	{"a huge file", func(t *testing.T, path string) { must(t, os.Truncate(path, 1<<40)) },
		"more than 1048576 bytes"},
	{"a deep file", write(strings.Repeat("[", 1<<19)), ":1: "},
	{"a directory", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o700))
	}, "is no file"},
	{"a pipe without a writer", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, syscall.Mkfifo(path, 0o600))
	}, "is no file"},
	{"a link to the record", func(t *testing.T, path string) {
		away := filepath.Join(t.TempDir(), "record")
		must(t, os.Rename(path, away))
		must(t, os.Symlink(away, path))
	}, "too many levels of symbolic links"},
}

func write(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
}

// TestCorruptFiles: a record that cannot be read is told of by name, is left where
// it is, and does not keep the others from being read.
func TestCorruptFiles(t *testing.T) {
	for _, row := range corruptions {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			j := open(t, dir)
			for _, id := range []string{"bad", "good"} {
				must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: hypervisor.VMID(id)}}, false))
				must(t, j.PutJob(&qmp.Job{ID: hypervisor.JobID(id)}, false))
			}
			record, job := filepath.Join(j.Dir("bad"), "domain"), glob(t, dir, "jobs/bad.*")[0]
			row.spoil(t, record)
			row.spoil(t, job)
			for range 2 {
				domains, err := j.Domains()
				complains(t, err, record, row.want)
				if len(domains) != 1 || domains[0].VM.ID != "good" {
					t.Errorf("domains: %v", domains)
				}
				jobs, err := j.Jobs(journalNow)
				complains(t, err, job, row.want)
				if len(jobs) != 1 || jobs[0].ID != "good" {
					t.Errorf("jobs: %v", jobs)
				}
			}
			for _, path := range []string{record, job} {
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("it was removed: %v", err)
				}
			}
		})
	}
}

func complains(t *testing.T, err error, path, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s and %q", err, path, want)
	}
}

// TestNothingOfOthersIsRemoved: what people put into the directory stays, and is
// told of.
func TestNothingOfOthersIsRemoved(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}}, false))
	record := filepath.Join(j.Dir("vm"), "domain")
	must(t, os.Rename(record, record+".bad")) // as an operator does on that advice
	long := journalNow.Add(-1000 * 24 * time.Hour)
	notes := filepath.Join(dir, "jobs", "notes.new")
	lost := filepath.Join(dir, "vms", "lost+found", "1")
	must(t, os.Mkdir(filepath.Dir(lost), 0o700))
	for _, path := range []string{notes, lost} {
		must(t, os.WriteFile(path, []byte("mine"), 0o600))
		must(t, os.Chtimes(path, long, long))
	}
	_, err := j.Jobs(journalNow)
	complains(t, err, notes, "repair the file or move it away")
	_, err = j.Domains()
	complains(t, err, filepath.Dir(lost), "move the directory away")
	complains(t, err, j.Dir("vm"), "put back its file domain")
	for _, path := range []string{notes, lost, record + ".bad"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestInterruptedRemove: a VM that is being removed when we die is gone, whatever
// is left of its directory.
func TestInterruptedRemove(t *testing.T) {
	j := open(t, private(t))
	must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}}, false))
	must(t, os.WriteFile(filepath.Join(j.Dir("vm"), "qemu.log"), nil, 0o600))
	must(t, os.Rename(j.Dir("vm"), j.Dir("vm")+".gone"))
	must(t, os.Remove(filepath.Join(j.Dir("vm")+".gone", "domain")))
	must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}, Own: true}, false)) // it is back
	must(t, os.WriteFile(filepath.Join(j.Dir("vm"), "qemu.log"), nil, 0o600))
	domains, err := j.Domains()
	if err != nil || len(domains) != 1 || !domains[0].Own {
		t.Errorf("got %v, %v", domains, err)
	}
	if left := only(t, filepath.Dir(j.Dir("vm"))); left != j.Dir("vm") {
		t.Errorf("left: %s", left)
	}
	must(t, os.Mkdir(j.Dir("vm")+".gone", 0o700))
	must(t, j.Remove("vm"))
	if left := glob(t, filepath.Dir(j.Dir("vm")), "*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestUnkeepableIDs: an id that JSON cannot keep is refused, not changed.
func TestUnkeepableIDs(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	for name, err := range map[string]error{
		"a VM":        j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "\xff"}}, true),
		"a VM's job":  j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}, Job: "\xff"}, true),
		"a job":       j.PutJob(&qmp.Job{ID: "\xff"}, true),
		"a VM of one": j.PutJob(&qmp.Job{ID: "job", VM: hypervisor.VM{ID: "\xff"}}, true),
	} {
		if err == nil || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left := append(glob(t, dir, "vms/*"), glob(t, dir, "jobs/*")...); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// id draws an id that JSON can keep.
var id = rapid.OneOf(rapid.StringN(0, 20, -1),
	rapid.SampledFrom([]string{"", "../x", "\x00", "ü"}))

func times(t *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(t, label) {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, label), 1).UTC()
}

func drawVM(t *rapid.T) hypervisor.VM {
	vm := hypervisor.VM{ID: hypervisor.VMID(id.Draw(t, "vm")),
		Memory: hypervisor.Bytes(rapid.Int64().Draw(t, "memory")),
		CPUs:   rapid.Int().Draw(t, "cpus")}
	if rapid.Bool().Draw(t, "hardware") {
		vm.Hardware = &hypervisor.Hardware{Machine: id.Draw(t, "machine"),
			Pins:      [][]int{{0, 1}, {2}},
			Disks:     []hypervisor.Disk{{Name: "a", Size: hypervisor.GiB, ReadOnly: true}},
			NICs:      []hypervisor.NIC{{MAC: "52:54:00:12:34:56"}},
			DebugPort: rapid.Uint16().Draw(t, "port")}
	}
	return vm
}

func journalDrawJob(t *rapid.T) *qmp.Job {
	j := &qmp.Job{ID: hypervisor.JobID(id.Draw(t, "job")), VM: drawVM(t),
		Role: rapid.SampledFrom([]qmp.Role{"", qmp.Source, qmp.Target}).
			Draw(t, "role"),
		Stage:   qmp.Stage(id.Draw(t, "stage")),
		Refused: rapid.Bool().Draw(t, "refused"), Cold: rapid.Bool().Draw(t, "cold"),
		Started: times(t, "started"), Hold: rapid.Bool().Draw(t, "hold"),
		Token:   id.Draw(t, "token"),
		Stopped: rapid.Bool().Draw(t, "stopped"), Resting: rapid.Bool().Draw(t, "resting"),
		Heard: times(t, "heard"), Target: hypervisor.HostName(id.Draw(t, "host")),
		Address:     hypervisor.Address(id.Draw(t, "address")),
		GuestPaused: rapid.Bool().Draw(t, "paused"),
		PostCopied:  rapid.Bool().Draw(t, "post-copied"),
		Cancelled:   rapid.Bool().Draw(t, "cancelled"), Released: rapid.Bool().Draw(t, "released"),
		Acknowledged: rapid.Bool().Draw(t, "acknowledged"),
		Options: hypervisor.TransferOptions{Method: id.Draw(t, "method"),
			Downtime: time.Duration(rapid.Int64().Draw(t, "downtime")),
			PostCopy: rapid.Bool().Draw(t, "post-copy")},
		Last: hypervisor.Progress{Error: id.Draw(t, "error"), Started: times(t, "last"),
			Status: hypervisor.JobStatus(rapid.IntRange(0, 7).Draw(t, "status"))}}
	if rapid.Bool().Draw(t, "prepared") {
		j.Prepared = &qmp.Prepared{URI: id.Draw(t, "uri"), Disks: id.Draw(t, "disks"),
			Options: j.Options}
	}
	return j
}

// TestRoundTrip: what was put is what is read, after a restart, too.
func TestRoundTrip(t *testing.T) {
	dir := private(t)
	rapid.Check(t, func(t *rapid.T) {
		j, err := qmp.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		d := &qmp.DomainRecord{VM: drawVM(t), Own: rapid.Bool().Draw(t, "own"),
			Rest:       hypervisor.DomainState(rapid.IntRange(0, 11).Draw(t, "rest")),
			Job:        hypervisor.JobID(id.Draw(t, "names")),
			Unresolved: rapid.Bool().Draw(t, "unresolved"), Boot: id.Draw(t, "boot"),
			Ran:    rapid.Bool().Draw(t, "ran"),
			Ending: rapid.Bool().Draw(t, "ending"), Paused: rapid.Bool().Draw(t, "paused"),
			Doing: hypervisor.DomainState(rapid.IntRange(0, 11).Draw(t, "doing")),
			By:    times(t, "by"), Measuring: times(t, "measuring"),
			DirtyRate: hypervisor.Bandwidth(rapid.Int64().Draw(t, "rate")),
			Measured:  times(t, "measured")}
		job := journalDrawJob(t)
		err = first(j.Put(d, false), j.PutJob(job, rapid.Bool().Draw(t, "durable")))
		if err != nil {
			t.Fatal(err)
		}
		domains, err := j.Domains()
		if diff := cmp.Diff([]*qmp.DomainRecord{d}, domains); diff != "" || err != nil {
			t.Errorf("domain (-want +got): %v\n%s", err, diff)
		}
		jobs, err := j.Jobs(time.Now())
		if diff := cmp.Diff([]*qmp.Job{job}, jobs); diff != "" || err != nil {
			t.Errorf("job (-want +got): %v\n%s", err, diff)
		}
		if err := first(j.Remove(d.VM.ID), j.RemoveJob(job.ID)); err != nil {
			t.Fatal(err)
		}
	})
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// FuzzReading: whatever is in a file, it is read as what it says, or told of.
func FuzzReading(f *testing.F) {
	f.Add([]byte(`{"VM": {"ID": "vm", "Memory": 1, "Hardware": null}, "Rest": "Shutoff"}`))
	f.Add([]byte(`{"ID": "vm", "Role": "source", "Last": {"Status": "Active"}}`))
	f.Add([]byte("{\"VM\":{\"ID\":\"vm\"}}{"))
	f.Add([]byte("\x00"))
	dir := private(f)
	j := open(f, dir)
	must(f, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}}, false))
	must(f, j.PutJob(&qmp.Job{ID: "vm"}, false))
	record, job := filepath.Join(j.Dir("vm"), "domain"), only(f, filepath.Join(dir, "jobs"))
	f.Fuzz(func(t *testing.T, text []byte) {
		must(t, os.WriteFile(record, text, 0o600))
		must(t, os.WriteFile(job, text, 0o600))
		domains, err := j.Domains()
		if (err == nil) != (len(domains) == 1 && domains[0].VM.ID == "vm") ||
			err != nil && !strings.Contains(err.Error(), record) {
			t.Errorf("%q: got %v, %v", text, domains, err)
		}
		jobs, err := j.Jobs(time.Now())
		if (err == nil) != (len(jobs) == 1 && jobs[0].ID == "vm") ||
			err != nil && !strings.Contains(err.Error(), job) {
			t.Errorf("%q: got %v, %v", text, jobs, err)
		}
	})
}
