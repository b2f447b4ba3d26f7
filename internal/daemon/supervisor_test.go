package daemon_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// manager is a service manager that keeps what it is told.
func manager(t *testing.T, name string) (told func() string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for buffer := make([]byte, 4096); ; {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			lines <- string(buffer[:n])
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		for range lines { // until it has ended
		}
	})
	all := ""
	return func() string {
		for {
			select {
			case line := <-lines:
				all += line
			default:
				return all
			}
		}
	}
}

func supervisor(t *testing.T, name, interval string) *daemon.Supervisor {
	t.Helper()
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", interval)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	s, err := daemon.NewSupervisor()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if _, is := os.LookupEnv(name); is {
			t.Errorf("%s is left to children", name)
		}
	}
	return s
}

// TestAServiceManagerHearsOfADaemon: that it is ready, what it does, that it lives, and its end.
func TestAServiceManagerHearsOfADaemon(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"),
		"@godwit-test-" + strconv.Itoa(os.Getpid())} {
		told := manager(t, name)
		s := supervisor(t, name, "20000")
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Tend(ctx)
		}()
		s.Ready("waits for the store")
		s.Ready("runs\nREADY=2")
		testutil.Eventually(t, "the daemon says that it lives", func() error {
			if all := told(); strings.Count(all, "WATCHDOG=1\n") < 3 {
				return errors.New(all)
			}
			return nil
		})
		stop()
		<-ended
		testutil.Eventually(t, "the daemon says that it stops", testutil.Holds(func() bool {
			return strings.Contains(told(), "STOPPING=1\n")
		}))
		all := told()
		for _, want := range []string{"READY=1\nSTATUS=waits for the store\n", "STATUS=runs READY=2\n"} {
			if !strings.Contains(all, want) {
				t.Errorf("it hears %q, and not %q", all, want)
			}
		}
		if strings.Count(all, "READY=1\n") != 1 {
			t.Errorf("it hears READY=1 more than once: %q", all)
		}
	}
}

// TestAControllerThatHangsIsNotSaidToLive has a clock jump by an hour, in which no participant
// looks.
func TestAControllerThatHangsIsNotSaidToLive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	told := manager(t, name)
	var d daemon.Controller
	d.Name, d.Alone = "a", true
	d.Supervisor = supervisor(t, name, "20000")
	held := &holding{Store: open(t), held: make(chan struct{}), free: make(chan struct{})}
	d.Store = held
	var ahead time.Duration
	jumped := make(chan struct{})
	d.Now = func() time.Time {
		select {
		case <-jumped:
			return time.Now().Add(ahead)
		default:
			return time.Now()
		}
	}
	d.Config = controller.Config{}
	start(t, &d.Dependencies, func(ctx context.Context) error { return d.Run(ctx) })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Supervisor.Tend(ctx)
	}()
	defer func() { stop(); <-ended }()
	testutil.Eventually(t, "it says that it leads and lives", func() error {
		if all := told(); !strings.Contains(all, "STATUS=leads the cluster, term 1\n") ||
			!strings.Contains(all, "WATCHDOG=1\n") {
			return errors.New(all)
		}
		return nil
	})
	held.hold()
	<-held.held // a participant hangs in the store
	ahead = time.Hour
	close(jumped)
	testutil.Eventually(t, "it says what hangs", func() error {
		if all := told(); !strings.Contains(all, "STATUS=controller hangs: it has not looked since") {
			return errors.New(all)
		}
		return nil
	})
	before := strings.Count(told(), "WATCHDOG=1\n")
	hangs := strings.Count(told(), "STATUS=controller hangs: ")
	testutil.Eventually(t, "three more intervals are over", testutil.Holds(func() bool {
		return strings.Count(told(), "STATUS=controller hangs: ") >= hangs+3
	}))
	if after := strings.Count(told(), "WATCHDOG=1\n"); after != before {
		t.Errorf("it says %d times more that it lives", after-before)
	}
	close(held.free)
}

// TestADaemonThatHasEndedIsNotSaidToLive: its process may hang in its end, and only the service manager
// can end that. One that begins again lives again.
func TestADaemonThatHasEndedIsNotSaidToLive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	told := manager(t, name)
	s := supervisor(t, name, "20000")
	ctx, stop := context.WithCancel(context.Background())
	tended := make(chan struct{})
	go func() {
		defer close(tended)
		s.Tend(ctx)
	}()
	defer func() { stop(); <-tended }()
	records, had := open(t), 0
	for range 2 {
		var d daemon.Controller
		d.Name, d.Alone, d.Store, d.Supervisor = "a", true, records, s
		short, end := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- d.Run(short) }()
		testutil.Eventually(t, "it is said to live", func() error {
			if all := told(); strings.Count(all, "WATCHDOG=1\n") <= had {
				return errors.New(all)
			}
			return nil
		})
		end()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		says := strings.Count(told(), "STATUS=has ended")
		testutil.Eventually(t, "an interval is over", testutil.Holds(func() bool {
			return strings.Count(told(), "STATUS=has ended") > says
		}))
		had = strings.Count(told(), "WATCHDOG=1\n")
		testutil.Eventually(t, "three more are", testutil.Holds(func() bool {
			return strings.Count(told(), "STATUS=has ended") > says+3
		}))
		if now := strings.Count(told(), "WATCHDOG=1\n"); now != had {
			t.Errorf("it is said %d times more to live", now-had)
		}
	}
}

func TestWithoutAServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	s, err := daemon.NewSupervisor()
	if s != nil || err != nil {
		t.Errorf("NewSupervisor = %v, %v", s, err)
	}
	s.Ready("runs")
	s.Status("runs")
	s.Tend(context.Background())
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if _, err := daemon.NewSupervisor(); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Errorf("a socket that is not there: %v", err)
	}
	name := filepath.Join(t.TempDir(), "notify")
	manager(t, name)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "soon")
	if _, err := daemon.NewSupervisor(); err == nil || !strings.Contains(err.Error(), "WATCHDOG_USEC=soon") {
		t.Errorf("an interval that is none: %v", err)
	}
	told := manager(t, name+"2")
	t.Setenv("NOTIFY_SOCKET", name+"2")
	t.Setenv("WATCHDOG_USEC", "1000")
	t.Setenv("WATCHDOG_PID", "1")
	if s, err = daemon.NewSupervisor(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, stop)
	s.Tend(ctx)
	testutil.Eventually(t, "it says that it stops", testutil.Holds(func() bool {
		return strings.Contains(told(), "STOPPING=1\n")
	}))
	if all := told(); strings.Contains(all, "WATCHDOG") {
		t.Errorf("with the watchdog of another process it says %q", all)
	}
}

// holding is a store that at some time answers no more until it is freed.
type holding struct {
	*boltstore.Store
	once       sync.Once
	on         atomic.Bool
	held, free chan struct{}
}

func (h *holding) hold() { h.on.Store(true) }

// Changes answers when it may.
func (h *holding) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes,
	error) {
	if h.on.Load() && !f.Leases {
		h.once.Do(func() { close(h.held) })
		<-h.free
	}
	return h.Store.Changes(ctx, f, since)
}
