//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// agentKey is set in the copies of this program that are an agent: a host in a process
// of its own, which can be killed. It says where the agent works.
const agentKey = "GODWIT_LIBVIRT_AGENT"

// A post is what an agent is told about its host when it is started.
type post struct {
	Name   name
	Dir    string
	URI    string
	Peer   string
	Accel  string
	Strict bool
	Peers  map[string]string // how this process reaches what libvirtd calls a peer
}

// An order is what an agent is asked to do, one line each.
type order struct {
	ID     int
	Op     string // a method of hypervisor.Hypervisor, or "Die"
	VM     vmid
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
	for _, a := range []any{hypervisor.Start{}, hypervisor.Kill{}, hypervisor.Forget{},
		hypervisor.Discard{}, hypervisor.Resume{}, hypervisor.Activate{}, hypervisor.Abandon{},
		hypervisor.Release{}, hypervisor.Cancel{}} {
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
func act(op string, vm vmid, job hypervisor.JobID, action any) (order, error) {
	with, err := json.Marshal(action)
	return order{Op: op, VM: vm, Job: job, Action: fmt.Sprintf("%T", action), With: with}, err
}

// agent obeys what comes on standard input until that ends, or it is killed.
func agent(where string) int {
	var p post
	if err := json.Unmarshal([]byte(where), &p); err != nil {
		fmt.Fprintln(os.Stderr, "agent: where it works:", err)
		return 2
	}
	var left atomic.Int64
	h, err := libvirt.New(context.Background(), p.config(func(vmid) {
		if left.Load() > 0 && left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not one instruction more
		}
	}))
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

func (p *post) config(changed func(vmid)) libvirt.Config {
	return libvirt.Config{Name: p.Name, Dir: p.Dir, URI: p.URI, Peer: p.Peer,
		Memory: 4 * hypervisor.GiB, CPUs: 64, Accelerator: p.Accel, DebugDir: "/run",
		Timeout: 10 * time.Second, KeepAlive: time.Second, Grace: 500 * time.Millisecond,
		Bar: barred, Strict: p.Strict, Changed: changed,
		Reach: func(peer string) string {
			if uri := p.Peers[peer]; uri != "" {
				return uri
			}
			return peer
		}}
}

// obey does what is asked and answers.
func obey(h *libvirt.Host, o *order) reply {
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

// barred is how long a host of these tests keeps a VM out that it has discarded.
const barred = 2 * time.Second
