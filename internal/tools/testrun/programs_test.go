package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheProcessorTimeOfATestAndItsChildrenIsMeasured(t *testing.T) {
	module(t, map[string]string{"p/p_test.go": `package p
import ("os"; "os/exec"; "testing"; "time")
func TestSpends(t *testing.T) {
	if os.Getenv("CHILD") == "" {
		c := exec.Command(os.Args[0], "-test.run=TestSpends"); c.Env = append(os.Environ(), "CHILD=1")
		if err := c.Run(); err != nil { t.Fatal(err) }
		return
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {}
}
`})
	s, ok := runTier(t, func(s *suite, ctx context.Context) (bool, error) { return s.each(ctx, plain) })
	// A busy machine gives the child only a part of its second.
	if used := s.cpu["example.org/m/p"]; !ok || used < 20*time.Millisecond || used > time.Minute {
		t.Errorf("the processors were used for %v, passed %v", used, ok)
	}
}

// The program of a package is linked once, and again when its code has changed; and only then.
func TestAProgramIsKeptUntilItsCodeChanges(t *testing.T) {
	files := map[string]string{"p/p_test.go": "package p\nimport \"testing\"\nfunc TestA(*testing.T) {}\n"}
	module(t, files)
	out := t.TempDir()
	tests := func() (info os.FileInfo, said string, ok bool) {
		s := newSuite(options{out: out})
		w, err := os.Create(filepath.Join(t.TempDir(), "said"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		s.w = w
		if ok, err = s.each(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(w.Name())
		if err != nil {
			t.Fatal(err)
		}
		info, err = os.Stat(filepath.Join(out, "tests", "plain", "example.org_m", "p.test"))
		if err != nil {
			t.Fatal(err)
		}
		return info, string(text), ok
	}
	first, said, ok := tests()
	if !ok || !strings.HasPrefix(said, "ok  \texample.org/m/p\t") {
		t.Errorf("passed %v: %q", ok, said)
	}
	if again, _, ok := tests(); !ok || !os.SameFile(first, again) {
		t.Error("it was linked again")
	}
	wrong := strings.Replace(files["p/p_test.go"], "(*testing.T) {", "(t *testing.T) { t.Error(7)", 1)
	if err := os.WriteFile("p/p_test.go", []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, ok := tests(); ok || !strings.Contains(said, "FAIL\texample.org/m/p\t") {
		t.Errorf("the change is not seen: passed %v: %q", ok, said)
	}
}

// What a test starts is ended by a signal, as under go test.
func TestSignalsEndWhatATestStarts(t *testing.T) {
	module(t, map[string]string{"p/p_test.go": `package p
import ("os/exec"; "syscall"; "testing")
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil { t.Fatal(err) }
		if err := c.Process.Signal(s); err != nil { t.Fatal(err) }
		_ = c.Wait()
		if got := c.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != s { t.Errorf("%v: ended by %v", s, got) }
	}
}
`})
	if s, ok := runTier(t, func(s *suite, ctx context.Context) (bool, error) { return s.each(ctx, plain) }); !ok {
		t.Error(s.failed)
	}
}
