package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

var (
	began = time.Unix(1_000_000, 0).UTC()
)

type hostName = hypervisor.HostName

// tb is what testing and rapid have in common, and a harness needs.
type tb interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// harness is a small cluster with a failover controller, in virtual time.
type harness struct {
	t        tb
	store    *store.Memory
	line     store.Store // the failover controller's connection to the store
	fencer   *device
	config   controller.FailoverConfig
	failover *controller.FailoverController
	now      time.Time
	notes    []string
	beats    map[hostName]string // the boots of the agents that send heartbeats
}

func newHarness(t tb, c controller.FailoverConfig, hosts ...hostName) *harness {
	s := &harness{t: t, store: store.NewMemory(), config: c, now: began,
		fencer: &device{answers: map[hostName]failoverAnswer{}}, beats: map[hostName]string{}}
	s.line = s.store
	for _, h := range hosts {
		s.put(&store.Host{Host: hypervisor.Host{Name: h, Memory: 64 * gib, CPUs: 64}})
		s.beats[h] = "boot1"
	}
	s.restart()
	return s
}

// restart gives the harness a failover controller that knows nothing.
func (s *harness) restart() { s.failover = controller.NewFailover(s.config, s.line, s.fencer, s) }

func (s *harness) Note(at time.Time, who hostName, vm hypervisor.VMID, what string) {
	s.notes = append(s.notes, fmt.Sprintf("%v %s %s %s", at.Sub(began), who, vm, what))
}

func (s *harness) put(r store.Record) {
	s.t.Helper()
	if _, err := s.store.Put(ctx, r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *harness) host(name hostName) *store.Host {
	r, _ := s.store.Get(ctx, store.Key{Kind: store.HostKind, Name: string(name)})
	return r.(*store.Host)
}

func (s *harness) changeHost(name hostName, how func(*store.Host)) {
	next := *s.host(name)
	how(&next)
	s.put(&next)
}

func (s *harness) vm(id string) *store.VM {
	r, _ := s.store.Get(ctx, store.Key{Kind: store.VMKind, Name: id})
	v, _ := r.(*store.VM)
	return v
}

func (s *harness) changeVM(id string, how func(*store.VM)) {
	next := *s.vm(id)
	how(&next)
	s.put(&next)
}

func (s *harness) addVM(id string, on hostName, memory hypervisor.Bytes) {
	s.put(&store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(id), Memory: memory, CPUs: 1}, Host: on})
}

func (s *harness) rebuild(vm string, source hostName) *store.Rebuild {
	r, _ := s.store.Get(ctx, (&store.Rebuild{VM: hypervisor.VMID(vm), Source: source}).Key())
	b, _ := r.(*store.Rebuild)
	return b
}

// beat lets the agents send a heartbeat.
func (s *harness) beat() {
	for h, boot := range s.beats {
		l := &store.Lease{Owner: store.HostLease(h)}
		if r, _ := s.store.Get(ctx, l.Key()); r != nil {
			old := *r.(*store.Lease)
			l = &old
		}
		l.Boot = boot
		l.Beats++
		s.put(l)
	}
}

// run lets time pass: agents beat and the failover controller looks, every five seconds.
func (s *harness) run(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(5 * time.Second) {
		s.beat()
		s.look()
	}
}

// look lets the failover controller look until it has nothing more to do now.
func (s *harness) look() {
	s.t.Helper()
	for range 20 {
		wake, err := s.failover.Reconcile(ctx, s.now)
		if err != nil {
			s.t.Fatal(err)
		}
		if wake.After(s.now) {
			return
		}
	}
	s.t.Fatal("the controller wants to look again and again")
}

// silence lets agents give no more signs.
func (s *harness) silence(hosts ...hostName) {
	for _, h := range hosts {
		delete(s.beats, h)
	}
}

func (s *harness) said(text string) int {
	return len(slices.DeleteFunc(slices.Clone(s.notes), func(n string) bool {
		return !strings.Contains(n, text)
	}))
}

func (s *harness) wantSaid(text string, times int) {
	s.t.Helper()
	if got := s.said(text); got != times {
		s.t.Errorf("%q was said %d times, want %d:\n%s", text, got, times,
			strings.Join(s.notes, "\n"))
	}
}

func (s *harness) wantOn(vm string, host hostName) {
	s.t.Helper()
	if got := s.vm(vm).Host; got != host {
		s.t.Errorf("%s is on %q, want %q:\n%s", vm, got, host, strings.Join(s.notes, "\n"))
	}
}

// device is a model fence device: it answers as it is told, and counts.
type device struct {
	answers map[hostName]failoverAnswer
	asked   []string // host and attempt, each once
	during  func()   // happens while a host is cut
}

type failoverAnswer struct {
	by  string
	err error
}

func (d *device) Cut(_ context.Context, host hostName, attempt string) (string, error) {
	name := string(host) + " " + attempt
	if !slices.Contains(d.asked, name) {
		d.asked = append(d.asked, name)
	}
	if d.during != nil {
		d.during()
	}
	a := d.answers[host]
	return a.by, a.err
}

// works lets the device prove that hosts are off.
func (d *device) works(hosts ...hostName) {
	for _, h := range hosts {
		d.answers[h] = failoverAnswer{by: "fence_model"}
	}
}
