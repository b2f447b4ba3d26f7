package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// commands are one call at least of each command, and of each way in which it prints.
var commands = []string{"", "--version", "completion bash", "completion zsh", "completion fish",
	"completion powershell", "help simulate", "nosuch", "simulate FLEET", "simulate --json FLEET",
	"simulate --samples 2 FLEET", "simulate --samples 2 --json FLEET",
	"simulate --sweep limits.perCluster=1,2 FLEET", "simulate nosuch.yaml",
	"simulate --samples 2 --shard 1/2 FLEET", "plan drain FLEET n1", "plan drain --json FLEET n1",
	"plan failover FLEET", "plan failover --json FLEET", "plan maintenance FLEET",
	"plan maintenance --json FLEET", "explain destination FLEET v1",
	"explain destination --json FLEET v1", "convert FLEET --to ganeti", "convert FLEET --to nosuch",
	"host list --store bolt:STORE", "host list --json --store bolt:STORE",
	"vm list --store bolt:STORE", "vm list --json --store bolt:STORE",
	"vm add web --memory 1GiB --store bolt:STORE", "vm nosuch", "status --store bolt:STORE",
	"status --json --store bolt:STORE", "top --once --store bolt:STORE", "version", "doctor --json",
	"drain nosuch --store bolt:STORE", "apply nosuch.json --store bolt:STORE", "maintenance status --store bolt:STORE", "explain v1 --store bolt:STORE",
	"migrate v1 --store bolt:STORE", "cancel v1 --store bolt:STORE", "agent", "controller",
	"audit", "calibrate", "bench", "lab", "merge", "replay", "store", "pki", "pki show --dir nosuch", "etcd", "etcd rights"}

func TestEveryOutputEndsWithANewline(t *testing.T) {
	godwit, err := exec.LookPath("godwit") // testscript puts this binary there
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	if testutil.Raced {
		t.Skip("the race detector is on: it runs without it")
	}
	forms := testutil.Rounds(t, 1, 2) // with --help, too
	dir := t.TempDir()
	names := map[string]bool{}
	help, err := exec.CommandContext(t.Context(), godwit, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(block(t, string(help), "Available Commands:"))) {
		names[strings.Fields(line)[0]] = false
	}
	for _, line := range commands {
		line = strings.NewReplacer("FLEET", "../../examples/drain-host.yaml", "STORE",
			filepath.Join(dir, "store")).Replace(line)
		args := strings.Fields(line)
		for _, args := range [][]string{args, append(args, "--help")}[:forms] {
			c := exec.CommandContext(t.Context(), godwit, args...)
			var out, err strings.Builder
			c.Stdout, c.Stderr = &out, &err
			_ = c.Run() // some refuse
			if out.Len()+err.Len() == 0 {
				t.Errorf("godwit %v says nothing", args)
			}
			for _, text := range []string{out.String(), err.String()} {
				if text != "" && !strings.HasSuffix(text, "\n") {
					t.Errorf("godwit %v ends with %q", args, text[max(0, len(text)-40):])
				}
			}
		}
		if len(args) > 0 {
			names[args[0]] = true
		}
	}
	for name, called := range names {
		if !called {
			t.Errorf("godwit %s is not called here", name)
		}
	}
}
