package conformance

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A call is one call of a host's methods, and what the host answered.
type call struct {
	host   hypervisor.HostName
	method string
	args   []any
	answer any
	err    error
	over   bool
	looks  bool // it changes nothing
}

// String writes the call as a person would: the method, every argument, and the answer.
func (c call) String() string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = textOf(a)
	}
	text := fmt.Sprintf("%s(%s) on %s", c.method, strings.Join(args, ", "), c.host)
	switch {
	case !c.over:
		return text
	case c.err != nil:
		return fmt.Sprintf("%s, which answered the error %q", text, c.err)
	case c.answer != nil:
		return fmt.Sprintf("%s, which answered %s", text, textOf(c.answer))
	}
	return text + ", which was done"
}

// textOf writes a value of the port for a person: its type, what it holds, and the hardware of a
// VM instead of its address.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case hypervisor.VMID, hypervisor.JobID, hypervisor.Address:
		return fmt.Sprintf("%q", v)
	case []hypervisor.Domain:
		all := make([]string, len(v))
		for i, d := range v {
			all[i] = textOf(d)
		}
		return "[" + strings.Join(all, "; ") + "]"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%s", v, tail(v)), "hypervisor.")
}

// tail is what v holds.
func tail(v any) string {
	var hardware *hypervisor.Hardware
	switch v := v.(type) {
	case hypervisor.Incoming:
		hardware = v.VM.Hardware
	case hypervisor.Domain:
		hardware = v.VM.Hardware
	case hypervisor.Start:
		hardware = v.VM.Hardware
	case hypervisor.Resize:
		hardware = v.VM.Hardware
	}
	text := fmt.Sprintf("%+v", v)
	if hardware != nil {
		text = strings.Replace(text, fmt.Sprintf("Hardware:%p", hardware),
			fmt.Sprintf("Hardware:%+v", *hardware), 1)
	}
	return text
}

// A record keeps the last calls of a case, and those that have not returned: many may call at
// once.
type record struct {
	mu        sync.Mutex
	asked     call // the last Receive, Migrate, Adjust or Do
	seen      call // the last look
	flying    []*call
	abandoned bool // the case is over, although a call has not returned
}

// begins notes that a call was made.
func (r *record) begins(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		runtime.Goexit()
	}
	r.flying = append(r.flying, c)
	if !c.looks {
		r.asked = *c
	}
}

// ends notes the answer of a call. A case that was given up goes on no more.
func (r *record) ends(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		runtime.Goexit()
	}
	i := slices.Index(r.flying, c)
	r.flying = slices.Delete(r.flying, i, i+1)
	if c.looks {
		r.seen = *c
	} else {
		r.asked = *c
	}
}

// oldest returns the call that has been under way longest, nil where there is none.
func (r *record) oldest() *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.flying) == 0 {
		return nil
	}
	return r.flying[0]
}

// abandon ends the case as soon as a call returns.
func (r *record) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = true
}

// goesOn reports whether the case was not given up.
func (r *record) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.abandoned
}

// last returns the last call that asked for something, and the last look; empty where there
// was none.
func (r *record) last() (asked, seen string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.method != "" {
		asked = r.asked.String()
	}
	if r.seen.method != "" {
		seen = r.seen.String()
	}
	return asked, seen
}

// A host is a backend's host whose calls are recorded.
type host struct {
	hypervisor.Hypervisor
	name   hypervisor.HostName
	record *record
	unseen bool // what it is asked is no part of the case, and not recorded
}

// A backendPanic is what a backend panicked with, in which call.
type backendPanic struct {
	Value any
	Call  fmt.Stringer
	Stack []byte
}

// Error says what panicked, where.
func (p backendPanic) Error() string { return fmt.Sprintf("%s: %v\n%s", p.Call, p.Value, p.Stack) }

