package main

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestMain lets this program be what go test runs test programs through.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == execMode {
		os.Exit(execTest(os.Args[2:]))
	}
	os.Exit(testutil.Reaped{Main: m}.Run())
}

func TestTheProcessorTimeOfATestAndItsChildrenIsMeasured(t *testing.T) {
	const spends = `package p
import ("os"; "os/exec"; "testing"; "time")
func TestSpends(t *testing.T) {
	if os.Getenv("CHILD") == "" {
		c := exec.Command(os.Args[0], "-test.run=TestSpends"); c.Env = append(os.Environ(), "CHILD=1")
		if err := c.Run(); err != nil { t.Fatal(err) }
		return
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {}
}
func TestFails(t *testing.T) { if os.Getenv("FAILS") != "" { t.Error("it fails") } }
`
	module(t, map[string]string{"p/p_test.go": spends})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, fails := range []bool{false, true} {
		if fails {
			t.Setenv("FAILS", "1")
		}
		s := newSuite(options{out: t.TempDir(), self: self})
		s.w = io.Discard
		ok, err := s.each(context.Background(), plain)
		if err != nil {
			t.Fatal(err)
		}
		if ok == fails {
			t.Errorf("it fails %v, and passed %v", fails, ok)
		}
		// A busy machine gives the child only a part of its second.
		if used := s.cpu["example.org/m/p"]; used < 20*time.Millisecond || used > time.Minute {
			t.Errorf("the processors were used for %v", used)
		}
	}
}
