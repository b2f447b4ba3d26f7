package libvirt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/durable"
)

// journalNow is when the jobs of these tests are read.
var journalNow = time.Now()

func open(t testing.TB, dir string) *libvirt.Journal {
	t.Helper()
	j, err := libvirt.Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// private is a directory that is not there yet.
func private(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") }

// vmFile and jobFile are where a record is.
func vmFile(dir, id string) string { return filepath.Join(dir, "vms", durable.Name(id)) }

func jobFile(dir, id string) string { return filepath.Join(dir, "jobs", durable.Name(id)) }

func vm(id string) *libvirt.DomainRecord {
	return &libvirt.DomainRecord{VM: hypervisor.VM{ID: hypervisor.VMID(id)}}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	return paths
}

// TestLock: a journal has one owner at a time.
func TestLock(t *testing.T) {
	dir := private(t)
	first := open(t, dir)
	_, err := libvirt.Open(dir)
	want := durable.LockedError{Dir: dir, Owner: strconv.Itoa(os.Getpid())}
	if got, locked := errors.AsType[*durable.LockedError](err); !locked || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	must(t, first.Close())
	open(t, dir)
}

func TestOpenRefuses(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"a directory that others can enter", func(t *testing.T, dir string) {
			must(t, os.Chmod(dir, 0o755))
		}, "chmod 0700"},
		{"a part that others can enter", func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "jobs"), 0o711))
		}, "jobs has mode 0711"},
		{"a file instead of a part", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "vms"), nil, 0o600))
		}, "not a directory"},
		{"a directory instead of the lock", func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700))
		}, "is a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			must(t, os.Mkdir(dir, 0o700))
			row.spoil(t, dir)
			j, err := libvirt.Open(dir)
			if err == nil {
				_ = j.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %q, want the directory and %q", err, row.want)
			}
		})
	}
}

// TestCrashWhileWriting: a process dies at every moment of replacing a file. The
// old one, or nothing, is what is read, and the rest is swept away.
func TestCrashWhileWriting(t *testing.T) {
	for _, text := range []string{"", "{", "{\n\t\"VM\": {", "not JSON"} {
		dir := private(t)
		j := open(t, dir)
		old := vm("ns/web")
		old.Ran = true
		must(t, j.Put(old, true))
		must(t, j.PutJob(&libvirt.Job{ID: "job", Role: libvirt.Source}, true))
		for _, path := range []string{vmFile(dir, "ns/web"), vmFile(dir, "ns/lost"),
			jobFile(dir, "job"), jobFile(dir, "lost")} {
			must(t, os.WriteFile(path+durable.Unfinished, []byte(text), 0o600))
		}
		must(t, j.Close())

		j = open(t, dir)
		domains, err := j.Domains()
		if diff := cmp.Diff([]*libvirt.DomainRecord{old}, domains); diff != "" || err != nil {
			t.Errorf("after %q (-want +got): %v\n%s", text, err, diff)
		}
		jobs, err := j.Jobs(journalNow)
		if err != nil || len(jobs) != 1 || jobs[0].ID != "job" {
			t.Errorf("after %q: jobs %v, %v", text, jobs, err)
		}
		want := []string{jobFile(dir, "job"), vmFile(dir, "ns/web")}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", text, diff)
		}
	}
}

// TestRemove: forgetting a VM forgets nothing else, and may be repeated.
func TestRemove(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	must(t, j.Put(vm("a"), false))
	must(t, j.Put(vm("b"), false))
	must(t, j.PutJob(&libvirt.Job{ID: "a"}, false))
	for range 2 {
		must(t, j.Remove("a"))
		must(t, j.Remove("never was"))
	}
	want := []string{jobFile(dir, "a"), vmFile(dir, "b")}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, os.Remove(vmFile(dir, "b")))
	must(t, os.MkdirAll(filepath.Join(vmFile(dir, "b"), "full"), 0o700))
	if err := j.Remove("b"); err == nil {
		t.Error("what could not be removed was said to be")
	}
}

