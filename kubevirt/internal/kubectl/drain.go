package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

// drainFlags are those of drain.
type drainFlags struct {
	by, order, unmovable, to string
	grace                    time.Duration
	parallel                 int32
	dryRun, wait             bool
}

func (p *plugin) drain() *cobra.Command {
	var f drainFlags
	c := &cobra.Command{Use: "drain NODE", Short: "Empty a node",
		Long: `Empty a node: create a NodeEvacuation of its name, and show how it goes until the node is empty, or only
VMs that cannot leave are left (exit status 1). With -o json and yaml the NodeEvacuation is printed in the end. The drain goes on if the command is ended: kubectl delete
nodeevacuation NODE ends it and uncordons the node.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.nodes,
		RunE: func(c *cobra.Command, args []string) error {
			e, err := f.evacuation(args[0], p.now())
			if err != nil {
				return err
			}
			if f.dryRun {
				q := forecast.Of(e)
				if e.Spec.Deadline == nil {
					return p.simulate(c, q, nil)
				}
				return p.simulate(c, q, &e.Spec.Deadline.Time)
			}
			cl, _, err := p.open()
			if err != nil {
				return err
			}
			if p.output != "json" && p.output != "yaml" {
				return p.start(c.Context(), cl, e, f.wait, c.OutOrStdout())
			}
			err = p.start(c.Context(), cl, e, f.wait, c.ErrOrStderr())
			if err != nil && !errors.Is(err, errNotDone) {
				return err
			}
			return errors.Join(p.print(c.OutOrStdout(), e, nil), err)
		}}
	flags := c.Flags()
	flags.StringVar(&f.by, "by", "", "be empty at this `TIME`: 06:00, 2h from now, or 2026-12-01T06:00:00Z")
	flags.StringVar(&f.order, "order", string(v1alpha1.LargestFirst), "`ORDER`: LargestFirst, SmallestFirst, LongestFirst or ByName")
	flags.StringVar(&f.to, "to", "", "move the VMs to nodes with these `LABELS` only: pool=b,zone=a")
	flags.StringVar(&f.unmovable, "unmovable", string(v1alpha1.Keep), "`WHAT` happens to VMs that cannot be migrated: Keep or ShutDown")
	flags.DurationVar(&f.grace, "grace", 0, "`TIME` for their guests to shut down")
	flags.Int32Var(&f.parallel, "parallel", 0, "at most `NUMBER` migrations leave the node at once (default: KubeVirt's limit)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "plan only")
	flags.BoolVar(&f.wait, "wait", true, "show how it goes until it has ended")
	return c
}

// evacuation returns what the flags ask for.
func (f *drainFlags) evacuation(node string, now time.Time) (*v1alpha1.NodeEvacuation, error) {
	e := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: v1alpha1.NodeEvacuationSpec{NodeName: node, Order: v1alpha1.Order(f.order), Unmovable: v1alpha1.Unmovable(f.unmovable)}}
	if f.grace != 0 && f.grace < time.Second {
		return nil, fmt.Errorf("--grace %s: it is 1s or more", f.grace)
	}
	if f.grace > 0 {
		e.Spec.Grace = &metav1.Duration{Duration: f.grace}
	}
	if f.parallel > 0 {
		e.Spec.Limits = &v1alpha1.Limits{ParallelOutbound: &f.parallel}
	}
	if f.to != "" {
		targets, err := labels.ConvertSelectorToLabelsMap(f.to)
		if err != nil {
			return nil, fmt.Errorf("--to %q: write pool=b,zone=a: %w", f.to, err)
		}
		e.Spec.TargetNodeSelector = targets
	}
	if f.by == "" {
		return e, nil
	}
	at, err := deadline(f.by, now)
	if err != nil {
		return nil, err
	}
	e.Spec.Deadline = &metav1.Time{Time: at}
	return e, nil
}

// deadline reads a time: of the day, from now, or of the calendar.
func deadline(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Before(now) {
			return at, fmt.Errorf("--by %s is in the past", text)
		}
		return at, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return clock, fmt.Errorf("--by %q is no time: write 06:00, 2h or 2026-12-01T06:00:00Z", text)
	}
	for day := 0; ; day++ {
		at := time.Date(now.Year(), now.Month(), now.Day()+day, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if at.After(now) {
			return at, nil
		}
	}
}

// start creates the NodeEvacuation, unless there is one, and follows it.
func (p *plugin) start(ctx context.Context, c client.WithWatch, e *v1alpha1.NodeEvacuation, wait bool, out io.Writer) error {
	if err := may(ctx, c, right{"create", v1alpha1.Group, "nodeevacuations"}, right{"get", v1alpha1.Group, "nodeevacuations"},
		right{"watch", v1alpha1.Group, "nodeevacuations"}); err != nil {
		return err
	}
	switch err := c.Create(ctx, e); {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster does not know NodeEvacuations: install godwit-kubevirt (docs/kubevirt.md): %w", err)
	case apierrors.IsAlreadyExists(err):
		fmt.Fprintf(out, "NodeEvacuation %s exists already, and is not changed\n", e.Name)
		if err := c.Get(ctx, types.NamespacedName{Name: e.Name}, e); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		fmt.Fprintf(out, "NodeEvacuation %s is created\n", e.Name)
	}
	if !wait {
		return nil
	}
	return p.follow(ctx, c, e, out)
}

// follow prints what changes until the drain has ended.
func (p *plugin) follow(ctx context.Context, c client.WithWatch, e *v1alpha1.NodeEvacuation, out io.Writer) error {
	last := ""
	for {
		w, err := c.Watch(ctx, &v1alpha1.NodeEvacuationList{}, client.MatchingFields{"metadata.name": e.Name})
		if err != nil {
			return err
		}
		for event := range w.ResultChan() {
			now, is := event.Object.(*v1alpha1.NodeEvacuation)
			if !is || now.UID != e.UID {
				continue
			}
			if event.Type == watch.Deleted {
				w.Stop()
				return fmt.Errorf("NodeEvacuation %s was deleted", e.Name)
			}
			if line := progress(now); line != last {
				last = line
				fmt.Fprintln(out, p.now().Format(time.TimeOnly), line)
			}
			if end, err := ended(now, out); end {
				w.Stop()
				now.DeepCopyInto(e)
				return err
			}
		}
		if ctx.Err() != nil { // else the API server has closed the watch
			return context.Cause(ctx)
		}
	}
}

func progress(e *v1alpha1.NodeEvacuation) string {
	s := &e.Status
	if s.Phase == "" {
		return "waits for the controller godwit-kubevirt"
	}
	line := fmt.Sprintf("%s: %s left, %s moving, %s blocked, %d moved", s.Phase, number(s.VMsLeft), number(s.Moving),
		number(s.Blocked), len(s.Moved))
	if s.ETA != "" {
		line += ", empty at " + s.ETA
	}
	return line
}

// ended reports whether a drain has come to its end.
func ended(e *v1alpha1.NodeEvacuation, out io.Writer) (bool, error) {
	switch e.Status.Phase {
	case v1alpha1.Done:
		return true, nil
	case v1alpha1.Blocked:
		blocked(out, e.Spec.NodeName, e.Status.BlockedVMs)
		return true, errNotDone
	case v1alpha1.NodeNotFound, v1alpha1.Conflict:
		return true, fmt.Errorf("%s: see kubectl describe nodeevacuation %s", e.Status.Phase, e.Name)
	}
	return false, nil
}
