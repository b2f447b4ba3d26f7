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
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/store"
)

// plansKept is how many plans that have ended are kept: their reports can still be read.
const plansKept = 20

// RecordOf returns a plan as it is stored: moves in waves that empty hosts.
func RecordOf(name string, hosts []hypervisor.HostName, waves [][]plan.DocumentMove, strict bool) *store.Plan {
	p := &store.Plan{Name: name, Hosts: hosts, Strict: strict, Moves: []store.PlannedMove{}}
	for i, wave := range waves {
		for _, m := range wave {
			p.Moves = append(p.Moves, store.PlannedMove{VM: m.VM, Source: m.Source, Target: m.Target, Wave: i})
		}
	}
	return p
}

// Apply lets the controller carry out a plan. The hosts that it empties are cordoned first, and stay
// so. A plan of the same name that was stored already, by a command that was killed, is the answer.
func (d *Client) Apply(ctx context.Context, p *store.Plan) (*store.Plan, error) {
	what := "apply " + p.Name
	if !IsName(p.Name) {
		return nil, refuse(what, "its name needs a-z A-Z 0-9 . _ -")
	}
	plans, err := list[*store.Plan](ctx, d.Store)
	if err != nil {
		return nil, err
	}
	for _, other := range plans {
		switch {
		case other.Name == p.Name && sameMoves(other, p) && other.Ended.IsZero():
			return other, nil
		case other.Name == p.Name:
			return nil, refuse(what, "there was a plan of this name: give it another one with --name")
		case other.Ended.IsZero():
			return nil, refuse(what, "plan %s has not ended: wait, or godwit apply abort %s", other.Name, other.Name)
		}
	}
	if err := d.present(ctx, slices.Concat(p.Hosts, targets(p))); err != nil {
		return nil, err
	}
	next := *p
	next.Created = d.Now().UTC().Round(0)
	if why := store.Fits(settled(&next)); why != nil {
		return nil, refuse(what, "%v: apply it in parts", why)
	}
	for _, host := range p.Hosts {
		if _, err := d.Cordon(ctx, host); err != nil {
			return nil, err
		}
	}
	stored, err := d.Store.Put(ctx, &next)
	if errors.Is(err, store.Unanswered) {
		stored, err = d.landed(ctx, &next, err)
	}
	if err != nil {
		return nil, err
	}
	return stored.(*store.Plan), d.forgetPlans(ctx, plans)
}

