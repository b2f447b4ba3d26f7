package fake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Short names for what nearly every test says.
type (
	vmid = hypervisor.VMID
	name = hypervisor.HostName
	cmd  = hypervisor.Command
)

const (
	gib = hypervisor.GiB
	mib = hypervisor.MiB
	ms  = time.Millisecond
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A tester is a *testing.T, *testing.B or *rapid.T.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// A world is a network with a few hosts, and what tests do with it.
type world struct {
	*fake.Network
	t tester
}

// newWorld has hosts n1, n2 and n3 with 64 GiB, 64 CPUs and 10 Gbit/s.
func newWorld(t tester, m fake.Model) *world {
	t.Helper()
	w := &world{fake.NewNetwork(epoch, m), t}
	for _, n := range []name{"n1", "n2", "n3"} {
		w.host(hypervisor.Host{Name: n, Memory: 64 * gib, CPUs: 64, Link: 10 * hypervisor.Gbit})
	}
	return w
}

func (w *world) host(h hypervisor.Host) {
	w.t.Helper()
	_, err := w.AddHost(h)
	w.ok(err)
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
}

// aVM is a VM of 4 GiB and one CPU.
func aVM(id vmid) hypervisor.VM { return hypervisor.VM{ID: id, Memory: 4 * gib, CPUs: 1} }

func (w *world) boot(on name, id vmid, load fake.Workload) {
	w.t.Helper()
	w.ok(w.Host(on).Boot(aVM(id), load))
}

// A move is a migration of a test.
type move struct {
	vm       hypervisor.VM
	from, to name
	hold     bool
	options  hypervisor.TransferOptions
}

// begin opens the target and begins to send; the job is named after the VM.
func (w *world) begin(m move) hypervisor.JobID {
	w.t.Helper()
	job := hypervisor.JobID("job-" + m.vm.ID)
	a, err := w.Host(m.to).Receive(ctx, hypervisor.Incoming{Job: job, VM: m.vm, Hold: m.hold})
	w.ok(err)
	w.ok(w.Host(m.from).Migrate(ctx, hypervisor.Outgoing{Job: job, VM: m.vm.ID, Target: m.to,
		Address: a, Options: m.options}))
	return job
}

func (w *world) pass(d time.Duration) { w.AdvanceTo(w.Now().Add(d)) }

// until advances event by event until done, and fails after an hour.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for limit := w.Now().Add(time.Hour); !done(); {
		next, some := w.Next()
		if !some || next.After(limit) {
			w.t.Fatalf("%s: never, it is %v", what, w.Now().Sub(epoch))
		}
		w.AdvanceTo(next)
	}
}

func (w *world) untilStatus(on name, job hypervisor.JobID, s hypervisor.JobStatus) {
	w.t.Helper()
	w.until("job "+s.String(), func() bool { return w.progress(on, job).Status == s })
}

func (w *world) progress(on name, job hypervisor.JobID) hypervisor.Progress {
	w.t.Helper()
	p, err := w.Host(on).Progress(ctx, job)
	w.ok(err)
	return p
}

func (w *world) domain(on name, id vmid) hypervisor.Domain {
	w.t.Helper()
	d, err := w.Host(on).Domain(ctx, id)
	w.ok(err)
	return d
}

func (w *world) state(on name, id vmid) hypervisor.DomainState { return w.domain(on, id).State }

// sure is a Model whose steps last long enough to be caught in the middle.
func sure() fake.Model {
	return fake.Model{SetUp: 10 * ms, SwitchOver: 10 * ms, Acknowledge: 10 * ms,
		DeviceState: 64 * mib, BootTime: 10 * time.Second, ShutdownTime: 5 * time.Second}
}

// mild dirties so little that every migration ends.
var mild = fake.Workload{ColdRate: 50e6, Cold: 1 * gib}

// wild dirties so much that none does.
var wild = fake.Workload{ColdRate: 2e9, Cold: 4 * gib}

func kindOf(err error) hypervisor.Kind {
	var e *hypervisor.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 255
}

func wantKind(t testing.TB, err error, want hypervisor.Kind) {
	t.Helper()
	if kindOf(err) != want {
		t.Fatalf("got error %v, want kind %v", err, want)
	}
}
