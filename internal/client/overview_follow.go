package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/store"
)

// fresh is how long a reader gets what was read for the one before.
const fresh = 500 * time.Millisecond

// A Follower reads a store for any number of readers. It writes nothing. It is safe for concurrent
// use.
type Follower struct {
	store    store.Store
	defaults evacuation.Params
	now      func() time.Time
	silence  time.Duration

	mu      sync.Mutex
	cluster Cluster
	last    *Overview
	beats   uint64
	heard   time.Time // when the leader's heartbeat last changed
}

// Follow returns what reads a store. Defaults are those of VMs and drains. Silence is how long a leader
// may send no heartbeat before it is an alarm: as long as other controllers wait before they take
// over, which is [store.LeaderLeaseDuration]. Zero: as long as they do by default.
func Follow(s store.Store, defaults evacuation.Params, silence time.Duration,
	now func() time.Time) *Follower {
	return &Follower{store: ReadOnly(s), defaults: defaults, now: now,
		silence: store.LeaderLeaseDuration(0, silence)}
}

// Look returns the overview of the cluster now. When the store does not answer, it is the last one
// that was read, with a Trouble.
func (f *Follower) Look(ctx context.Context) *Overview {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.last != nil && f.last.Trouble == "" && now.Sub(f.last.At) < fresh && !now.Before(f.last.At) {
		return f.last
	}
	if err := f.cluster.Pull(ctx, f.store); err != nil {
		o := Overview{At: now.UTC().Round(0)}
		if f.last != nil {
			o = *f.last
		}
		o.Trouble = err.Error()
		if ctx.Err() == nil {
			f.last = &o
		}
		return &o
	}
	f.last = MakeOverview(&f.cluster, f.defaults, now)
	f.listen(now)
	return f.last
}

// listen adds an alarm when the leader sends no heartbeats.
func (f *Follower) listen(now time.Time) {
	l := f.cluster.Leader()
	if l == nil {
		return
	}
	i := slices.IndexFunc(f.cluster.Leases(), func(x *store.Lease) bool { return x.Owner == l.Holder })
	beats := uint64(0)
	if i >= 0 {
		beats = f.cluster.Leases()[i].Beats
	}
	if f.heard.IsZero() || beats != f.beats || now.Before(f.heard) {
		f.beats, f.heard = beats, now
	}
	silent := now.Sub(f.heard)
	if silent < f.silence {
		return
	}
	f.last.Alarms = append([]Alarm{{What: fmt.Sprintf("the leader %s has sent no heartbeat for "+
		"%s: nothing is decided, VMs keep running", strings.TrimPrefix(l.Holder, "controller/"),
		silent.Round(time.Second)),
		Do: "start a controller, or read the log of the one that should lead"}}, f.last.Alarms...)
}
