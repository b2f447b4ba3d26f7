package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// The formats of a log.
const (
	Text = "text"
	JSON = "json"
)

// Logger returns a log in a format; any other word is an error.
func Logger(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case Text:
		return slog.New(slog.NewTextHandler(w, o)), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("%q is no format of a log: use %s or %s", format, Text, JSON)
}

// Log is a [store.EventRecorder] and a [store.Auditor] that writes to a log. Steps of reservations
// are details: only a log of debug messages shows them.
type Log struct{ To *slog.Logger }

var (
	_ store.EventRecorder = Log{}
	_ store.Auditor       = Log{}
)

// Note writes one line. Its time is when it is written; that of the participant, which may
// differ, is in at.
func (l Log) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	attrs := []slog.Attr{slog.String("by", By(who))}
	if vm != "" {
		attrs = append(attrs, slog.String("vm", string(vm)))
	}
	attrs = append(attrs, slog.Time("at", at))
	l.To.LogAttrs(context.Background(), slog.LevelInfo, what, attrs...)
}

// Audit writes a step of a reservation.
func (l Log) Audit(e placement.LedgerEntry) {
	l.To.LogAttrs(context.Background(), slog.LevelDebug, "reservation: "+string(e.Step),
		slog.String("vm", string(e.VM)), slog.String("migration", string(e.Move)),
		slog.String("source", string(e.Source)), slog.String("target", string(e.Target)),
		slog.String("memory", e.Amount.Memory.String()), slog.Int("cpus", e.Amount.CPUs))
}

// By names the author of an event: the host's agent, or the controller.
func By(who hypervisor.HostName) string {
	if who == "" {
		return "controller"
	}
	return "agent/" + string(who)
}

// All hands every note to several listeners, in order.
type All []store.EventRecorder

var _ store.Auditor = All{}

// Note implements store.EventRecorder.
func (all All) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	for _, n := range all {
		n.Note(at, who, vm, what)
	}
}

// Audit tells those who want to know every step of a reservation, too.
func (all All) Audit(e placement.LedgerEntry) {
	for _, n := range all {
		if a, is := n.(store.Auditor); is {
			a.Audit(e)
		}
	}
}
