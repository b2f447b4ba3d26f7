package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/godwit-vm/godwit/internal/client"
)

const topHelp = `Show the state of the cluster, and keep it up to date until interrupted: alarms first, drains
with progress and the time until the host is empty, migrations with rate, passes over the memory and
downtime, hosts with load and state, and VMs that need attention, with the reason.

The time until a host is empty is that of what remains at the present rate, at least; p50 and p95
take into account how much the ended migrations of this cluster have sent for each byte of their
guests, once 5 (p50) and 20 (p95) of them were measured. What is not known is printed as "unknown".

Without a terminal it prints a frame whenever something has changed. It only reads. While the store
does not answer, it shows what it has read last, and says so.

With --once it prints one frame. The exit status is 4 then if there is an alarm.

A controller that is started with --page serves the same to browsers.`

// leastInterval keeps a reader from doing nothing but reading.
const leastInterval = 100 * time.Millisecond

func topCommand() *cobra.Command {
	var f sessionFlags
	var once bool
	var interval time.Duration
	c := &cobra.Command{Use: "top", Short: "Show the state of the cluster, up to date", Long: topHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < leastInterval {
				return fmt.Errorf("--interval: %v is less than %v: write 1s", interval, leastInterval)
			}
			if !once {
				return f.at(c, func(ctx context.Context, d *session) error { return d.top(ctx, interval) })
			}
			return f.once(c, func(ctx context.Context, d *session) error {
				o := d.overview().Look(ctx)
				if o.Trouble != "" {
					return errors.New(o.Trouble)
				}
				if len(o.Alarms) > 0 {
					return errors.Join(frameOf(d.out).Print(d.out, o), ErrAlarm)
				}
				return frameOf(d.out).Print(d.out, o)
			})
		}}
	f.addStore(c)
	c.Flags().BoolVar(&once, "once", false, "print one frame and exit")
	c.Flags().DurationVar(&interval, "interval", every, "`TIME` between frames")
	return c
}

func (d *session) overview() *client.Follower {
	return client.Follow(d.Store, d.settings.Controller.Complete().Evacuation, 0, d.Now)
}

// frameOf returns how large a frame may be: as large as the terminal.
func frameOf(out io.Writer) client.Frame {
	f, is := out.(*os.File)
	if !is || !isTerminal(out) {
		return client.Frame{}
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return client.Frame{}
	}
	return client.Frame{Width: width, Height: height}
}

// What a terminal is told. Source: xterm, Control Sequences (DECSET 1049, DECTCEM, CUP, EL, ED).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// top shows frames until ctx ends.
func (d *session) top(ctx context.Context, interval time.Duration) error {
	follow, terminal, last := d.overview(), isTerminal(d.out), ""
	if terminal {
		fmt.Fprint(d.out, enterScreen)
		defer fmt.Fprint(d.out, leaveScreen)
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		looking, cancel := context.WithTimeoutCause(ctx, patience,
			errors.New("the store has not answered within "+patience.String()))
		o := follow.Look(looking)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		var b bytes.Buffer
		if err := frameOf(d.out).Print(&b, o); err != nil {
			return err
		}
		if err := d.frame(b.String(), terminal, &last); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// frame shows a frame: in place on a terminal; elsewhere below the one before, unless only the
// time is another.
func (d *session) frame(text string, terminal bool, last *string) error {
	if terminal {
		text = strings.TrimSuffix(strings.ReplaceAll(text, "\n", clearLine+"\n"), "\n")
		_, err := fmt.Fprint(d.out, home+text+clearBelow)
		return err
	}
	_, timeless, _ := strings.Cut(text, "Z  ")
	if timeless == *last {
		return nil
	}
	if *last != "" {
		text = "\n" + text
	}
	*last = timeless
	_, err := io.WriteString(d.out, text)
	return err
}
