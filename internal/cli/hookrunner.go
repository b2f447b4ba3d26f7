package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// hookRunner runs the commands of an operator for a run of maintenance, on this machine.
type hookRunner struct {
	*session
	name                   string // of the run
	hook, check, onFailure []string
	last                   string
	called                 bool // on-failure has run since the run stopped
	running                sync.WaitGroup
	mutex                  sync.Mutex
	busy                   map[hypervisor.HostName]bool // a command of theirs runs
}

// lastWord is how long a command that was interrupted may take to say what has become of its hooks.
const lastWord = 30 * time.Second

// follow runs hooks and checks until the run has ended or stopped. Hooks that have begun are waited for, and
// hosts that are still checked when the run stops get the time that they have for it.
func (h *hookRunner) follow(ctx context.Context) error {
	h.busy = map[hypervisor.HostName]bool{}
	defer h.running.Wait()
	if err := h.abandoned(ctx); err != nil {
		return err
	}
	return h.each(ctx, func(c *client.Cluster) (bool, error) {
		m := c.Run(h.name)
		if m == nil {
			return true, fmt.Errorf("run %s is gone", h.name)
		}
		r := client.OfRun(m, h.Now())
		if line := r.Line(); line != h.last {
			fmt.Fprintln(h.err, line)
			h.last = line
		}
		halted := m.Halted()
		if halted {
			h.failed(ctx, m)
		}
		if h.called = halted; !m.Ended.IsZero() || halted && !h.checks(m) {
			h.running.Wait()
			return true, h.over(&r)
		}
		return false, h.serve(ctx, m)
	})
}

// checks reports whether hosts of a run that has stopped are still to pass their checks. One that does not pass in time
// may be why the run stopped.
func (h *hookRunner) checks(m *store.Maintenance) bool {
	now := h.Now()
	if h.check == nil {
		return false
	}
	serviced := func(s store.ServicedHost) bool { // its hook runs, or has ended, and its check is yet to come
		state := m.Answer(&s).State
		return s.Phase == store.ServiceHook && (state == store.HookDone || state == store.HookBegan && h.runs(s.Name))
	}
	return slices.ContainsFunc(m.Hosts, serviced) || slices.ContainsFunc(m.CheckDue(), func(s store.ServicedHost) bool {
		return now.Sub(s.Since) < m.BackWithin
	})
}

// failed runs the command of an operator, once each time that the run stops.
func (h *hookRunner) failed(ctx context.Context, m *store.Maintenance) {
	if h.called || h.onFailure == nil {
		return
	}
	if why := h.execute(ctx, h.onFailure, "", "GODWIT_REASON="+m.Stopped); why != "" {
		fmt.Fprintf(h.err, "--on-failure: %s\n", why)
	}
}

// over prints how a run has ended, or why it has stopped.
func (h *hookRunner) over(r *client.RunReport) error {
	if err := h.print(r, r.Table); err != nil {
		return err
	}
	if r.Done < len(r.Hosts) {
		return ErrNotDone
	}
	return nil
}

// me names this process to others.
func me(by string) string {
	machine, _ := os.Hostname() // only for people, and to tell whose process it is
	return fmt.Sprintf("%s on %s, process %d", by, machine, os.Getpid())
}

