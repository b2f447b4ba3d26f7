package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// Line says in one line how a migration goes.
func (m *MoveReport) Line(now time.Time) string {
	text := fmt.Sprintf("%s  %s", Plain(string(m.Name)), m.Phase)
	if m.Target != "" {
		text += fmt.Sprintf("  %s→%s", dash(m.Source), dash(m.Target))
	}
	if m.Rate > 0 && m.Ended == nil {
		text += fmt.Sprintf("  sent %s, %s left at %s, end in %s", m.SentBytes, m.RemainBytes,
			m.Rate, until(m.PredictedEnd, now))
	}
	if m.Why != "" {
		text += "  " + Plain(m.Why)
	}
	return text
}

// Table prints how a migration has ended, with every reason, for people.
func (m *MoveReport) Table(out io.Writer) error {
	if err := Moves(out, []MoveReport{*m}, time.Time{}); err != nil {
		return err
	}
	switch {
	case m.Unknown:
		fmt.Fprintln(out, "how long the guest was stopped is unknown: its source did not tell")
	case m.BlackoutNanos > 0:
		fmt.Fprintf(out, "the guest was stopped for %s\n", m.BlackoutNanos.Round(time.Millisecond))
	}
	reasons(out, string(m.Name), m.Reasons)
	return nil
}

// A Left is who is left on a host that is drained.
type Left struct {
	Host    hypervisor.HostName `json:"host"`
	Moving  []hypervisor.VMID   `json:"moving"`
	Waiting []hypervisor.VMID   `json:"waiting"`
	Stay    []Stay              `json:"stay"`
	EmptyAt *time.Time          `json:"emptyAt,omitempty"` // predicted
	// Failed are those who wait after a failure, and why it was one.
	Failed []Stay `json:"failed,omitempty"`
	// Done: nobody who is left will leave.
	Done bool `json:"done"`

	now time.Time
}

// A Stay is a VM that does not leave, and why.
type Stay struct {
	VM  hypervisor.VMID `json:"vm"`
	Why string          `json:"why"`
}

// Leaving says who is left on a host. VMs that say nothing have the cluster's strategy,
// and a drain that says nothing its terms.
func Leaving(c *Cluster, host hypervisor.HostName, cluster evacuation.Params,
	now time.Time) *Left {
	l := &Left{Host: host, Moving: []hypervisor.VMID{}, Waiting: []hypervisor.VMID{},
		Stay: []Stay{}, EmptyAt: moment(c.Emptying(host, now)), now: now}
	for _, v := range c.On(host) {
		switch why := stays(v, cluster.Strategy); {
		case v.Claim != "":
			l.Moving = append(l.Moving, v.VM.ID)
		case v.Off() && v.Ended && !v.Startable():
		case v.Evicted != nil && !v.Stopped:
			l.Moving = append(l.Moving, v.VM.ID)
		case why != "" && fate(c.Host(host), v, cluster) != evacuation.Keep:
			l.Waiting = append(l.Waiting, v.VM.ID)
		case why != "":
			l.Stay = append(l.Stay, Stay{v.VM.ID, why})
		default:
			l.Waiting = append(l.Waiting, v.VM.ID)
			if why := failure(c, v.VM.ID); why != "" {
				l.Failed = append(l.Failed, Stay{v.VM.ID, why})
			}
		}
	}
	l.Done = len(l.Moving)+len(l.Waiting) == 0
	return l
}

// fate returns what the drain of a host does with a VM that it does not migrate.
func fate(h *store.Host, v *store.VM, cluster evacuation.Params) evacuation.Unmovable {
	if h == nil {
		return evacuation.Keep
	}
	return cluster.Fate(h.Drain, v.Strategy, v.Migratable)
}

// failure says how the last migration of a VM that has ended failed; "" when it did not.
func failure(c *Cluster, vm hypervisor.VMID) string {
	why := ""
	for _, m := range c.Migrations() { // oldest first
		if m.Spec.VM == vm && m.State.Phase.Final() {
			why = m.State.Because
		}
	}
	return why
}

// stays says why a drain does not move a VM; "" when it does.
func stays(v *store.VM, cluster evacuation.Strategy) string {
	switch s := v.Strategy.Or(cluster); {
	case s == evacuation.External:
		return "somebody else is to move it"
	case s != evacuation.LiveMigrate && s != evacuation.LiveMigrateIfPossible:
		return "its eviction strategy does not move it"
	case !v.Migratable:
		return "it cannot migrate: " + v.WhyNot
	}
	return ""
}

// Line says in one line who is left.
func (l *Left) Line() string {
	text := fmt.Sprintf("%s  %d moving, %d waiting, %d stay, empty in %s", Plain(string(l.Host)),
		len(l.Moving), len(l.Waiting), len(l.Stay), until(l.EmptyAt, l.now))
	if len(l.Failed) > 0 {
		f := l.Failed[0]
		text += fmt.Sprintf("; %d failed before: %s: %s", len(l.Failed), Plain(string(f.VM)),
			Plain(f.Why))
	}
	return text
}

// Table prints the end of a drain for people.
func (l *Left) Table(out io.Writer) error {
	if l.Done && len(l.Stay) == 0 {
		_, err := fmt.Fprintf(out, "%s is empty\n", Plain(string(l.Host)))
		return err
	}
	for _, s := range l.Stay {
		fmt.Fprintf(out, "%s stays on %s: %s\n", Plain(string(s.VM)), Plain(string(l.Host)),
			Plain(s.Why))
	}
	return nil
}

// Watched prints statuses one after the other.
type Watched struct {
	// Terminal takes the last one away before the next is printed.
	Terminal bool
	last     []byte
}

// Table prints a status if anything has changed, or somebody looks at it.
func (w *Watched) Table(out io.Writer, s *Status) error {
	var b bytes.Buffer
	if err := s.Table(&b); err != nil {
		return err
	}
	switch {
	case w.Terminal:
		fmt.Fprint(out, "\x1b[H\x1b[2J") // home, and clear
	case bytes.Equal(b.Bytes(), w.last):
		return nil
	case w.last != nil:
		fmt.Fprintln(out)
	}
	w.last = bytes.Clone(b.Bytes())
	_, err := out.Write(w.last)
	return err
}

// JSON prints a status as one line, if anything but the time has changed.
func (w *Watched) JSON(out io.Writer, s *Status) error {
	timeless := *s
	timeless.At = time.Time{}
	now, err := json.Marshal(timeless)
	if err != nil || bytes.Equal(now, w.last) {
		return err
	}
	w.last = now
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(s)
}
