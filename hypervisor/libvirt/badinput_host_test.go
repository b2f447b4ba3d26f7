//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A setback is why a host cannot be opened.
type setback struct {
	name  string
	spoil func(t *testing.T, w *trial, c *libvirt.Config)
	kind  hypervisor.Kind
	words []string
}

func at(uri string) func(*testing.T, *trial, *libvirt.Config) {
	return func(_ *testing.T, _ *trial, c *libvirt.Config) { c.URI = uri }
}

// listening answers the URI of a socket at which another program listens.
func listening(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return "qemu+unix:///system?socket=" + path
}

func wrong(change func(*libvirt.Config)) func(*testing.T, *trial, *libvirt.Config) {
	return func(_ *testing.T, _ *trial, c *libvirt.Config) { change(c) }
}

var setbacks = []setback{
	{"a URI that is none", at("\x7f://"), hypervisor.Invalid, []string{"libvirt URI"}},
	{"a URI without a scheme", at("/var/run/libvirt"), hypervisor.Invalid,
		[]string{"no scheme", "qemu:///system"}},
	{"a URI with NUL", at("qemu:///sys\x00tem"), hypervisor.Invalid, []string{"libvirt URI"}},
	{"an unknown transport", at("qemu+pigeon://n1/system"), hypervisor.Invalid,
		[]string{"unknown transport", "pigeon"}},
	{"a hypervisor that is not QEMU", at("test:///default"), hypervisor.Unsupported,
		[]string{"test", "not QEMU"}},
	{"another one that is not", at("xen:///system"), hypervisor.Unsupported, []string{"Xen"}},
	{"a host that refuses", at("qemu+tcp://127.0.0.1:1/system"), hypervisor.Transient,
		[]string{"qemu+tcp://127.0.0.1:1/system", "refused", "libvirtd"}},
	{"a socket that is not there", at("qemu+unix:///system?socket=/nonexistent/sock"),
		hypervisor.Transient, []string{"/nonexistent/sock", "libvirtd"}},
	{"a socket that is a file", func(t *testing.T, _ *trial, c *libvirt.Config) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.URI = "qemu+unix:///system?socket=" + path
	}, hypervisor.Transient, []string{"/file", "libvirtd"}},
	{"a socket that another program closes", func(t *testing.T, _ *trial, c *libvirt.Config) {
		c.URI = listening(t, func(s net.Conn) { s.Close() })
	}, hypervisor.Transient, []string{"libvirtd"}},
	{"a socket that speaks another protocol",
		func(t *testing.T, _ *trial, c *libvirt.Config) {
			c.URI = listening(t, func(s net.Conn) {
				_, _ = io.WriteString(s, strings.Repeat("220 mail.example ESMTP\r\n", 9))
				_, _ = io.CopyN(io.Discard, s, 28) // the first call
				s.Close()
			})
		}, hypervisor.Transient, []string{"libvirtd"}},
	{"a socket that does not answer", func(t *testing.T, _ *trial, c *libvirt.Config) {
		silent := make(chan net.Conn, 16)
		c.Timeout = 300 * time.Millisecond
		t.Cleanup(func() {
			close(silent)
			for s := range silent {
				s.Close()
			}
		})
		c.URI = listening(t, func(s net.Conn) { silent <- s })
	}, hypervisor.Transient, []string{"300ms"}},
	{"no name", wrong(func(c *libvirt.Config) { c.Name = "" }), hypervisor.Invalid,
		[]string{"Name"}},
	{"no directory", wrong(func(c *libvirt.Config) { c.Dir = "" }), hypervisor.Invalid,
		[]string{"Dir"}},
	{"less than no memory", wrong(func(c *libvirt.Config) { c.Memory = -mib }),
		hypervisor.Invalid, []string{"Memory", "negative"}},
	{"less than no patience", wrong(func(c *libvirt.Config) { c.Grace = -1 }),
		hypervisor.Invalid, []string{"Grace", "negative"}},
	{"a keep-alive of half seconds",
		wrong(func(c *libvirt.Config) { c.KeepAlive = 1500 * time.Millisecond }),
		hypervisor.Invalid, []string{"1.5s", "whole seconds"}},
	{"an accelerator of another system",
		wrong(func(c *libvirt.Config) { c.Accelerator = "hvf" }), hypervisor.Invalid,
		[]string{"Accelerator", "hvf"}},
	{"disks in a relative directory", wrong(func(c *libvirt.Config) { c.DiskDir = "images" }),
		hypervisor.Invalid, []string{"DiskDir", "images"}},
	{"a directory that others may enter", func(t *testing.T, _ *trial, c *libvirt.Config) {
		c.Dir = filepath.Join(t.TempDir(), "open")
		if err := os.Mkdir(c.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}, hypervisor.Invalid, []string{"open", "0755", "chmod 0700"}},
	{"a directory that is a file", func(t *testing.T, _ *trial, c *libvirt.Config) {
		c.Dir = filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(c.Dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}, hypervisor.Invalid, []string{"file", "not a directory"}},
	{"a directory that this process owns", func(_ *testing.T, w *trial, c *libvirt.Config) {
		c.Dir = w.config(hosta).Dir
	}, hypervisor.Conflict, []string{"hosta", "in use by process " + fmt.Sprint(os.Getpid())}},
}

// third is the config of another host at hosta's libvirtd.
func (w *trial) third() libvirt.Config {
	c := w.config(hosta)
	c.Name, c.Dir = "hostc", filepath.Join(w.dir, "hostc")
	return c
}

// Whatever keeps a host from being opened, it says what, and leaves nothing that keeps
// it from being opened when that is put right.
func TestAHostThatCannotBeOpenedSaysWhy(t *testing.T) {
	w := newTrial(t, nil)
	for _, s := range setbacks {
		t.Run(s.name, func(t *testing.T) {
			c := w.third()
			good := c
			s.spoil(t, w, &c)
			began := time.Now()
			h, err := libvirt.New(t.Context(), c)
			if h != nil {
				h.Close()
			}
			backendtest.Refused(t, err, s.kind, s.words...)
			if d := time.Since(began); d > testutil.Limit(30*time.Second) {
				t.Errorf("it took %v", d)
			}
			if h, err = libvirt.New(t.Context(), good); err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two processes do not share a directory, whatever they are called.
func TestAnotherProcessOwnsTheDirectory(t *testing.T) {
	w := newTrial(t, nil)
	c := w.third()
	e, err := backendtest.StartAgent(post{Name: "hostd", Dir: c.Dir, URI: c.URI, Peer: c.Peer,
		Accel: domxml.QEMU}, c.Dir+".log")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Kill()
	_, err = libvirt.New(t.Context(), c)
	backendtest.Refused(t, err, hypervisor.Conflict, c.Dir,
		"in use by process "+fmt.Sprint(e.PID()), "stop it")
	e.Kill()
	h, err := libvirt.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// checksum is the line of a record that says whether it was changed.
var checksum = regexp.MustCompile(`,\n\t"checksum": "[^"]*"`)

// A journal that was spoilt is not guessed at: the file is named, and the line.
func TestACorruptJournalIsNamed(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm("suite/awaited", calm)
	w.receive("job", vm)
	dir := w.config(hostb).Dir
	must(t, w.hosts[hostb].Close())
	delete(w.hosts, hostb)
	replace := func(old, new string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, new, 1) }
	}
	for _, row := range []struct {
		name  string
		kind  string
		spoil func(string) string
		words []string
	}{
		{"half a file", "vms", func(text string) string { return text[:len(text)/2] },
			[]string{":", "repair the file"}},
		{"nothing", "jobs", func(string) string { return "" }, []string{":1: ", "EOF"}},
		{"a line that is no JSON", "vms", replace("\t\"Name\"", "\tName"),
			[]string{":LINE", "'N'"}},
		{"a number for a text", "jobs", replace("\"job\"", "7"), []string{":2: ", "number"}},
		{"a state that is none", "vms", replace(`"Absent"`, `"Asleep"`), []string{"Asleep"}},
		{"a field that is none", "jobs", replace(`"Role"`, `"Part"`), []string{"Part"}},
		{"two records", "jobs", func(text string) string { return text + text },
			[]string{"after the record"}},
		{"another one's record", "jobs", replace(`"ID": "job"`, `"ID": "other"`),
			[]string{"was changed since it was written"}},
		{"another one's record, without its checksum", "jobs", func(text string) string {
			return checksum.ReplaceAllString(replace(`"ID": "job"`, `"ID": "other"`)(text), "")
		}, []string{"other", "belongs elsewhere"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(dir, row.kind, "*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			text, err := os.ReadFile(files[0])
			must(t, err)
			spoilt := row.spoil(string(text))
			if spoilt == string(text) {
				t.Fatalf("it is as it was:\n%s", text)
			}
			must(t, os.WriteFile(files[0], []byte(spoilt), 0o600))
			h, err := libvirt.New(t.Context(), w.config(hostb))
			if h != nil {
				h.Close()
			}
			line := 1 + strings.Count(spoilt[:max(0, strings.Index(spoilt, "\tName"))], "\n")
			for i, word := range row.words {
				row.words[i] = strings.ReplaceAll(word, "LINE", fmt.Sprint(line))
			}
			backendtest.Refused(t, err, hypervisor.Invalid, append(row.words, files[0])...)
			must(t, os.WriteFile(files[0], text, 0o600))
		})
	}
	_, err := w.open(hostb)
	must(t, err)
	if d := w.Domain(hostb, vm.ID); d.State != hypervisor.Receiving {
		t.Errorf("repaired, it is %v", d.State)
	}
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
}