// TestOldJobs: a job is forgotten 90 days after it was last written, unless a domain names it, when a
// week of files says so, and not because the clock is far in the future.
func TestOldJobs(t *testing.T) {
	const day = 24 * time.Hour
	dir := private(t)
	j := open(t, dir)
	ages := map[string]time.Duration{"new": 0, "known": 90*day - time.Hour, "old": 97 * day,
		"from a clock that was ahead": -1000 * day, "named": 1000 * day}
	for i := range 6 {
		ages[fmt.Sprintf("of day %d", i+1)] = time.Duration(i+1) * day
	}
	want := map[hypervisor.JobID]bool{}
	for id, age := range ages {
		want[hypervisor.JobID(id)] = id != "old"
		must(t, j.PutJob(&libvirt.Job{ID: hypervisor.JobID(id)}, false))
		must(t, os.Chtimes(jobFile(dir, id), journalNow.Add(-age), journalNow.Add(-age)))
	}
	delete(want, "old")
	d := vm("vm")
	d.Job = "named"
	must(t, j.Put(d, false))
	must(t, os.Chtimes(vmFile(dir, "vm"), journalNow.Add(-1000*day), journalNow.Add(-1000*day)))
	for _, now := range []time.Time{journalNow, journalNow.Add(99 * 365 * day)} {
		jobs, err := j.Jobs(now)
		got := map[hypervisor.JobID]bool{}
		for _, job := range jobs {
			got[job.ID] = true
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("(-want +got): %v\n%s", err, diff)
		}
	}
	if _, err := os.Stat(jobFile(dir, "old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an old job is left: %v", err)
	}
	if domains, err := j.Domains(); err != nil || len(domains) != 1 {
		t.Errorf("a domain is never too old: %v, %v", domains, err)
	}
}

// corruptions are what can become of a file, and what is said of it. How a record is
// read is tested elsewhere.
var corruptions = []struct {
	name, text, want string
}{
	{"an empty file", "", ":1: EOF: repair the file"},
	{"garbage", "\x00\x01garbage", ":1: invalid character"},
	{"an unfinished object", "{\n\t\"ID\": \"x\",\n", ":3: unexpected EOF"},
	{"an unknown field", "{\n\n\t\"Color\": 1\n}\n", `: json: unknown field "Color"`},
	{"a field of the wrong type", "{\n\t\"VM\": {\n\t\t\"CPUs\": \"two\"\n\t}\n}\n",
		":3: json: cannot unmarshal string"},
	{"an array", "[]", ":1: json: cannot unmarshal array"},
	{"nothing at all in JSON", "null", `ID: it is "", which belongs elsewhere`},
	{"an empty object", "{}", `ID: it is "", which belongs elsewhere`},
	{"another VM's record", `{"VM": {"ID": "good"}}`, "which belongs elsewhere"},
	{"two records", "{}{}", "something after the record"},
}

