package qmp_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A script that speaks as a QEMU of 2016 does, and knows no command.
const ancient = `#!/bin/sh
echo '{"QMP": {"version": {"qemu": {"micro": 0, "minor": 8, "major": 2}, "package": ""},
 "capabilities": []}}'
while read -r line; do
	id=${line#*\"id\":\"}
	id=${id%%\"*}
	case $id in
	qmp_capabilities) echo "{\"return\": {}, \"id\": \"$id\"}" ;;
	*) echo "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no\"}, \"id\": \"$id\"}" ;;
	esac
done
`

// A setback is why a host cannot be opened.
type setback struct {
	name  string
	make  func(t *testing.T, l *lab, c *qmp.Config)
	kind  hypervisor.Kind
	words []string
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked makes a host ask a program what it can do.
func asked(program string) func(*testing.T, *lab, *qmp.Config) {
	return func(_ *testing.T, _ *lab, c *qmp.Config) {
		c.QEMU = program
		c.SetFeatures(nil)
	}
}

var setbacks = []setback{
	{"a directory with so long a name that no socket fits into it",
		func(_ *testing.T, l *lab, c *qmp.Config) {
			c.Dir = filepath.Join(l.dir, strings.Repeat("d", 90))
		}, hypervisor.Invalid, []string{"Dir", "ddd", "107"}},
	{"a directory with just too long a name",
		func(_ *testing.T, l *lab, c *qmp.Config) {
			c.Dir = l.dir + "/" + strings.Repeat("d", 107-len("/vms//console.sock")-33-len(l.dir))
		}, hypervisor.Invalid, []string{"Dir", "ddd", "107"}},
	{"a directory that others may enter",
		func(t *testing.T, l *lab, c *qmp.Config) {
			must(t, os.Mkdir(c.Dir, 0o755))
			must(t, os.Chmod(c.Dir, 0o755))
		}, hypervisor.Invalid, []string{"n3", "0755", "chmod 0700"}},
	{"a directory that belongs to another user",
		func(t *testing.T, l *lab, c *qmp.Config) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			must(t, os.Mkdir(c.Dir, 0o700))
			must(t, os.Chown(c.Dir, 65534, 65534))
		}, hypervisor.Invalid, []string{"n3", "belongs to user 65534"}},
	{"a directory that is a file",
		func(t *testing.T, l *lab, c *qmp.Config) { must(t, os.WriteFile(c.Dir, nil, 0o600)) },
		hypervisor.Invalid, []string{"n3"}},
	{"a directory that is a link",
		func(t *testing.T, l *lab, c *qmp.Config) { must(t, os.Symlink(l.dir, c.Dir)) },
		hypervisor.Invalid, []string{"n3", "no directory"}},
	{"a directory that a living process owns",
		func(_ *testing.T, l *lab, c *qmp.Config) { c.Dir = filepath.Join(l.dir, "n1") },
		hypervisor.Conflict, []string{"n1", "in use by process " + strconv.Itoa(os.Getpid())}},
	{"no name", func(_ *testing.T, _ *lab, c *qmp.Config) { c.Name = "" }, hypervisor.Invalid,
		[]string{"Name"}},
	{"everything wrong at once", func(_ *testing.T, _ *lab, c *qmp.Config) {
		*c = qmp.Config{Listen: "nowhere", Port: 70000, Memory: -1, Accelerator: "xen"}
	}, hypervisor.Invalid, []string{"Name", "Dir", "nowhere", "70000", "negative", "xen"}},
	{"a QEMU that is not there", asked("/nonexistent/qemu"), hypervisor.Invalid,
		[]string{"/nonexistent/qemu", "install it"}},
	{"a QEMU that is no program", func(t *testing.T, l *lab, c *qmp.Config) {
		asked(file(l, "text", []byte("text")))(t, l, c)
	}, hypervisor.Invalid, []string{"text", "permission denied"}},
	{"a QEMU that is another program", asked("/bin/true"), hypervisor.Invalid,
		[]string{"/bin/true", "does not greet like a QEMU"}},
	{"a QEMU that says something else", asked("/bin/echo"), hypervisor.Invalid,
		[]string{"/bin/echo", "does not greet like a QEMU"}},
	{"a QEMU that is too old", func(t *testing.T, l *lab, c *qmp.Config) {
		path := file(l, "ancient", []byte(ancient))
		must(t, os.Chmod(path, 0o700))
		asked(path)(t, l, c)
	}, hypervisor.Unsupported, []string{"QEMU 2.8.0 is too old", "6.2.0"}},
	{"a port that is in use", func(t *testing.T, _ *lab, c *qmp.Config) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { l.Close() })
		c.Listen, c.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	}, hypervisor.Invalid, []string{"listen for sources", "address already in use"}},
}

