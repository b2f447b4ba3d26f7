package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// each reads the store every second, until show reports that it is done, or the command is
// interrupted.
func (d *session) each(ctx context.Context, show func(*client.Cluster) (done bool, err error)) error {
	var c client.Cluster
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if err := c.Pull(ctx, d.Store); err != nil {
			return err
		}
		if done, err := show(&c); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// watch prints the status again and again.
func (d *session) watch(ctx context.Context) error {
	last := client.Watched{Terminal: isTerminal(d.out)}
	var place placeless
	return d.each(ctx, func(c *client.Cluster) (bool, error) {
		s, err := d.status(ctx, c, &place)
		if err != nil {
			return false, err
		}
		if d.json {
			return false, last.JSON(d.out, s)
		}
		return false, last.Table(d.out, s)
	})
}

// follow prints the progress of a migration until it has ended.
func (d *session) follow(ctx context.Context, id migration.ID) error {
	last := ""
	return d.each(ctx, func(c *client.Cluster) (bool, error) {
		m := c.Migration(id)
		if m == nil {
			return true, fmt.Errorf("migration %s is gone: its VM may have been deleted", id)
		}
		move := c.ReportMove(m, d.Now())
		if line := move.Line(d.Now()); line != last {
			fmt.Fprintln(d.err, line)
			last = line
		}
		if !m.State.Phase.Final() {
			return false, nil
		}
		err := d.print(move, move.Table)
		if err == nil && m.State.Phase == migration.Failed {
			err = ErrNotDone
		}
		return true, err
	})
}

// empty prints the progress of a drain until the host is empty, or no further VM will leave, or, unless
// that is zero, for so long.
func (d *session) empty(ctx context.Context, host hostName, atMost time.Duration) error {
	last, said, began := "", "", d.Now()
	var place refused
	return d.each(ctx, func(c *client.Cluster) (bool, error) {
		left := client.ListRemaining(c, host, d.settings.Controller.Evacuation, d.Now())
		if err := d.places(ctx, left, &place); err != nil {
			return false, err
		}
		if line := left.Line(); line != last {
			fmt.Fprintln(d.err, line)
			last = line
		}
		if p := c.Host(host).DrainPace; p != nil && p.Text != said {
			if said = p.Text; said != "" {
				fmt.Fprintf(d.err, "the deadline %s\n", said)
			}
		}
		switch {
		case left.Done:
		case atMost > 0 && d.Now().Sub(began) >= atMost:
			if err := left.WhyWaiting(ctx, d.Store, d.settings.Controller, d.Now()); err != nil {
				return false, err
			}
			return true, cmp.Or(d.print(left, left.Unfinished),
				fmt.Errorf("the host is not empty after %s; the drain goes on: %w", atMost, ErrNotDone))
		default:
			return false, nil
		}
		err := d.print(left, left.Table)
		if err == nil && len(left.Stay) > 0 {
			err = ErrNotDone
		}
		return true, err
	})
}

// A refused is why no host took a VM at a moment.
type refused struct {
	vm  vmid
	why string
	at  time.Time
}

// askAgain is how often that is asked: it reads all that is stored.
const askAgain = 10 * time.Second

// places has a controller that writes nothing tell why no host takes the first of the VMs that wait for one.
func (d *session) places(ctx context.Context, l *client.RemainingVMs, p *refused) error {
	if len(l.Placeless) == 0 || len(l.Moving) > 0 {
		return nil
	}
	first, now := &l.Placeless[0], d.Now()
	if first.VM == p.vm && now.Sub(p.at) < askAgain {
		first.Why = cmp.Or(p.why, first.Why)
		return nil
	}
	*p = refused{vm: first.VM, at: now}
	e, err := client.Explain(ctx, d.Store, d.settings.Controller, first.VM, now)
	if errors.Is(err, store.Stale) { // it has just been deleted
		return nil
	}
	if err == nil {
		p.why = client.Summary(e.Reasons)
	}
	first.Why = cmp.Or(p.why, first.Why)
	return err
}

// placeless are why no host took the VMs without one at a moment.
type placeless struct {
	why map[vmid]string // nil is that none waited
	at  time.Time
}

// status returns the state of a cluster, with why no host takes the VMs that wait for one.
func (d *session) status(ctx context.Context, c *client.Cluster, p *placeless) (*client.Status, error) {
	now := d.Now()
	s := client.MakeStatus(c, d.settings.Controller.Evacuation, now)
	if p.why == nil || now.Sub(p.at) >= askAgain {
		why, err := client.WhyPlaceless(ctx, d.Store, d.settings.Controller, s.VMs, now)
		if err != nil {
			return nil, err
		}
		*p = placeless{why, now}
	}
	client.TellPlaceless(s.VMs, p.why)
	return s, nil
}

// isTerminal reports whether the output is a terminal.
func isTerminal(out any) bool {
	f, is := out.(*os.File)
	if !is {
		return false
	}
	about, err := f.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}
