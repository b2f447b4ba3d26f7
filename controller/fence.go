package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// cut is an attempt of this failover controller to fence a host.
type cut struct {
	attempts int       // as in the host's record
	until    time.Time // it has failed; when it may be tried again
	noDevice bool      // it was said that nothing can fence the host
}

func (c *cut) underWay() bool { return c.until.IsZero() }

// fence asks how the cuts under way go, and begins those that are due and allowed. What
// has begun goes on in a storm: it cannot be called back, and its outcome is known.
func (w *FailoverController) fence(ctx context.Context, now time.Time) error {
	var due []hostObservation
	var errs []error
	running := 0
	for _, name := range w.names() {
		s := w.observation(name, now)
		fence := decideHost(&w.config, &s) == verdictFence
		c := w.cuts[name]
		switch {
		case !fence:
			delete(w.cuts, name)
		case c != nil && c.underWay() && s.Host.Fencing != nil &&
			s.Host.Fencing.Attempts == c.attempts:
			errs = append(errs, w.ask(ctx, &s, now))
		case c == nil || c.underWay() || !now.Before(c.until):
			due = append(due, s)
		default:
			w.wakeAt(c.until)
		}
		if c := w.cuts[name]; c != nil && c.underWay() {
			running++
		}
	}
	if !w.calm(len(due) > 0, now) {
		return errors.Join(errs...)
	}
	slices.SortStableFunc(due, func(a, b hostObservation) int { return cmp.Compare(b.Silence, a.Silence) })
	for _, s := range due[:min(len(due), max(0, w.config.FenceAtOnce-running))] {
		errs = append(errs, w.begin(ctx, &s, now))
	}
	return errors.Join(errs...)
}

func (w *FailoverController) wakeAt(t time.Time) { w.wake = workqueue.Earliest(w.wake, t) }

// calm reports whether no more hosts are silent than may be. It says so when that
// changes, if a silent host is to be fenced.
func (w *FailoverController) calm(cares bool, now time.Time) bool {
	silent, all := 0, 0
	for name, h := range w.cache.hosts {
		if h.ConfirmedDownBy != "" {
			continue // an operator knows why
		}
		all++
		if h.Fenced || w.leases.silence(name, now) >= w.config.Grace {
			silent++
		}
	}
	allowed := w.config.allowed(all)
	switch storm := silent > allowed; {
	case storm && cares && !w.storm:
		w.storm = true
		w.recorder.Note(now, "", "", fmt.Sprintf("fences no host: %d of %d hosts are silent, and "+
			"%d may be; who is really off counts no more once an operator says so", silent, all,
			allowed))
	case !storm && w.storm:
		w.storm = false
		w.recorder.Note(now, "", "", fmt.Sprintf("may fence again: %d of %d hosts are silent",
			silent, all))
	}
	return silent <= allowed
}

// begin stores the intent to fence a host, on condition that the host has not been
// heard, and asks for it. An attempt that another controller has stored is not ours to go
// on with: they may have lost the lead, and the host may have been heard since.
func (w *FailoverController) begin(ctx context.Context, s *hostObservation, now time.Time) error {
	next, f := *s.Host, store.Fencing{Asked: now}
	if s.Host.Fencing != nil {
		f = *s.Host.Fencing
	}
	f.Boot = s.Boot
	f.Attempts++
	next.Fencing = &f
	if stored, err := w.put(ctx, &next, w.leases.lease(s.Host.Host.Name)); err != nil || !stored {
		return err
	}
	name := s.Host.Host.Name
	old := w.cuts[name]
	w.cuts[name] = &cut{attempts: f.Attempts, noDevice: old != nil && old.noDevice}
	if !w.cuts[name].noDevice {
		w.recorder.Note(now, name, "", fmt.Sprintf("is to be fenced: silent for %s, attempt %d",
			s.Silence.Round(time.Second), f.Attempts))
	}
	again := w.observation(name, now)
	return w.ask(ctx, &again, now)
}

// ask asks the fencer for the attempt that is stored, and stores its answer.
func (w *FailoverController) ask(ctx context.Context, s *hostObservation, now time.Time) error {
	f := *s.Host.Fencing
	next := *s.Host
	next.Fencing = &f
	by, err := "", error(hypervisor.Unsupported)
	if w.fencer != nil {
		by, err = w.fencer.Cut(ctx, s.Host.Host.Name, attempt(&f))
	}
	switch {
	case err != nil:
		return w.failed(ctx, &next, err, now)
	case by == "":
		w.wakeAt(now.Add(w.config.Poll))
		return nil
	}
	f.By, f.Error = by, ""
	next.Fenced, next.NotReady = true, true
	stored, err := w.put(ctx, &next, w.leases.lease(next.Host.Name))
	if stored {
		delete(w.cuts, next.Host.Name)
		w.recorder.Note(now, next.Host.Name, "", "is fenced: "+by+" has proved that it is off")
	}
	return err
}

// attempt names an attempt for the fencer.
func attempt(f *store.Fencing) string {
	return fmt.Sprintf("%s/%d/%d", f.Boot, f.Asked.UnixNano(), f.Attempts)
}

// longest is how much of a fencer's error is stored.
const longest = 300

// failed stores why an attempt has failed, and when it may be tried again.
func (w *FailoverController) failed(ctx context.Context, next *store.Host, why error, now time.Time) error {
	c := w.cuts[next.Host.Name]
	none := errors.Is(why, hypervisor.Unsupported)
	text := why.Error()
	if none {
		text = "it has no device to be fenced with"
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	next.Fencing.Error = text
	if stored, err := w.put(ctx, next); err != nil || !stored {
		return err
	}
	c.until = now.Add(w.config.backoff(next.Fencing.Attempts))
	if none {
		c.until = now.Add(w.config.RetryCap)
	}
	w.wakeAt(c.until)
	switch {
	case none && !c.noDevice:
		c.noDevice = true
		w.recorder.Note(now, next.Host.Name, "", "cannot be fenced: "+text+
			"; its VMs wait until an operator gives their word that it is off")
	case !none:
		w.recorder.Note(now, next.Host.Name, "", fmt.Sprintf("was not fenced, attempt %d: %s",
			next.Fencing.Attempts, text))
	}
	return nil
}
