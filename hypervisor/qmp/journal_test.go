package qmp_test

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
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// journalNow is when the jobs of these tests are read.
var journalNow = time.Now()

func open(t testing.TB, dir string) *qmp.Journal {
	t.Helper()
	j, err := qmp.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// private is a new directory that only we can enter.
func private(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// only returns the one entry of a directory.
func only(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v; want one entry", entries, err)
	}
	return filepath.Join(dir, entries[0].Name())
}

// TestLock: a journal has one owner at a time; what a lock is, is tested elsewhere.
func TestLock(t *testing.T) {
	dir := private(t)
	first := open(t, dir)
	_, err := qmp.Open(dir)
	want := qmp.LockedError{Dir: dir, Owner: strconv.Itoa(os.Getpid())}
	if got, locked := errors.AsType[*qmp.LockedError](err); !locked || *got != want {
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
			must(t, os.Mkdir(filepath.Join(dir, "vms"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "vms"), 0o711))
		}, "vms has mode 0711"},
		{"a file instead of a part", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600))
		}, "not a directory"},
		{"a link instead of a part", func(t *testing.T, dir string) {
			must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "disks")))
		}, "disks is no directory"},
		{"a directory instead of the lock", func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700))
		}, "is a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := private(t)
			row.spoil(t, dir)
			j, err := qmp.Open(dir)
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
		old := &qmp.DomainRecord{VM: hypervisor.VM{ID: "ns/web", CPUs: 1}, Own: true}
		must(t, j.Put(old, true))
		must(t, j.PutJob(&qmp.Job{ID: "job", Role: qmp.Source}, true))
		record, job := filepath.Join(j.Dir("ns/web"), "domain"), only(t, filepath.Join(dir, "jobs"))
		half := filepath.Join(dir, "jobs", "other.0123456789abcdef.new")
		for _, path := range []string{record + ".new", job + ".new", half} {
			must(t, os.WriteFile(path, []byte(text), 0o600))
		}
		// A second VM, whose process died before its record was there.
		lost := j.Dir("ns/lost")
		must(t, os.Mkdir(lost, 0o700))
		must(t, os.WriteFile(filepath.Join(lost, "domain.new"), []byte(text), 0o600))
		must(t, j.Close())

		j = open(t, dir)
		domains, err := j.Domains()
		if err != nil || len(domains) != 1 || domains[0].VM.ID != "ns/web" {
			t.Errorf("after %q: domains %v, %v", text, domains, err)
		}
		jobs, err := j.Jobs(journalNow)
		if err != nil || len(jobs) != 1 || jobs[0].ID != "job" {
			t.Errorf("after %q: jobs %v, %v", text, jobs, err)
		}
		if only(t, filepath.Join(dir, "jobs")) != job {
			t.Errorf("after %q: an unfinished job is left", text)
		}
		if _, err := os.Stat(lost); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %q: the directory of a VM that never was is left: %v", text, err)
		}
		changed := &qmp.DomainRecord{VM: old.VM, Paused: true}
		must(t, j.Put(changed, false)) // over the unfinished one
		domains, err = j.Domains()
		if diff := cmp.Diff([]*qmp.DomainRecord{changed}, domains); diff != "" || err != nil {
			t.Errorf("after %q (-want +got): %v\n%s", text, err, diff)
		}
	}
}

