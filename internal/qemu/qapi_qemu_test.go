package qemu_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// qapiStartQEMU starts a small QEMU whose guest stands, with two disks that keep
// nothing. It is killed and reaped when the test ends.
func qapiStartQEMU(t *testing.T) *qemu.Monitor {
	t.Helper()
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	dir, err := os.MkdirTemp("", "qapi") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "qmp")
	q := exec.Command(program, "-machine", "pc", "-accel", "tcg", "-m", "16", "-nodefaults",
		"-display", "none", "-S", "-blockdev", "driver=null-co,node-name=disk,size=1048576",
		"-blockdev", "driver=null-co,node-name=copy,size=1048576",
		"-qmp", "unix:"+path+",server=on,wait=off")
	q.Stderr = os.Stderr
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = q.Process.Kill()
		_ = q.Wait()
	})
	var m *qemu.Monitor
	testutil.Eventually(t, "QEMU listens", func() (err error) {
		m, err = qemu.Dial(t.Context(), qemu.Config{Path: path, Timeout: patience})
		return err
	})
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// misunderstood are QEMU's words about arguments that it does not know, misses, or
// expects to be something else.
// Source: QEMU 7.2 include/qapi/qmp/qerror.h, qapi/qobject-input-visitor.c.
var misunderstood = regexp.MustCompile(
	`is unexpected|is missing|Invalid parameter|expects|does not accept value`)

// TestQapiRealQEMU gives every command to a QEMU, which takes it, or refuses it for
// another reason than its words.
func TestQapiRealQEMU(t *testing.T) {
	m := qapiStartQEMU(t)
	for _, c := range commands {
		err := c.give(qemu.QEMU{Conn: m}, t.Context())
		if err == nil {
			continue
		}
		refused, ok := errors.AsType[*qemu.Error](err)
		if !ok {
			t.Fatalf("%s: %v", c.name, err)
		}
		if refused.Class == qemu.CommandNotFound ||
			misunderstood.MatchString(refused.Description) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		t.Logf("%s: %v", c.name, err)
	}
	if err := m.Execute(t.Context(), "query-status", map[string]any{"color": 1}, nil); err == nil ||
		!misunderstood.MatchString(err.Error()) {
		t.Errorf("an unknown argument is refused in words that this test does not know: %v", err)
	}
}

// TestSchema: QEMU's description of itself has every word that we understand.
func TestSchema(t *testing.T) {
	m := qapiStartQEMU(t)
	var schema []struct {
		Name   string
		Meta   string `json:"meta-type"`
		Values []string
	}
	if err := m.Execute(t.Context(), "query-qmp-schema", nil, &schema); err != nil {
		t.Fatal(err)
	}
	has := func(words ...string) bool { // an enumeration with all of them
		for _, s := range schema {
			lacks := func(word string) bool { return !slices.Contains(s.Values, word) }
			if s.Meta == "enum" && !slices.ContainsFunc(words, lacks) {
				return true
			}
		}
		return false
	}
	for name, words := range map[string][]string{
		"run states": texts(qemu.Running, qemu.Paused, qemu.PreLaunch, qemu.InMigrate,
			qemu.FinishMigrate, qemu.PostMigrate, qemu.Shutdown, qemu.Suspended),
		"statuses of migrations": texts(qemu.None, qemu.Setup, qemu.Cancelling, qemu.Cancelled,
			qemu.Active, qemu.PostcopyActive, qemu.PostcopyPaused, qemu.PostcopyRecover,
			qemu.Completed, qemu.Failed, qemu.PreSwitchover, qemu.Device, qemu.WaitUnplug),
		"statuses of jobs": texts(qemu.JobReady, qemu.JobStandby, qemu.JobAborting,
			qemu.JobConcluded, qemu.JobNull),
		"capabilities": texts(capabilities...),
	} {
		if !has(words...) {
			t.Errorf("QEMU has no such %s: %s", name, strings.Join(words, ", "))
		}
	}
}

func texts[T ~string](words ...T) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// TestMirrorOnRealQEMU copies a disk, and shows what becomes of its job.
func TestMirrorOnRealQEMU(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	q := qemu.QEMU{Conn: qapiStartQEMU(t)}
	if err := q.BlockdevMirror(ctx, "m", "disk", "copy", 0); err != nil {
		t.Fatal(err)
	}
	await := func(want qemu.JobStatus) qemu.Job {
		for {
			jobs, err := q.QueryJobs(ctx)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("waiting for %s: %+v, %v", want, jobs, err)
			}
			if jobs[0].Status == want {
				return jobs[0]
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	j := await(qemu.JobReady)
	if j.ID != "m" || j.Type != "mirror" || j.Current != j.Total || j.Total == 0 {
		t.Errorf("ready: %+v", j)
	}
	if err := q.BlockJobCancel(ctx, "m", false); err != nil {
		t.Fatal(err)
	}
	if j := await(qemu.JobConcluded); j.Error != "" {
		t.Errorf("a copy that was ended when it was complete has failed: %+v", j)
	}
	if err := q.JobDismiss(ctx, "m"); err != nil {
		t.Fatal(err)
	}
	if jobs, err := q.QueryJobs(ctx); err != nil || len(jobs) != 0 {
		t.Errorf("after it was dismissed: %+v, %v", jobs, err)
	}
}
