package cli_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/internal/cli"
)

// says writes a text.
func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// read returns a file's contents and its rights.
func read(t *testing.T, path string) (string, fs.FileMode) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), at.Mode().Perm()
}

// wantOnly checks that a folder has these files and no others.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder has %q, want %q", got, names)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFileIsWrittenWholeOrNotAtAll: checking changes nothing, a failure keeps what was
// there, and a success keeps its rights and where links lead.
func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	page, link := filepath.Join(dir, "page"), filepath.Join(dir, "link")
	must(t, cli.Check(page))
	wantOnly(t, dir)
	must(t, cli.Write(page, says("one")))
	must(t, os.Chmod(page, 0o640))
	must(t, os.Symlink("page", link))
	must(t, cli.Check(link))
	full := errors.New("no space left")
	err := cli.Write(link, func(w io.Writer) error {
		return errors.Join(says("half")(w), full)
	})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), link+" is not written: ") {
		t.Errorf("the error is %v", err)
	}
	if text, _ := read(t, page); text != "one" {
		t.Errorf("after a failure there is %q", text)
	}
	must(t, cli.Write(link, says("two")))
	if text, mode := read(t, page); text != "two" || mode != 0o640 {
		t.Errorf("there is %q with the mode %o", text, mode)
	}
	if at, err := os.Readlink(link); err != nil || at != "page" {
		t.Errorf("the link leads to %q, %v", at, err)
	}
	wantOnly(t, dir, "link", "page")
}

// TestWhatCannotBeWrittenIsSaidAtOnce, by its own name, and nothing is left.
func TestWhatCannotBeWrittenIsSaidAtOnce(t *testing.T) {
	must(t, cli.Check(""))
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "no", "page")
	for path, want := range map[string]string{
		nowhere: "open " + nowhere + ": no such file or directory",
		dir:     "open " + dir + ": is a directory",
	} {
		for _, err := range []error{cli.Check(path), cli.Write(path, says("x"))} {
			if err == nil || err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
	}
	wantOnly(t, dir)
}

// TestWhatIsReadIsNotWritten, by whatever name.
func TestWhatIsReadIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	read := in("read")
	must(t, os.WriteFile(read, nil, 0o600))
	must(t, os.Symlink("read", in("link")))
	must(t, os.Link(read, in("hard")))
	for _, c := range []struct {
		path, besides string
		fine          bool
	}{
		{read, read, false}, {in("./x/../read"), read, false}, {in("link"), read, false},
		{in("hard"), read, false}, {read, in("link"), false},
		{in("new"), in("new"), false}, {in("new"), read, true}, {in("new"), "", true},
		{in("new"), in("gone"), true}, {"/dev/null", "/dev/null", true},
		{"", read, true},
	} {
		for _, err := range []error{cli.Check(c.path, in("other"), c.besides),
			cli.Apart(c.path, in("other"), c.besides)} {
			if (err == nil) != c.fine {
				t.Errorf("to write %s beside %s: %v", c.path, c.besides, err)
			}
		}
	}
}

// TestAPipeIsWrittenAsItIs: to see whether it can be would end its reader.
func TestAPipeIsWrittenAsItIs(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	must(t, cli.Check(pipe)) // nothing reads
	heard := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe)
		heard <- string(text)
	}()
	must(t, cli.Write(pipe, says("hello")))
	if text := <-heard; text != "hello" {
		t.Errorf("the reader heard %q", text)
	}
}

// TestPlainShowsWhatATerminalWouldActOn and leaves everything else as it is.
func TestPlainShowsWhatATerminalWouldActOn(t *testing.T) {
	for text, want := range map[string]string{
		"a b\tc\nd – ü":        "a b\tc\nd – ü",
		"\x1b[2Jgone\r\x07":    `\x1b[2Jgone\x0d\x07`,
		"c1 \u009b31m":         `c1 \x9b31m`,
		"back \u202ewards":     `back \x202ewards`,
		"broken \xff, \x7f on": `broken \xfffd, \x7f on`,
		"":                     "",
	} {
		var b strings.Builder
		n, err := io.WriteString(cli.Plain(&b), text)
		if b.String() != want || n != len(text) || err != nil {
			t.Errorf("%q is written as %q: %d, %v", text, b.String(), n, err)
		}
	}
}
