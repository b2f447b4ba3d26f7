//go:build linux

package libvirttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A request is what the test asks of the first process of a host.
type request struct {
	Op     op
	Boot   *Spec          `json:",omitempty"` // of opBoot
	Argv   []string       `json:",omitempty"` // of opRun and opDaemon
	Input  string         `json:",omitempty"` // of opRun: standard input, at most 64 KiB
	Log    string         `json:",omitempty"` // of opDaemon: where its output goes
	Signal syscall.Signal `json:",omitempty"` // of opSignal
}

// An op is one kind of request.
type op string

const (
	opBoot   op = "boot"   // mount, name, configure
	opRun    op = "run"    // run a program to its end
	opDaemon op = "daemon" // start libvirtd
	opSignal op = "signal" // send it a signal; after SIGKILL wait for its end
	opSweep  op = "sweep"  // kill all other processes of the host
)

// An answer is what became of a request.
type answer struct {
	Error  string `json:",omitempty"`
	Output string `json:",omitempty"`
	Status int    `json:",omitempty"` // of opRun
}

// initProcess is the first process of a host: it does what it is asked, and reaps
// what the host's daemons leave behind. QEMUs are such orphans; libvirt waits for
// them to be gone by asking for their number, which a zombie still has.
type initProcess struct {
	mu     sync.Mutex
	ended  map[int]chan syscall.WaitStatus // of those that it started
	forked chan struct{}                   // something is there to wait for
	daemon int                             // 0 is none
	gone   chan syscall.WaitStatus         // of the daemon
}

// serve is the first process of a sandbox: it does what it is asked until no caller is
// left to ask. The caller must then exit, and the kernel ends all that is in the PID
// namespace.
func serve(in io.Reader, out io.Writer) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	p := &initProcess{ended: map[int]chan syscall.WaitStatus{}, forked: make(chan struct{}, 1)}
	go p.reap()
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			return 0
		}
		a, err := p.do(r)
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return 0
		}
	}
}

func (p *initProcess) do(r request) (answer, error) {
	switch r.Op {
	case opBoot:
		return answer{}, boot(*r.Boot)
	case opRun:
		return p.run(r.Argv, r.Input)
	case opDaemon:
		return answer{}, p.startDaemon(r.Argv, r.Log)
	case opSignal:
		return answer{}, p.signalDaemon(r.Signal)
	case opSweep:
		return answer{}, p.sweep()
	}
	return answer{}, fmt.Errorf("there is no request %q", r.Op)
}

// reap waits for whatever ends.
func (p *initProcess) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			<-p.forked // without a child there can be no orphan
			continue
		}
		if err != nil {
			continue
		}
		p.mu.Lock() // it is held from the start of a process until that is known
		if c := p.ended[pid]; c != nil {
			delete(p.ended, pid)
			c <- status
		}
		if pid == p.daemon {
			p.daemon = 0
		}
		p.mu.Unlock()
	}
}

// start starts a program. The lock must be held.
func (p *initProcess) start(argv []string, files [3]*os.File) (int, chan syscall.WaitStatus,
	error) {
	if len(argv) == 0 {
		return 0, nil, errors.New("start a program: it has no name")
	}
	path, err := lookPath(argv[0])
	if err != nil {
		return 0, nil, err
	}
	attr := &syscall.ProcAttr{Env: environment(), Dir: "/",
		Sys:   &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()}}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", path, err)
	}
	ended := make(chan syscall.WaitStatus, 1)
	p.ended[pid] = ended
	select {
	case p.forked <- struct{}{}:
	default:
	}
	return pid, ended, nil
}

// run runs a program to its end.
func (p *initProcess) run(argv []string, input string) (answer, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return answer{}, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return answer{}, errors.Join(err, inRead.Close(), inWrite.Close())
	}
	defer outRead.Close()
	_, err = inWrite.WriteString(input) // fits into the pipe
	inWrite.Close()
	var ended chan syscall.WaitStatus
	if err == nil {
		p.mu.Lock()
		_, ended, err = p.start(argv, [3]*os.File{inRead, outWrite, outWrite})
		p.mu.Unlock()
	}
	inRead.Close()
	outWrite.Close()
	if err != nil {
		return answer{}, err
	}
	output, err := io.ReadAll(outRead)
	status := <-ended
	a := answer{Output: string(output), Status: status.ExitStatus()}
	if status.Signaled() {
		a.Status = 128 + int(status.Signal())
	}
	return a, err
}

// startDaemon starts libvirtd, unless it runs.
func (p *initProcess) startDaemon(argv []string, log string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.daemon != 0 {
		return nil
	}
	p.daemon, p.gone, err = p.start(argv, [3]*os.File{null, out, out})
	return err
}

// signalDaemon sends libvirtd a signal. It is our child, so that its number is its
// own until we have reaped it, which the lock prevents.
func (p *initProcess) signalDaemon(s syscall.Signal) error {
	p.mu.Lock()
	pid, gone := p.daemon, p.gone
	var err error
	if pid != 0 {
		err = syscall.Kill(pid, s)
	}
	p.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("send libvirtd the signal %d: %w", s, err)
	case pid == 0 && s != syscall.SIGKILL:
		return fmt.Errorf("send libvirtd the signal %d: it does not run; start it", s)
	case pid != 0 && s == syscall.SIGKILL:
		<-gone
	}
	return nil
}

// sweep kills all processes of the host but the first and libvirtd. All that there
// are in this PID namespace belong to the lab. The host's /proc shows no others.
func (p *initProcess) sweep() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid == p.daemon {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("kill process %d of the host: %w", pid, err)
		}
	}
	return nil
}

// A Spec says what a host is to be.
type Spec struct {
	Name   string            // its host name
	Mounts []Mount           // before the files are written
	Dirs   []string          // made if they are not there
	Files  map[string]string // contents by path inside
	Late   []Mount           // of the files
}

// A Mount shows a file or directory of the machine under a path in the host; both
// must be there.
type Mount struct{ Outside, Inside string }

// boot makes this process's namespaces those of a host.
func boot(s Spec) error {
	if os.Getpid() != 1 {
		return errors.New("boot: this is no first process; the machine would be changed")
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("name the host %s: %w", s.Name, err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep the mounts private: %w", err)
	}
	if err := bind(s.Mounts); err != nil {
		return err
	}
	for _, fs := range []struct{ kind, path string }{{"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := unix.Mount(fs.kind, fs.path, fs.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", fs.path, err)
		}
	}
	for _, dir := range s.Dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for path, text := range s.Files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return bind(s.Late)
}

func bind(mounts []Mount) error {
	for _, m := range mounts {
		if err := unix.Mount(m.Outside, m.Inside, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.Outside, m.Inside, err)
		}
	}
	return nil
}
