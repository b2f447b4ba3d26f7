package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crowd is a scenario whose trace is longer than what a pipe holds.
const crowd = `hosts: [{name: "n[1-4]", memory: 512GiB, cpus: 256}]
vms: [{name: "v[1-400]", host: n1, memory: 1GiB}]
events: [0s drain n1]
`

// TestATraceWithoutAReaderEndsTheRun: as in --trace /dev/stdout | head -1.
func TestATraceWithoutAReaderEndsTheRun(t *testing.T) {
	dir := t.TempDir()
	scenario, pipe := filepath.Join(dir, "crowd.yaml"), filepath.Join(dir, "trace")
	if err := errors.Join(os.WriteFile(scenario, []byte(crowd), 0o600),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- simulateFile(context.Background(), io.Discard, scenario, "--trace="+pipe)
	}()
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the error is %v, want %v", err, syscall.EPIPE)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for a reader who has gone")
	}
}

// TestAnInterruptedTraceEndsWithAWholeLine: it is there for looking into a run that takes too
// long.
func TestAnInterruptedTraceEndsWithAWholeLine(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt"))
	dir := t.TempDir()
	scenario, trace := filepath.Join(dir, "crowd.yaml"), filepath.Join(dir, "trace")
	if err := os.WriteFile(scenario, []byte(crowd), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := simulateFile(ctx, &out, scenario, "--trace="+trace)
	if err == nil || err.Error() != "interrupt" {
		t.Errorf("the error is %v", err)
	}
	if text := read(t, trace); !strings.HasSuffix(text, "\n") {
		t.Errorf("the trace is %q", text)
	}
}
