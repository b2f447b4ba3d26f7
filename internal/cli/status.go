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

// every is how often --watch and --wait read the store.
const every = time.Second

const statusHelp = `Print the state of the cluster: the leader, the hosts, the VMs, and the migrations
that are running or ended recently: what was sent, what remains, the rate, and the predicted end.
Progress is what the source agent last stored (every 10 s).

Alarms come first, with what to do: a VM that runs on two hosts, a second agent with the name of a
host. The exit status is 4 then. docs/failed-migrations.md says what the words of a failed migration mean.

With --watch the state is printed every second until the command is interrupted; with --json, one
object a line whenever something has changed.`

func statusCommand() *cobra.Command {
	var f sessionFlags
	var watch bool
	c := &cobra.Command{Use: "status", Short: "Print the state of the cluster", Long: statusHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !watch {
				return f.once(c, func(ctx context.Context, d *session) error {
					c, err := d.look(ctx)
					if err != nil {
						return err
					}
					s, err := d.status(ctx, c, &placeless{})
					if err != nil {
						return err
					}
					err = d.print(s, s.Table)
					if err == nil && len(s.Alarms) > 0 {
						err = ErrAlarm
					}
					return err
				})
			}
			return f.at(c, func(ctx context.Context, d *session) error { return d.watch(ctx) })
		}}
	f.add(c)
	c.Flags().BoolVar(&watch, "watch", false, "repeat every second until interrupted")
	return c
}

// ErrAlarm: the cluster has an alarm, see [client.Alarm].
var ErrAlarm = errors.New("there is an alarm: see godwit status")

// alarmed prints the alarms of a status to standard error.
func (d *session) alarmed(s *client.Status, err error) error {
	if err != nil || len(s.Alarms) == 0 {
		return err
	}
	client.AlarmTable(d.err, s.Alarms)
	return ErrAlarm
}

// show prints a record.
func (d *session) show(ctx context.Context, key store.Key) error {
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
