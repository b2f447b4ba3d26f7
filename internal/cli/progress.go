package cli

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/godwit-vm/godwit/sim"
)

// progress is a bar over all worlds, on a terminal; elsewhere nothing.
type progress struct {
	began time.Time
	all   *mpb.Progress
	bar   *mpb.Bar

	mutex      sync.Mutex
	worlds     int
	ended      time.Duration                // virtual, of worlds that have ended
	running    map[*sim.World]time.Duration // virtual, of the others
	migrations int                          // of worlds that have ended
}

func newProgress(worlds int) *progress {
	p := &progress{began: time.Now(), running: map[*sim.World]time.Duration{}}
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return p
	}
	p.all = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(30))
	p.bar = p.all.AddBar(int64(worlds),
		mpb.PrependDecorators(decor.CountersNoUnit("%d / %d worlds")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.rate() })),
		mpb.BarRemoveOnComplete())
	return p
}

// tick takes in how far a world is. Several worlds do so at once.
func (p *progress) tick(w *sim.World, ended bool) {
	if p.bar == nil {
		return
	}
	p.count(w, ended)
	if ended { // unlocked: the bar asks for the rate before it answers
		p.bar.Increment()
	}
}

func (p *progress) count(w *sim.World, ended bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !ended {
		p.running[w] = w.Now()
		return
	}
	delete(p.running, w)
	_, migrations := w.Done()
	p.worlds, p.ended, p.migrations = p.worlds+1, p.ended+w.Now(), p.migrations+migrations
}

// rate says how much virtual time has passed, and how fast.
func (p *progress) rate() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	virtual, wall := p.ended, time.Since(p.began).Seconds()
	for _, t := range p.running {
		virtual += t
	}
	return fmt.Sprintf("%s simulated, %.1f worlds/s, %.0f migrations/s", sim.Clock(virtual),
		float64(p.worlds)/wall, float64(p.migrations)/wall)
}

// done takes the bar away.
func (p *progress) done() {
	if p.all != nil {
		p.bar.Abort(true)
		p.all.Wait()
	}
}
