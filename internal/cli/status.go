package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// every is how often something that is watched is looked at.
const every = time.Second

const statusHelp = `Status tells how the cluster is: who leads, the hosts, the VMs, and the
migrations that have not ended, or have lately: what was sent, what is left, how fast, and when
they end if nothing changes. The figures are what the source's agent last stored; it does that
now and then.

What must never be is said first, as an alarm with what to do: a VM that runs on two hosts, a
second agent that has called itself like a host. The exit status is 4 then.

With --watch it does so every second until it is interrupted; with --json, too, one object a
line whenever something has changed.`

func statusCommand() *cobra.Command {
	var f deskFlags
	var watch bool
	c := &cobra.Command{Use: "status", Short: "Tell how the cluster is", Long: statusHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !watch {
				return f.once(c, func(ctx context.Context, d *desk) error {
					c, err := d.look(ctx)
					if err != nil {
						return err
					}
					s := client.MakeStatus(c, d.Draining, d.Now())
					err = d.print(s, s.Table)
					if err == nil && len(s.Alarms) > 0 {
						err = ErrAlarm
					}
					return err
				})
			}
			return f.at(c, func(ctx context.Context, d *desk) error { return d.watch(ctx) })
		}}
	f.add(c)
	c.Flags().BoolVar(&watch, "watch", false, "again and again, until interrupted")
	return c
}

// ErrAlarm says that something is as it must never be: see [client.Alarm].
var ErrAlarm = errors.New("there is an alarm: see godwit status")

// alarmed tells the alarms of a status below what was printed.
func (d *desk) alarmed(s *client.Status, err error) error {
	if err != nil || len(s.Alarms) == 0 {
		return err
	}
	client.AlarmTable(d.err, s.Alarms)
	return ErrAlarm
}

// show prints a record.
func (d *desk) show(ctx context.Context, key store.Key) error {
	r, err := d.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if r == nil {
		return d.Missing(ctx, key)
	}
	e := json.NewEncoder(d.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
