//go:build linux

package qemu_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// mostConsole is how large a log may become.
const mostConsole = 4 << 20

// consoleLog is a log, and a writer that appends to it as QEMU does.
func consoleLog(t *testing.T) (path string, writer *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "console.log")
	if err := qemu.CutConsoleLog(path); err != nil {
		t.Fatalf("there is none: %v", err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	return path, writer
}

// TestCutConsoleLog: a log is cut to its end when it is too large, and what is appended by a writer that has it
// open follows.
func TestCutConsoleLog(t *testing.T) {
	const mib = 1 << 20
	path, writer := consoleLog(t)
	var want []byte
	write := func(n int, letter string) {
		t.Helper()
		text := bytes.Repeat([]byte(letter), n)
		want = append(want, text...)
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	// The end of it is kept, and at most more bytes before.
	cut := func(when string, most, more int) {
		t.Helper()
		if err := qemu.CutConsoleLog(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || len(got) < min(most, len(want)) || len(got) > most+more || !bytes.HasSuffix(want, got) {
			t.Errorf("%s it has %d bytes, want %d: %v", when, len(got), most, err)
		}
	}
	write(4*mib, "a")
	cut("as large as it may be", 4*mib, 0)
	write(3, "b")
	cut("when it was cut", mib, 64<<10) // whole blocks are cut
	write(5, "c")
	cut("with what has come since", mib+5, 64<<10)
}

// TestCutConsoleLogLosesNothing: where the file system can take the beginning out of a file, what is written while
// the log is cut is not lost, and stays in its order. Nothing has to be written again, so nothing is lost by a death.
func TestCutConsoleLogLosesNothing(t *testing.T) {
	path, writer := consoleLog(t)
	if err := writer.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if unix.Fallocate(int(writer.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, 0, 64<<10) != nil {
		t.Skip("this file system cannot take the beginning out of a file")
	}
	if err := writer.Truncate(0); err != nil {
		t.Fatal(err)
	}
	const lines, width = 100_000, 1024
	written := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < lines && err == nil; i++ {
			_, err = fmt.Fprintf(writer, "%0*d\n", width-1, i)
		}
		written <- err
	}()
	over := make(chan struct{})
	least := make(chan int64, 1) // how large it was since it was cut first
	go func() {
		size, large := int64(mostConsole), false
		for {
			select {
			case <-over:
				least <- size
				return
			default:
			}
			now, err := os.Stat(path)
			if large = large || err == nil && now.Size() > mostConsole; large {
				size = min(size, now.Size())
			}
		}
	}()
	for done := false; !done; {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
		if err := qemu.CutConsoleLog(path); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	if size := <-least; size < mostConsole/4 {
		t.Errorf("when it is cut it has %d bytes: what is lost then is the rest", size)
	}
	got, err := os.ReadFile(path)
	if err != nil || len(got) > 8<<20 {
		t.Fatalf("it has %d bytes: %v", len(got), err)
	}
	got = got[len(got)%width:] // the first may be cut
	for i := lines - len(got)/width; i < lines; i++ {
		line := got[:width]
		if want := fmt.Sprintf("%0*d\n", width-1, i); string(line) != want {
			t.Fatalf("line %d of %d is %q", i, lines, bytes.TrimLeft(line, "0"))
		}
		got = got[width:]
	}
}
