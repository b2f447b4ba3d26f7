package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
)

// remains are cases about what is said of a target that ends before the VM has come, while it
// is cleared away. A VM that rests under its job has come by it: the cluster starts it anew
// there, and it runs at its source.
var remains = []trial{
	{Name: "a target that dies on the way is never said to have had the VM",
		Needs: needKill | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			over := watched(w)
			w.Kills(target)
			w.Stays(job, hypervisor.JobFailed)
			w.UntilState(target, theVM, hypervisor.Absent)
			w.Must(over())
		}},
	{Name: "a job whose process has died is never said not to have begun",
		Needs: needKill | needSlow, Run: func(w *world) {
			job := w.Slowly(move{})
			over := again(w, func(ctx context.Context, i int) error {
				p, err := w.HV[i%2].Progress(ctx, job)
				if err == nil && p.Status == hypervisor.JobNone {
					return fmt.Errorf("%s is %v on %s", job, p.Status, w.Hosts[i%2].Name)
				}
				return err
			})
			w.Kills(source)
			w.UntilState(source, theVM, hypervisor.Crashed, hypervisor.Shutoff)
			w.Until("the job has ended", func() bool {
				s := w.Progress(source, job).Status
				return s == hypervisor.JobFailed || s == hypervisor.JobBroken
			})
			w.Must(over())
		}},
	{Name: "a target that is discarded is never said to have had the VM", Run: func(w *world) {
		over := watched(w)
		for range 3 {
			job, _ := w.Receives(move{})
			w.Discards(job)
			w.UntilState(target, theVM, hypervisor.Absent)
		}
		w.Must(over())
	}},
	{Name: "a target that its source has no use for is never said to have had the VM",
		Needs: needSlow, Run: func(w *world) {
			over := watched(w)
			job := w.Slowly(move{})
			w.Adjust(job, hypervisor.Cancel{})
			w.Stays(job, hypervisor.JobCancelled)
			w.Ended(job)
			w.UntilState(target, theVM, hypervisor.Absent)
			w.Must(over())
		}},
}

// returns are cases about a VM that moves more than once: what became of the migration before
// is not said of the one that has just begun.
var returns = []trial{
	{Name: "a VM with a local disk that moves there and back is never said to have stayed",
		Able: hypervisor.CanCopyStorage, Run: func(w *world) {
			vm := w.VM(theVM)
			hardware := *vm.Hardware
			hardware.Disks = append(slices.Clone(hardware.Disks),
				hypervisor.Disk{Name: "data", Size: 4 * hypervisor.MiB})
			vm.Hardware = &hardware
			w.Boot(source, vm)
			for i := range 5 {
				from := side(i % 2)
				job := w.Begin(move{VM: vm, From: from})
				ends := w.Progress(from, job)
				for begun := time.Now(); ends.Status != hypervisor.JobSucceeded; {
					s := ends.Status
					failed := s.Final() || s == hypervisor.JobBroken || s == hypervisor.JobNone
					if failed || time.Since(begun) > w.Within {
						w.T.Fatalf("move %d is %v: %s; %s", i, s, ends.Error, w)
					}
					w.Pass(200 * time.Microsecond)
					ends = w.Progress(from, job)
				}
				w.UntilState(from.Other(), theVM, hypervisor.Running)
				w.Do(from, theVM, hypervisor.Release{Job: job,
					Moved: w.Says(hypervisor.RunsAtTarget, from.Other(), job)})
				w.UntilState(from, theVM, hypervisor.Absent)
			}
			w.Sound(target)
		}},
}

// watched asks again and again how TheVM is at the target, until the answer is called. It says
// what else was told there than that it is awaited, or not there at all.
func watched(w *world) (over func() error) {
	return again(w, func(ctx context.Context, i int) error {
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
		return err
	})
}

// again lets four readers ask without a pause, until the answer is called, which returns what
// they have found wrong. That a host does not answer for a moment is nothing wrong.
func again(w *world, ask func(ctx context.Context, reader int) error) (over func() error) {
	ctx, end := context.WithCancel(w.Ctx)
	var readers errgroup.Group
	for i := range 4 {
		readers.Go(func() (failed error) {
			defer func() {
				if v := recover(); v != nil {
					failed = fmt.Errorf("%v", v)
				}
			}()
			for {
				err := ask(ctx, i)
				switch {
				case ctx.Err() != nil:
					return nil
				case err != nil && !errors.Is(err, hypervisor.Transient):
					return err
				}
			}
		})
	}
	return func() error { end(); return readers.Wait() }
}
