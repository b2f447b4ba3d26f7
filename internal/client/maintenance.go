package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/store"
)

// Maintain lets the controller carry out a run of maintenance. A run of the same name that was stored
// already, by a command that was killed, is the answer.
func (d *Client) Maintain(ctx context.Context, m *store.Maintenance) (*store.Maintenance, error) {
	what := "maintenance run " + m.Name
	if err := soundRun(what, m); err != nil {
		return nil, err
	}
	runs, err := list[*store.Maintenance](ctx, d.Store)
	if err != nil {
		return nil, err
	}
	for _, other := range runs {
		switch {
		case other.Name == m.Name && sameOrder(other, m) && other.Ended.IsZero():
			return other, nil
		case other.Name == m.Name && other.Ended.IsZero():
			return nil, refuse(what, "it is carried out with another plan or other flags: repeat the command as it was")
		case other.Name == m.Name:
			return nil, refuse(what, "there was a run of this name: give it another one with --name")
		case other.Ended.IsZero():
			return nil, refuse(what, "run %s has not ended: wait, or godwit maintenance abort %[1]s", other.Name)
		}
	}
	plans, err := list[*store.Plan](ctx, d.Store)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		if strings.HasPrefix(p.Name, m.Name+".") {
			return nil, refuse(what, "there was a plan %s: give the run another name with --name", p.Name)
		}
	}
	for i := range m.Batches {
		if err := d.present(ctx, m.Batches[i].Hosts); err != nil {
			return nil, err
		}
	}
	next := *m
	next.Created = d.Now().UTC().Round(0)
	if why := store.Fits(&next); why != nil {
		return nil, refuse(what, "%v: run it in parts", why)
	}
	stored, err := d.Store.Put(ctx, &next)
	if errors.Is(err, store.Unanswered) {
		stored, err = d.landed(ctx, &next, err)
	}
	if err != nil {
		return nil, err
	}
	return stored.(*store.Maintenance), errors.Join(d.forgetRuns(ctx, runs), d.forgetPlans(ctx, plans))
}

// soundRun returns what is wrong with a run.
func soundRun(what string, m *store.Maintenance) error {
	if !IsName(m.Name) {
		return refuse(what, "its name needs a-z A-Z 0-9 . _ -")
	}
	seen := map[hypervisor.HostName]bool{}
	for i := range m.Batches {
		if len(m.Batches[i].Hosts) == 0 {
			return refuse(what, "batch %d has no hosts", i+1)
		}
		for _, h := range m.Batches[i].Hosts {
			if seen[h] {
				return refuse(what, "host %s is in it twice", h)
			}
			seen[h] = true
		}
	}
	return nil
}

// sameOrder reports whether two runs are started alike. When windows occur follows from the time of day; whether there
// are any does not.
func sameOrder(a, b *store.Maintenance) bool {
	ordered := func(m *store.Maintenance) *store.Maintenance {
		return &store.Maintenance{Name: m.Name, Batches: m.Batches, Home: m.Home, Return: m.Return, Strict: m.Strict,
			Others: m.Others, Terms: m.Terms, DrainWithin: m.DrainWithin, HookWithin: m.HookWithin, BackWithin: m.BackWithin,
			SameStart: m.SameStart, Software: m.Software, Checked: m.Checked}
	}
	return same(ordered(a), ordered(b)) && (len(a.Windows) > 0) == (len(b.Windows) > 0)
}

// forgetRuns deletes the runs that have ended, but for the newest, if the operator may.
func (d *Client) forgetRuns(ctx context.Context, runs []*store.Maintenance) error {
	err := forget(ctx, d.Store, runs, func(m *store.Maintenance) (created, ended time.Time) { return m.Created, m.Ended })
	if errors.Is(err, store.Forbidden) {
		return nil
	}
	return err
}

