//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crashGuest is the guest of the crash tests: with the cap below a migration of it takes
// about a second, most of it libvirt's own.
var crashGuest = guest.Params{Fill: 16 << 20, WorkingSet: 512 << 10, Rate: 4 << 20, Random: true}

// preyCap bounds the migration's bandwidth.
const preyCap = 48 * hypervisor.Bandwidth(mib)

// A scene is two hosts, an agent in a process of its own for each, and an eye on each
// libvirtd that belongs to neither.
type scene struct {
	*libvirttest.Lab
	t      testing.TB
	strict bool
	dir    string
	rom    string
	load   guest.Params // what the guest does
	hosts  map[name]*backendtest.Host
	eyes   map[name]*conn.Conn
	// How long an undisturbed migration takes, from Receive to the end.
	window time.Duration

	mu     sync.Mutex
	notice func(word string, at time.Time) // is told what happens to domains
}

func newScene(t *testing.T, strict bool) *scene {
	t.Helper()
	if why := libvirttest.Missing(); why != "" {
		t.Skip(why)
	}
	accel := accelerator()
	s := &scene{Lab: libvirttest.Shared(t, libvirttest.Options{QuickLoss: true}), t: t, strict: strict,
		dir: t.TempDir(), hosts: map[name]*backendtest.Host{}, eyes: map[name]*conn.Conn{}}
	s.load = crashGuest.On(accel, testutil.QEMU())
	s.rom = s.Guest(t, s.load)
	peers := map[string]string{}
	for _, n := range []name{hosta, hostb} {
		peers[s.PeerURI(string(n))] = s.URI(string(n))
	}
	t.Cleanup(s.end)
	for _, n := range []name{hosta, hostb} {
		s.hosts[n] = &backendtest.Host{Log: s.dirOf(n) + ".log", Post: post{Name: n, Dir: s.dirOf(n),
			URI: s.URI(string(n)), Peer: s.PeerURI(string(n)), Accel: accel, Strict: strict,
			Peers: peers}}
		if err := s.hosts[n].Start(); err != nil {
			t.Fatal(err)
		}
		eye, err := conn.Open(t.Context(), conn.Config{URI: s.URI(string(n)),
			Timeout: 10 * time.Second, KeepAliveInterval: time.Second,
			Events: func(e conn.Event) { s.see(n, e) }})
		if err != nil {
			t.Fatal(err)
		}
		s.eyes[n] = eye
	}
	return s
}

// dirOf is the directory of a host.
func (s *scene) dirOf(n name) string { return filepath.Join(s.dir, string(n)) }

// part is what a host is in a migration of these tests.
func part(n name) string {
	if n == hosta {
		return "source"
	}
	return "target"
}

// see passes on what happens to a domain: "target resumed migrated".
func (s *scene) see(n name, e conn.Event) {
	s.mu.Lock()
	tell := s.notice
	s.mu.Unlock()
	if tell != nil {
		tell(fmt.Sprintf("%s %v %s", part(n), e.What, e.Detail), time.Now())
	}
}