// abandoned lets hooks fail that a process of this machine has begun which does not run any more: what has
// become of them is not known.
func (h *hookRunner) abandoned(ctx context.Context) error {
	m, err := store.MaintenanceNamed(ctx, h.Store, h.name)
	if err != nil || m == nil {
		return err
	}
	for i := range m.Hosts {
		s := &m.Hosts[i]
		if a := m.Answer(s); s.Phase == store.ServiceHook && a.State == store.HookBegan && gone(a.By) {
			err := h.Answer(ctx, h.name, s.Name, func(a *store.ServiceAnswer) {
				if a.State == store.HookBegan {
					a.State, a.Why = store.HookFailed, "the command that ran it has ended, so it is not known what "+
						"has become of it: "+a.By
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// gone reports whether a process of this machine does not run any more.
func gone(by string) bool {
	var pid int
	machine, _ := os.Hostname()
	_, where, found := strings.Cut(by, " on "+machine+", process ")
	if !found {
		return false
	}
	if _, err := fmt.Sscan(where, &pid); err != nil || pid == os.Getpid() {
		return false
	}
	p, err := os.FindProcess(pid)
	return err != nil || p.Signal(syscall.Signal(0)) != nil
}

// serve begins the hooks and the checks that are due.
func (h *hookRunner) serve(ctx context.Context, m *store.Maintenance) error {
	for i := range m.Hosts {
		s := m.Hosts[i]
		due := h.hook != nil && s.Phase == store.ServiceHook && m.Active(h.Now()) && m.Answer(&s).State == store.HookWaits
		if !due || !h.take(s.Name) {
			continue
		}
		begun, err := h.BeginHook(ctx, h.name, s.Name, me(h.By))
		if err != nil || !begun {
			h.give(s.Name)
			if err != nil {
				return err
			}
			continue
		}
		h.run(s.Name, func() { h.hooked(s.Name) })
	}
	for _, s := range m.CheckDue() {
		if h.check != nil && h.take(s.Name) {
			h.run(s.Name, func() { h.checked(ctx, s.Name) })
		}
	}
	return nil
}

func (h *hookRunner) take(host hypervisor.HostName) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	free := !h.busy[host]
	h.busy[host] = true
	return free
}

// runs reports whether a command for a host runs here.
func (h *hookRunner) runs(host hypervisor.HostName) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.busy[host]
}

func (h *hookRunner) give(host hypervisor.HostName) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.busy, host)
}

func (h *hookRunner) run(host hypervisor.HostName, work func()) {
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		defer h.give(host)
		work()
	}()
}

// hooked runs the hook of a host, which was said to begin, and says what has become of it. An interrupt
// does not end it: half a reboot is none.
func (h *hookRunner) hooked(host hypervisor.HostName) {
	why := h.execute(context.Background(), h.hook, host)
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	err := h.Answer(ctx, h.name, host, func(a *store.ServiceAnswer) {
		if a.State == store.HookBegan {
			if a.State, a.Why = store.HookDone, why; why != "" {
				a.State = store.HookFailed
			}
		}
	})
	if err != nil {
		fmt.Fprintf(h.err, "the hook of %s has ended (%s), and the store does not take it: %v\n", host, why, err)
	}
}

// checked runs the check of a host once, and says what came of it.
func (h *hookRunner) checked(ctx context.Context, host hypervisor.HostName) {
	why := h.execute(ctx, h.check, host)
	if ctx.Err() != nil {
		return
	}
	err := h.Answer(ctx, h.name, host, func(a *store.ServiceAnswer) {
		a.Passed, a.Why = why == "", why
	})
	if err != nil {
		fmt.Fprintf(h.err, "the check of %s: %v\n", host, err)
	}
}

// execute runs a command, and returns why it has failed, with the last line that it wrote.
func (h *hookRunner) execute(ctx context.Context, argv []string, host hypervisor.HostName, more ...string) string {
	c := exec.CommandContext(ctx, argv[0], forHost(argv[1:], host)...)
	c.Env = append(os.Environ(), "GODWIT_HOST="+string(host), "GODWIT_MAINTENANCE="+h.name)
	c.Env = append(c.Env, more...)
	out, err := c.CombinedOutput()
	if err == nil {
		return ""
	}
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	const most = 200
	said := lines[len(lines)-1]
	if said = said[:min(most, len(said))]; said != "" {
		return fmt.Sprintf("%v: %s", err, said)
	}
	return err.Error()
}

// forHost puts the host into a command; it is appended where nothing stands for it.
func forHost(words []string, host hypervisor.HostName) (argv []string) {
	const place = "{host}"
	found := host == ""
	for _, w := range words {
		found = found || strings.Contains(w, place)
		argv = append(argv, strings.ReplaceAll(w, place, string(host)))
	}
	if !found {
		argv = append(argv, string(host))
	}
	return argv
}
