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
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crashGuest is the guest of the crash test: a migration of it takes a few tenths of a
// second with the cap below.
var crashGuest = guest.Params{Fill: 8 << 20, WorkingSet: 512 << 10, Rate: 2 << 20, Random: true}

// preyCap bounds the migration's bandwidth.
const preyCap = 32 * hypervisor.Bandwidth(mib)

// A scene is two agents in processes of their own, and the link between them.
type scene struct {
	*lab
	wire *link
	// How long an undisturbed migration takes, and the Receive that is a part of it.
	window, opening time.Duration

	hosts map[name]*backendtest.Host

	mu        sync.Mutex
	overhears func([]byte) // is told of what the link carries; nil is none
}

func newScene(t *testing.T) *scene {
	t.Helper()
	accel := accelerator(t)
	f, _ := features()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Pair: backendtest.Pair{T: t}, dir: dir, accel: accel, pulses: map[vmid]*guest.HeartbeatListener{},
		params: map[string]guest.Params{}, roms: map[guest.Params]string{}, born: map[int]bool{}}
	t.Cleanup(l.close)
	s := &scene{lab: l, wire: newLink(t, filepath.Join(dir, "l")),
		hosts: map[name]*backendtest.Host{}}
	s.wire.overhear = s.overhear
	stop, err := advertise(s.wire, filepath.Join(dir, "ad"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Cleanup(s.end)
	for _, n := range []name{"n1", "n2"} {
		s.hosts[n] = &backendtest.Host{Log: s.dirOf(n) + ".log", Post: post{Name: n, Dir: s.dirOf(n),
			Accel: accel, Features: f, Link: filepath.Join(dir, "ad"), Spy: s.secondMonitor(n)}}
		if err := s.hosts[n].Start(); err != nil {
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

// dirOf is the directory of a host, and secondMonitor the socket of a second monitor of its QEMUs.
func (s *scene) dirOf(n name) string { return filepath.Join(s.dir, string(n)) }

func (s *scene) secondMonitor(n name) string { return filepath.Join(s.dir, "monitor."+string(n)) }

// end lets the agents end.
func (s *scene) end() {
	for n, h := range s.hosts {
		if e := h.Agent(); e != nil {
			if err := e.Stop(); err != nil {
				s.T.Errorf("%s: %v", n, err)
			}
		}
	}
}

// do asks a host for something until it is done.
func (s *scene) do(n name, id vmid, c hypervisor.Command) error {
	return backendtest.Persist(func() error { return s.hosts[n].Do(context.Background(), id, c) })
}

// domain asks a host for a VM until it answers.
func (s *scene) domain(n name, id vmid) (d hypervisor.Domain, err error) {
	err = backendtest.Persist(func() (err error) {
		d, err = s.hosts[n].Domain(context.Background(), id)
		return err
	})
	return d, err
}

// domains asks a host for all VMs until it answers.
func (s *scene) domains(n name) (list []hypervisor.Domain, err error) {
	err = backendtest.Persist(func() (err error) {
		list, err = s.hosts[n].Domains(context.Background())
		return err
	})
	return list, err
}

// progress asks a host for a job until it answers.
func (s *scene) progress(n name, job hypervisor.JobID) (p hypervisor.Progress, err error) {
	err = backendtest.Persist(func() (err error) {
		p, err = s.hosts[n].Progress(context.Background(), job)
		return err
	})
	return p, err
}

// receive has a host open a target.
func (s *scene) receive(n name, in hypervisor.Incoming) (a hypervisor.Address, err error) {
	err = backendtest.Persist(func() (err error) {
		a, err = s.hosts[n].Receive(context.Background(), in)
		return err
	})
	return a, err
}

// idle checks that nothing is left on the hosts after a round: no domain, no
// process, no directory of a VM.
func (s *scene) idle() error {
	for n := range s.hosts {
		list, err := s.domains(n)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			return fmt.Errorf("%s still knows %+v", n, list)
		}
		left, err := filepath.Glob(filepath.Join(s.dirOf(n), "*s", "*", "*"))
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(path string) bool {
			return filepath.Base(filepath.Dir(filepath.Dir(path))) == "jobs"
		})
		found, err := qemu.Find(func(argv []string) bool {
			return slices.ContainsFunc(argv, func(arg string) bool {
				return strings.HasPrefix(arg, s.dirOf(n)+"/vms/")
			})
		})
		if err != nil || len(left) > 0 || len(found) > 0 {
			return fmt.Errorf("%s has left %v and %v, %v", n, left, found, err)
		}
	}
	return nil
}

// An observer watches one QEMU through a monitor of its own.
type observer struct {
	client qemu.Client
	done   sync.WaitGroup
}

// observe watches the QEMU that listens at the socket now, and tells, prefixed
// with who it is, of each thing that happens.
func observe(ctx context.Context, socket, who string, tell func(string)) (*observer, error) {
	var client qemu.Client
	for {
		c, err := qemu.Dial(ctx, qemu.Config{Path: socket, Timeout: 10 * time.Second})
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
	p := &observer{client: client}
	events := client.Subscribe()
	p.done.Go(func() {
		for {
			e, err := events.Next(context.Background())
			if _, gap := errors.AsType[*qemu.Gap](err); err != nil && !gap {
				return
			}
			if _, ended := errors.AsType[*qemu.Gap](err); ended {
				return // the process is dead
			}
			var data struct{ Status string }
			_ = json.Unmarshal(e.Data, &data) // other events have other data
			tell(strings.TrimSpace(who + " " + e.Name + " " + data.Status))
		}
	})
	return p, nil
}

func (p *observer) close() {
	if p == nil {
		return
	}
	p.client.Close()
	p.done.Wait()
}

// inspect stops a guest, reads all of its memory, and lets it go on.
func (s *scene) inspect(ctx context.Context, n name, p *observer) error {
	const size = int64(guest.Base) + 8<<20
	path := filepath.Join(s.dir, "dump."+string(n))
	defer os.Remove(path)
	err := guest.Stopped(ctx, func() error { return p.client.Execute(ctx, "stop", nil, nil) },
		func() error {
			return p.client.Execute(ctx, "pmemsave",
				map[string]any{"val": 0, "size": size, "filename": path}, nil)
		},
		func() error { return p.client.Execute(ctx, "cont", nil, nil) })
	if err != nil {
		return err
	}
	return crashGuest.On(s.accel, testutil.QEMU()).VerifyDump(path, size)
}