// tap calls a function with what happens from now on; nil is none.
func (s *scene) tap(tell func(string, time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = tell
}

// end lets the agents end.
func (s *scene) end() {
	for n, d := range s.hosts {
		if e := d.Agent(); e != nil {
			if err := e.Stop(); err != nil {
				s.t.Errorf("%s: %v", n, err)
			}
		}
		if s.t.Failed() {
			words, _ := os.ReadFile(d.Log)
			s.t.Logf("the agent on %s said: %s", n, words)
		}
	}
	for _, eye := range s.eyes {
		if err := eye.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// vm describes a VM of the scene.
func (s *scene) vm(id vmid) hypervisor.VM {
	return hypervisor.VM{ID: id, Memory: hypervisor.Bytes(libvirttest.Memory(crashGuest)) * mib, CPUs: 1,
		Hardware: &hypervisor.Hardware{Machine: "pc", Firmware: s.rom, DebugPort: 0xe9}}
}

// socketOf is where a VM's heartbeats are heard on both hosts.
func socketOf(id vmid) string { return "/run/" + domainOf(id) + ".debug" }

// stateOf is what libvirt itself says of a domain on a host; absent is NOSTATE.
func (s *scene) stateOf(ctx context.Context, n name, id vmid) (lv.DomainState, error) {
	return conn.Ask(ctx, s.eyes[n], func(c *conn.Connect) (lv.DomainState, error) {
		dom, err := c.LookupDomainByName(domainOf(id))
		if errors.Is(err, lv.ERR_NO_DOMAIN) {
			return lv.DOMAIN_NOSTATE, nil
		}
		if err != nil {
			return 0, err
		}
		defer func() { _ = dom.Free() }()
		state, _, err := dom.GetState()
		if errors.Is(err, lv.ERR_NO_DOMAIN) {
			return lv.DOMAIN_NOSTATE, nil
		}
		return state, err
	})
}

// titles lists the domains of a host, with their titles: a tombstone has one.
func (s *scene) titles(ctx context.Context, n name) (map[string]string, error) {
	return conn.Ask(ctx, s.eyes[n], func(c *conn.Connect) (map[string]string, error) {
		all := map[string]string{}
		doms, err := c.ListAllDomains(0)
		for i := range doms {
			id, errName := doms[i].GetName()
			title, errTitle := doms[i].GetMetadata(lv.DOMAIN_METADATA_TITLE, "", 0)
			if errors.Is(errTitle, lv.ERR_NO_DOMAIN_METADATA) {
				errTitle = nil
			}
			_ = doms[i].Free()
			if gone := errors.Join(errName, errTitle); !errors.Is(gone, lv.ERR_NO_DOMAIN) {
				err = errors.Join(err, gone)
				all[id] = title
			}
		}
		return all, err
	})
}

// leftovers says what is left on the hosts: domains, but for tombstones that may still
// be there, processes, images and records of VMs.
func (s *scene) leftovers(tombstones bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	var bad []error
	for n, d := range s.hosts {
		var list []hypervisor.Domain
		err := backendtest.Persist(func() (err error) { list, err = d.Domains(ctx); return err })
		if err != nil || len(list) > 0 {
			bad = append(bad, fmt.Errorf("%s still knows %+v: %w", n, list, cmp.Or(err, errLeft)))
		}
		titles, err := s.titles(ctx, n)
		for domain, title := range titles {
			if !tombstones || !strings.HasPrefix(title, "godwit: not to be received") {
				err = errors.Join(err, fmt.Errorf("libvirt on %s still knows %s %q", n, domain,
					title))
			}
		}
		bad = append(bad, err, s.traces(n))
	}
	return errors.Join(bad...)
}

var errLeft = errors.New("it should not")

// traces says what a host's processes and files show of VMs.
func (s *scene) traces(n name) error {
	programs, err := s.Run(string(n), "sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true")
	if err == nil && strings.Contains(programs, "qemu-system") {
		err = fmt.Errorf("%s still runs a QEMU", n)
	}
	var files []string
	for _, pattern := range []string{s.Outside(string(n), s.ImagesDir()) + "/*",
		filepath.Join(s.dirOf(n), "vms", "*"),
		s.Outside(string(n), "/run/libvirt/qemu/*.xml")} {
		found, errGlob := filepath.Glob(pattern)
		files, err = append(files, found...), errors.Join(err, errGlob)
	}
	if len(files) > 0 {
		err = errors.Join(err, fmt.Errorf("%s has left %v", n, files))
	}
	return err
}

// clears waits until nothing is left on the hosts.
func (s *scene) clears(tombstones bool) error {
	return testutil.Poll(context.Background(), tombstoneTTL+testutil.DefaultLimit, func() error {
		return s.leftovers(tombstones)
	})
}
