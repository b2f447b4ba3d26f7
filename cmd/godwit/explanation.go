package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// explanation is what --json prints: see explainHelp.
type explanation struct {
	VM      hypervisor.VMID     `json:"vm"`
	Source  hypervisor.HostName `json:"source"`
	Request asked               `json:"request"`
	Outcome placement.Outcome   `json:"outcome"`
	Target  hypervisor.HostName `json:"target"`
	// NotMigratable is why it cannot be moved while it runs; "" is that it can.
	NotMigratable string             `json:"notMigratable"`
	Code          placement.Code     `json:"code"`
	Action        placement.Action   `json:"action"`
	Reasons       []placement.Reason `json:"reasons"`
	Debts         []placement.Reason `json:"debts"`
	Hosts         []hostVerdict      `json:"hosts"`
	Histogram     []refusals         `json:"histogram"`
	Nearest       []miss             `json:"nearest"`
	Quota         []placement.Reason `json:"-"` // among the reasons when it decides
	Notes         []string           `json:"notes"`
	// Predicted is what its migration takes alone; nil when there is none, or it does not converge.
	Predicted *predict.Prediction `json:"predicted"`
}

type asked struct {
	Host   hypervisor.HostName `json:"host"`
	Force  placement.Force     `json:"force"`
	Compat bool                `json:"compat"`
}

type hostVerdict struct {
	Host    hypervisor.HostName `json:"host"`
	Verdict string              `json:"verdict"`
	Score   *float64            `json:"score"`
	Reasons []placement.Reason  `json:"reasons"`
}

type refusals struct {
	Check string `json:"check"`
	Hosts int    `json:"hosts"`
}

type miss struct {
	Host        hypervisor.HostName `json:"host"`
	MemoryBytes hypervisor.Bytes    `json:"memoryBytes"`
	CPUs        int                 `json:"cpus"`
	DiskBytes   hypervisor.Bytes    `json:"diskBytes"`
	Reasons     []placement.Reason  `json:"reasons"`
	OrMoved     hypervisor.VMID     `json:"orMoved"`
	Text        string              `json:"text"`
}

// explained sorts an explanation for printing.
func explained(q *inventory.Inquiry, e placement.Explanation) *explanation {
	d, r := &e.Decision, &q.Request
	x := &explanation{VM: r.VM.ID, Source: r.Source, Outcome: d.Outcome, Target: d.Host, NotMigratable: q.NotMigratable,
		Request: asked{r.Host, r.Force, r.Compat}, Code: d.Code, Action: d.Action,
		Reasons: list(d.Why), Debts: []placement.Reason{}, Hosts: []hostVerdict{},
		Histogram: []refusals{}, Nearest: []miss{}, Quota: list(q.Quota),
		Notes: list(q.Notes)}
	for i := range d.Debts {
		x.Debts = append(x.Debts, d.Debts[i].Reason)
	}
	for i := range e.Hosts {
		x.Hosts = append(x.Hosts, verdictOf(&e.Hosts[i], d))
	}
	slices.SortStableFunc(x.Hosts, byVerdict)
	for _, c := range e.Histogram {
		x.Histogram = append(x.Histogram, refusals{c.Check, c.Hosts})
	}
	for _, m := range e.Nearest {
		x.Nearest = append(x.Nearest, miss{m.Host, m.Memory, m.CPUs, m.Disk, list(m.Unless),
			m.Moved, m.String()})
	}
	return x
}

// force says which of the reasons against the host that was asked for --force overrides, and which not, as the same
// request with force is decided.
func (e *explanation) force(q inventory.Inquiry, config *placement.Config) {
	q.Request.Force = placement.Yes
	forced := q.Explain(config).Decision
	var soft, hard []string
	if forced.Outcome != placement.Accepted {
		hard = checks(forced.Why)
	}
	for _, check := range checks(e.Reasons) {
		if !slices.Contains(hard, check) {
			soft = append(soft, check)
		}
	}
	note := "--force overrides " + strings.Join(soft, ", ")
	switch {
	case len(soft) == 0:
		note = "--force does not override " + strings.Join(hard, ", ")
	case len(hard) > 0:
		note += ", but not " + strings.Join(hard, ", ")
	}
	e.Notes = append(e.Notes, note)
}

// checks are the names of the checks that refused.
func checks(why []placement.Reason) (names []string) {
	for _, r := range why {
		names = append(names, r.Check)
	}
	return names
}

// predict plays the accepted migration alone.
func (e *explanation) predict(ctx context.Context, s *config.Scenario, vm *inventory.VM) error {
	if e.Outcome != placement.Accepted || e.Source == "" || e.Source == e.Target || !vm.Migratable {
		return nil
	}
	p := &whatif.Play{Scenario: whatif.Endless(s),
		Stops: &whatif.Stops{Together: map[hypervisor.VMID]bool{e.VM: true}}}
	move := plan.Move{VM: e.VM, Source: e.Source, Target: e.Target}
	result, err := p.Solo(ctx, move)
	switch {
	case err != nil:
		return err
	case !result.Done:
		e.Notes = append(e.Notes, p.Note(result, vm, move),
			fmt.Sprintf("godwit plan drain FLEET %s says what would let it move", e.Source))
		return nil
	}
	r, err := p.Predict(move, result)
	e.Predicted = &r
	return err
}

// list returns all, and never nil, which would be no list in JSON.
func list[T any](all []T) []T { return append([]T{}, all...) }

// The verdicts about a host.
const (
	isChosen  = "chosen"
	isFitting = "fits"
	isRefused = "refuses"
)

func verdictOf(v *placement.HostResult, d *placement.Decision) hostVerdict {
	h := hostVerdict{Host: v.Host, Verdict: isRefused, Reasons: list(v.Why)}
	if len(v.Why) == 0 {
		h.Verdict, h.Score = isFitting, &v.Score
	}
	if d.Outcome == placement.Accepted && v.Host == d.Host {
		h.Verdict = isChosen
	}
	return h
}

// byVerdict: the target first, then the hosts that take the VM, best first, then those with the
// fewest reasons against them, then by name.
func byVerdict(a, b hostVerdict) int {
	words := []string{isChosen, isFitting, isRefused}
	score := func(h hostVerdict) float64 {
		if h.Score == nil {
			return 0
		}
		return *h.Score
	}
	return cmp.Or(
		cmp.Compare(slices.Index(words, a.Verdict), slices.Index(words, b.Verdict)),
		cmp.Compare(score(b), score(a)),
		cmp.Compare(len(a.Reasons), len(b.Reasons)),
		cmp.Compare(a.Host, b.Host),
	)
}

// verdict returns what the exit status says.
func (e *explanation) verdict() error {
	switch e.Outcome {
	case placement.Accepted:
		return nil
	case placement.BadRequest:
		why := hypervisor.Refusal{Reasons: e.Reasons}
		return fmt.Errorf("bad request: %s", plain(why.Error()))
	}
	return errNoTarget
}
