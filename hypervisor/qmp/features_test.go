package qmp_test

import (
	"errors"
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
	l.t.Helper()
	l.repeats("the VM is started", func() error {
		return l.host(n).Do(l.t.Context(), vm.ID, hypervisor.Start{VM: vm})
	})
}

// repeats does what may be repeated until it is done, as an agent does: on a busy machine a
// QEMU may take longer to answer than its host waits.
func (l *lab) repeats(what string, do func() error) {
	l.t.Helper()
	testutil.Eventually(l.t, what, func() error {
		err := do()
		if err != nil && !errors.Is(err, hypervisor.Transient) {
			return testutil.Stop(err)
		}
		return err
	})
}

// do gives a host commands that must succeed.
func (l *lab) do(n name, id vmid, commands ...hypervisor.Command) {
	l.t.Helper()
	for _, c := range commands {
		if err := l.host(n).Do(l.t.Context(), id, c); err != nil {
			l.t.Fatal(err)
		}
	}
}

// refuses gives a host a command that must fail with a kind, and with words.
func (l *lab) refuses(n name, id vmid, c hypervisor.Command, k hypervisor.Kind, words ...string) {
	l.t.Helper()
	refused(l.t, l.host(n).Do(l.t.Context(), id, c), k, words...)
}

// refused wants an error of a kind whose text contains words.
func refused(t testing.TB, err error, k hypervisor.Kind, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*hypervisor.Error](err)
	if !ok || e.Kind != k {
		t.Errorf("got %v; want an *Error that is %v", err, k)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

// begin opens a target on n2 for what runs, or rests, on n1, and begins to send.
func (l *lab) begin(j job, id vmid, o options) {
	l.t.Helper()
	l.repeats("the migration begins", func() error { return l.send(j, id, o) })
}

// send is begin, and answers what Migrate does.
func (l *lab) send(j job, id vmid, o options) error {
	l.t.Helper()
	address := l.receive(j, l.domain("n1", id).VM)
	return l.hosts["n1"].Migrate(l.t.Context(), hypervisor.Outgoing{Job: j, VM: id, Target: "n2",
		Address: address, Options: o})
}

// receive opens a target on n2.
func (l *lab) receive(j job, vm hypervisor.VM) hypervisor.Address {
	l.t.Helper()
	var address hypervisor.Address
	l.repeats("the target is opened", func() (err error) {
		address, err = l.host("n2").Receive(l.t.Context(), hypervisor.Incoming{Job: j, VM: vm})
		return err
	})
	return address
}

// adjust changes a job that n1 sends.
func (l *lab) adjust(j job, a hypervisor.Adjustment) {
	l.t.Helper()
	if err := l.hosts["n1"].Adjust(l.t.Context(), j, a); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) domain(n name, id vmid) hypervisor.Domain {
	l.t.Helper()
	d, err := l.hosts[n].Domain(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *lab) progress(n name, j job) hypervisor.Progress {
	l.t.Helper()
	p, err := l.hosts[n].Progress(l.t.Context(), j)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// eventually waits until a condition holds.
func (l *lab) eventually(what string, so func() bool) {
	l.t.Helper()
	testutil.Eventually(l.t, what, testutil.Holds(so))
}

// becomes waits until a VM is in a state.
func (l *lab) becomes(n name, id vmid, s hypervisor.DomainState) {
	l.t.Helper()
	testutil.Eventually(l.t, string(id)+" on "+string(n)+" is "+s.String(), func() error {
		d, err := l.hosts[n].Domain(l.t.Context(), id)
		switch {
		case errors.Is(err, hypervisor.Transient): // its QEMU hangs, or ends
			return err
		case err != nil:
			return testutil.Stop(err)
		case d.State != s:
			return fmt.Errorf("it is %v", d.State)
		}
		return nil
	})
}

// sound wants a VM to run on a host and nowhere else, with all of its memory, and
// without ever having run twice.
func (l *lab) sound(n name, id vmid) {
	l.t.Helper()
	l.becomes(n, id, hypervisor.Running)
	if err := l.verify(n, id); err != nil {
		l.t.Fatal(err)
	}
	testutil.Eventually(l.t, "the guest beats on "+string(n), func() error {
		on, err := l.alive(id)
		if err == nil && !slices.Equal(on, []name{n}) {
			return fmt.Errorf("it beats on %v", on)
		}
		if err != nil {
			return testutil.Stop(err) // it has run twice, or was lost
		}
		return nil
	})
	if err := l.pulse(id).Rhythm().Check(); err != nil {
		l.t.Fatal(err)
	}
}

// arrives waits until a job has succeeded, wants the VM to be sound at n2, removes
// it from n1, and at the end from n2: then nothing may be left.
func (l *lab) arrives(j job, id vmid) {
	l.t.Helper()
	l.until("n1", j, hypervisor.JobSucceeded)
	l.sound("n2", id)
	l.release(j, id, "n1", "n2")
	l.ends("n2", id)
}

// stays wants a VM to be sound at n1 after its job has ended, and ends both.
func (l *lab) stays(j job, id vmid) {
	l.t.Helper()
	l.sound("n1", id)
	l.do("n2", id, hypervisor.Discard{Job: j})
	l.ends("n1", id)
}

// ends kills and forgets a VM, and wants nothing to be left of any.
func (l *lab) ends(n name, id vmid) {
	l.t.Helper()
	l.do(n, id, hypervisor.Kill{}, hypervisor.Forget{})
	l.empty()
}

// empty wants no VM, no process, no socket and no record of a VM to be left.
func (l *lab) empty() {
	l.t.Helper()
	for n, h := range l.hosts {
		if all, err := h.Domains(l.t.Context()); err != nil || len(all) > 0 {
			l.t.Errorf("%s still has %v: %v", n, all, err)
		}
	}
	found, err := qemu.Find(func(argv []string) bool {
		return strings.Contains(strings.Join(argv, " "), l.dir+"/") && argv[0] != os.Args[0]
	})
	if err != nil || len(found) > 0 {
		l.t.Errorf("processes are left: %v, %v", found, err)
	}
	for _, pattern := range []string{"n*/vms/*", "n*/jobs/*.new"} {
		if left, err := filepath.Glob(filepath.Join(l.dir, pattern)); err != nil || len(left) > 0 {
			l.t.Errorf("files are left: %v, %v", left, err)
		}
	}
}

// disks lists the images of local disks on a host.
func (l *lab) disks(n name) []string {
	l.t.Helper()
	var list []string
	top := filepath.Join(l.dir, string(n), "disks")
	err := filepath.WalkDir(top, func(path string, f fs.DirEntry, err error) error {
		if err == nil && !f.IsDir() {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return list
}

// ask gives a command to the QEMU of a VM, besides those of its host.
func (l *lab) ask(n name, id vmid, command string, arguments any) map[string]any {
	l.t.Helper()
	m, err := l.hosts[n].Monitor(id)
	if err != nil {
		l.t.Fatal(err)
	}
	var reply map[string]any
	if err := m.Execute(l.t.Context(), command, arguments, &reply); err != nil {
		l.t.Fatal(err)
	}
	return reply
}

// set gives a QEMU a parameter of migrations that its host leaves alone.
func (l *lab) set(n name, id vmid, parameters map[string]any) {
	l.t.Helper()
	m, err := l.hosts[n].Monitor(id)
	if err == nil {
		err = m.Execute(l.t.Context(), "migrate-set-parameters", parameters, nil)
	}
	if err != nil {
		l.t.Fatal(err)
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
