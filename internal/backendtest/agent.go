//go:build linux

package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// agentKey is set in the copies of a test's program that are an agent. It says where the agent works.
const agentKey = "GODWIT_TEST_AGENT"

// An order is what an agent is asked to do, one line each.
type order struct {
	ID     int
	Op     string // a method of hypervisor.Hypervisor, or "Die"
	VM     hypervisor.VMID
	Job    hypervisor.JobID
	Count  int // of Die: end at so many changes, at once
	In     *hypervisor.Incoming
	Out    *hypervisor.Outgoing
	Action string // the type of the command or adjustment
	With   json.RawMessage
}

// A reply is what an agent answers to an order.
type reply struct {
	ID       int
	Failed   string // what went wrong; "" is nothing
	Kind     hypervisor.Kind
	Host     hypervisor.Host
	Domains  []hypervisor.Domain
	Domain   hypervisor.Domain
	Progress hypervisor.Progress
	Address  hypervisor.Address
}

// actions are the commands and adjustments that an agent understands, by name.
var actions = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, a := range []any{hypervisor.Start{}, hypervisor.Kill{}, hypervisor.Pause{},
		hypervisor.Forget{}, hypervisor.Discard{}, hypervisor.Resume{}, hypervisor.Activate{},
		hypervisor.Abandon{}, hypervisor.Release{}, hypervisor.Cancel{}, hypervisor.Resize{},
		hypervisor.MoveDisk{}, hypervisor.SwitchDisk{}, hypervisor.EndDiskMove{}} {
		all[fmt.Sprintf("%T", a)] = reflect.TypeOf(a)
	}
	return all
}()

// action returns the command or adjustment of an order.
func (o *order) action() (any, error) {
	kind, known := actions[o.Action]
	if !known {
		return nil, fmt.Errorf("an agent does not know %s", o.Action)
	}
	v := reflect.New(kind)
	err := json.Unmarshal(o.With, v.Interface())
	return v.Elem().Interface(), err
}

// act makes an order that asks for a command or an adjustment.
func act(o order, action any) (order, error) {
	var err error
	o.Action = fmt.Sprintf("%T", action)
	o.With, err = json.Marshal(action)
	return o, err
}

// A Backend is a host that can be closed.
type Backend interface {
	hypervisor.Hypervisor
	Close() error
}

// Serve makes a copy of a test's program an agent, if it is to be one: a host in a process of its own,
// which can be killed. A TestMain calls it first. Open opens the host that a test has described, and
// the host tells changed of each change. The agent obeys what comes on standard input until that ends,
// or it is killed.
func Serve(open func(post []byte, changed func(hypervisor.VMID)) (Backend, error)) {
	if post := os.Getenv(agentKey); post != "" {
		os.Exit(serve([]byte(post), open))
	}
}

func serve(post []byte,
	open func(post []byte, changed func(hypervisor.VMID)) (Backend, error)) int {
	var left atomic.Int64
	h, err := open(post, func(hypervisor.VMID) {
		if left.Load() > 0 && left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not one instruction more
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(r reply) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r) // if it is not read, standard input has ended, too
	}
	say(reply{}) // it works
	in := json.NewDecoder(os.Stdin)
	var running sync.WaitGroup
	for {
		var o order
		if in.Decode(&o) != nil {
			break
		}
		if o.Op == "Die" {
			left.Store(int64(o.Count))
		}
		running.Go(func() { say(obey(h, &o)) })
	}
	running.Wait()
	if err := h.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// obey does what is asked and answers.
func obey(h hypervisor.Hypervisor, o *order) reply {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	r := reply{ID: o.ID}
	var err error
	switch o.Op {
	case "Die":
	case "Host":
		r.Host, err = h.Host(ctx)
	case "Domains":
		r.Domains, err = h.Domains(ctx)
	case "Domain":
		r.Domain, err = h.Domain(ctx, o.VM)
	case "Progress":
		r.Progress, err = h.Progress(ctx, o.Job)
	case "Receive":
		r.Address, err = h.Receive(ctx, *o.In)
	case "Migrate":
		err = h.Migrate(ctx, *o.Out)
	case "Adjust":
		var a any
		if a, err = o.action(); err == nil {
			err = h.Adjust(ctx, o.Job, a.(hypervisor.Adjustment))
		}
	case "Do":
		var c any
		if c, err = o.action(); err == nil {
			err = h.Do(ctx, o.VM, c.(hypervisor.Command))
		}
	default:
		err = fmt.Errorf("an agent does not know %s", o.Op)
	}
	if err != nil {
		r.Failed, r.Kind = err.Error(), hypervisor.Unknown
		if e, ok := errors.AsType[*hypervisor.Error](err); ok {
			r.Kind = e.Kind
		}
	}
	return r
}

// An Agent is a process that serves a host, as the test sees it.
type Agent struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu    sync.Mutex
	last  int
	waits map[int]chan reply // nil: it has ended
}

// StartAgent starts an agent of the host that post describes, and returns when it works. What it says
// is added to the file log.
func StartAgent(post any, log string) (*Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(post)
	if err != nil {
		return nil, err
	}
	words, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer words.Close()
	e := &Agent{cmd: exec.Command(self), ended: make(chan struct{}), waits: map[int]chan reply{}}
	e.cmd.Env = append(os.Environ(), agentKey+"="+string(text), "GORACE=atexit_sleep_ms=0")
	e.cmd.Stderr = words
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
	<-e.ended
	said, _ := os.ReadFile(log)
	return nil, fmt.Errorf("the agent does not start: %s", said)
}

// hear passes on what an agent says, until it has ended.
func (e *Agent) hear(out io.Reader) {
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
	close(e.ended)
}

// errDead says that an agent ended before it answered. What it was asked may have been
// done.
var errDead = &hypervisor.Error{Op: "order", Kind: hypervisor.Unknown,
	Err: errors.New("the agent is dead")}

// ask gives an order and waits for its answer.
func (e *Agent) ask(o order) (reply, error) {
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

// DieAfter has the agent kill itself right after it has told so many more changes.
func (e *Agent) DieAfter(changes int) error {
	_, err := e.ask(order{Op: "Die", Count: changes})
	return err
}

// Kill ends an agent as kill -9 does.
func (e *Agent) Kill() {
	_ = e.cmd.Process.Kill() // it may have ended
	<-e.ended
}

// Ended returns what is closed when the agent has ended and is reaped.
func (e *Agent) Ended() <-chan struct{} { return e.ended }

// Stop lets an agent end by itself.
func (e *Agent) Stop() error {
	e.in.Close()
	select {
	case <-e.ended:
	case <-time.After(testutil.Limit(testutil.DefaultLimit)):
		e.Kill()
		return errors.New("the agent does not end")
	}
	if !e.cmd.ProcessState.Success() {
		return fmt.Errorf("the agent ended with %v", e.cmd.ProcessState)
	}
	return nil
}

// OpenFiles counts what the process has open.
func (e *Agent) OpenFiles() int {
	open, _ := os.ReadDir(filepath.Join("/proc", fmt.Sprint(e.cmd.Process.Pid), "fd"))
	return len(open)
}

// PID is the number of the process.
func (e *Agent) PID() int { return e.cmd.Process.Pid }