// changeRun changes what operators write of a run that has not ended. "" is the one that is carried out.
func (d *Client) changeRun(ctx context.Context, what, name string,
	how func(what string, m *store.Maintenance) (*store.Maintenance, error)) (*store.Maintenance, error) {
	if name == "" {
		runs, err := list[*store.Maintenance](ctx, d.Store)
		if err != nil {
			return nil, err
		}
		for _, m := range runs {
			if m.Ended.IsZero() {
				name = m.Name
			}
		}
		if name == "" {
			return nil, refuse("maintenance "+what, "no run is carried out")
		}
	}
	r, err := d.change(ctx, store.Key{Kind: store.MaintenanceKind, Name: name}, func(r store.Record) (store.Record, error) {
		what, m := "maintenance "+what+" "+name, r.(*store.Maintenance)
		if !m.Ended.IsZero() {
			return nil, refuse(what, "it has ended")
		}
		return how(what, m)
	})
	if err != nil {
		return nil, err
	}
	return r.(*store.Maintenance), nil
}

// WishRun pauses or aborts a run, or lets it go on that was paused, or has stopped.
func (d *Client) WishRun(ctx context.Context, name string, wish store.PlanWish) (*store.Maintenance, error) {
	verb := wish.String()
	if wish == store.RunPlan {
		verb = "resume"
	}
	return d.changeRun(ctx, verb, name, func(what string, m *store.Maintenance) (*store.Maintenance, error) {
		if m.Wish == store.AbortPlan && wish != store.AbortPlan {
			return nil, refuse(what, "it was aborted")
		}
		next := *m
		if next.Wish = wish; wish == store.RunPlan && m.Stopped != "" && m.Resumes == m.Resumed {
			next.Resumes++
		}
		return &next, nil
	})
}

// ContinueRun says that the hook of a host has ended. With again it is called for once more instead:
// only one that has begun, or failed. A run that has stopped for it goes on.
func (d *Client) ContinueRun(ctx context.Context, name string, host hypervisor.HostName, again bool, by string) (
	*store.Maintenance, error) {
	return d.changeRun(ctx, "continue", name, func(what string, m *store.Maintenance) (*store.Maintenance, error) {
		h := m.Host(host)
		if h == nil || h.Phase != store.ServiceHook {
			return nil, refuse(what, "host %s waits for no hook", host)
		}
		a := m.Answer(h)
		switch {
		case again && a.State != store.HookBegan && a.State != store.HookFailed:
			return nil, refuse(what, "the hook of %s has not begun", host)
		case again:
			a.Again = true
		default:
			if a.Session == "" {
				a.Session = h.Session
			}
			a.State, a.By = store.HookDone, by
		}
		next := m.Answered(a)
		if (m.Stopped != "" || again) && m.Resumes == m.Resumed {
			next.Resumes++
		}
		return next, nil
	})
}

// BeginHook says that the hook of a host begins: by this and no other command. It reports false when it
// may not, or not any more.
func (d *Client) BeginHook(ctx context.Context, name string, host hypervisor.HostName, by string) (bool, error) {
	r, err := d.Store.Get(ctx, store.Key{Kind: store.MaintenanceKind, Name: name})
	m, _ := r.(*store.Maintenance)
	if err != nil || m == nil {
		return false, err
	}
	due, is := m.HookDue(d.Now())
	for _, h := range m.Hosts {
		if h.Name == host && h.Phase == store.ServiceHook && m.Active(d.Now()) && m.Answer(&h).State == store.HookWaits {
			due, is = h, true
		}
	}
	if !is || due.Name != host {
		return false, nil
	}
	at, err := store.HostNamed(ctx, d.Store, host)
	if err != nil || !at.Cordoned {
		return false, err
	}
	vms, err := list[*store.VM](ctx, d.Store)
	if err != nil || slices.ContainsFunc(vms, func(v *store.VM) bool { return v.Host == host && !(v.Off() && v.Ended) }) {
		return false, err
	}
	_, err = d.Store.Put(ctx, m.Answered(store.ServiceAnswer{Host: host, Hook: due.Hooks, State: store.HookBegan, By: by,
		Began: d.Now().UTC().Round(0), Session: at.Session}), at)
	if errors.Is(err, store.Stale) {
		return false, nil
	}
	return err == nil, err // one that was not answered did not begin here: an operator looks
}

