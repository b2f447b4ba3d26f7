package migration

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// The back-off of a troubled host. The first wait is that of a VM's first retry, so that a
// failure costs a cluster of two hosts nothing that it did not cost before.
// Source: KubeVirt v1.9.0 migration.go:1049 (20s), for the first wait.
const (
	firstWait = 20 * time.Second
	longest   = time.Hour
	// fade is the time without news after which one failure is forgotten.
	fade = time.Hour
	// manyRefuse is the number of VMs that a host must refuse in a row: before that it is as
	// likely that the VMs do not suit the host.
	manyRefuse = 3
)

// A Fault says what the failure of a migration speaks against.
type Fault uint8

// The faults.
const (
	// NoFault: it failed for another reason, or did not fail.
	NoFault Fault = iota
	// Preparing: the target was not ready in time, or its process ended.
	Preparing
	// Refusing: the target refused the VM.
	Refusing
	// Beginning: the target was ready and the source did not begin.
	Beginning
	// Sending: the source did not send, or the transfer broke.
	Sending
)

var faults = [...]string{"", "preparing", "refusing", "beginning", "sending"}

// String returns the fault's word.
func (f Fault) String() string { return humanize.String(f, faults[:]) }

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (f Fault) MarshalText() ([]byte, error) { return humanize.Text(f, faults[:], "fault") }

// UnmarshalText reads a word that MarshalText wrote.
func (f *Fault) UnmarshalText(text []byte) error {
	return humanize.Parse(f, faults[:], "fault", text)
}

// An Outcome is the end of one migration.
type TransferOutcome struct {
	ID             hypervisor.JobID
	VM             hypervisor.VMID
	Source, Target hypervisor.HostName
	At             time.Time // when it ended
	Succeeded      bool
	Fault          Fault
	Why            string // for people: "receive hangs"
}

// A HealthProblem is what speaks against a host.
type HealthProblem struct {
	Host     hypervisor.HostName
	Failures int       // in a row
	Last     time.Time // when the last of them failed
	Again    time.Time // from then on one migration may try
	Why      string    // of the last failure
	// Way: nothing but broken transfers from the source that was asked about. When that is in
	// trouble itself, it is more likely to blame.
	Way bool
}

// String says it for people, as of now.
func (t *HealthProblem) String(now time.Time) string {
	text := "1 migration failed"
	if t.Failures > 1 {
		text = fmt.Sprintf("%d migrations failed in a row", t.Failures)
	}
	if t.Why != "" {
		text += " (" + t.Why + ")"
	}
	if left := t.Again.Sub(now); left > 0 {
		return text + "; tried again in " + span(left)
	}
	return text + "; one migration tries it again"
}

