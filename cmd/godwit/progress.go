package main

import (
	"fmt"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/godwit-vm/godwit/sim"
)

// progress is a bar on a terminal for runs that take long; elsewhere nothing.
type progress struct {
	began time.Time
	shown time.Time
	at    time.Duration
	all   *mpb.Progress
	bar   *mpb.Bar
}

func newProgress() *progress { return &progress{began: time.Now()} }

// show brings the bar up to date, ten times a second, from the second on.
func (p *progress) show(w *sim.World) {
	now := time.Now()
	if now.Sub(p.began) < time.Second || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown, p.at = now, w.Now()
	if p.all == nil {
		if !term.IsTerminal(int(os.Stderr.Fd())) {
			return
		}
		p.all = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(40))
		p.bar = p.all.AddBar(0,
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
				return sim.Clock(p.at)
			})),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d migrations"),
				decor.Any(func(s decor.Statistics) string {
					return rate(s.Current, p.shown.Sub(p.began))
				})),
			mpb.BarRemoveOnComplete())
	}
	done, total := w.Done()
	p.bar.SetTotal(int64(total), false)
	p.bar.SetCurrent(int64(done))
}

// rate says how many migrations were simulated in a second of real time so far.
func rate(done int64, took time.Duration) string {
	return fmt.Sprintf(", %.0f/s", float64(done)/max(took.Seconds(), 0.001))
}

// done takes the bar away.
func (p *progress) done() {
	if p.all != nil {
		p.bar.Abort(true)
		p.all.Wait()
	}
}
