package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Fence cuts hosts off. It is safe for concurrent use; [NewFence] makes it.
type Fence struct {
	config *FenceConfig
	life   context.Context
	end    context.CancelCauseFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	runs   map[hypervisor.HostName]*fenceRun
	closed bool
}

// fenceRun is the last attempt to cut one host off. Its outcome is written before it ends.
type fenceRun struct {
	attempt string
	ended   bool
	by      string
	err     error
}

var errClosed = errors.New("godwit stops, and it is not known whether the host is off")

// poll is how long to wait between two looks at whether a device is off.
const poll = time.Second

// NewFence returns a Fence that runs nothing yet. It fills in the defaults of c, and fails when
// something in c cannot be.
func NewFence(c *FenceConfig) (*Fence, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("fencing: %w", err)
	}
	f := &Fence{config: c, runs: map[hypervisor.HostName]*fenceRun{}}
	f.life, f.end = context.WithCancelCause(context.Background())
	return f, nil
}

// Cut begins to cut a host off, and answers how that goes; it never waits. Repeated with
// the same attempt it begins nothing. An attempt that is asked for while an earlier one
// is under way begins when it is asked for again after that. It answers the agents that
// have proved that the host is off; "" and no error while they are at it; or why they
// have not. That error is a *[hypervisor.Error] of the kind Unsupported when the host has
// no devices, and Unknown otherwise: the host may be off.
func (f *Fence) Cut(ctx context.Context, host hypervisor.HostName, attempt string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	levels := f.config.Hosts[host]
	old := f.runs[host]
	switch {
	case ctx.Err() != nil:
		return "", failed(host, context.Cause(ctx))
	case len(levels) == 0:
		return "", &hypervisor.Error{Op: "Cut", Host: host, Kind: hypervisor.Unsupported,
			Err: errors.New("no fence device is configured")}
	case old != nil && !old.ended:
		return "", nil
	case old != nil && old.attempt == attempt:
		return old.by, old.err
	case f.closed:
		return "", failed(host, errClosed)
	}
	r := &fenceRun{attempt: attempt}
	f.runs[host] = r
	f.group.Go(func() {
		by, err := f.try(host, levels)
		f.mu.Lock()
		defer f.mu.Unlock()
		r.ended, r.by, r.err = true, by, err
	})
	return "", nil
}

func failed(host hypervisor.HostName, why error) error {
	return &hypervisor.Error{Op: "Cut", Host: host, Kind: hypervisor.Unknown, Err: why}
}

// try tries the levels in turn, and returns the one that has proved that the host is off.
func (f *Fence) try(host hypervisor.HostName, levels []Level) (string, error) {
	var errs []error
	for i := range levels {
		err := f.level(host, levels[i].Devices)
		if err == nil {
			names := make([]string, len(levels[i].Devices))
			for k := range names {
				names[k] = levels[i].Devices[k].name()
			}
			return strings.Join(names, "+"), nil
		}
		if len(levels) > 1 {
			err = fmt.Errorf("level %d: %w", i+1, err)
		}
		errs = append(errs, err)
	}
	return "", failed(host, errors.Join(errs...))
}

// level switches all devices off. Only when all of them are off at the end, the host is:
// what is switched on again while the next is switched off feeds it on.
func (f *Fence) level(host hypervisor.HostName, devices []Device) error {
	for i := range devices {
		if err := f.cut(host, &devices[i]); err != nil {
			return fmt.Errorf("%s: %w", devices[i].name(), err)
		}
	}
	if len(devices) == 1 {
		return nil
	}
	for i := range devices {
		ctx, cancel := f.within(devices[i].Timeout)
		is, err := devices[i].do(ctx, host, "status")
		cancel()
		if is != off {
			return fmt.Errorf("%s: it was off and is no longer: %w", devices[i].name(), orOn(err))
		}
	}
	return nil
}

var errStillOn = errors.New("its status is on")

// orOn returns why a device is not known to be off.
func orOn(err error) error {
	if err == nil {
		return errStillOn
	}
	return err
}

// within returns the life of whatever is asked of one device.
func (f *Fence) within(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(f.life, limit,
		fmt.Errorf("no answer within %v", limit))
}

// cut switches one device off, and proves that it is.
func (f *Fence) cut(host hypervisor.HostName, d *Device) error {
	if err := sleep(f.life, d.Delay); err != nil {
		return err
	}
	ctx, cancel := f.within(d.Timeout)
	defer cancel()
	if _, err := d.do(ctx, host, "off"); err != nil {
		return err
	}
	why := errors.New("its status is not known")
	for {
		is, err := d.do(ctx, host, "status")
		if is == off {
			return nil
		}
		if ctx.Err() == nil { // else it is the time that has run out, which is no reason
			why = orOn(err)
		}
		if sleep(ctx, poll) != nil {
			return fmt.Errorf("it was switched off, and nothing proves it within %v: %w",
				d.Timeout, why)
		}
	}
}

// sleep waits, or returns why not.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// checksAtOnce is how many devices are asked at one time whether they work.
const checksAtOnce = 8

// Check asks every device whether it works, and waits for the answers. The error has all
// that do not. A device that answers that its host is off works.
func (f *Fence) Check(ctx context.Context) error {
	var checks []func() error
	for _, host := range slices.Sorted(maps.Keys(f.config.Hosts)) {
		for _, level := range f.config.Hosts[host] {
			for i := range level.Devices {
				checks = append(checks, func() error {
					return level.Devices[i].works(ctx, host)
				})
			}
		}
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, checksAtOnce)
	errs := make([]error, len(checks))
	for i, check := range checks {
		group.Go(func() {
			slots <- struct{}{}
			errs[i] = check()
			<-slots
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// works returns why a device cannot be relied on.
func (d *Device) works(ctx context.Context, host hypervisor.HostName) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout,
		fmt.Errorf("no answer within %v", d.Timeout))
	defer cancel()
	if is, err := d.do(ctx, host, "monitor"); is != on && is != off {
		return fmt.Errorf("fence device %s of host %s: %w", d.name(), host, err)
	}
	return nil
}

// Close ends every agent that runs, and waits until they are gone.
func (f *Fence) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.end(errClosed)
	f.group.Wait()
	return nil
}
