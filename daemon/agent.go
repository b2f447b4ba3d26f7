package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/daemon/metrics"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/lease"
	"github.com/godwit-vm/godwit/record"
)

// An Agent acts for one host, gives its sign of life and says what it has.
type Agent struct {
	// Host is the host's name. It must be set.
	Host       hypervisor.HostName
	Hypervisor hypervisor.Hypervisor
	// Bell is rung by the hypervisor when a VM has changed. Default: nobody rings.
	Bell   *Bell
	Store  record.Store
	Config agent.Config
	Surroundings
}

// Run runs the agent until ctx ends, or another process has its name, which is a
// *lease.IdentityError. The VMs run on.
func (a Agent) Run(ctx context.Context) error {
	a.complete()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	beater, err := lease.NewBeater(a.Store, lease.Beat{Owner: record.HostLease(a.Host),
		Boot: a.Boot, Session: session(), Every: a.Every})
	if err != nil {
		return err
	}
	if a.Bell == nil {
		a.Bell = NewBell()
	}
	hv := metrics.Watch(a.Hypervisor, a.Host, a.Now)
	w := a.watch(metrics.New(hv), end)
	w.health.Ready("store", answers(a.Store))
	w.health.Ready("hypervisor", func(ctx context.Context) error {
		_, err := a.Hypervisor.Host(ctx)
		return err
	})
	t := a.trail("agent/"+string(a.Host), 0)
	if t != nil {
		t.Begin("begins")
	}
	h := newHints()
	acting := agent.New(a.Host, a.Config, hv, over(t, h.follow(a.Store)), a.noter(t))
	loop := w.loop("agent", &rung{acting, a.Bell})
	loop.Wait, loop.Kick = h.wait, a.Bell.kick
	beat := w.loop("lease", beater)
	beat.Last = w.parting("lease", beater.End)
	known := w.loop("registrar", &Registrar{Host: a.Host, Hypervisor: a.Hypervisor,
		Store: over(t, a.Store)})
	done, err := w.serve()
	if err != nil {
		return err
	}
	err = errors.Join(run(ctx, known, beat, loop), done())
	if two, is := errors.AsType[*lease.IdentityError](context.Cause(ctx)); is {
		err = errors.Join(two, err)
	}
	return err
}

// A Bell is rung by a hypervisor when a VM has changed, and wakes its agent. It is safe for
// concurrent use. Make it with [NewBell].
type Bell struct {
	kick chan struct{}
	mu   sync.Mutex
	vms  []hypervisor.VMID
}

// NewBell returns a bell that nobody has rung.
func NewBell() *Bell { return &Bell{kick: make(chan struct{}, 1)} }

// mostRung is how many VMs are remembered; hints beyond are lost, and cost only time.
const mostRung = 10_000

// Ring says that a VM may have changed. It never blocks.
func (b *Bell) Ring(vm hypervisor.VMID) {
	b.mu.Lock()
	if len(b.vms) < mostRung && !slices.Contains(b.vms[max(0, len(b.vms)-16):], vm) {
		b.vms = append(b.vms, vm)
	}
	b.mu.Unlock()
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// take returns for which VMs it was rung since it was last called.
func (b *Bell) take() []hypervisor.VMID {
	b.mu.Lock()
	defer b.mu.Unlock()
	vms := b.vms
	b.vms = nil
	return vms
}

// rung is an agent that hears a bell.
type rung struct {
	agent *agent.Agent
	bell  *Bell
}

// Reconcile passes on what was rung, and lets the agent look.
func (r *rung) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	for _, vm := range r.bell.take() {
		r.agent.Hint(vm)
	}
	return r.agent.Reconcile(ctx, now)
}
