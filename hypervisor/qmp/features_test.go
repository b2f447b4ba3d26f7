package qmp_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// calm is a guest that writes a little, and whose memory no compression makes
// smaller.
var calm = guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true}

type (
	options = hypervisor.TransferOptions
	job     = hypervisor.JobID
)

// start runs a VM on a host, and waits until its guest beats.
func (l *lab) start(n name, vm hypervisor.VM) {
	l.T.Helper()
	l.Do(n, vm.ID, hypervisor.Start{VM: vm})
}

// begin opens a target on n2 for what runs, or rests, on n1, and begins to send.
func (l *lab) begin(j job, id vmid, o options) {
	l.T.Helper()
	l.Repeat("the migration begins", func() error { return l.send(j, id, o) })
}

// send is begin, and answers what Migrate does.
func (l *lab) send(j job, id vmid, o options) error {
	l.T.Helper()
	address := l.receive(j, l.Domain("n1", id).VM)
	return l.hosts["n1"].Migrate(l.T.Context(), hypervisor.Outgoing{Job: j, VM: id, Target: "n2",
		Address: address, Options: o})
}

// receive opens a target on n2.
func (l *lab) receive(j job, vm hypervisor.VM) hypervisor.Address {
	l.T.Helper()
	var address hypervisor.Address
	l.Repeat("the target is opened", func() (err error) {
		address, err = l.Host("n2").Receive(l.T.Context(), hypervisor.Incoming{Job: j, VM: vm})
		return err
	})
	return address
}

// sound wants a VM to run on a host and nowhere else, with all of its memory, and
// without ever having run twice.
func (l *lab) sound(n name, id vmid) {
	l.T.Helper()
	l.Becomes(n, id, hypervisor.Running)
	if err := l.verify(n, id); err != nil {
		l.T.Fatal(err)
	}
	testutil.Eventually(l.T, "the guest beats on "+string(n), func() error {
		on, err := l.alive(id)
		if err == nil && !slices.Equal(on, []name{n}) {
			return fmt.Errorf("it beats on %v", on)
		}
		if err != nil {
			return testutil.Stop(err) // it has run twice, or was lost
		}
		return nil
	})
	if err := l.pulse(id).Log().Check(); err != nil {
		l.T.Fatal(err)
	}
}

// arrives waits until a job has succeeded, wants the VM to be sound at n2, removes
// it from n1, and at the end from n2: then nothing may be left.
func (l *lab) arrives(j job, id vmid) {
	l.T.Helper()
	l.Until("n1", j, hypervisor.JobSucceeded)
	l.sound("n2", id)
	l.release(j, id, "n1", "n2")
	l.ends("n2", id)
}

// stays wants a VM to be sound at n1 after its job has ended, and ends both.
func (l *lab) stays(j job, id vmid) {
	l.T.Helper()
	l.sound("n1", id)
	l.Do("n2", id, hypervisor.Discard{Job: j})
	l.ends("n1", id)
}

// ends kills and forgets a VM, and wants nothing to be left of any.
func (l *lab) ends(n name, id vmid) {
	l.T.Helper()
	l.Do(n, id, hypervisor.Kill{}, hypervisor.Forget{})
	l.empty()
}

// empty wants no VM, no process, no socket and no record of a VM to be left.
func (l *lab) empty() {
	l.T.Helper()
	backendtest.Bare(l.T, l.hosts)
	found, err := qemu.Find(func(argv []string) bool {
		return strings.Contains(strings.Join(argv, " "), l.dir+"/") && argv[0] != os.Args[0]
	})
	if err != nil || len(found) > 0 {
		l.T.Errorf("processes are left: %v, %v", found, err)
	}
	for _, pattern := range []string{"n*/vms/*", "n*/jobs/*.new"} {
		if left, err := filepath.Glob(filepath.Join(l.dir, pattern)); err != nil || len(left) > 0 {
			l.T.Errorf("files are left: %v, %v", left, err)
		}
	}
}

// disks lists the images of local disks on a host.
func (l *lab) disks(n name) []string {
	l.T.Helper()
	var list []string
	top := filepath.Join(l.dir, string(n), "disks")
	err := filepath.WalkDir(top, func(path string, f fs.DirEntry, err error) error {
		if err == nil && !f.IsDir() {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		l.T.Fatal(err)
	}
	return list
}

// ask gives a command to the QEMU of a VM, besides those of its host.
func (l *lab) ask(n name, id vmid, command string, arguments any) map[string]any {
	l.T.Helper()
	m, err := l.hosts[n].Monitor(id)
	if err != nil {
		l.T.Fatal(err)
	}
	var reply map[string]any
	if err := m.Execute(l.T.Context(), command, arguments, &reply); err != nil {
		l.T.Fatal(err)
	}
	return reply
}

// set gives a QEMU a parameter of migrations that its host leaves alone.
func (l *lab) set(n name, id vmid, parameters map[string]any) {
	l.T.Helper()
	m, err := l.hosts[n].Monitor(id)
	if err == nil {
		err = m.Execute(l.T.Context(), "migrate-set-parameters", parameters, nil)
	}
	if err != nil {
		l.T.Fatal(err)
	}
}

// silence is how long a QEMU may be silent where a test cuts its link or hangs it.
const silence = 5 * time.Second

// linked opens a lab whose hosts reach each other over a link. Change may be nil.
func linked(t *testing.T, change func(*qmp.Config)) (*lab, *link) {
	t.Helper()
	var wire *link
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		if wire == nil {
			wire = newLink(t, filepath.Join(filepath.Dir(c.Dir), "l"))
		}
		c.Advertise, c.Timeout = wire.advertise, silence
		if change != nil {
			change(c)
		}
	})
	return l, wire
}

// freePorts returns two ports where nothing listens on this machine.
func freePorts(t testing.TB) map[name]int {
	t.Helper()
	ports := map[name]int{}
	for _, n := range []name{"n1", "n2"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[n] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// overTCP makes hosts listen at ports of this machine.
func overTCP(ports map[name]int) func(*qmp.Config) {
	return func(c *qmp.Config) { c.Listen, c.Port = "127.0.0.1", ports[c.Name] }
}

func portText(port int) string { return strconv.Itoa(port) }
