package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// An image is what a Dockerfile for an empty base makes: a root, and how its program is run.
type image struct {
	root       string
	uid, gid   uint32
	env        []string
	entrypoint []string
}

// buildImage does what the instructions of a Dockerfile do, in a folder. What it does not know fails.
// Source: Dockerfile reference (COPY, --chown: new files and directories are owned by 0:0 without it).
func buildImage(t *testing.T, dockerfile, context string) image {
	t.Helper()
	made, args := image{root: t.TempDir()}, map[string]string{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(made.root, 0o755))
	for line := range strings.Lines(dockerfile) {
		line = strings.TrimSpace(os.Expand(line, func(name string) string { return args[name] }))
		word, rest, _ := strings.Cut(line, " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		switch word {
		case "FROM":
			if rest != "scratch" {
				t.Fatalf("the base is %s", rest)
			}
		case "ARG":
			name, value, _ := strings.Cut(rest, "=")
			args[name] = value
		case "COPY":
			owner := "0:0"
			if chown, more, is := strings.Cut(strings.TrimPrefix(rest, "--chown="), " "); is && strings.HasPrefix(rest, "--") {
				owner, rest = chown, more
			}
			from, to, _ := strings.Cut(rest, " ")
			to = filepath.Join(made.root, to)
			if said, err := exec.Command("cp", "-r", filepath.Join(context, from), to).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, said)
			}
			if said, err := exec.Command("chown", "-R", owner, to).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, said)
			}
		case "USER":
			uid, gid, _ := strings.Cut(rest, ":")
			u, err := strconv.ParseUint(uid, 10, 32)
			must(err)
			g, err := strconv.ParseUint(gid, 10, 32)
			must(err)
			made.uid, made.gid = uint32(u), uint32(g)
		case "ENV":
			made.env = append(made.env, rest)
		case "VOLUME": // it has the owner of the image's directory; one that is made is root's
			must(os.MkdirAll(filepath.Join(made.root, rest), 0o755))
		case "EXPOSE":
		case "ENTRYPOINT":
			must(json.Unmarshal([]byte(rest), &made.entrypoint))
		default:
			t.Fatalf("%q is not known here", line)
		}
	}
	return made
}

// TestTheImageOfTheController runs what the Dockerfile makes, in a root with nothing else, as its user.
func TestTheImageOfTheController(t *testing.T) {
	testutil.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("to enter a root takes root")
	}
	context := t.TempDir()
	program := filepath.Join(context, "godwit-linux-amd64")
	c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	checkBinary(t, program)
	if err := os.Mkdir(filepath.Join(context, "state"), 0o755); err != nil { // as dist.sh makes it
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../packaging/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	made := buildImage(t, string(text), context)
	if made.uid == 0 || made.gid == 0 || len(made.entrypoint) == 0 {
		t.Fatalf("%+v", made)
	}
	runController(t, made)
	state, err := os.Stat(filepath.Join(made.root, "state/cluster.db"))
	if err != nil {
		t.Fatal(err)
	}
	if by := state.Sys().(*syscall.Stat_t); by.Uid != made.uid {
		t.Errorf("its state is owned by %d", by.Uid)
	}
}

// runController runs the image with a store in its volume, until it leads, and ends it as docker stop does.
func runController(t *testing.T, made image) {
	t.Helper()
	args := slices.Concat(made.entrypoint[1:], []string{"--store", "bolt:/state/cluster.db", "--name", "a"})
	c := exec.CommandContext(t.Context(), made.entrypoint[0], args...)
	c.Dir, c.Env = "/", made.env
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: made.root, Pdeathsig: syscall.SIGKILL,
		Credential: &syscall.Credential{Uid: made.uid, Gid: made.gid}, Cloneflags: syscall.CLONE_NEWNET}
	said, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	c.Stdout, c.Stderr = told, told
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = told.Close()
	var all bytes.Buffer
	leads := false
	lines := bufio.NewScanner(io.TeeReader(said, &all))
	for lines.Scan() {
		if strings.Contains(lines.Text(), "msg=leads") {
			leads = true
			if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		}
	}
	if err := c.Wait(); err != nil || !leads {
		t.Errorf("%v:\n%s", err, &all)
	}
}
