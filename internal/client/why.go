package client

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/store"
)

// An Explanation says why a VM is where it is.
type Explanation struct {
	VM      VM                  `json:"vm"`
	Moves   []MoveReport        `json:"migrations"` // oldest first, as far as they are kept
	Reasons []hypervisor.Reason `json:"reasons"`    // what keeps it there
}

// Explain returns what a controller would decide about a VM now, and why. It writes nothing.
func Explain(ctx context.Context, records store.Store, config controller.Config,
	vm hypervisor.VMID, now time.Time) (*Explanation, error) {
	var c Cluster
	if err := c.Pull(ctx, records); err != nil {
		return nil, err
	}
	v := c.VM(vm)
	if v == nil {
		return nil, &store.StoreError{Op: "Get", Kind: store.Stale,
			Key: store.Key{Kind: store.VMKind, Name: string(vm)}} // it has just been deleted
	}
	e := &Explanation{VM: OfVM(&c, v), Moves: []MoveReport{}, Reasons: []hypervisor.Reason{}}
	for _, m := range c.Migrations() {
		if m.Spec.VM == vm {
			e.Moves = append(e.Moves, c.ReportMove(m, now))
		}
	}
	boss, err := newDecider(ctx, records, config, now)
	if err != nil {
		return nil, err
	}
	e.Reasons = append(e.Reasons, boss.Why(vm, now)...)
	if !waitsForHost(v) {
		return e, nil
	}
	placer, err := newPlacer(ctx, records, config, now)
	if err != nil {
		return nil, err
	}
	e.Reasons = append(e.Reasons, placer.Why(vm, now)...)
	return e, nil
}

// newDecider returns a controller that has seen a store as it is now. It writes nothing.
func newDecider(ctx context.Context, records store.Store, config controller.Config, now time.Time) (
	*controller.Controller, error) {
	f := &frozen{readOnly: readOnly{records}}
	boss := controller.New(config, f, store.DiscardEvents{})
	_, _ = boss.Reconcile(ctx, now) // it cannot write anything
	return boss, f.err
}

// WhyWaiting adds what keeps the VMs that wait now, and run. It writes nothing.
func (l *RemainingVMs) WhyWaiting(ctx context.Context, records store.Store, config controller.Config, now time.Time) error {
	if len(l.Waiting) == 0 {
		return nil
	}
	boss, err := newDecider(ctx, records, config, now)
	if err != nil {
		return err
	}
	for _, vm := range l.Waiting[:min(len(l.Waiting), mostExplained)] {
		isDown := slices.ContainsFunc(l.Down, func(b BlockedVM) bool { return b.VM == vm })
		if why := Summary(boss.Why(vm, now)); why != "" && !isDown {
			l.Because = append(l.Because, BlockedVM{vm, why})
		}
	}
	return nil
}

// waitsForHost reports whether a VM that is to run has no host yet.
func waitsForHost(v *store.VM) bool { return v.Host == "" && !v.Stopped }

// newPlacer returns what gives VMs their first host, as it sees a store now. It writes nothing.
func newPlacer(ctx context.Context, records store.Store, config controller.Config, now time.Time) (
	*controller.FailoverController, error) {
	f := &frozen{readOnly: readOnly{records}}
	placer := controller.NewFailover(controller.FailoverConfig{Placement: config.Placement,
		Evacuation: config.Evacuation}, f, nil, store.DiscardEvents{})
	_, _ = placer.Reconcile(ctx, now) // it cannot write anything
	return placer, f.err
}

// mostExplained is for how many VMs at once it is told why: each takes a look at all hosts.
const mostExplained = 20

// WhyPlaceless returns why no host takes the VMs that wait for one; nil when none does. It writes nothing.
func WhyPlaceless(ctx context.Context, records store.Store, config controller.Config, vms []VM,
	now time.Time) (map[hypervisor.VMID]string, error) {
	var placeless []hypervisor.VMID
	for i := range vms {
		if vms[i].placeless() && len(placeless) < mostExplained {
			placeless = append(placeless, vms[i].Name)
		}
	}
	if len(placeless) == 0 {
		return nil, nil
	}
	placer, err := newPlacer(ctx, records, config, now)
	if err != nil {
		return nil, err
	}
	why := map[hypervisor.VMID]string{}
	for _, vm := range placeless {
		why[vm] = Summary(placer.Why(vm, now))
	}
	return why, nil
}

