package backend_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	cmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/durable"
)

// A domain and a job are the records of a backend that keeps little of its own.
type (
	domain struct {
		backend.Domain
		Own  bool
		Rest hypervisor.DomainState
	}
	job struct {
		backend.Job[string]
		Source hypervisor.HostName
	}
	journal = backend.Journal[*domain, *job]
)

// layouts are how the backends arrange their directories.
var layouts = map[string]backend.Layout{"files": {},
	"directories": {Own: "QEMU", More: []string{"disks"}}}

// eachLayout runs a test with each of them.
func eachLayout(t *testing.T, test func(*testing.T, *kept)) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			test(t, &kept{t: t, dir: dir, layout: layout})
		})
	}
}

// kept is the directory of a journal.
type kept struct {
	t      testing.TB
	dir    string
	layout backend.Layout
}

func open(dir string, l backend.Layout) (*journal, error) {
	return backend.OpenJournal(dir, l, func() *domain { return new(domain) },
		func() *job { return new(job) })
}

func (k *kept) open() *journal {
	k.t.Helper()
	j, err := open(k.dir, k.layout)
	must(k.t, err)
	k.t.Cleanup(func() { _ = j.Close() })
	return j
}

// vm is the file of a VM's record.
func (k *kept) vm(id string) string {
	path := filepath.Join(k.dir, "vms", durable.Name(id))
	if k.layout.Own != "" {
		path = filepath.Join(path, "domain")
	}
	return path
}

// job is the file of a job's record.
func (k *kept) job(id string) string { return filepath.Join(k.dir, "jobs", durable.Name(id)) }

// files are all that is below vms and jobs.
func (k *kept) files() []string {
	k.t.Helper()
	var all []string
	for _, pattern := range []string{"vms/*", "vms/*/*", "jobs/*"} {
		paths, err := filepath.Glob(filepath.Join(k.dir, pattern))
		must(k.t, err)
		for _, path := range paths {
			if i, err := os.Lstat(path); err == nil && !i.IsDir() {
				all = append(all, path)
			}
		}
	}
	return all
}

func (k *kept) left(want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.files()); diff != "" {
		k.t.Errorf("files (-want +got):\n%s", diff)
	}
}

func vm(id string) *domain {
	return &domain{Domain: backend.Domain{VM: hypervisor.VM{ID: hypervisor.VMID(id)}}}
}

func of(id string) *job { return &job{Job: backend.Job[string]{ID: hypervisor.JobID(id)}} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func complains(t testing.TB, err error, path, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s and %q", err, path, want)
	}
}

// journalNow is when the jobs of these tests are read.
var journalNow = time.Now()

// long ago every record is too old.
var long = journalNow.Add(-1000 * 24 * time.Hour)

// TestLock: a journal has one owner at a time; what a lock is, is tested elsewhere.
func TestLock(t *testing.T) {
	eachLayout(t, func(t *testing.T, k *kept) {
		first := k.open()
		_, err := open(k.dir, k.layout)
		want := durable.LockedError{Dir: k.dir, Owner: strconv.Itoa(os.Getpid())}
		if got, locked := errors.AsType[*durable.LockedError](err); !locked || *got != want {
			t.Errorf("got %v, want %v", err, &want)
		}
		must(t, first.Close())
		k.open()
	})
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
			must(t, os.Mkdir(filepath.Join(dir, "vms"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "vms"), 0o711))
		}, "vms has mode 0711"},
		{"a file instead of a part", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600))
		}, "not a directory"},
		{"a link instead of a part", func(t *testing.T, dir string) {
			must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "jobs")))
		}, "jobs is no directory"},
		{"a directory instead of the lock", func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700))
		}, "is a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, k *kept) {
				must(t, os.Mkdir(k.dir, 0o700))
				row.spoil(t, k.dir)
				j, err := open(k.dir, k.layout)
				if err == nil {
					_ = j.Close()
					t.Fatal("opened")
				}
				complains(t, err, k.dir, row.want)
			})
		})
	}
}

