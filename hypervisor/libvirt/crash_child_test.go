//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// An employee is an agent, as the test sees it.
type employee struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	dead chan struct{} // closed when it has ended and is reaped

	mu    sync.Mutex
	last  int
	waits map[int]chan reply // nil: it has ended
}

// employ starts an agent and returns when it works.
func employ(p post) (*employee, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.Dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e := &employee{cmd: exec.Command(self), dead: make(chan struct{}),
		waits: map[int]chan reply{}}
	e.cmd.Env = append(os.Environ(), agentKey+"="+string(where), "GORACE=atexit_sleep_ms=0")
	e.cmd.Stderr = log
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	works := make(chan reply, 1)
	e.waits[0] = works
	go e.hear(out)
	if _, ok := <-works; ok {
		return e, nil
	}
	<-e.dead
	words, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("the agent on %s does not start: %s", p.Name, words)
}

// hear passes on what an agent says, until it has ended.
func (e *employee) hear(out io.Reader) {
	in := json.NewDecoder(out)
	for {
		var r reply
		if in.Decode(&r) != nil {
			break
		}
		e.mu.Lock()
		if w := e.waits[r.ID]; w != nil {
			w <- r
			delete(e.waits, r.ID)
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	for _, w := range e.waits {
		close(w)
	}
	e.waits = nil
	e.mu.Unlock()
	_ = e.cmd.Wait() // it may have been killed
	close(e.dead)
}

// errDead says that an agent ended before it answered. What it was asked may have been
// done.
var errDead = &hypervisor.Error{Op: "order", Kind: hypervisor.Unknown,
	Err: errors.New("the agent is dead")}

// ask gives an order and waits for its answer.
func (e *employee) ask(o order) (reply, error) {
	w := make(chan reply, 1)
	e.mu.Lock()
	if e.waits == nil {
		e.mu.Unlock()
		return reply{}, errDead
	}
	e.last++
	o.ID = e.last
	e.waits[o.ID] = w
	line, err := json.Marshal(o)
	if err == nil {
		_, _ = e.in.Write(append(line, '\n')) // of one that is dead the channel is closed
	}
	e.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	r, ok := <-w
	if !ok {
		return reply{}, errDead
	}
	if r.Failed != "" {
		return r, &hypervisor.Error{Op: o.Op, VM: o.VM, Kind: r.Kind, Err: errors.New(r.Failed)}
	}
	return r, nil
}

// kill ends an agent as kill -9 does.
func (e *employee) kill() {
	_ = e.cmd.Process.Kill() // it may have ended
	<-e.dead
}

// dismiss lets an agent end by itself.
func (e *employee) dismiss() error {
	e.in.Close()
	select {
	case <-e.dead:
	case <-time.After(testutil.Limit(testutil.DefaultLimit)):
		e.kill()
		return errors.New("the agent does not end")
	}
	if !e.cmd.ProcessState.Success() {
		return fmt.Errorf("the agent ended with %v", e.cmd.ProcessState)
	}
	return nil
}

// A deputy is a host whose agent may be dead, and another one soon.
type deputy struct {
	post post

	mu  sync.Mutex
	now *employee // nil: it is being replaced
}

var _ hypervisor.Hypervisor = (*deputy)(nil)

// employ puts an agent in the place of one that is dead.
func (d *deputy) employ() error {
	e, err := employ(d.post)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = e
	return err
}

func (d *deputy) employee() *employee {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *deputy) ask(o order) (reply, error) {
	if e := d.employee(); e != nil {
		return e.ask(o)
	}
	return reply{}, errDead
}

func (d *deputy) Host(context.Context) (hypervisor.Host, error) {
	r, err := d.ask(order{Op: "Host"})
	return r.Host, err
}

func (d *deputy) Domains(context.Context) ([]hypervisor.Domain, error) {
	r, err := d.ask(order{Op: "Domains"})
	return r.Domains, err
}

func (d *deputy) Domain(_ context.Context, vm vmid) (hypervisor.Domain, error) {
	r, err := d.ask(order{Op: "Domain", VM: vm})
	return r.Domain, err
}

func (d *deputy) Progress(_ context.Context, job hypervisor.JobID) (hypervisor.Progress, error) {
	r, err := d.ask(order{Op: "Progress", Job: job})
	return r.Progress, err
}

func (d *deputy) Receive(_ context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	r, err := d.ask(order{Op: "Receive", VM: in.VM.ID, In: &in})
	return r.Address, err
}

func (d *deputy) Migrate(_ context.Context, out hypervisor.Outgoing) error {
	_, err := d.ask(order{Op: "Migrate", VM: out.VM, Out: &out})
	return err
}

func (d *deputy) Adjust(_ context.Context, job hypervisor.JobID, a hypervisor.Adjustment) error {
	o, err := act("Adjust", "", job, a)
	if err == nil {
		_, err = d.ask(o)
	}
	return err
}

func (d *deputy) Do(_ context.Context, vm vmid, c hypervisor.Command) error {
	o, err := act("Do", vm, "", c)
	if err == nil {
		_, err = d.ask(o)
	}
	return err
}

// persist does something until it has an answer that is one. A dead agent is replaced
// in the meantime; what it was asked may have been done.
func persist(do func() error) error {
	deadline := time.Now().Add(testutil.Limit(testutil.DefaultLimit))
	for {
		err := do()
		if !errors.Is(err, hypervisor.Transient) && !errors.Is(err, hypervisor.Unknown) ||
			time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