// placeless reports whether all that is known of a VM is that it waits for a host.
func (v *VM) placeless() bool { return v.State == waitingForHost && v.Why == "" }

// TellPlaceless adds what [WhyPlaceless] has returned.
func TellPlaceless(vms []VM, why map[hypervisor.VMID]string) {
	for i := range vms {
		if v := &vms[i]; v.placeless() {
			v.Why = why[v.Name]
		}
	}
}

// Summary returns the first three reasons in one line; "" is none.
func Summary(why []hypervisor.Reason) string {
	var first []string
	for _, r := range why[:min(len(why), 3)] {
		first = append(first, humanize.Unmet(r.Check, r.Need, r.Have))
	}
	return strings.Join(first, "; ")
}

// ReadOnly returns a store that answers what s answers, and refuses writes.
func ReadOnly(s store.Store) store.Store {
	if h, is := s.(store.Historian); is {
		return readOnlyHistorian{readOnly{s}, h}
	}
	return readOnly{s}
}

// readOnly is a store that refuses writes.
type readOnly struct{ store.Store }

// Put refuses.
func (r readOnly) Put(_ context.Context, record store.Record, _ ...store.Record) (store.Record,
	error) {
	return nil, &store.StoreError{Op: "Put", Key: record.Key(), Kind: store.Unavailable}
}

// Delete refuses.
func (r readOnly) Delete(_ context.Context, record store.Record, _ ...store.Record) error {
	return &store.StoreError{Op: "Delete", Key: record.Key(), Kind: store.Unavailable}
}

// readOnlyHistorian is a readOnly that knows its past.
type readOnlyHistorian struct {
	readOnly
	past store.Historian
}

var _ store.Historian = readOnlyHistorian{}

// History implements store.Historian.
func (r readOnlyHistorian) History(ctx context.Context) (store.History, string, error) {
	return r.past.History(ctx)
}

// Amend refuses.
func (r readOnlyHistorian) Amend(context.Context, store.History) (store.History, error) {
	return store.History{}, &store.StoreError{Op: "Amend", Kind: store.Unavailable}
}

// frozen refuses writes, and keeps an error of reading. It has one user.
type frozen struct {
	readOnly
	err error
}

// Changes reads, and keeps an error.
func (f *frozen) Changes(ctx context.Context, feed store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := f.Store.Changes(ctx, feed, since)
	if err != nil {
		f.err = err
	}
	return c, err
}

// Table prints an explanation.
func (e *Explanation) Table(out io.Writer, now time.Time) error {
	where := "on " + string(e.VM.Host)
	if e.VM.Host == "" {
		where = "on no host"
	}
	fmt.Fprintf(out, "%s is %s: %s", Plain(string(e.VM.Name)), Plain(where), e.VM.State)
	if e.VM.Why != "" {
		fmt.Fprintf(out, ": %s", Plain(e.VM.Why))
	}
	fmt.Fprintln(out)
	if len(e.Moves) > 0 {
		fmt.Fprintln(out)
		if err := Moves(out, e.Moves, now); err != nil {
			return err
		}
		for _, m := range e.Moves {
			reasons(out, string(m.Name), m.Reasons)
		}
	}
	title, none := "it stays because of", "no request moves it elsewhere"
	if e.VM.State == waitingForHost {
		title, none = "no host takes it because of", "a host takes it: it is placed when the controller looks next"
	}
	if len(e.Reasons) == 0 {
		_, err := fmt.Fprintf(out, "\n%s\n", none)
		return err
	}
	reasons(out, title, e.Reasons)
	return nil
}

func reasons(out io.Writer, title string, list []hypervisor.Reason) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", Plain(title))
	for _, r := range list {
		fmt.Fprintf(out, "  %s\n", Plain(humanize.Unmet(r.Check, r.Need, r.Have)))
	}
}
