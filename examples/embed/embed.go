// Package embed puts godwit's decisions into another controller, in the shape that
// controller-runtime gives to reconcilers, and without depending on it: a [Move] is a custom
// resource, the [Cluster] is a client, and what is decided is migration.Config.Step.
//
// The caller's agents do what actions ask for and report in the resource's status, as
// KubeVirt's virt-handlers do. A program without agents embeds controller.New and agent.New instead.
package embed

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// Request and Result are controller-runtime's.
type (
	Request struct{ Name string }                // which Move
	Result  struct{ RequeueAfter time.Duration } // 0: when something changes
)

// ErrConflict is the answer to an update of an object that another process has written.
var ErrConflict = errors.New("the object has been modified")

// A Move is the custom resource. Each part has one writer.
type Move struct {
	Version int
	Spec    migration.Spec // the user's
	Cancel  bool           // the user's: deletionTimestamp

	State  migration.State    // ours
	Report migration.Report   // the agents'
	Target migration.Instance // of the pod that receives the VM
}

// A VM is what the reconciler has to know about one.
type VM struct {
	Version int
	Guest   migration.VMStatus
	Node    hypervisor.HostName
	Move    migration.ID // status.migrationState: the move that it belongs to
}

// A Cluster reads and writes objects; updates answer ErrConflict when Version is old.
type Cluster interface {
	Move(ctx context.Context, name string) (*Move, error) // nil when there is none
	Moves(ctx context.Context) ([]*Move, error)
	VM(ctx context.Context, m *Move) (*VM, error) // nil when there is none
	UpdateMove(ctx context.Context, m *Move) error
	UpdateVM(ctx context.Context, vm *VM) error
	// Do performs what is not a matter of records: pods, and requests to agents. It may be
	// repeated.
	Do(ctx context.Context, a migration.Action, m *Move) error
}

// A Reconciler reconciles Moves.
type Reconciler struct {
	Cluster Cluster
	Config  migration.Config // complete: see [migration.Config.Complete]
	Limits  migration.Limits
	// Schedule chooses a node, or "" when none has room.
	Schedule func(context.Context, *Move, *VM) (hypervisor.HostName, error)
	Now      func() time.Time
}

// Reconcile looks at one Move, decides once, stores that, and only then acts. Whatever is
// lost to a crash is asked for again the next time.
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (Result, error) {
	m, err := r.Cluster.Move(ctx, req.Name)
	if m == nil || err != nil {
		return Result{}, err
	}
	vm, err := r.Cluster.VM(ctx, m)
	if err != nil {
		return Result{}, err
	}
	o, err := r.observe(ctx, m, vm)
	if err != nil {
		return Result{}, err
	}
	d := r.Config.Step(&m.Spec, &m.State, &o)
	next := *m
	next.State = d.State
	if d.Actions.Has(migration.CreateTarget) && next.State.Target == "" {
		next.State.Source = vm.Node
		if next.State.Target, err = r.Schedule(ctx, m, vm); err != nil {
			return Result{}, err
		}
	}
	if next.State != m.State { // write before act
		err = r.Cluster.UpdateMove(ctx, &next)
	}
	for a := range d.Actions.All() {
		switch {
		case err != nil:
		case a == migration.HandOff:
			vm.Move = m.Spec.ID
			err = r.Cluster.UpdateVM(ctx, vm)
		case a != migration.CreateTarget || next.State.Target != "":
			err = r.Cluster.Do(ctx, a, &next)
		}
	}
	if errors.Is(err, ErrConflict) {
		return Result{RequeueAfter: time.Millisecond}, nil // read again, decide again
	}
	return again(&d), err
}

// observe puts together what is known.
func (r *Reconciler) observe(ctx context.Context, m *Move, vm *VM) (migration.Observation, error) {
	o := migration.Observation{Now: r.Now(), Report: m.Report, Target: m.Target, Canceled: m.Cancel}
	if vm == nil {
		return o, nil
	}
	o.VM, o.Running, o.Instances = vm.Guest, vm.Guest.Running, 1
	if vm.Move == m.Spec.ID {
		o.Ownership, o.Report.TargetNamed = migration.ClaimedBySelf, true
	} else if vm.Move != "" {
		o.Ownership = migration.ClaimedByOther
	}
	all, err := r.Cluster.Moves(ctx)
	var slots migration.Slots
	for _, other := range all {
		held := migration.HoldsSlot(other.State.Phase, other.State.Target != "", true)
		if held && other.Spec.ID != m.Spec.ID {
			slots.Take(migration.Slot{Source: other.State.Source, Recorded: other.State.Source,
				Target: other.State.Target})
		}
	}
	o.Gate = slots.Admit(r.Limits, vm.Node)
	return o, err
}

// again says when to look again: at the earliest time that was asked for.
func again(d *migration.Decision) (res Result) {
	for _, w := range d.Requeues() {
		if res.RequeueAfter == 0 || w.After < res.RequeueAfter {
			res.RequeueAfter = w.After
		}
	}
	return res
}
