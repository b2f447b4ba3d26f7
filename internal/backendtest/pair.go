package backendtest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A Pair is two hosts of a backend, on which a test tries a feature. A method that cannot do its
// part ends the test.
type Pair struct {
	T testing.TB
	// Source is where the VMs of a test start, Target where they migrate to.
	Source, Target hypervisor.HostName
	// Host returns a host as it is now: a test may close it and open it again.
	Host func(hypervisor.HostName) hypervisor.Hypervisor
}

// Do gives a host commands that must succeed, again where a host says that they may succeed later.
func (p *Pair) Do(n hypervisor.HostName, vm hypervisor.VMID, commands ...hypervisor.Command) {
	p.T.Helper()
	for _, c := range commands {
		p.Repeat(fmt.Sprintf("%T of %s is done", c, vm), func() error { return p.Host(n).Do(p.T.Context(), vm, c) })
	}
}

// Repeat does what may be repeated, as [Persist] does, and wants it to succeed.
func (p *Pair) Repeat(what string, do func() error) {
	p.T.Helper()
	if err := Persist(do); err != nil {
		p.T.Fatalf("waited until %s: %v", what, err)
	}
}

// answered asks until the answer is not Transient, which a busy host may give to anything.
func (p *Pair) answered(ask func() error) {
	p.T.Helper()
	err := testutil.Poll(p.T.Context(), testutil.DefaultLimit, func() error {
		err := ask()
		if err != nil && !errors.Is(err, hypervisor.Transient) {
			return testutil.Stop(err)
		}
		return err
	})
	if err != nil {
		p.T.Fatal(err)
	}
}

// Refuses gives a host a command that must fail with a kind, and with words.
func (p *Pair) Refuses(n hypervisor.HostName, vm hypervisor.VMID, c hypervisor.Command,
	k hypervisor.Kind, words ...string) {
	p.T.Helper()
	Refused(p.T, p.Host(n).Do(p.T.Context(), vm, c), k, words...)
}

// Refused wants an error of a kind whose text contains words.
func Refused(t testing.TB, err error, k hypervisor.Kind, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*hypervisor.Error](err)
	if !ok || e.Kind != k {
		t.Errorf("got %v; want an *Error that is %v", err, k)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

// Adjust changes a job that the source sends.
func (p *Pair) Adjust(j hypervisor.JobID, a hypervisor.Adjustment) {
	p.T.Helper()
	p.Repeat(fmt.Sprintf("%T of %s is done", a, j), func() error { return p.Host(p.Source).Adjust(p.T.Context(), j, a) })
}

// Uncap lifts the cap of a job that was capped to be looked at. It may have ended by then.
func (p *Pair) Uncap(j hypervisor.JobID) {
	p.T.Helper()
	p.Repeat("the cap of "+string(j)+" is lifted", func() error {
		err := p.Host(p.Source).Adjust(p.T.Context(), j, hypervisor.SetBandwidth{})
		if errors.Is(err, hypervisor.Conflict) && p.Progress(p.Source, j).Status.Final() {
			return nil
		}
		return err
	})
}

// Domain returns what a host says of a VM.
func (p *Pair) Domain(n hypervisor.HostName, vm hypervisor.VMID) hypervisor.Domain {
	p.T.Helper()
	var d hypervisor.Domain
	p.answered(func() (err error) {
		d, err = p.Host(n).Domain(p.T.Context(), vm)
		return err
	})
	return d
}

// Progress returns what a host says of a job.
func (p *Pair) Progress(n hypervisor.HostName, j hypervisor.JobID) hypervisor.Progress {
	p.T.Helper()
	var at hypervisor.Progress
	p.answered(func() (err error) {
		at, err = p.Host(n).Progress(p.T.Context(), j)
		return err
	})
	return at
}

// Eventually waits until a condition holds.
func (p *Pair) Eventually(what string, so func() bool) {
	p.T.Helper()
	testutil.Eventually(p.T, what, testutil.Holds(so))
}

// Becomes waits until a VM is in a state.
func (p *Pair) Becomes(n hypervisor.HostName, vm hypervisor.VMID, s hypervisor.DomainState) {
	p.T.Helper()
	testutil.Eventually(p.T, string(vm)+" on "+string(n)+" is "+s.String(), func() error {
		d, err := p.Host(n).Domain(p.T.Context(), vm)
		switch {
		case errors.Is(err, hypervisor.Transient): // its QEMU hangs, or ends
			return err
		case err != nil:
			return testutil.Stop(err)
		case d.State != s:
			return fmt.Errorf("it is %v", d.State)
		}
		return nil
	})
}

// Until waits until a job has a status on a host, and returns its progress. It does not wait for
// a job that ends otherwise.
func (p *Pair) Until(n hypervisor.HostName, j hypervisor.JobID,
	s hypervisor.JobStatus) (at hypervisor.Progress) {
	p.T.Helper()
	reached := false
	defer func() {
		if !reached {
			p.tell(j)
		}
	}()
	testutil.Eventually(p.T, fmt.Sprintf("%s on %s is %v", j, n, s), func() (err error) {
		at, err = p.Host(n).Progress(p.T.Context(), j)
		switch {
		case errors.Is(err, hypervisor.Transient): // a busy host
			return err
		case err != nil:
			return testutil.Stop(err)
		}
		if at.Status == s {
			return nil
		}
		err = fmt.Errorf("it is %v: %s", at.Status, at.Error)
		if at.Status.Final() {
			return testutil.Stop(err)
		}
		return err
	})
	reached = true
	return at
}

// tell logs what both hosts say of a job.
func (p *Pair) tell(j hypervisor.JobID) {
	p.T.Helper()
	for _, n := range []hypervisor.HostName{p.Source, p.Target} {
		at, err := p.Host(n).Progress(p.T.Context(), j)
		p.T.Logf("%s on %s is %v: %s (%v)", j, n, at.Status, at.Error, err)
	}
}

// Bare wants hosts to have no VM.
func Bare[H hypervisor.Hypervisor](t testing.TB, hosts map[hypervisor.HostName]H) {
	t.Helper()
	for n, h := range hosts {
		if all, err := h.Domains(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("%s still has %v: %v", n, all, err)
		}
	}
}

// Reopen opens a host, and before closes the one that it replaces, if any.
func Reopen[H io.Closer](hosts map[hypervisor.HostName]H, n hypervisor.HostName,
	open func() (H, error)) error {
	if old, is := hosts[n]; is {
		delete(hosts, n)
		if err := old.Close(); err != nil {
			return err
		}
	}
	h, err := open()
	if err == nil {
		hosts[n] = h
	}
	return err
}

// Close closes the hosts of a test.
func Close[H io.Closer](t testing.TB, hosts map[hypervisor.HostName]H) {
	t.Helper()
	for _, h := range hosts {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
