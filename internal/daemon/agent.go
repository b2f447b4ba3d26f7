package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// An Agent acts for one host, gives its sign of life and says what it has.
type Agent struct {
	// Host is the host's name. It must be set.
	Host       hypervisor.HostName
	Hypervisor hypervisor.Hypervisor
	// Notifier is notified by the hypervisor when a VM has changed. Default: never.
	Notifier *Notifier
	Store    store.Store
	Config   agent.Config
	// Identity is what the host's name belongs to. It must be set.
	Identity store.Identity
	// Lock names a lock that no other process on this machine that acts for the host holds: see
	// store.LeaseConfig. Default: none.
	Lock string
	// Console is the path of the socket at which the consoles of VMs are served. Default: they are not.
	Console string
	Dependencies
}

// Run claims the host, and acts for it until ctx ends. It ends with a *store.ForeignError when
// the host's name belongs to another identity, and with a *store.IdentityError when another
// process acts for the host; before it holds the name it acts on nothing. While a store that is a
// *Gate was set back, it acts on nothing either, and stores what the host has. The VMs run
// on.
//
// It acts on nothing before the controller that leads has admitted it: see controller.Hearing. When it
// has not reached the store for a while it begins anew, and is admitted anew.
func (a Agent) Run(ctx context.Context) error {
	a.complete()
	defer a.Supervisor.runs()()
	a.Config.Admission = true
	return a.each(ctx, a.Store, "agent/"+string(a.Host), a.Host, a.account, func(ctx context.Context) error {
		for {
			err := a.once(ctx)
			if !errors.Is(err, errLapsed) || ctx.Err() != nil {
				return err
			}
			a.Log.Warn("begins anew", "why", err)
		}
	})
}

// once claims the host, and acts for it until ctx ends or the store must not be used.
func (a Agent) once(ctx context.Context) error {
	a.Config.Session = session()
	times := newStoreTimes()
	claim, err := store.NewLeaseClaim(times.over(a.Store), store.Tenancy{Host: a.Host, Identity: a.Identity,
		Boot: a.Boot, Session: a.Config.Session, HeartbeatInterval: a.HeartbeatInterval, Lock: a.Lock,
		Describe: a.Hypervisor.Host})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	held := newTenure(claim, a.HeartbeatInterval, a.Uptime)
	if err := a.claim(ctx, claim, held); err != nil {
		if ctx.Err() != nil {
			return claim.End(context.WithoutCancel(ctx))
		}
		if Refused(err) {
			return err
		}
		return errors.Join(err, claim.End(ctx))
	}
	return a.act(ctx, end, claim, held, times)
}

// claim waits until the host is claimed. What does not pass by itself ends it: another process
// that acts for the host, or an identity that the host does not have.
func (a *Agent) claim(ctx context.Context, claim *store.LeaseClaim, held *tenure) error {
	said := ""
	for !claim.Holds() {
		wake, err := held.Reconcile(ctx, a.Now())
		if final(err) {
			a.Log.Error("is refused its host's name, and ends", "error", err)
			return err
		}
		if Refused(err) || errors.Is(err, errLapsed) {
			return err
		}
		text := "another process had the host's name: its lease has to run out"
		if err != nil {
			text = err.Error()
		}
		if said != text && !claim.Holds() {
			a.Log.Warn("waits for its host's name", "why", text)
			said = text
		}
		if claim.Holds() {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(20*time.Millisecond, wake.Sub(a.Now()))):
		}
	}
	return nil
}

// final reports whether an error says that this process will not get the host's name.
func final(err error) bool {
	_, two := errors.AsType[*store.IdentityError](err)
	_, foreign := errors.AsType[*store.ForeignError](err)
	return two || foreign
}

// act runs the loops of an agent that has claimed its host.
func (a *Agent) act(ctx context.Context, end context.CancelCauseFunc, claim *store.LeaseClaim,
	held *tenure, times *storeTimes) error {
	if a.Notifier == nil {
		a.Notifier = NewNotifier()
	}
	hv := WatchMetrics(a.Hypervisor, a.Host, a.Now)
	w := a.watch(NewMetrics(hv, times), end)
	defer a.Supervisor.follow(nil)
	w.health.Ready("store", answers(a.Store))
	w.remembers(a.Store)
	w.health.Ready("hypervisor", func(ctx context.Context) error {
		_, err := a.Hypervisor.Host(ctx)
		return err
	})
	t := a.trail("agent/"+string(a.Host), 0)
	if t != nil {
		t.Begin("begins")
	}
	if h, is := a.Hypervisor.(autostarter); is {
		a.Config.DisableAutostart = h.DisableAutostart
	}
	h := newHints()
	acting := agent.New(a.Host, a.Config, hv, over(t, times.over(h.follow(a.Store))), a.recorder(t))
	loop := w.loop("agent", held.within(&notified{acting, a.Notifier}))
	loop.Wait, loop.Trigger = h.wait, a.Notifier.kick
	beat := w.loop("lease", held)
	beat.Last = w.parting("lease", claim.End)
	known := w.loop("registrar", &Registrar{Host: a.Host, Hypervisor: a.Hypervisor,
		Store: over(t, times.over(a.Store))})
	done, err := w.serve()
	if err != nil {
		return err
	}
	hangUp := a.consoles(ctx)
	err = errors.Join(run(ctx, known, beat, loop), done())
	hangUp()
	cause := context.Cause(ctx)
	if Refused(cause) || errors.Is(cause, errLapsed) {
		return cause // what else has failed, failed for that
	}
	if final(cause) {
		err = errors.Join(cause, err)
	}
	return err
}

// An autostarter is a hypervisor that can start VMs by itself when its host boots.
type autostarter interface {
	DisableAutostart(context.Context, hypervisor.VMID) error
	Autostarted(context.Context) ([]string, error)
}

// Autostarted lists the domains that a host starts by itself when it boots.
func Autostarted(ctx context.Context, h Host) ([]string, error) {
	if a, is := h.(autostarter); is {
		return a.Autostarted(ctx)
	}
	return nil, nil
}

// A Notifier is notified by a hypervisor when a VM has changed, and wakes its agent. It is safe for
// concurrent use. Make it with [NewNotifier].
type Notifier struct {
	kick chan struct{}
	mu   sync.Mutex
	vms  []hypervisor.VMID
}

// NewNotifier returns a notifier without notifications.
func NewNotifier() *Notifier { return &Notifier{kick: make(chan struct{}, 1)} }

// mostRung is how many VMs are remembered; hints beyond are lost, and cost only time.
const mostRung = 10_000

// Notify says that a VM may have changed. It never blocks.
func (b *Notifier) Notify(vm hypervisor.VMID) {
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

// take returns for which VMs it was notified since it was last called.
func (b *Notifier) take() []hypervisor.VMID {
	b.mu.Lock()
	defer b.mu.Unlock()
	vms := b.vms
	b.vms = nil
	return vms
}

// notified is an agent that a notifier wakes.
type notified struct {
	agent    *agent.Agent
	notifier *Notifier
}

// Reconcile passes on what was notified, and lets the agent look.
func (r *notified) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	for _, vm := range r.notifier.take() {
		r.agent.Hint(vm)
	}
	return r.agent.Reconcile(ctx, now)
}