// Whatever keeps a host from being opened, it says what, and when that is put right
// the host opens.
func TestAHostThatCannotBeOpenedSaysWhy(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	for _, s := range setbacks {
		t.Run(s.name, func(t *testing.T) {
			c := l.config("n3")
			s.make(t, l, &c)
			h, err := qmp.New(t.Context(), c)
			if err == nil {
				h.Close()
			}
			backendtest.Refused(t, err, s.kind, s.words...)
			must(t, os.RemoveAll(filepath.Join(l.dir, "n3")))
			h, err = qmp.New(t.Context(), l.config("n3"))
			must(t, err)
			must(t, h.Close())
			must(t, os.RemoveAll(filepath.Join(l.dir, "n3")))
		})
	}
	l.unharmed()
}

// unharmed wants the hosts of the lab to have taken no harm.
func (l *lab) unharmed() {
	l.T.Helper()
	vm := l.vm("suite/unharmed", calm)
	l.start("n1", vm)
	l.begin("unharmed", vm.ID, options{})
	l.arrives("unharmed", vm.ID)
}

func TestALockThatADeadProcessLeftIsFree(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	c := l.config("n3")
	must(t, os.Mkdir(c.Dir, 0o700))
	must(t, os.WriteFile(filepath.Join(c.Dir, "lock"), []byte("1\n"), 0o600))
	h, err := qmp.New(t.Context(), c)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(c.Dir, "lock"))
	must(t, err)
	if strings.TrimSpace(string(text)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("the lock says %q", text)
	}
	must(t, h.Close())
}

// A record that cannot be read is a matter for a person: nothing is guessed, removed
// or ended.
func TestACorruptJournalIsNamedAndLeftAlone(t *testing.T) {
	for _, row := range []struct {
		name, pattern string
		harm          func(text string) string
		words         []string
	}{
		{"a record that was cut off", "vms/*/domain",
			func(s string) string { return s[:len(s)/2] }, []string{"/domain:"}},
		{"a record that is garbage from its third line", "vms/*/domain", func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return lines[0] + lines[1] + "garbage" + strings.Join(lines[2:], "")
		}, []string{"/domain:3:"}},
		{"a record with a field of another kind", "vms/*/domain", func(s string) string {
			return strings.Replace(s, `"CPUs": 1`, `"CPUs": "one"`, 1)
		}, []string{"/domain:", "CPUs"}},
		{"an empty record", "vms/*/domain", func(string) string { return "" },
			[]string{"/domain:1:"}},
		{"a job that is garbage", "jobs/*", func(string) string { return "{\n\x00" },
			[]string{"/jobs/", ":2:"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/kept", calm)
			l.start("n1", vm)
			l.begin("cancelled", vm.ID, options{HoldSwitchOver: true})
			l.Adjust("cancelled", hypervisor.Cancel{})
			l.Until("n1", "cancelled", hypervisor.JobCancelled)
			l.Do("n2", vm.ID, hypervisor.Discard{Job: "cancelled"})

			files, err := filepath.Glob(filepath.Join(l.dir, "n1", row.pattern))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			whole, err := os.ReadFile(files[0])
			must(t, err)
			harmed := row.harm(string(whole))
			must(t, l.hosts["n1"].Close())
			delete(l.hosts, "n1")
			must(t, os.WriteFile(files[0], []byte(harmed), 0o600))
			for range 2 {
				_, err = l.open("n1")
				backendtest.Refused(t, err, hypervisor.Invalid, append(row.words,
					"repair the file")...)
			}
			if now, err := os.ReadFile(files[0]); err != nil || string(now) != harmed {
				t.Errorf("the record was changed: %v", err)
			}
			must(t, os.WriteFile(files[0], whole, 0o600))
			l.reopen("n1")
			l.sound("n1", vm.ID)
			l.ends("n1", vm.ID)
		})
	}
}

// Where nothing can be written down, nothing is begun, and what runs runs on.
func TestAFullDiskUnderTheJournal(t *testing.T) {
	dir, err := os.MkdirTemp("", "")
	must(t, err)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=0700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		c.Memory, c.CPUs = small, 2
		if c.Name == "n1" {
			c.Dir = filepath.Join(dir, "n1")
		}
	})
	t.Cleanup(func() { must(t, testutil.KillBelow(dir)) })
	runs, other := l.vm("suite/runs", calm), l.vm("suite/other", calm)
	other.Memory = small - runs.Memory
	l.start("n1", runs)
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	must(t, f.Close())

	const full = "no space left on device"
	l.Refuses("n1", other.ID, hypervisor.Start{VM: other}, hypervisor.Transient, full)
	l.Refuses("n1", runs.ID, hypervisor.Stop{}, hypervisor.Transient, full)
	_, err = l.hosts["n1"].Receive(t.Context(), hypervisor.Incoming{Job: "in", VM: other})
	backendtest.Refused(t, err, hypervisor.Transient, full)
	backendtest.Refused(t, l.send("out", runs.ID, options{}), hypervisor.Transient, full)
	if all, err := l.hosts["n1"].Domains(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("the host has %v: %v", all, err)
	}
	l.sound("n1", runs.ID)

	must(t, os.Remove(fill))
	l.Do("n2", runs.ID, hypervisor.Discard{Job: "out"})
	l.begin("again", runs.ID, options{})
	l.arrives("again", runs.ID)
	l.works("n1")
}
