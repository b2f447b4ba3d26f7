package controller

import (
	"context"
	"errors"
)

// Group runs its members, each in a goroutine, until one of them returns, with or without
// an error, or ctx ends. Then the contexts of all end, and Group returns when all have
// returned: the error joins theirs. A member that panics has returned a *[PanicError].
func Group(ctx context.Context, members ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error)
	for _, member := range members {
		go func() {
			var err error
			defer func() { ended <- err }()
			err = guarded("a member of a group", func() error { return member(ctx) })
		}()
	}
	var errs []error
	for range members {
		errs = append(errs, <-ended)
		stop()
	}
	return errors.Join(errs...)
}
