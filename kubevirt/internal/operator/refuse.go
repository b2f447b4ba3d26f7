package operator

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
)

// After a refusal the same is tried again after a time that doubles each time, within bounds.
const (
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// After so many decisions, or so long, nothing more is tried at once: an API server that refuses all, or answers late,
// is not asked for each VM of a node in turn.
const (
	mostDecisions = 10
	longestTry    = 5 * time.Second
)

// longestRefusal is how much of what the API server said is kept.
const longestRefusal = 1024

// errRefused is that the API server does not do what was decided. It is remembered, and the next decision knows.
var errRefused = errors.New("refused")

// move creates the migrations and evicts the pods of a decision. If the API server refuses some of them, their VMs
// are held, and it is decided again, so that others take their places and the status does not say that they move. It
// returns the last decision.
func (r *Reconciler) move(ctx context.Context, v *evacuate.View, d *evacuate.Decision) (*evacuate.Decision, []error) {
	evicted, began := map[types.UID]bool{}, time.Now()
	for round := 1; ; round++ {
		refused := false
		var wrong []error
		note := func(err error) {
			if errors.Is(err, errRefused) {
				refused = true
			} else if err != nil {
				wrong = append(wrong, err)
			}
		}
		for _, m := range d.Create {
			note(r.create(ctx, v, m))
		}
		for _, e := range d.Evict {
			if !evicted[e.UID] {
				evicted[e.UID] = true
				note(r.evict(ctx, v, e))
			}
		}
		if !refused || len(wrong) > 0 {
			return d, wrong
		}
		v.Refused = maps.Clone(r.refused)
		if round == mostDecisions || time.Since(began) > longestTry {
			v.Hold = "it has refused what was asked before"
			return evacuate.Decide(v), nil
		}
		d = evacuate.Decide(v)
	}
}

// refuse remembers an error as a refusal, if the API server has answered.
func (r *Reconciler) refuse(uid types.UID, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err
	}
	if r.refused == nil {
		r.refused = map[types.UID]evacuate.Refusal{}
	}
	why := answer.Status().Message
	f := evacuate.Refusal{Why: why[:min(len(why), longestRefusal)], Times: r.refused[uid].Times + 1}
	f.Until = r.Now().Add(retryAfter(f.Times))
	r.refused[uid] = f
	return errRefused
}

// retryAfter returns after how long something that was refused so many times is tried again.
func retryAfter(times int) time.Duration {
	return min(firstRetry<<min(times-1, 10), lastRetry)
}

// refusals returns what was refused, without what was not tried for long: it is not wanted any more.
func (r *Reconciler) refusals() map[types.UID]evacuate.Refusal {
	maps.DeleteFunc(r.refused, func(_ types.UID, f evacuate.Refusal) bool { return r.Now().Sub(f.Until) > 2*lastRetry })
	return maps.Clone(r.refused)
}
