package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Supervisor is the service manager that started this process, and restarts it when it hangs:
// systemd. A nil one does nothing. It is safe for concurrent use.
// Source: sd_notify(3), sd_watchdog_enabled(3), systemd 252.
type Supervisor struct {
	conn  net.Conn
	every time.Duration // how often it wants to hear from us; 0: never

	mu     sync.Mutex
	health *Health // of what runs; nil: nothing runs yet
	ready  bool
	ended  bool // what ran has ended, and does not begin again
}

// The variables by which systemd tells how to reach it.
const (
	socketVariable   = "NOTIFY_SOCKET" // The socket of systemd, which is told when a daemon is ready.
	intervalVariable = "WATCHDOG_USEC" // How often systemd wants a heartbeat, in microseconds.
	processVariable  = "WATCHDOG_PID"  // The process that systemd wants it from.
)

// NewSupervisor returns the service manager that the environment names; nil when there is none.
// It takes the variables away, so that no process that this one starts speaks for it.
func NewSupervisor() (*Supervisor, error) {
	path, interval, pid := os.Getenv(socketVariable), os.Getenv(intervalVariable),
		os.Getenv(processVariable)
	for _, name := range []string{socketVariable, intervalVariable, processVariable} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if path == "" {
		return nil, nil
	}
	conn, err := net.Dial("unixgram", path) // a name that begins with @ is of Linux's own space
	if err != nil {
		return nil, fmt.Errorf("%s=%s: the service manager cannot be reached: %w", socketVariable, path,
			err)
	}
	s := &Supervisor{conn: conn}
	if interval == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return s, nil
	}
	us, err := strconv.ParseInt(interval, 10, 64)
	if err != nil || us <= 0 {
		return nil, fmt.Errorf("%s=%s is not a time in microseconds", intervalVariable, interval)
	}
	s.every = time.Duration(us) * time.Microsecond / 2
	return s, nil
}

// Ready tells that the process has started, once, and what it does.
func (s *Supervisor) Ready(status string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	first := !s.ready
	s.ready = true
	s.mu.Unlock()
	if first {
		s.send("READY=1", "STATUS="+oneLine(status))
		return
	}
	s.Status(status)
}

// Status tells what the process does.
func (s *Supervisor) Status(status string) {
	if s != nil {
		s.send("STATUS=" + oneLine(status))
	}
}

// runs says that a daemon runs, until done is called. From then on the process is about to end, and
// is not said to live: when something hangs in its end, the service manager ends it.
func (s *Supervisor) runs() (done func()) {
	if s == nil {
		return func() {}
	}
	set := func(ended bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = ended
	}
	set(false)
	return func() { set(true) }
}

// follow takes the health of what runs; nil when nothing runs that could hang.
func (s *Supervisor) follow(h *Health) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = h
}

// Tend tells the service manager that the process lives, as long as its participants look and have not
// ended for good, until ctx ends; then it tells that the process stops.
func (s *Supervisor) Tend(ctx context.Context) {
	if s == nil {
		return
	}
	defer s.send("STOPPING=1", "STATUS=finishes current work; VMs keep running")
	if s.every == 0 {
		<-ctx.Done()
		return
	}
	ticks := time.NewTicker(s.every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			s.beat()
		}
	}
}

// beat says that the process lives, if it does.
func (s *Supervisor) beat() {
	s.mu.Lock()
	h, ended := s.health, s.ended
	s.mu.Unlock()
	switch {
	case ended:
		s.Status("has ended, and its process has not: see the log")
		return
	case h == nil:
		s.send("WATCHDOG=1")
		return
	}
	state := h.look()
	if state.OK {
		s.send("WATCHDOG=1")
		return
	}
	for _, p := range state.Parts {
		if !p.OK {
			s.Status(p.Name + " hangs: " + p.Error)
		}
	}
}

// send sends lines in one datagram. A service manager that is gone hears nothing, and the daemon
// goes on.
func (s *Supervisor) send(lines ...string) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = s.conn.Write([]byte(strings.Join(lines, "\n") + "\n"))
}

// oneLine is a text without line breaks, which would begin another variable.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