// TestCorruptFiles: a record that cannot be read is told of by name, is left where
// it is, and does not keep the others from being read.
func TestCorruptFiles(t *testing.T) {
	for _, row := range corruptions {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			j := open(t, dir)
			for _, id := range []string{"bad", "good"} {
				must(t, j.Put(vm(id), false))
				must(t, j.PutJob(&libvirt.Job{ID: hypervisor.JobID(id)}, false))
			}
			bad := []string{vmFile(dir, "bad"), jobFile(dir, "bad")}
			for _, path := range bad {
				must(t, os.WriteFile(path, []byte(row.text), 0o600))
			}
			for range 2 {
				domains, err := j.Domains()
				complains(t, err, bad[0], row.want)
				if len(domains) == 0 || domains[len(domains)-1].VM.ID != "good" {
					t.Errorf("domains: %v", domains)
				}
				jobs, err := j.Jobs(journalNow)
				complains(t, err, bad[1], row.want)
				if len(jobs) == 0 || jobs[len(jobs)-1].ID != "good" {
					t.Errorf("jobs: %v", jobs)
				}
			}
			for _, path := range bad {
				if text, err := os.ReadFile(path); err != nil || string(text) != row.text {
					t.Errorf("it was changed: %q, %v", text, err)
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

// TestMisplacedRecords: what is in another one's file is told of.
func TestMisplacedRecords(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	must(t, j.Put(vm("a"), false))
	must(t, j.PutJob(&libvirt.Job{ID: "a"}, false))
	must(t, os.Rename(vmFile(dir, "a"), vmFile(dir, "b")))
	must(t, os.Rename(jobFile(dir, "a"), jobFile(dir, "b")))
	_, err := j.Domains()
	complains(t, err, vmFile(dir, "b"), `VM.ID: it is "a", which belongs elsewhere`)
	_, err = j.Jobs(journalNow)
	complains(t, err, jobFile(dir, "b"), `ID: it is "a", which belongs elsewhere`)
}

// TestNothingOfOthersIsRemoved: what people put into the directory stays, and is
// told of.
func TestNothingOfOthersIsRemoved(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	notes := []string{filepath.Join(dir, "vms", "notes.new"), filepath.Join(dir, "jobs", "notes")}
	for _, path := range notes {
		must(t, os.WriteFile(path, []byte("mine"), 0o600))
		long := journalNow.Add(-1000 * 24 * time.Hour)
		must(t, os.Chtimes(path, long, long))
	}
	_, err := j.Domains()
	complains(t, err, notes[0], "repair the file or move it away")
	_, err = j.Jobs(journalNow)
	complains(t, err, notes[1], "repair the file or move it away")
	if diff := cmp.Diff([]string{notes[1], notes[0]}, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnkeepableIDs: an id that JSON cannot keep is refused, not changed.
func TestUnkeepableIDs(t *testing.T) {
	dir := private(t)
	j := open(t, dir)
	d := vm("vm")
	d.Job = "\xff"
	for name, err := range map[string]error{
		"a VM":        j.Put(vm("\xff"), true),
		"a VM's job":  j.Put(d, true),
		"a job":       j.PutJob(&libvirt.Job{ID: "\xff"}, true),
		"a VM of one": j.PutJob(&libvirt.Job{ID: "job", VM: vm("\xff").VM}, true),
	} {
		if err == nil || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
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
			j := &libvirt.Job{Role: role, Stage: stage}
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
			Pins:  [][]int{{0, 1}, {2}},
			Disks: []hypervisor.Disk{{Name: "a", Size: hypervisor.GiB, ReadOnly: true}},
			NICs:  []hypervisor.NIC{{MAC: "52:54:00:12:34:56"}}}
	}
	return vm
}

func drawDomain(t *rapid.T) *libvirt.DomainRecord {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return &libvirt.DomainRecord{VM: drawVM(t), Name: id.Draw(t, "name"), UUID: id.Draw(t, "uuid"),
		Job:        hypervisor.JobID(id.Draw(t, "names")),
		Unresolved: flag("unresolved"), Ran: flag("ran"), Crashed: flag("crashed"),
		Autostart: flag("autostart"),
		Doing:     hypervisor.DomainState(rapid.IntRange(0, 11).Draw(t, "doing")),
		By:        times(t, "by"), Asked: times(t, "asked"), Measuring: times(t, "measuring"),
		DirtyRate: hypervisor.Bandwidth(rapid.Int64().Draw(t, "rate")),
		Measured:  times(t, "measured")}
}

func drawJob(t *rapid.T) *libvirt.Job {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return &libvirt.Job{ID: hypervisor.JobID(id.Draw(t, "job")), VM: drawVM(t),
		Role: rapid.SampledFrom([]libvirt.Role{libvirt.NoRole, libvirt.Source,
			libvirt.JobTarget}).Draw(t, "role"),
		Stage:   libvirt.Stage(id.Draw(t, "stage")),
		Refused: flag("refused"), Cold: flag("cold"), Hold: flag("hold"), Seen: flag("seen"),
		Token: id.Draw(t, "token"), Started: times(t, "started"),
		Target:      hypervisor.HostName(id.Draw(t, "host")),
		Address:     hypervisor.Address(id.Draw(t, "address")),
		GuestPaused: flag("paused"), Cancelled: flag("cancelled"),
		PostCopied: flag("post-copied"), Stopped: flag("stopped"), Resting: flag("resting"),
		Options: hypervisor.TransferOptions{Method: id.Draw(t, "method"),
			Downtime: time.Duration(rapid.Int64().Draw(t, "downtime")),
			PostCopy: flag("post-copy")},
		Last: hypervisor.Progress{Error: id.Draw(t, "error"), Started: times(t, "last"),
			Status: hypervisor.JobStatus(rapid.IntRange(0, 7).Draw(t, "status"))}}
}

// TestRoundTrip: what was put is what is read, after a restart, too.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), "journal")
		d, job := drawDomain(rt), drawJob(rt)
		synced := rapid.Bool().Draw(rt, "synced")
		for range 2 { // replaced by itself, too
			j, err := libvirt.Open(dir)
			must(t, err)
			must(t, errors.Join(j.Put(d, synced), j.PutJob(job, synced), j.Close()))
		}
		j, err := libvirt.Open(dir)
		must(t, err)
		defer j.Close()
		domains, err := j.Domains()
		if diff := cmp.Diff([]*libvirt.DomainRecord{d}, domains); diff != "" || err != nil {
			rt.Errorf("domain (-want +got): %v\n%s", err, diff)
		}
		jobs, err := j.Jobs(time.Now())
		if diff := cmp.Diff([]*libvirt.Job{job}, jobs); diff != "" || err != nil {
			rt.Errorf("job (-want +got): %v\n%s", err, diff)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