// span rounds a time up, for people.
func span(d time.Duration) string {
	if d <= 2*time.Minute {
		return ((d + time.Second - 1) / time.Second * time.Second).String()
	}
	m := (d + time.Minute - 1) / time.Minute
	if m >= 60 {
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
	return fmt.Sprintf("%dm", m)
}

// failure is an outcome that speaks against a host.
type failure struct {
	TransferOutcome
	excused bool // the host has succeeded since with another: the way is to blame
}

// host is what speaks against one host: as target and as source.
type host struct{ in, out []failure }

// TargetHealth keeps what speaks against hosts, of those that have failed only. The zero value is
// empty and ready.
type TargetHealth struct {
	hosts map[hypervisor.HostName]*host
}

// Add takes in how a migration ended. Outcomes are added in the order of their ends.
func (l *TargetHealth) Add(o *TransferOutcome) {
	switch {
	case o.Source == "" || o.Target == "":
	case o.Succeeded && len(l.hosts) > 0:
		l.succeeded(o)
	case o.Succeeded || o.Fault == NoFault:
	case o.Fault == Preparing || o.Fault == Refusing:
		h := l.of(o.Target)
		h.in = append(h.in, failure{TransferOutcome: *o})
	case o.Fault == Beginning:
		h := l.of(o.Source)
		h.out = append(h.out, failure{TransferOutcome: *o})
	default:
		from, to := l.of(o.Source), l.of(o.Target)
		from.out, to.in = append(from.out, failure{TransferOutcome: *o}), append(to.in, failure{TransferOutcome: *o})
	}
}

func (l *TargetHealth) of(name hypervisor.HostName) *host {
	if l.hosts == nil {
		l.hosts = map[hypervisor.HostName]*host{}
	}
	h := l.hosts[name]
	if h == nil {
		h = &host{}
		l.hosts[name] = h
	}
	return h
}

// succeeded forgets what the success disproves: all that speaks against one of the two hosts
// alone, and against the way between them. What speaks against ways to others stays.
func (l *TargetHealth) succeeded(o *TransferOutcome) {
	if h := l.hosts[o.Target]; h != nil {
		h.in = disproved(h.in, func(f *failure) bool {
			return f.Fault != Sending || f.Source == o.Source
		})
		l.close(o.Target, h)
	}
	if h := l.hosts[o.Source]; h != nil {
		h.out = disproved(h.out, func(f *failure) bool {
			return f.Fault != Sending || f.Target == o.Target
		})
		l.close(o.Source, h)
	}
}

// disproved drops some failures, and excuses the host for the others.
func disproved(all []failure, is func(*failure) bool) []failure {
	all = slices.DeleteFunc(all, func(f failure) bool { return is(&f) })
	for i := range all {
		all[i].excused = true
	}
	return all
}

// Forget takes out a migration whose record is gone.
func (l *TargetHealth) Forget(o *TransferOutcome) {
	for _, name := range [...]hypervisor.HostName{o.Source, o.Target} {
		if h := l.hosts[name]; h != nil {
			is := func(f failure) bool { return f.ID == o.ID }
			h.in, h.out = slices.DeleteFunc(h.in, is), slices.DeleteFunc(h.out, is)
			l.close(name, h)
		}
	}
}

func (l *TargetHealth) close(name hypervisor.HostName, h *host) {
	if len(h.in)+len(h.out) == 0 {
		delete(l.hosts, name)
	}
}

// Hosts lists the hosts of which a failure is remembered, by name.
func (l *TargetHealth) Hosts() []hypervisor.HostName {
	if len(l.hosts) == 0 {
		return nil
	}
	names := make([]hypervisor.HostName, 0, len(l.hosts))
	for name := range l.hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Receiving returns what speaks against a host as the target of a VM on source; "" is a VM
// without one, which is to be started there. It reports false when nothing does.
func (l *TargetHealth) Receiving(name, source hypervisor.HostName, now time.Time) (HealthProblem, bool) {
	h := l.hosts[name]
	if h == nil {
		return HealthProblem{}, false
	}
	all := l.against(h, source)
	t, is := judge(name, all, now)
	t.Way = is && !slices.ContainsFunc(all, func(f failure) bool {
		return f.Fault != Sending || f.Source != source
	})
	return t, is
}

// against lists the failures that speak against a host as target of a VM on source.
func (l *TargetHealth) against(h *host, source hypervisor.HostName) []failure {
	refused := distinct(h.in, func(f *failure) (string, bool) {
		return string(f.VM), f.Fault == Refusing
	})
	ways := distinct(h.in, func(f *failure) (string, bool) {
		return string(f.Source), f.Fault == Sending && !f.excused && !l.blamed(f.Source)
	})
	var all []failure
	for i := range h.in {
		switch f := &h.in[i]; {
		case f.Fault == Refusing && refused < manyRefuse:
		case f.Fault == Sending && f.Source != source && (f.excused || ways < 2):
		default:
			all = append(all, *f)
		}
	}
	return all
}

// blamed reports whether a host is to blame, as source, for transfers that broke.
func (l *TargetHealth) blamed(source hypervisor.HostName) bool {
	h := l.hosts[source]
	return h != nil && len(sends(h.out)) > 0
}

// sends lists the failures that speak against a host as source: those to begin, and those of
// transfers to two targets at least.
func sends(out []failure) []failure {
	ways := distinct(out, func(f *failure) (string, bool) {
		return string(f.Target), f.Fault == Sending && !f.excused
	})
	var all []failure
	for i := range out {
		f := &out[i]
		if f.Fault == Beginning || f.Fault == Sending && !f.excused && ways >= 2 {
			all = append(all, *f)
		}
	}
	return all
}

// Sending returns what speaks against a host as source. It reports false when nothing does.
func (l *TargetHealth) Sending(name hypervisor.HostName, now time.Time) (HealthProblem, bool) {
	h := l.hosts[name]
	if h == nil {
		return HealthProblem{}, false
	}
	return judge(name, sends(h.out), now)
}

// Next returns when time alone changes what speaks against a host, as source or as target of a VM from wherever one has
// failed: when it may be tried again, or when that is forgotten. It is zero when nothing speaks against it.
func (l *TargetHealth) Next(name hypervisor.HostName, now time.Time) (next time.Time) {
	h := l.hosts[name]
	if h == nil {
		return time.Time{}
	}
	every := [][]failure{sends(h.out), l.against(h, "")}
	for i := range h.in {
		if source := h.in[i].Source; !slices.ContainsFunc(h.in[:i], func(f failure) bool { return f.Source == source }) {
			every = append(every, l.against(h, source))
		}
	}
	for _, all := range every {
		t, at, is := judged(name, all, now)
		if t.Again.After(now) {
			at = t.Again
		}
		if is && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// Problems lists all hosts that are in trouble, by name: as targets of VMs from wherever failed
// there last, and as sources.
func (l *TargetHealth) Problems(now time.Time) (all []HealthProblem) {
	for _, name := range l.Hosts() {
		h := l.hosts[name]
		if n := len(h.in); n > 0 {
			last := h.in[n-1].Source
			if t, is := l.Receiving(name, last, now); is && !(t.Way && l.blamed(last)) {
				all = append(all, t)
			}
		}
		if t, is := l.Sending(name, now); is {
			all = append(all, t)
		}
	}
	return all
}

// distinct counts the different values of those failures that count.
func distinct(all []failure, of func(*failure) (string, bool)) int {
	var seen []string
	for i := range all {
		if value, counts := of(&all[i]); counts && !slices.Contains(seen, value) {
			seen = append(seen, value)
		}
	}
	return len(seen)
}

// judge says how long a host that has failed so is left alone. Failures of migrations that were
// under way together are one reason to wait longer, not many. What is long ago fades, and what is
// in the future says nothing: a clock was set back, and nothing would end the wait before it is
// there again.
func judge(name hypervisor.HostName, all []failure, now time.Time) (HealthProblem, bool) {
	t, _, is := judged(name, all, now)
	return t, is
}

// judged is judge, and tells when what is said fades.
func judged(name hypervisor.HostName, all []failure, now time.Time) (t HealthProblem, until time.Time, is bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(f failure) bool {
		return f.At.After(now.Add(firstWait))
	})
	rounds, began, again := 0, time.Time{}, time.Time{}
	for i := range all {
		at := all[i].At
		rounds = faded(rounds, again, at)
		if rounds == 0 || !at.Before(began.Add(firstWait)) {
			rounds, began = rounds+1, at
		}
		again = at.Add(wait(rounds))
	}
	if len(all) == 0 || faded(rounds, again, now) == 0 {
		return HealthProblem{}, time.Time{}, false
	}
	last := &all[len(all)-1]
	return HealthProblem{Host: name, Failures: len(all), Last: last.At, Again: again,
		Why: last.Why}, again.Add(time.Duration(rounds) * fade), true
}

// faded returns what is left of so many rounds at a time after the host could be tried again.
func faded(rounds int, again, at time.Time) int {
	if rounds == 0 || !at.After(again) {
		return rounds
	}
	return max(0, rounds-int(at.Sub(again)/fade))
}

// wait is the back-off after so many rounds of failures.
func wait(rounds int) time.Duration { return min(firstWait<<min(rounds-1, 16), longest) }