// TestCrashWhileWriting: a process dies at every moment of replacing a file. The
// old one, or nothing, is what is read, and the rest is swept away.
func TestCrashWhileWriting(t *testing.T) {
	for _, text := range []string{"", "{", "{\n\t\"VM\": {", "not JSON"} {
		eachLayout(t, func(t *testing.T, k *kept) {
			j := k.open()
			old := vm("ns/web")
			old.Own = true
			must(t, j.Put(old, true))
			must(t, j.PutJob(of("job"), true))
			if k.layout.Own != "" { // its process died before its record was there
				must(t, os.Mkdir(filepath.Dir(k.vm("ns/lost")), 0o700))
			}
			for _, path := range []string{k.vm("ns/web"), k.vm("ns/lost"), k.job("job"),
				k.job("lost")} {
				must(t, os.WriteFile(path+durable.Unfinished, []byte(text), 0o600))
			}
			must(t, j.Close())

			j = k.open()
			domains, err := j.Domains()
			if diff := cmp.Diff([]*domain{old}, domains); diff != "" || err != nil {
				t.Errorf("after %q (-want +got): %v\n%s", text, err, diff)
			}
			jobs, err := j.Jobs(journalNow)
			if err != nil || len(jobs) != 1 || jobs[0].ID != "job" {
				t.Errorf("after %q: jobs %v, %v", text, jobs, err)
			}
			changed := vm("ns/web")
			changed.Ran = true
			must(t, j.Put(changed, false)) // over the unfinished one
			domains, err = j.Domains()
			if diff := cmp.Diff([]*domain{changed}, domains); diff != "" || err != nil {
				t.Errorf("after %q (-want +got): %v\n%s", text, err, diff)
			}
			k.left(k.vm("ns/web"), k.job("job"))
			if dirs, err := os.ReadDir(j.Below("vms")); err != nil || len(dirs) != 1 {
				t.Errorf("after %q: the directory of a VM that never was is left: %v, %v", text,
					dirs, err)
			}
		})
	}
}

// TestRemove: forgetting a VM removes what is in its directory and nothing else, and may be
// repeated.
func TestRemove(t *testing.T) {
	eachLayout(t, func(t *testing.T, k *kept) {
		j := k.open()
		must(t, j.Put(vm("a"), false))
		must(t, j.Put(vm("b"), false))
		must(t, j.PutJob(of("a"), false))
		if k.layout.Own != "" {
			must(t, os.WriteFile(filepath.Join(filepath.Dir(k.vm("a")), "qemu.log"), nil, 0o600))
			must(t, os.MkdirAll(j.Path("disks", "a"), 0o700))
		}
		for range 2 {
			must(t, j.Remove("a"))
			must(t, j.Remove("never was"))
			must(t, j.RemoveJob("never was"))
		}
		k.left(k.vm("b"), k.job("a"))
		if k.layout.Own != "" {
			if _, err := os.Stat(j.Path("disks", "a")); err != nil {
				t.Error(err)
			}
			return
		}
		must(t, os.Remove(k.vm("b")))
		must(t, os.MkdirAll(filepath.Join(k.vm("b"), "full"), 0o700))
		if err := j.Remove("b"); err == nil {
			t.Error("what could not be removed was said to be")
		}
	})
}

// TestOldJobs: a job is forgotten 90 days after it was last written, unless a domain names it, when a
// week of files says so, and not because the clock is far in the future.
func TestOldJobs(t *testing.T) {
	const day = 24 * time.Hour
	eachLayout(t, func(t *testing.T, k *kept) {
		j := k.open()
		ages := map[string]time.Duration{"new": 0, "known": 90*day - time.Hour, "old": 97 * day,
			"from a clock that was ahead": -1000 * day, "named": 1000 * day}
		for i := range 6 {
			ages[fmt.Sprintf("of day %d", i+1)] = time.Duration(i+1) * day
		}
		want := map[hypervisor.JobID]bool{}
		for id, age := range ages {
			want[hypervisor.JobID(id)] = id != "old"
			must(t, j.PutJob(of(id), false))
			must(t, os.Chtimes(k.job(id), journalNow.Add(-age), journalNow.Add(-age)))
		}
		delete(want, "old")
		d := vm("vm")
		d.Domain.Job = "named"
		must(t, j.Put(d, false))
		must(t, os.Chtimes(k.vm("vm"), long, long))
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
		if _, err := os.Stat(k.job("old")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an old job is left: %v", err)
		}
		if domains, err := j.Domains(); err != nil || len(domains) != 1 {
			t.Errorf("a domain is never too old: %v, %v", domains, err)
		}
	})
}

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
	{"nothing at all in JSON", write("null"), `ID: it is "", which belongs elsewhere`},
	{"an empty object", write("{}"), `ID: it is "", which belongs elsewhere`},
	{"another's record", write("{\"VM\": {\"ID\": \"good\"}}"), "belongs elsewhere"},
	{"two records", func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, append(text, text...), 0o600))
	}, "something after the record"},
	{"a huge file", func(t *testing.T, path string) { must(t, os.Truncate(path, 1<<40)) },
		"more than 2097152 bytes"},
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
			eachLayout(t, func(t *testing.T, k *kept) {
				j := k.open()
				for _, id := range []string{"bad", "good"} {
					must(t, j.Put(vm(id), false))
					must(t, j.PutJob(of(id), false))
				}
				bad := []string{k.vm("bad"), k.job("bad")}
				for _, path := range bad {
					row.spoil(t, path)
				}
				for range 2 {
					domains, err := j.Domains()
					complains(t, err, bad[0], row.want)
					if len(domains) != 1 || domains[0].VM.ID != "good" {
						t.Errorf("domains: %v", domains)
					}
					jobs, err := j.Jobs(journalNow)
					complains(t, err, bad[1], row.want)
					if len(jobs) != 1 || jobs[0].ID != "good" {
						t.Errorf("jobs: %v", jobs)
					}
				}
				for _, path := range bad {
					if _, err := os.Lstat(path); err != nil {
						t.Errorf("it was removed: %v", err)
					}
				}
			})
		})
	}
}

