package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestMain(m *testing.M) {
	testscript.Main(testutil.Reaped{Main: m}, map[string]func(){"godwit": main})
}

// exits N COMMAND… runs a command and checks its exit status, which ! does not.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND…")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		status = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := strconv.Itoa(status); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// holds FIFO opens a pipe for writing, which waits for its reader, and writes nothing.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: holds FIFO")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	ts.Defer(func() { ts.Check(f.Close()) })
}

// The default tier runs one in unraced of the scripts that run daemons, and one in raced with the race
// detector.
const unraced, raced = 5, 10

// always is the script that it runs anyway: a host is drained by real daemons, and they are killed.
const always = "cluster"

// scripts are the files of the scripts: in the default tier those without daemons, and a sample of those with
// daemons; with the race detector the sample alone. The long tier runs them all.
func scripts(t *testing.T) (files []string) {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d scripts: %v", len(all), err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		daemons := bytes.Contains(text, []byte("[!qemu]"))
		switch {
		case testutil.Raced && daemons && testutil.Sampled(name, raced),
			!testutil.Raced && (!daemons || name == always || testutil.Sampled(name, unraced)):
			files = append(files, file)
		}
	}
	if len(files) == 0 { // none of the sample: testscript takes no scripts for a mistake
		files = []string{"testdata/script/" + always + ".txtar"}
	}
	if testutil.Rounds(t, len(files), len(all)) == len(all) {
		return all
	}
	return files
}

// TestScripts runs the command as its users do.
func TestScripts(t *testing.T) {
	examples, err := os.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits,
			"holds": holds, "until": until, "rom": rom, "noqemu": noQEMU, "qemus": countQEMUs,
			"adopt-keep": adoptKeep, "until-alarm": untilAlarm,
			"kill-qemu": killQEMU, "endqemu": endQEMU, "get": get, "busy": busy, "loopback": loopback,
			"journal": journal, "heartbeats": listen, "once": once, "twice": twice, "alone": alone, "pages": pages},
		Condition: func(name string) (bool, error) {
			if name == "mounts" {
				return exec.Command("unshare", "-rm", "mount", "--bind", "/proc", "/proc").Run() == nil, nil
			}
			return name == "qemu" && runsQEMU() == nil, nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("ACCEL", accelerator())
			e.Setenv(locksVariable, filepath.Join(e.WorkDir, "locks"))
			e.Defer(func() { killQEMUs(e.WorkDir) })
			for _, f := range examples {
				if f.IsDir() {
					continue
				}
				data, err := os.ReadFile("../../examples/" + f.Name())
				if err != nil {
					return err
				}
				if err := os.WriteFile(e.WorkDir+"/"+f.Name(), data, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