// TestDisksOutliveTheRecord: forgetting a VM removes what is in its directory and
// nothing else.
func TestDisksOutliveTheRecord(t *testing.T) {
	j := open(t, private(t))
	for _, vm := range []hypervisor.VMID{"a", "b"} {
		must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: vm}}, false))
		must(t, os.MkdirAll(j.Disks(vm), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(j.Dir("a"), "qemu.log"), nil, 0o600))
	for range 2 { // it may be repeated
		must(t, j.Remove("a"))
		must(t, j.RemoveJob("never was"))
	}
	domains, err := j.Domains()
	if err != nil || len(domains) != 1 || domains[0].VM.ID != "b" {
		t.Errorf("got %v, %v", domains, err)
	}
	if _, err := os.Stat(j.Disks("a")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(j.Dir("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestOldJobs: a job is forgotten 90 days after it was last written, when a week of files says so, and
// not because the clock is far in the future.
func TestOldJobs(t *testing.T) {
	const day = 24 * time.Hour
	dir := private(t)
	j := open(t, dir)
	ages := map[hypervisor.JobID]time.Duration{"new": 0, "known": 90*day - time.Hour,
		"old": 97 * day, "from a clock that was ahead": -1000 * day}
	want := map[hypervisor.JobID]bool{"new": true, "known": true,
		"from a clock that was ahead": true}
	for i := range 6 {
		id := hypervisor.JobID(fmt.Sprintf("of day %d", i+1))
		ages[id], want[id] = time.Duration(i+1)*day, true
	}
	for id, age := range ages {
		must(t, j.PutJob(&qmp.Job{ID: id}, false))
		for _, path := range glob(t, dir, "jobs/*") {
			text, _ := os.ReadFile(path)
			if strings.Contains(string(text), strconv.Quote(string(id))) {
				must(t, os.Chtimes(path, journalNow.Add(-age), journalNow.Add(-age)))
			}
		}
	}
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
	if left := glob(t, dir, "jobs/*"); len(left) != len(want) {
		t.Errorf("left: %q", left)
	}
	must(t, j.Put(&qmp.DomainRecord{VM: hypervisor.VM{ID: "vm"}, Job: "kept"}, false))
	must(t, j.PutJob(&qmp.Job{ID: "kept"}, false))
	for _, path := range glob(t, dir, "jobs/kept.*") {
		must(t, os.Chtimes(path, journalNow.Add(-1000*day), journalNow.Add(-1000*day)))
	}
	if jobs, err := j.Jobs(journalNow); err != nil || len(jobs) != len(want)+1 {
		t.Errorf("a job that a domain names is never too old: %v, %v", jobs, err)
	}
	record := filepath.Join(j.Dir("vm"), "domain")
	must(t, os.Chtimes(record, journalNow.Add(-1000*day), journalNow.Add(-1000*day)))
	if domains, err := j.Domains(); err != nil || len(domains) != 1 {
		t.Errorf("a domain is never too old: %v, %v", domains, err)
	}
}

func glob(t testing.TB, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	return paths
}

// hostile are ids that would leave the directory, or look like another, if they
// were names of files.
var hostile = []string{"", ".", "..", "/", "../x", "a/b", "a-b", "a.b", "A/b", "\x00", "x\x00y",
	"domain", "lock", "a.new", "ns/..", strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10+1),
	"größe", "gröse", "\u202e", "\xff", "\ufffd", " ", "a ", "ü", "ü"}

// TestNames: every id has a name of its own, inside the directory, and short
// enough for a socket.
func TestNames(t *testing.T) {
	j := open(t, private(t))
	root := filepath.Dir(filepath.Dir(j.Dir("x")))
	seen := map[string]string{}
	check := func(t interface{ Errorf(string, ...any) }, id string) {
		dir := j.Dir(hypervisor.VMID(id))
		if other, taken := seen[dir]; taken && other != id {
			t.Errorf("%q and %q share %s", id, other, dir)
		}
		seen[dir] = id
		name := filepath.Base(dir)
		if filepath.Dir(dir) != filepath.Join(root, "vms") || len(name) > 40 ||
			strings.HasPrefix(name, "..") || strings.HasSuffix(name, ".new") {
			t.Errorf("%q has %s", id, dir)
		}
		if disks := j.Disks(hypervisor.VMID(id)); disks != filepath.Join(root, "disks", name) {
			t.Errorf("%q has disks in %s", id, disks)
		}
	}
	for _, id := range hostile {
		check(t, id)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "id")) })
}
