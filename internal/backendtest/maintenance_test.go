//go:build linux

package backendtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// A hook says that it begins and ends when the test has rebooted its host: when its agent was started anew.
const hookScript = `echo $GODWIT_HOST >>%[1]s/begun
while test ! -e %[1]s/rebooted-$GODWIT_HOST; do sleep 0.1; done
`

// A serviced is a run of maintenance, and the command that runs its hooks.
type serviced struct {
	*cluster
	command *daemon
	desk    client.Client
	hosts   []hostName
	struck  map[string]bool // "h1 draining": something was killed then
	hooks   []string        // as they began
}

// Four hosts with VMs are serviced one after another. In each phase of each host one process is killed by SIGKILL: the
// controller that leads, the other one, the agent of the host, and the command that runs the hooks, so that each dies
// once in each phase. No hook begins while a QEMU is on its host, and each begins once; every VM runs once in the end, with
// its memory, and every host takes VMs again.
func TestMaintenanceOfFourHostsUnderCrashes(t *testing.T) {
	testutil.Long(t)
	noLeaks(t)
	s := &serviced{cluster: newCluster(t, 1, 30*time.Second), struck: map[string]bool{}, hosts: append(slices.Clone(hosts), "h4")}
	s.populate(4)
	s.agent("h4")
	s.desk = client.Client{Store: s.store, Now: time.Now}
	s.begin()
	m := s.follow(15 * time.Minute)
	_ = s.command.stop(syscall.SIGKILL) // it is repeated for ever, and has nothing to do
	for i := range m.Hosts {
		if h := &m.Hosts[i]; h.Phase != store.ServiceDone || h.Hooks != 1 {
			t.Errorf("%+v", h)
		}
	}
	if len(s.hooks) != len(s.hosts) || len(s.struck) != 3*len(s.hosts) {
		t.Errorf("hooks %v, kills %v", s.hooks, s.struck)
	}
	l, err := s.settle(t.Context(), s.store, s.vms, "", 3*time.Minute)
	if l == nil {
		t.Fatal(err)
	}
	for name, h := range l.hosts {
		if h.Cordoned || len(h.Taints) > 0 {
			t.Errorf("%s is cordoned for %q, and has the taints %v", name, h.CordonedFor, h.Taints)
		}
	}
	if err = errors.Join(err, s.end(l), s.left(l, s.hosts[3:])); err != nil {
		t.Error(err)
	}
}

// begin starts the run, and the command again whenever it has ended.
func (s *serviced) begin() {
	s.t.Helper()
	text := "format: 1\nname: patch\nbatches:\n"
	for _, h := range s.hosts {
		text += fmt.Sprintf("- {hosts: [%s]}\n", h)
	}
	hook, file := filepath.Join(s.dir, "hook.sh"), filepath.Join(s.dir, "patch.yaml")
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600),
		os.WriteFile(hook, fmt.Appendf(nil, hookScript, s.dir), 0o600)); err != nil {
		s.t.Fatal(err)
	}
	s.command = supervise(s.t, &daemon{name: "run", log: filepath.Join(s.dir, "run.log"), argv: []string{s.program, "maintenance", "run", file,
		"--store", s.url, "--hook", "sh " + hook}})
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the end of the log of the command:\n%s", s.command.tail(4000))
		}
	})
}

// follow kills a process whenever a host has entered a phase, reboots the hosts whose hooks have begun, and goes on as an
// operator where a hook was cut off.
func (s *serviced) follow(within time.Duration) *store.Maintenance {
	s.t.Helper()
	ctx := testutil.Context(s.t, within)
	for {
		m, err := store.MaintenanceNamed(ctx, s.store, "patch")
		switch {
		case ctx.Err() != nil:
			s.t.Fatalf("it has not ended after %v: %+v", within, m)
		case err != nil || m == nil:
		case !m.Ended.IsZero():
			return m
		default:
			for i := range m.Hosts {
				s.strike(&m.Hosts[i])
			}
			s.reboot()
			s.operate(m)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// strike kills the process whose turn it is, once for each phase of a host.
func (s *serviced) strike(h *store.ServicedHost) {
	phases := []store.ServicePhase{store.ServiceDraining, store.ServiceHook, store.ServiceCheck}
	phase, key := slices.Index(phases, h.Phase), fmt.Sprint(h.Name, " ", h.Phase)
	if phase < 0 || s.struck[key] {
		return
	}
	if h.Phase == store.ServiceHook && !slices.Contains(s.begun(), string(h.Name)) {
		return // so that it is killed while the hook runs
	}
	leads, other := s.leader(s.t.Context())
	victims := []*daemon{leads, other, s.daemon("agent/" + string(h.Name)), s.command}
	victim := victims[(slices.Index(s.hosts, h.Name)+phase)%len(victims)]
	if s.struck[key] = victim.kill(500 * time.Millisecond); s.struck[key] {
		s.t.Logf("%s: %s is killed", key, victim.name)
	}
}

// begun lists the hosts whose hooks have begun, in order.
func (s *serviced) begun() []string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "begun")) // none has
	return strings.Fields(string(text))
}

// reboot does what a hook waits for. No guest may beat on its host: what a migration has left there ends soon.
func (s *serviced) reboot() {
	for _, h := range s.begun()[len(s.hooks):] {
		if !s.struck[h+" hook"] {
			return // first something is killed
		}
		s.hooks = append(s.hooks, h)
		now := time.Now()
		time.Sleep(200 * time.Millisecond) // a guest that runs beats meanwhile
		for _, q := range s.living() {
			if r := s.rhythm(q.vm); q.host == hostName(h) && r.From == q.String() && r.Last.After(now) {
				s.t.Errorf("the hook of %s begins, and %s runs there, in %v", h, q.vm, q)
			}
		}
		s.daemon("agent/" + h).kill(500 * time.Millisecond)
		if err := os.WriteFile(filepath.Join(s.dir, "rebooted-"+h), nil, 0o600); err != nil {
			s.t.Error(err)
		}
	}
}

// operate says that a hook has ended whose command was killed: the test has seen that it did.
func (s *serviced) operate(m *store.Maintenance) {
	if m.Stopped == "" || m.Resumes > m.Resumed {
		return
	}
	for i := range m.Hosts {
		h := &m.Hosts[i]
		_, err := os.Stat(filepath.Join(s.dir, "rebooted-"+string(h.Name)))
		if h.Phase == store.ServiceHook && err == nil && strings.Contains(m.Stopped, "it is not known") {
			if _, err := s.desk.ContinueRun(s.t.Context(), "patch", h.Name, false, "operator"); err != nil {
				s.t.Log(err)
			}
		}
	}
}
