package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrBoots: the guest has not filled its memory yet.
var ErrBoots = errors.New("the guest boots")

// VerifyDump is Verify of a memory that was written to a file. Of a guest that has not filled its memory
// yet it answers [ErrBoots].
func (p Params) VerifyDump(path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s, err := ReadState(f); err == nil && !s.Ready {
		return ErrBoots
	}
	return p.Verify(f, size)
}

// Stopped stops a guest for a moment and looks at it, again as long as the look finds that it boots.
func Stopped(ctx context.Context, stop, look, resume func() error) error {
	for {
		if err := stop(); err != nil {
			return err
		}
		err := look()
		if err = errors.Join(err, resume()); !errors.Is(err, ErrBoots) || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Alive returns the process that the guest beats in: not the one where it did half a heartbeat ago, but
// where it goes on to. "" is that it stands. The error is what is wrong with its heartbeats.
func (p *HeartbeatListener) Alive() (process string, err error) {
	before := p.Log()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err = p.Wait(ctx, func(r HeartbeatLog) bool { return r.Beats >= before.Beats+3 })
	if err != nil {
		return "", nil // it stands
	}
	r := p.Log()
	return r.From, r.Check()
}

// Up waits until the guest has come up, and answers what is wrong with its heartbeats.
func (p *HeartbeatListener) Up(ctx context.Context) error {
	if err := p.Wait(ctx, func(r HeartbeatLog) bool { return r.Ready && r.Beats > 3 }); err != nil {
		return fmt.Errorf("the guest does not come up: %w", err)
	}
	return p.Log().Check()
}