// targets returns the hosts that VMs go to, each once.
func targets(p *store.Plan) (all []hypervisor.HostName) {
	for i := range p.Moves {
		all = append(all, p.Moves[i].Target)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sameMoves reports whether two plans plan the same.
func sameMoves(a, b *store.Plan) bool {
	return slices.Equal(a.Hosts, b.Hosts) && slices.EqualFunc(a.Moves, b.Moves,
		func(x, y store.PlannedMove) bool {
			return x.VM == y.VM && x.Target == y.Target && x.Wave == y.Wave
		})
}

// forgetPlans deletes the plans that have ended, but for the newest.
func (d *Client) forgetPlans(ctx context.Context, plans []*store.Plan) error {
	return forget(ctx, d.Store, plans, func(p *store.Plan) (created, ended time.Time) { return p.Created, p.Ended })
}

// forget deletes what has ended of what the controller carries out, but for the newest.
func forget[R store.Record](ctx context.Context, records store.Store, all []R,
	when func(R) (created, ended time.Time)) error {
	slices.SortFunc(all, func(a, b R) int {
		one, _ := when(a)
		other, _ := when(b)
		return other.Compare(one)
	})
	for i, r := range all {
		if _, ended := when(r); i < plansKept || ended.IsZero() {
			continue
		}
		if err := records.Delete(ctx, r); err != nil && !errors.Is(err, store.Stale) {
			return err
		}
	}
	return nil
}

// present returns why hosts are not to be worked with: the store does not know one.
func (d *Client) present(ctx context.Context, hosts []hypervisor.HostName) error {
	for _, name := range hosts {
		h, err := d.Store.Get(ctx, hostKey(name))
		if err == nil && h == nil {
			err = d.Missing(ctx, hostKey(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WishPlan pauses, resumes or aborts a plan. "" is the one that has not ended.
func (d *Client) WishPlan(ctx context.Context, name string, wish store.PlanWish) (*store.Plan, error) {
	if name == "" {
		plans, err := list[*store.Plan](ctx, d.Store)
		if err != nil {
			return nil, err
		}
		for _, p := range plans {
			if p.Ended.IsZero() {
				name = p.Name
			}
		}
		if name == "" {
			return nil, refuse(wish.String()+" a plan", "no plan is carried out")
		}
	}
	r, err := d.change(ctx, store.Key{Kind: store.PlanKind, Name: name}, func(r store.Record) (store.Record, error) {
		next := *r.(*store.Plan)
		what := wish.String() + " plan " + name
		switch {
		case !next.Ended.IsZero():
			return nil, refuse(what, "it has ended")
		case next.Wish == store.AbortPlan && wish != store.AbortPlan:
			return nil, refuse(what, "it was aborted")
		}
		next.Wish = wish
		return &next, nil
	})
	if err != nil {
		return nil, err
	}
	return r.(*store.Plan), nil
}

// Plan returns a plan; nil when there is none.
func (c *Cluster) Plan(name string) *store.Plan {
	return one[*store.Plan](c, store.PlanKind, name)
}

// Plans lists the plans, the oldest first.
func (c *Cluster) Plans() []*store.Plan {
	return oldest(c, store.PlanKind, func(p *store.Plan) time.Time { return p.Created })
}

// A PlanReport is how far a plan is.
type PlanReport struct {
	Name  string                `json:"name"`
	State string                `json:"state"` // running, paused, aborted, ended
	Hosts []hypervisor.HostName `json:"hosts"`
	Wave  int                   `json:"wave"` // that is carried out, from 1
	Waves int                   `json:"waves"`
	Done  int                   `json:"done"`
	// Elsewhere counts those of them that went to another host than planned.
	Elsewhere int              `json:"elsewhere"`
	Skipped   int              `json:"skipped"`
	Applied   time.Time        `json:"applied"`
	Ended     *time.Time       `json:"ended,omitempty"`
	Moves     []PlanMoveReport `json:"moves"`
}

// A PlanMoveReport is how far a move of a plan is.
type PlanMoveReport struct {
	VM     hypervisor.VMID     `json:"vm"`
	Source hypervisor.HostName `json:"source"`
	Target hypervisor.HostName `json:"target"` // as it was planned
	Wave   int                 `json:"wave"`
	State  string              `json:"state"` // waits, asked, withdrawn, done, skipped
	Host   hypervisor.HostName `json:"host,omitempty"`
	Why    string              `json:"why,omitempty"`
}

// OfPlan reports how far a plan is.
func OfPlan(p *store.Plan) PlanReport {
	r := PlanReport{Name: p.Name, State: "running", Hosts: append([]hypervisor.HostName{}, p.Hosts...),
		Wave: min(p.Wave+1, p.Waves()), Waves: p.Waves(), Applied: p.Created, Ended: moment(p.Ended),
		Moves: []PlanMoveReport{}}
	switch {
	case p.Wish == store.AbortPlan:
		r.State = "aborted"
	case !p.Ended.IsZero():
		r.State = "ended"
	case p.Wish == store.PausePlan:
		r.State = "paused"
	}
	for i := range p.Moves {
		m := &p.Moves[i]
		r.Moves = append(r.Moves, PlanMoveReport{VM: m.VM, Source: m.Source, Target: m.Target, Wave: m.Wave + 1,
			State: m.State.String(), Host: m.Host, Why: m.Because})
		switch m.State {
		case store.MoveDone:
			if r.Done++; m.Host != m.Target {
				r.Elsewhere++
			}
		case store.MoveSkipped:
			r.Skipped++
		}
	}
	return r
}

// Line summarizes a plan in one line.
func (r *PlanReport) Line() string {
	text := fmt.Sprintf("%s  %s  wave %d of %d  %d of %s done", Plain(r.Name), r.State, r.Wave, r.Waves,
		r.Done, humanize.Count(len(r.Moves), "move"))
	if r.Elsewhere > 0 {
		text += fmt.Sprintf(", %d elsewhere", r.Elsewhere)
	}
	if r.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	return text
}

// Table prints a plan, and every move that is not as it was planned.
func (r *PlanReport) Table(out io.Writer) error {
	fmt.Fprintln(out, r.Line())
	t := table(out)
	for i := range r.Moves {
		m := &r.Moves[i]
		if m.Why == "" && (m.Host == "" || m.Host == m.Target) {
			continue
		}
		to := string(m.Target)
		if m.Host != "" && m.Host != m.Target {
			to = fmt.Sprintf("%s instead of %s", m.Host, m.Target)
		}
		fmt.Fprintf(t, "%s\t%s\t%s→%s\t%s\n", Plain(string(m.VM)), m.State, m.Source, to, Plain(m.Why))
	}
	return t.Flush()
}

// PlanList prints plans, one in each line.
func PlanList(out io.Writer, plans []PlanReport) error {
	if len(plans) == 0 {
		_, err := fmt.Fprintln(out, "no plans")
		return err
	}
	lines := make([]string, len(plans))
	for i := range plans {
		lines[i] = plans[i].Line()
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// settled returns a plan as large as it is when its moves have been carried out.
func settled(p *store.Plan) *store.Plan {
	all := *p
	all.Moves = slices.Clone(p.Moves)
	for i := range all.Moves {
		m := &all.Moves[i]
		m.State, m.Asked, m.Host = store.MoveWithdrawn, 1, m.Target
	}
	return &all
}
