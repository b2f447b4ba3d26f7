//go:build linux

package qmp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// An ending is what the event of a transfer's end told: as much as a look, and
// sooner, for the guest stands meanwhile.
type ending struct {
	look  look
	stood time.Duration // from the guest's stop until then
}

// Expect listens for the end of the transfer that is about to begin, as its source
// or its target. Events of earlier transfers have come before and are not heard.
// The caller holds the domain's lock.
func (d *domain) Expect(in *qemu.Instance, as backend.Role) {
	events := in.Client.Subscribe()
	_, job, _ := d.Present()
	d.mu.Lock()
	if d.expected != nil {
		d.expected.Close()
	}
	d.expected, d.ended, d.off = events, nil, false
	d.crossing = switchOverUnknown
	if job != nil && as == backend.Source && !job.PostCopied {
		d.crossing = switchOverAwaited
	}
	d.mu.Unlock()
	d.Node.Running.Go(func() {
		defer events.Close()
		defer d.crosses(events, switchOverUnknown)
		ctx, cancel := context.WithCancel(d.Node.Life)
		defer cancel()
		defer context.AfterFunc(in.Context(), cancel)()
		d.hear(ctx, events, as)
	})
}

// hear waits until a transfer has ended, in whatever way.
func (d *domain) hear(ctx context.Context, events *qemu.Subscription, as backend.Role) {
	var stopped time.Time
	for {
		e, err := events.Next(ctx)
		if _, gap := errors.AsType[*qemu.Gap](err); gap {
			d.crosses(events, switchOverUnknown)
			continue
		}
		if err != nil {
			return
		}
		switch e.Name {
		case "STOP":
			stopped = e.Time
		case "SHUTDOWN", "RESET":
			d.mu.Lock()
			d.off = e.Name == "SHUTDOWN" && d.expected == events
			d.mu.Unlock()
		}
		switch migrationStatus(e) {
		case qemu.Completed:
			stood := time.Duration(0)
			if !stopped.IsZero() { // otherwise it stood already
				stood = e.Time.Sub(stopped)
			}
			d.complete(events, as, stood)
			return
		case qemu.Failed, qemu.Cancelled:
			d.crosses(events, switchOverNever)
			return
		case qemu.PreSwitchover, qemu.Device:
			d.crosses(events, switchOverUnknown)
		case qemu.PostcopyActive: // it waits for no end
			return
		}
	}
}

// crosses notes what an event told of the switch-over of the expected transfer. QEMU tells that
// it begins before anything of it is sent, and events are read in their order.
// Source: QEMU 10.0 migration/migration.c (migration_switchover_prepare: device); before 9.2
// post-copy says postcopy-active first of all (postcopy_start).
func (d *domain) crosses(events *qemu.Subscription, to switchOver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expected == events && d.crossing == switchOverAwaited {
		d.crossing = to
		d.Trigger()
	}
}

// migrationStatus returns what a MIGRATION event tells; "" is another event.
func migrationStatus(e qemu.Event) qemu.MigrationStatus {
	var data struct{ Status qemu.MigrationStatus }
	if e.Name != "MIGRATION" || json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return data.Status
}

// complete notes that the expected transfer is complete, and triggers the domain's worker.
func (d *domain) complete(events *qemu.Subscription, as backend.Role, stood time.Duration) {
	l := look{Alive: true, Migration: qemu.Completed, Run: qemu.PostMigrate}
	if as == backend.Target {
		l.Run = qemu.Paused
	}
	d.mu.Lock()
	if d.expected == events {
		d.ended = &ending{l, stood}
		d.looks++
		d.seen, d.latest = l, d.looks
	}
	d.mu.Unlock()
	d.Trigger()
}

// Unexpect forgets what was told of the end of a transfer, and what will be: the guest is about
// to be let run, and what was seen of it is no longer so, or it was another transfer. The caller
// holds the domain's lock.
func (d *domain) Unexpect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expected != nil {
		d.expected.Close()
	}
	d.expected, d.ended, d.off = nil, nil, false
	d.crossing = switchOverUnknown
}

// Off reports whether the guest has shut down while the present transfer was under way. QEMU does
// not tell any more when it has stopped the guest for the switch-over, and that has failed.
// Source: QEMU 7.2 migration/migration.c (migration_iteration_finish).
func (d *domain) Off() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}

// glance is Look, or what an event told just now.
func (d *domain) glance(ctx context.Context) (look, qemu.Migration, error) {
	d.mu.Lock()
	told, vm := d.ended, d.vm
	d.ended = nil
	d.mu.Unlock()
	if told == nil || vm == nil || vm.Ended() {
		return d.Look(ctx)
	}
	return told.look, qemu.Migration{Status: qemu.Completed,
		Downtime: told.stood.Milliseconds()}, nil
}
