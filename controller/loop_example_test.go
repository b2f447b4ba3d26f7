package controller_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/controller"
)

// counter looks three times, and then has its process stopped.
type counter struct {
	looks int
	stop  context.CancelFunc
}

func (c *counter) Reconcile(_ context.Context, now time.Time) (time.Time, error) {
	if c.looks++; c.looks == 3 {
		c.stop()
	}
	return now.Add(time.Millisecond), nil
}

func Example_drive() {
	ctx, stop := context.WithCancel(context.Background())
	c := &counter{stop: stop}
	err := controller.Group(ctx, controller.Loop{
		Name:       "counter",
		Reconciler: c,
		Report:     func(l controller.Look) { fmt.Println(l.Name, l.RequeueAt.Sub(l.Began), l.Err) },
		Last:       func(context.Context) error { fmt.Println("resigned"); return nil },
	}.Run)
	fmt.Println(err)
	// Output:
	// counter 1ms <nil>
	// counter 1ms <nil>
	// counter 1ms <nil>
	// resigned
	// <nil>
}
