//go:build linux

package qmp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A post is what a process of ours is told about its host when it is started.
type post struct {
	Name     name
	Dir      string
	Accel    string
	Features qemu.Features
	Link     string // the socket where addresses are advertised; "" is not at all
	Spy      string // the socket of a second monitor of its QEMUs
}

// An order is what an agent is asked to do, one line each: the first thing that is
// set.
type order struct {
	ID       int
	VM       vmid
	Job      hypervisor.JobID
	Die      int // end after so many changes of the journal, at once
	Domain   bool
	Domains  bool
	Progress bool
	Files    bool
	Cancel   bool
	Kill     bool
	Pause    bool
	Forget   bool
	Receive  *hypervisor.Incoming
	Migrate  *hypervisor.Outgoing
	Start    *hypervisor.Start
	Discard  *hypervisor.Discard
	Resume   *hypervisor.Resume
	Activate *hypervisor.Activate
	Abandon  *hypervisor.Abandon
	Release  *hypervisor.Release
}

// command returns what is to be done to the VM, or nil.
func (o *order) command() hypervisor.Command {
	switch {
	case o.Kill:
		return hypervisor.Kill{}
	case o.Pause:
		return hypervisor.Pause{}
	case o.Forget:
		return hypervisor.Forget{}
	case o.Start != nil:
		return *o.Start
	case o.Discard != nil:
		return *o.Discard
	case o.Resume != nil:
		return *o.Resume
	case o.Activate != nil:
		return *o.Activate
	case o.Abandon != nil:
		return *o.Abandon
	case o.Release != nil:
		return *o.Release
	}
	return nil
}

// A reply is what an agent answers to an order.
type reply struct {
	ID       int
	Failed   string // what went wrong; "" is nothing
	Kind     hypervisor.Kind
	Domain   hypervisor.Domain
	Domains  []hypervisor.Domain
	Progress hypervisor.Progress
	Address  hypervisor.Address
	Files    qmp.Files
}

func (r *reply) err() error {
	if r.Failed == "" {
		return nil
	}
	return &hypervisor.Error{Op: "order", Kind: r.Kind, Err: errors.New(r.Failed)}
}

// agent is a host in a process of its own: it obeys what comes on standard input
// until that ends, or it is killed.
func agent(args []string) int {
	var p post
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &p) != nil {
		fmt.Fprintln(os.Stderr, "agent: it takes one argument, where it works")
		return 2
	}
	var left atomic.Int64
	c := qmp.Config{Name: p.Name, Dir: p.Dir, Locks: filepath.Join(filepath.Dir(p.Dir), "locks"),
		Memory: hypervisor.GiB, CPUs: 64,
		Accelerator: p.Accel, Features: &p.Features, Timeout: 5 * time.Second,
		Patience: 150 * time.Millisecond,
		Args:     []string{"-qmp", "unix:" + p.Spy + ",server=on,wait=off"},
		Changed: func(vmid) {
			if left.Load() > 0 && left.Add(-1) == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // not one instruction more
			}
		}}
	if p.Link != "" {
		c.Advertise = func(address string) string { return advertised(p.Link, address) }
	}
	h, err := qmp.New(context.Background(), c)
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
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	var running sync.WaitGroup
	for {
		var o order
		if in.Decode(&o) != nil {
			break
		}
		if o.Die > 0 {
			left.Store(int64(o.Die))
		}
		running.Go(func() { say(obey(h, &o)) })
	}
	running.Wait()
	if h.Close() != nil {
		return 1
	}
	return 0
}

// obey does what is asked and answers.
func obey(h *qmp.Host, o *order) reply {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	r := reply{ID: o.ID}
	var err error
	switch c := o.command(); {
	case o.Die > 0:
	case o.Domain:
		r.Domain, err = h.Domain(ctx, o.VM)
	case o.Domains:
		r.Domains, err = h.Domains(ctx)
	case o.Progress:
		r.Progress, err = h.Progress(ctx, o.Job)
	case o.Files:
		r.Files = h.Files(o.VM)
	case o.Cancel:
		err = h.Adjust(ctx, o.Job, hypervisor.Cancel{})
	case o.Receive != nil:
		r.Address, err = h.Receive(ctx, *o.Receive)
	case o.Migrate != nil:
		err = h.Migrate(ctx, *o.Migrate)
	case c != nil:
		err = h.Do(ctx, o.VM, c)
	}
	if err != nil {
		r.Failed, r.Kind = err.Error(), hypervisor.Unknown
		if e, ok := errors.AsType[*hypervisor.Error](err); ok {
			r.Kind = e.Kind
		}
	}
	return r
}

// advertised asks the test where an address is reached through the link.
func advertised(socket, address string) string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return address
	}
	defer c.Close()
	fmt.Fprintln(c, address)
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return address
	}
	return strings.TrimSpace(answer)
}

// advertise answers the agents' questions where they are reached through a link.
func advertise(l *link, socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				fmt.Fprintln(c, l.advertise(strings.TrimSpace(line)))
			}
			c.Close()
		}
	})
	return func() { listener.Close(); running.Wait() }, nil
}

// errDead says that an agent ended before it answered.
var errDead = errors.New("the agent is dead")

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
	e := &employee{cmd: exec.Command(self, string(where)), dead: make(chan struct{}),
		waits: map[int]chan reply{}}
	e.cmd.Env = append(os.Environ(), roleKey+"=agent")
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
	in := json.NewDecoder(bufio.NewReader(out))
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
		_, err = e.in.Write(append(line, '\n'))
	}
	e.mu.Unlock()
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		return reply{}, err
	}
	r, ok := <-w // it is closed when the agent ends
	if !ok {
		return reply{}, errDead
	}
	return r, r.err()
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
	case <-time.After(20 * time.Second):
		e.kill()
		return errors.New("the agent does not end")
	}
	if !e.cmd.ProcessState.Success() {
		return fmt.Errorf("the agent ended with %v", e.cmd.ProcessState)
	}
	return nil
}

// files counts what the process has open.
func (e *employee) files() int {
	open, _ := os.ReadDir(filepath.Join("/proc", fmt.Sprint(e.cmd.Process.Pid), "fd"))
	return len(open)
}
