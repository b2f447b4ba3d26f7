package harm

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/stage"
)

// remains are cases about what is said of a target that ends before the VM has come, while it
// is cleared away. A VM that rests under its job has come by it: the cluster starts it anew
// there, and it runs at its source.
var remains = []stage.Trial{
	{Name: "a target that dies on the way is never said to have had the VM",
		Needs: stage.Kill | stage.Slow, Run: func(w *world) {
			job := w.Slowly(stage.Move{})
			over := watched(w)
			w.Kills(target)
			w.Stays(job, hypervisor.JobFailed)
			w.UntilState(target, theVM, hypervisor.Absent)
			w.Must(over())
		}},
	{Name: "a target that is discarded is never said to have had the VM", Run: func(w *world) {
		over := watched(w)
		for range 3 {
			job, _ := w.Receives(stage.Move{})
			w.Discards(job)
			w.UntilState(target, theVM, hypervisor.Absent)
		}
		w.Must(over())
	}},
	{Name: "a target that its source has no use for is never said to have had the VM",
		Needs: stage.Slow, Run: func(w *world) {
			over := watched(w)
			job := w.Slowly(stage.Move{})
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
			w.Ended(job)
			w.UntilState(target, theVM, hypervisor.Absent)
			w.Must(over())
		}},
}

// watched asks again and again how TheVM is at the target, until the answer is called. It says
// what else was told there than that it is awaited, or not there at all.
func watched(w *world) (over func() error) {
	ctx, end := context.WithCancel(w.Ctx)
	var readers errgroup.Group
	for i := range 4 {
		readers.Go(func() error {
			for ctx.Err() == nil {
				all := make([]hypervisor.Domain, 1)
				var err error
				if i%2 == 0 {
					all[0], err = w.HV[target].Domain(ctx, theVM)
				} else {
					all, err = w.HV[target].Domains(ctx)
				}
				for _, d := range all {
					awaited := d.State == hypervisor.Receiving || d.State == hypervisor.Absent
					if err == nil && !awaited {
						return fmt.Errorf("the target says that %s is %v, by %s: it never came",
							d.VM.ID, d.State, d.Job)
					}
				}
				if err != nil && !errors.Is(err, hypervisor.Transient) && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	return func() error { end(); return readers.Wait() }
}