// do makes one call. A panic of the backend is passed on with its call.
func do[A any](h *host, c call, act func() (A, error)) (A, error) {
	c.host = h.name
	defer func() {
		if v := recover(); v != nil {
			panic(backendPanic{Value: v, Call: c, Stack: debug.Stack()})
		}
	}()
	if h.unseen {
		return act()
	}
	h.record.begins(&c)
	answer, err := act()
	c.err, c.over = err, true
	if _, none := any(answer).(struct{}); !none {
		c.answer = answer
	}
	h.record.ends(&c)
	return answer, err
}

// done makes a call that answers nothing but an error.
func done(h *host, c call, act func() error) error {
	_, err := do(h, c, func() (struct{}, error) { return struct{}{}, act() })
	return err
}

func (h *host) Host(ctx context.Context) (hypervisor.Host, error) {
	return do(h, call{method: "Host", looks: true},
		func() (hypervisor.Host, error) { return h.Hypervisor.Host(ctx) })
}

func (h *host) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	return do(h, call{method: "Domains", looks: true},
		func() ([]hypervisor.Domain, error) { return h.Hypervisor.Domains(ctx) })
}

func (h *host) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	return do(h, call{method: "Domain", args: []any{id}, looks: true},
		func() (hypervisor.Domain, error) { return h.Hypervisor.Domain(ctx, id) })
}

func (h *host) Progress(ctx context.Context, id hypervisor.JobID) (hypervisor.Progress, error) {
	return do(h, call{method: "Progress", args: []any{id}, looks: true},
		func() (hypervisor.Progress, error) { return h.Hypervisor.Progress(ctx, id) })
}

func (h *host) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	return do(h, call{method: "Receive", args: []any{in}},
		func() (hypervisor.Address, error) { return h.Hypervisor.Receive(ctx, in) })
}

func (h *host) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return done(h, call{method: "Migrate", args: []any{out}},
		func() error { return h.Hypervisor.Migrate(ctx, out) })
}

func (h *host) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	return done(h, call{method: "Adjust", args: []any{id, a}},
		func() error { return h.Hypervisor.Adjust(ctx, id, a) })
}

func (h *host) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	return done(h, call{method: "Do", args: []any{id, c}},
		func() error { return h.Hypervisor.Do(ctx, id, c) })
}

// Connect replaces the connection to a host. What is called through it is recorded.
func (w *world) Connect(s side, hv hypervisor.Hypervisor) {
	w.HV[s] = &host{hv, w.Hosts[s].Name, &w.record, false}
	w.unseen[s] = &host{hv, w.Hosts[s].Name, &w.record, true}
}

// Watch lets a case be played until it is over, or until one of its calls has not returned for as
// long as the suite waits for anything. It then returns the call, and the case goes no
// further. A case has at most half of the time that its test has left for a call, so that the
// other cases are played, too.
func (w *world) Watch(over <-chan struct{}, left time.Duration) (stuck fmt.Stringer) {
	within := w.Within
	if left > 0 {
		within = min(within, max(left/2, time.Second))
	}
	look := time.NewTicker(within / 8)
	defer look.Stop()
	var oldest *call
	for n := 0; ; n++ {
		select {
		case <-over:
			return nil
		case <-look.C:
		}
		if now := w.record.oldest(); now == nil || now != oldest {
			oldest, n = now, 0
		} else if n >= 8 {
			w.record.abandon()
			return now
		}
	}
}

// A told is a TB whose failures say what was asked of the hosts last, and what they are
// measured by.
type told struct {
	TB
	world *world
}

// Logf logs what the case does.
func (t *told) Logf(format string, args ...any) {
	if t.world.record.goesOn() {
		t.Helper()
		t.TB.Logf(format, args...)
	}
}

// Fatalf fails the case.
func (t *told) Fatalf(format string, args ...any) {
	if !t.world.record.goesOn() {
		runtime.Goexit() // its test is over
	}
	t.Helper()
	text := fmt.Sprintf(format, args...)
	asked, seen := t.world.record.last()
	for _, part := range [...]struct{ what, text string }{
		{"asked last", asked}, {"looked last", seen}, {"the port says", t.world.Rule}} {
		if part.text != "" {
			text += fmt.Sprintf("\n%s: %s", part.what, part.text)
		}
	}
	t.TB.Fatalf("%s", text)
}
