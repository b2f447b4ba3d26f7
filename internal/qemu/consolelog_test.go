//go:build linux

package qemu_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// TestCutConsoleLog: a log is cut to its end when it is too large, and what is appended by a writer that has it
// open follows.
func TestCutConsoleLog(t *testing.T) {
	const mib = 1 << 20
	path := filepath.Join(t.TempDir(), "console.log")
	cut := func() {
		t.Helper()
		if err := qemu.CutConsoleLog(path); err != nil {
			t.Fatal(err)
		}
	}
	cut() // there is none
	writer, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	var want []byte
	write := func(n int, letter string) {
		t.Helper()
		text := bytes.Repeat([]byte(letter), n)
		want = append(want, text...)
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(when string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s it has %d bytes, want %d: %v", when, len(got), len(want), err)
		}
	}
	write(4*mib, "a")
	cut()
	holds("as large as it may be")
	write(3, "b")
	cut()
	want = want[len(want)-mib:]
	holds("when it was cut")
	write(5, "c")
	holds("with what has come since")
}
