package cli

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/internal/audit"
)

// A seal that cannot be written is an error that says so, and no line is said to be sealed. Half of
// it is taken out of the file again.
func TestASealThatCannotBeWrittenIsNotSaidToBe(t *testing.T) {
	made := []audit.Seal{{From: 1, To: 2}, {From: 3, To: 4}}
	for _, seals := range []string{"/dev/full", filepath.Join(t.TempDir(), "missing", "audit.seals")} {
		var out bytes.Buffer
		err := (&sealFlags{seals: seals}).keep(&out, made)
		if err == nil || !strings.Contains(err.Error(), "the lines 1 to 4 are not sealed: "+seals) || out.Len() > 0 {
			t.Errorf("%s: %v; it prints %q", seals, err, &out)
		}
	}
	seals := filepath.Join(t.TempDir(), "audit.seals")
	var out bytes.Buffer
	if err := (&sealFlags{seals: seals}).keep(&out, made[:1]); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(seals)
	if err != nil {
		t.Fatal(err)
	}
	full(t, uint64(len(before))+10)
	out.Reset()
	if err := (&sealFlags{seals: seals}).keep(&out, made[1:]); err == nil || out.Len() > 0 {
		t.Errorf("%v; it prints %q", err, &out)
	}
	if after, err := os.ReadFile(seals); err != nil || !bytes.Equal(before, after) {
		t.Errorf("%v; the file has %q", err, after)
	}
}

// full lets no file of this process become larger than limit for the rest of the test.
func full(t *testing.T, limit uint64) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	})
}
