package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/godwit-vm/godwit/internal/sweep"
)

// Simulate runs all worlds of the plan, on all cores, and prints what came out.
// What is complete is printed also when the context ends before the rest is. The
// document is returned with [ErrSweepViolated], too; a shard has none.
func (p *Plan) Simulate(ctx context.Context, out io.Writer, asJSON bool) (*sweep.Document, error) {
	if p.Sharded() {
		return nil, p.simulateShard(ctx, out)
	}
	var samples []sweep.Sample
	err := p.simulate(ctx, func(s *sweep.Sample) error {
		samples = append(samples, *s)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	d := sweep.Summarize(p.run, samples)
	if err := Print(out, d, asJSON); err != nil {
		return nil, err
	}
	if d.Complete < d.Worlds {
		return d, interrupted(d.Complete, d.Worlds)
	}
	return d, sweepVerdict(d)
}

// simulateShard writes the samples as they come.
func (p *Plan) simulateShard(ctx context.Context, out io.Writer) (err error) {
	if path := p.flags.output; path != "" && path != "-" {
		f, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	buffered := bufio.NewWriter(out)
	if err := sweep.WriteHead(buffered, p.run, p.shard); err != nil {
		return err
	}
	var violated []*sweep.Sample
	n := 0
	failed := p.simulate(ctx, func(s *sweep.Sample) error {
		n++
		if len(s.Violations) > 0 {
			violated = append(violated, s)
		}
		return errors.Join(sweep.WriteSample(buffered, s), buffered.Flush())
	})
	if failed != nil && ctx.Err() == nil {
		return failed
	}
	err = errors.Join(sweep.WriteEnd(buffered, n, failed == nil), buffered.Flush())
	if err != nil {
		return err
	}
	printViolated(Plain(os.Stderr), &p.run, violated)
	switch {
	case failed != nil:
		return interrupted(n, len(p.shard.Worlds(p.run.Worlds())))
	case len(violated) > 0:
		return ErrSweepViolated
	}
	return nil
}

// sweepsKey is the key of what ToldOfSweeps puts into a context.
type sweepsKey struct{}

// ToldOfSweeps returns a context of commands that set sweeps when one has begun a sweep. When the context ends, the
// sweep ends the worlds that it has begun, and prints what is complete.
func ToldOfSweeps(ctx context.Context, sweeps *atomic.Bool) context.Context {
	return context.WithValue(ctx, sweepsKey{}, sweeps)
}

func (p *Plan) simulate(ctx context.Context, sample func(*sweep.Sample) error) error {
	bar := newProgress(len(p.shard.Worlds(p.run.Worlds())))
	defer bar.done()
	if sweeps, ok := ctx.Value(sweepsKey{}).(*atomic.Bool); ok {
		sweeps.Store(true)
	}
	s := sweep.Sweep{Run: p.run, Shard: p.shard, Load: p.Scenario, Sample: sample, Tick: bar.tick}
	return s.Simulate(ctx)
}

func interrupted(complete, all int) error {
	return fmt.Errorf("interrupted: the output has the %d of %d worlds that were complete",
		complete, all)
}

// Print prints a document: one line of JSON, or a page for people.
func Print(out io.Writer, d *sweep.Document, asJSON bool) error {
	if asJSON {
		return d.WriteJSON(out)
	}
	return sweepTable(Plain(out), d)
}

// sweepVerdict returns ErrViolated when an invariant did not hold in any world.
func sweepVerdict(d *sweep.Document) error {
	if len(d.Violated()) > 0 {
		return ErrSweepViolated
	}
	return nil
}
