package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// Line summarizes a migration in one line.
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

// Table prints the result of a migration, with every reason.
func (m *MoveReport) Table(out io.Writer) error {
	if err := Moves(out, []MoveReport{*m}, time.Time{}); err != nil {
		return err
	}
	switch {
	case m.Unknown:
		fmt.Fprintln(out, "downtime unknown: the source did not report it")
	case m.DowntimeNanos > 0:
		fmt.Fprintf(out, "downtime %s\n", m.DowntimeNanos.Round(time.Millisecond))
	}
	reasons(out, string(m.Name), m.Reasons)
	return nil
}

// RemainingVMs lists the VMs that remain on a draining host.
type RemainingVMs struct {
	Host    hypervisor.HostName `json:"host"`
	Moving  []hypervisor.VMID   `json:"moving"`
	Waiting []hypervisor.VMID   `json:"waiting"`
	Stay    []BlockedVM         `json:"stay"`
	EmptyAt *time.Time          `json:"emptyAt,omitempty"` // predicted
	// Failed are VMs that wait after a failed migration, and its reason.
	Failed []BlockedVM `json:"failed,omitempty"`
	// Down are VMs that wait because they do not run, and why: only one that has started can migrate.
	Down []BlockedVM `json:"down,omitempty"`
	// Placeless are VMs that wait because no host takes them, or no slot is free, for longer than that usually takes.
	Placeless []BlockedVM `json:"placeless,omitempty"`
	// Because is what keeps VMs that wait, as it is when the drain is no longer waited for: see WhyWaiting.
	Because []BlockedVM `json:"because,omitempty"`
	// Done: no further VM will leave.
	Done bool `json:"done"`

	now time.Time
}

// A BlockedVM is a VM that does not leave, and why.
type BlockedVM struct {
	VM  hypervisor.VMID `json:"vm"`
	Why string          `json:"why"`
}

// ListRemaining lists the VMs that remain on a host. The cluster's strategy and terms are the defaults
// of VMs and drains.
func ListRemaining(c *Cluster, host hypervisor.HostName, cluster evacuation.Params,
	now time.Time) *RemainingVMs {
	l := &RemainingVMs{Host: host, Moving: []hypervisor.VMID{}, Waiting: []hypervisor.VMID{},
		Stay: []BlockedVM{}, EmptyAt: moment(c.EstimateDrain(host, cluster.Strategy, now)), now: now}
	waits := placeless(c.migrations(), now)
	for _, v := range c.On(host) {
		switch why := stays(v, cluster.Strategy); {
		case v.ActiveMigration != "":
			l.Moving = append(l.Moving, v.VM.ID)
		case LeftAside(v):
		case v.Evicted != nil && !v.Stopped:
			l.Moving = append(l.Moving, v.VM.ID)
		case why != "" && unmovable(c.Host(host), v, cluster) != evacuation.Keep:
			l.Waiting = append(l.Waiting, v.VM.ID)
		case why != "":
			l.Stay = append(l.Stay, BlockedVM{v.VM.ID, why})
		default:
			l.Waiting = append(l.Waiting, v.VM.ID)
			if why := failure(c, v.VM.ID); why != "" {
				l.Failed = append(l.Failed, BlockedVM{v.VM.ID, why})
			}
			if why := down(v); why != "" {
				l.Down = append(l.Down, BlockedVM{v.VM.ID, why})
			}
			if waits[v.VM.ID] {
				l.Placeless = append(l.Placeless, BlockedVM{v.VM.ID, waitsForPlace(v.VM.ID)})
			}
		}
	}
	l.Done = len(l.Moving)+len(l.Waiting) == 0
	return l
}

// LeftAside reports whether a drain takes no notice of a VM: it is shut down, and is not to run again.
func LeftAside(v *store.VM) bool { return v.Off() && v.Ended && !v.Startable() }

// unmovable returns what a drain does with a VM that it cannot migrate.
func unmovable(h *store.Host, v *store.VM, cluster evacuation.Params) evacuation.Unmovable {
	if h == nil {
		return evacuation.Keep
	}
	can, _ := v.CanMigrate()
	return cluster.Unmovable(h.Drain, v.Strategy, can)
}

// down returns why a VM that is to run does not run; "" if it does.
func down(v *store.VM) string {
	switch {
	case v.Off():
		return ""
	case v.Trouble != "":
		return v.Trouble
	case v.Boots == 0:
		return "it has not started yet"
	}
	return ""
}

// failure returns why the last ended migration of a VM failed; "" if it did not. One that was withdrawn says
// nothing about the VM.
func failure(c *Cluster, vm hypervisor.VMID) string {
	why := ""
	for _, m := range c.migrations() { // oldest first
		if m.Spec.VM == vm && m.State.Phase.Final() && !migration.Withdrawn(m.State.Because) {
			why = m.State.Because
		}
	}
	return why
}

// stays returns why a drain does not move a VM; "" if it does.
func stays(v *store.VM, cluster evacuation.Strategy) string {
	switch s := v.Strategy.Or(cluster); {
	case s == evacuation.External:
		return "its eviction strategy is External: another system moves it"
	case s != evacuation.LiveMigrate && s != evacuation.LiveMigrateIfPossible:
		return "its eviction strategy does not move it"
	}
	if can, why := v.CanMigrate(); !can {
		return "it cannot migrate: " + why
	}
	return ""
}

// Line summarizes the remaining VMs in one line.
func (l *RemainingVMs) Line() string {
	text := fmt.Sprintf("%s  %d moving, %d waiting, %d stay, empty in %s", Plain(string(l.Host)),
		len(l.Moving), len(l.Waiting), len(l.Stay), until(l.EmptyAt, l.now))
	for _, s := range []struct { // what holds now comes first
		what string
		vms  []BlockedVM
	}{{"without a place", l.Placeless}, {"do not run", l.Down}, {"failed before", l.Failed}} {
		if len(s.vms) > 0 {
			f := s.vms[0]
			text += fmt.Sprintf("; %d %s: %s: %s", len(s.vms), s.what, Plain(string(f.VM)), Plain(f.Why))
		}
	}
	return text
}

// Unfinished prints what a drain still waits for.
func (l *RemainingVMs) Unfinished(out io.Writer) error {
	if len(l.Moving) > 0 {
		fmt.Fprintf(out, "%d VMs are leaving %s\n", len(l.Moving), Plain(string(l.Host)))
	}
	why := map[hypervisor.VMID]string{}
	for _, s := range slices.Concat(l.Failed, l.Down, l.Placeless, l.Because) {
		why[s.VM] = s.Why
	}
	for _, vm := range l.Waiting {
		fmt.Fprintf(out, "%s waits on %s: %s\n", Plain(string(vm)), Plain(string(l.Host)),
			Plain(cmp.Or(why[vm], "its turn has not come: godwit explain "+string(vm))))
	}
	return l.Table(out)
}

// Table prints the result of a drain.
func (l *RemainingVMs) Table(out io.Writer) error {
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
	// Terminal clears the screen before the next is printed.
	Terminal bool
	last     []byte
}

// Table prints a status if it has changed, or always on a terminal.
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

// JSON prints a status as one line, if more than the time has changed.
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