// Answer changes the answer about a host of a run.
func (d *Client) Answer(ctx context.Context, name string, host hypervisor.HostName, how func(*store.ServiceAnswer)) error {
	_, err := d.changeRun(ctx, "answer", name, func(_ string, m *store.Maintenance) (*store.Maintenance, error) {
		h := m.Host(host)
		if h == nil {
			return m, nil
		}
		a := m.Answer(h)
		how(&a)
		return m.Answered(a), nil
	})
	return err
}

// Run returns a run of maintenance; nil when there is none.
func (c *Cluster) Run(name string) *store.Maintenance {
	return one[*store.Maintenance](c, store.MaintenanceKind, name)
}

// Runs lists the runs of maintenance, the oldest first.
func (c *Cluster) Runs() []*store.Maintenance {
	return oldest(c, store.MaintenanceKind,
		func(m *store.Maintenance) time.Time { return m.Created })
}

// A RunReport is how far a run of maintenance is.
type RunReport struct {
	Name    string          `json:"name"`
	State   string          `json:"state"` // running, outside its windows, paused, stopped, aborted, ended
	Why     string          `json:"why,omitempty"`
	Batch   int             `json:"batch"` // that is serviced, from 1
	Batches int             `json:"batches"`
	Done    int             `json:"done"` // hosts
	Hosts   []RunHostReport `json:"hosts"`
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended,omitempty"`
	// Begins is when the next window begins, while none is open.
	Begins *time.Time `json:"begins,omitempty"`
}

// A RunHostReport is how far a host of a run is.
type RunHostReport struct {
	Host  hypervisor.HostName `json:"host"`
	Batch int                 `json:"batch"`
	Phase string              `json:"phase"` // waits, draining, hook, check, done, skipped, left
	Why   string              `json:"why,omitempty"`
}

// OfRun reports how far a run is.
func OfRun(m *store.Maintenance, now time.Time) RunReport {
	r := RunReport{Name: m.Name, State: "running", Why: m.Stopped, Batch: min(m.Batch+1, len(m.Batches)),
		Batches: len(m.Batches), Hosts: []RunHostReport{}, Started: m.Created, Ended: moment(m.Ended)}
	_, within := m.Window(now)
	switch {
	case m.Wish == store.AbortPlan:
		r.State = "aborted"
	case !m.Ended.IsZero():
		r.State = "ended"
	case m.Stopped != "":
		r.State = "stopped"
	case m.Wish == store.PausePlan:
		r.State = "paused"
	case !within:
		r.State = "outside its windows"
		for _, w := range m.Windows {
			if w.Begin.After(now) {
				r.Begins = moment(w.Begin)
				break
			}
		}
	}
	for i := range m.Batches {
		for _, name := range m.Batches[i].Hosts {
			h := RunHostReport{Host: name, Batch: i + 1, Phase: store.ServiceWaits.String()}
			if s := m.Host(name); s != nil {
				if h.Phase, h.Why = s.Phase.String(), s.Because; s.Phase == store.ServiceDone {
					r.Done++
				}
			}
			r.Hosts = append(r.Hosts, h)
		}
	}
	return r
}

// Line summarizes a run in one line.
func (r *RunReport) Line() string {
	text := fmt.Sprintf("%s  %s  batch %d of %d  %d of %s done", Plain(r.Name), r.State, r.Batch, r.Batches, r.Done,
		humanize.Count(len(r.Hosts), "host"))
	if r.Begins != nil {
		text += "  the next begins at " + r.Begins.Local().Format("2006-01-02 15:04")
	}
	return text
}

// Table prints a run, why it has stopped, and every host that has begun.
func (r *RunReport) Table(out io.Writer) error {
	fmt.Fprintln(out, r.Line())
	if r.Why != "" {
		fmt.Fprintf(out, "stopped: %s\n", Plain(r.Why))
	}
	t := table(out)
	for i := range r.Hosts {
		if h := &r.Hosts[i]; h.Phase != store.ServiceWaits.String() {
			fmt.Fprintf(t, "%s\tbatch %d\t%s\t%s\n", h.Host, h.Batch, h.Phase, Plain(h.Why))
		}
	}
	return t.Flush()
}

// RunList prints runs, one in each line.
func RunList(out io.Writer, runs []RunReport) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "no runs of maintenance")
		return err
	}
	for i := range runs {
		fmt.Fprintln(out, runs[i].Line())
	}
	return nil
}