// TestMisplacedRecords: what is in another one's file is told of.
func TestMisplacedRecords(t *testing.T) {
	eachLayout(t, func(t *testing.T, k *kept) {
		j := k.open()
		must(t, j.Put(vm("a"), false))
		must(t, j.PutJob(of("a"), false))
		must(t, os.Rename(j.Path("vms", "a"), j.Path("vms", "b")))
		must(t, os.Rename(k.job("a"), k.job("b")))
		_, err := j.Domains()
		complains(t, err, k.vm("b"), `VM.ID: it is "a", which belongs elsewhere`)
		_, err = j.Jobs(journalNow)
		complains(t, err, k.job("b"), `ID: it is "a", which belongs elsewhere`)
	})
}

// TestNothingOfOthersIsRemoved: what people put into the directory stays, and is
// told of.
func TestNothingOfOthersIsRemoved(t *testing.T) {
	eachLayout(t, func(t *testing.T, k *kept) {
		j := k.open()
		notes := []string{filepath.Join(k.dir, "vms", "notes.new"),
			filepath.Join(k.dir, "jobs", "notes.new")}
		advice := "repair the file or move it away"
		if k.layout.Own != "" {
			must(t, os.Mkdir(filepath.Join(k.dir, "vms", "lost+found"), 0o700))
			must(t, j.Put(vm("vm"), false))
			must(t, os.Rename(k.vm("vm"), k.vm("vm")+".bad")) // as an operator does on that advice
			notes[0] = filepath.Join(k.dir, "vms", "lost+found", "1")
			advice = "move the directory away"
		}
		for _, path := range notes {
			must(t, os.WriteFile(path, []byte("mine"), 0o600))
			must(t, os.Chtimes(path, long, long))
		}
		_, err := j.Domains()
		told := notes[0]
		if k.layout.Own != "" {
			told = filepath.Dir(told)
			complains(t, err, filepath.Dir(k.vm("vm")), "put back its file domain, or, when its QEMU")
			notes = append(notes, k.vm("vm")+".bad")
		}
		complains(t, err, told, advice)
		_, err = j.Jobs(journalNow)
		complains(t, err, notes[1], "repair the file or move it away")
		for _, path := range notes {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestInterruptedRemove: a VM that is being removed when we die is gone, whatever
// is left of its directory.
func TestInterruptedRemove(t *testing.T) {
	k := &kept{t: t, dir: filepath.Join(t.TempDir(), "journal"), layout: layouts["directories"]}
	j := k.open()
	dir := j.Path("vms", "vm")
	must(t, j.Put(vm("vm"), false))
	must(t, os.WriteFile(filepath.Join(dir, "qemu.log"), nil, 0o600))
	must(t, os.Rename(dir, dir+durable.Gone))
	must(t, os.Remove(filepath.Join(dir+durable.Gone, "domain")))
	back := vm("vm")
	back.Own = true
	must(t, j.Put(back, false))
	must(t, os.WriteFile(filepath.Join(dir, "qemu.log"), nil, 0o600))
	domains, err := j.Domains()
	if err != nil || len(domains) != 1 || !domains[0].Own {
		t.Errorf("got %v, %v", domains, err)
	}
	k.left(k.vm("vm"), filepath.Join(dir, "qemu.log"))
	must(t, os.Mkdir(dir+durable.Gone, 0o700))
	must(t, j.Remove("vm"))
	if left, err := os.ReadDir(j.Below("vms")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestUnkeepableIDs: an id that JSON cannot keep is refused, not changed.
func TestUnkeepableIDs(t *testing.T) {
	eachLayout(t, func(t *testing.T, k *kept) {
		j := k.open()
		d, o := vm("vm"), of("job")
		d.Domain.Job, o.VM.ID = "\xff", "\xff"
		for name, err := range map[string]error{
			"a VM":        j.Put(vm("\xff"), true),
			"a VM's job":  j.Put(d, true),
			"a job":       j.PutJob(of("\xff"), true),
			"a VM of one": j.PutJob(o, true),
		} {
			if err == nil || !strings.Contains(err.Error(), "choose another") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		k.left()
	})
}

// hostile are ids that would leave the directory, or look like another, if they
// were names of files.
var hostile = []string{"", ".", "..", "/", "../x", "a/b", "a-b", "a.b", "A/b", "\x00", "x\x00y",
	"domain", "lock", "a.new", "ns/..", strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10+1),
	"größe", "gröse", "\u202e", "\xff", "\ufffd", " ", "a ", "ü", "ü"}

// TestNames: every id has a name of its own, inside the directory, and short
// enough for a socket.
func TestNames(t *testing.T) {
	j := (&kept{t: t, dir: filepath.Join(t.TempDir(), "journal")}).open()
	seen := map[string]string{}
	check := func(t interface{ Errorf(string, ...any) }, id string) {
		path := j.Path("vms", id)
		if other, taken := seen[path]; taken && other != id {
			t.Errorf("%q and %q share %s", id, other, path)
		}
		seen[path] = id
		name := filepath.Base(path)
		if filepath.Dir(path) != j.Below("vms") || len(name) > 40 ||
			strings.HasPrefix(name, "..") || strings.HasSuffix(name, durable.Unfinished) {
			t.Errorf("%q has %s", id, path)
		}
	}
	for _, id := range hostile {
		check(t, id)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "id")) })
}

// FuzzReading: whatever is in a file, it is read as what it says, or told of.
func FuzzReading(f *testing.F) {
	f.Add([]byte(`{"VM": {"ID": "vm", "Memory": 1, "Hardware": null}, "Rest": "Shutoff"}`))
	f.Add([]byte(`{"ID": "vm", "Role": "source", "Last": {"Status": "Active"}}`))
	f.Add([]byte("{\"VM\":{\"ID\":\"vm\"}}{"))
	f.Add([]byte("\x00"))
	k := &kept{t: f, dir: filepath.Join(f.TempDir(), "journal"), layout: layouts["directories"]}
	j := k.open()
	must(f, j.Put(vm("vm"), false))
	must(f, j.PutJob(of("vm"), false))
	f.Fuzz(func(t *testing.T, text []byte) {
		must(t, os.WriteFile(k.vm("vm"), text, 0o600))
		must(t, os.WriteFile(k.job("vm"), text, 0o600))
		domains, err := j.Domains()
		if (err == nil) != (len(domains) == 1 && domains[0].VM.ID == "vm") ||
			err != nil && !strings.Contains(err.Error(), k.vm("vm")) {
			t.Errorf("%q: got %v, %v", text, domains, err)
		}
		jobs, err := j.Jobs(time.Now())
		if (err == nil) != (len(jobs) == 1 && jobs[0].ID == "vm") ||
			err != nil && !strings.Contains(err.Error(), k.job("vm")) {
			t.Errorf("%q: got %v, %v", text, jobs, err)
		}
	})
}

// A guest that was asked to shut down and runs on is asked again; what is late is not waited for.
func TestWhatAGuestWasAskedFor(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, row := range []struct {
		doing         hypervisor.DomainState
		asked, by     time.Duration // from now; 0 is never
		unheard, late bool
	}{
		{hypervisor.Stopping, -backend.PressAgain, time.Hour, true, false},
		{hypervisor.Rebooting, -backend.PressAgain, time.Hour, true, false},
		{hypervisor.Stopping, -backend.PressAgain + 1, time.Hour, false, false},
		{hypervisor.Starting, -backend.PressAgain, time.Hour, false, false},
		{hypervisor.Stopping, 0, 0, false, false}, // a record of an old version
		{hypervisor.Stopping, -1, -1, false, true},
	} {
		d := backend.Domain{Doing: row.doing}
		if row.asked != 0 {
			d.Asked = now.Add(row.asked)
		}
		if row.by != 0 {
			d.By = now.Add(row.by)
		}
		if d.PressUnheard(now) != row.unheard || d.Late(now) != row.late {
			t.Errorf("%+v: unheard %v, late %v", row, d.PressUnheard(now), d.Late(now))
		}
	}
}
