//go:build linux

package qmp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/monitor"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// prey is the guest of the crash test: a migration of it takes a few tenths of a
// second with the cap below.
var prey = guest.Params{Fill: 8 << 20, WorkingSet: 512 << 10, Rate: 2 << 20, Random: true}

// preyCap bounds the migration's bandwidth.
const preyCap = 32 * hypervisor.Bandwidth(mib)

// A scene is two agents in processes of their own, and the link between them.
type scene struct {
	*lab
	wire *link
	// How long an undisturbed migration takes, and the Receive that is a part of it.
	window, opening time.Duration

	mu        sync.Mutex
	posts     map[name]post
	employees map[name]*employee // nil: it is being replaced
	overhears func([]byte)       // is told of what the link carries; nil is none
}

func newScene(t *testing.T) *scene {
	t.Helper()
	accel := accelerator(t)
	f, _ := features()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: dir, accel: accel, pulses: map[vmid]*guest.Pulse{},
		params: map[string]guest.Params{}, roms: map[guest.Params]string{}, born: map[int]bool{}}
	t.Cleanup(l.close)
	s := &scene{lab: l, wire: newLink(t, filepath.Join(dir, "l")), posts: map[name]post{},
		employees: map[name]*employee{}}
	s.wire.overhear = s.overhear
	stop, err := advertise(s.wire, filepath.Join(dir, "ad"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Cleanup(s.end)
	for _, n := range []name{"n1", "n2"} {
		s.posts[n] = post{Name: n, Dir: filepath.Join(dir, string(n)), Accel: accel, Features: f,
			Link: filepath.Join(dir, "ad"), Spy: filepath.Join(dir, "spy."+string(n))}
		if err := s.employ(n); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// overhear passes on what the link carries, before it arrives.
func (s *scene) overhear(data []byte) {
	s.mu.Lock()
	tell := s.overhears
	s.mu.Unlock()
	if tell != nil {
		tell(data)
	}
}

// tap tells of what the link carries from now on.
func (s *scene) tap(tell func([]byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overhears = tell
}

// end lets the agents end.
func (s *scene) end() {
	for n := range s.posts {
		if e := s.employee(n); e != nil {
			if err := e.dismiss(); err != nil {
				s.t.Errorf("%s: %v", n, err)
			}
		}
	}
}

// employ puts an agent in the place of one that is dead.
func (s *scene) employ(n name) error {
	e, err := employ(s.posts[n])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.employees[n] = e
	return err
}

func (s *scene) employee(n name) *employee {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.employees[n]
}

// ask gives an order to a host, once.
func (s *scene) ask(n name, o order) (reply, error) {
	if e := s.employee(n); e != nil {
		return e.ask(o)
	}
	return reply{}, errDead
}

// persist gives an order until it has an answer that is one. A dead agent is
// replaced in the meantime; what it was asked may have been done.
func (s *scene) persist(n name, o order) (reply, error) {
	deadline := time.Now().Add(testutil.Limit(testutil.DefaultLimit))
	for {
		r, err := s.ask(n, o)
		if !errors.Is(err, errDead) && !errors.Is(err, hypervisor.Transient) &&
			!errors.Is(err, hypervisor.Unknown) || time.Now().After(deadline) {
			return r, err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// idle checks that nothing is left on the hosts after a round: no domain, no
// process, no directory of a VM.
func (s *scene) idle() error {
	for n, p := range s.posts {
		r, err := s.persist(n, order{Domains: true})
		if err != nil {
			return err
		}
		if len(r.Domains) > 0 {
			return fmt.Errorf("%s still knows %+v", n, r.Domains)
		}
		left, err := filepath.Glob(filepath.Join(p.Dir, "*s", "*", "*"))
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(path string) bool {
			return filepath.Base(filepath.Dir(filepath.Dir(path))) == "jobs"
		})
		found, err := qemu.Find(func(argv []string) bool {
			return slices.ContainsFunc(argv, func(arg string) bool {
				return strings.HasPrefix(arg, p.Dir+"/vms/")
			})
		})
		if err != nil || len(left) > 0 || len(found) > 0 {
			return fmt.Errorf("%s has left %v and %v, %v", n, left, found, err)
		}
	}
	return nil
}

// A spy watches one QEMU through a monitor of its own.
type spy struct {
	client monitor.Client
	done   sync.WaitGroup
}

// infiltrate watches the QEMU that listens at the socket now, and tells, prefixed
// with who it is, of each thing that happens.
func infiltrate(ctx context.Context, socket, who string, tell func(string)) (*spy, error) {
	var client monitor.Client
	for {
		c, err := monitor.Dial(ctx, monitor.Config{Path: socket, Timeout: 10 * time.Second})
		if err == nil {
			client = c
			break
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(2 * time.Millisecond):
		}
	}
	p := &spy{client: client}
	events := client.Subscribe()
	p.done.Go(func() {
		for {
			e, err := events.Next(context.Background())
			if _, gap := errors.AsType[*monitor.Gap](err); err != nil && !gap {
				return
			}
			if _, ended := errors.AsType[*monitor.Gap](err); ended {
				return // the process is dead
			}
			var data struct{ Status string }
			_ = json.Unmarshal(e.Data, &data) // other events have other data
			tell(strings.TrimSpace(who + " " + e.Name + " " + data.Status))
		}
	})
	return p, nil
}

func (p *spy) close() {
	if p == nil {
		return
	}
	p.client.Close()
	p.done.Wait()
}

// inspect stops a guest, reads all of its memory, and lets it go on.
func (s *scene) inspect(ctx context.Context, n name, p *spy) error {
	const size = int64(guest.Base) + 8<<20
	path := filepath.Join(s.dir, "dump."+string(n))
	defer os.Remove(path)
	if err := p.client.Execute(ctx, "stop", nil, nil); err != nil {
		return err
	}
	err := p.client.Execute(ctx, "pmemsave",
		map[string]any{"val": 0, "size": size, "filename": path}, nil)
	if err = errors.Join(err, p.client.Execute(ctx, "cont", nil, nil)); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return prey.Verify(f, size)
}
