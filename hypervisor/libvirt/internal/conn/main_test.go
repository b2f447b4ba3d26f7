//go:build linux && libvirt_dlopen

package conn_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// loadKey has a copy of this program open a connection and do nothing else.
const loadKey = "GODWIT_TEST_LOADS"

func TestMain(m *testing.M) {
	if os.Getenv(loadKey) != "" {
		_, err := conn.Open(context.Background(), conn.Config{})
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(libvirttest.Main(m))
}

// patience is how long anything may take on a busy machine.
var patience = testutil.Limit(testutil.DefaultLimit)

const host = libvirttest.HostA

// An eventLog writes down what a connection tells.
type eventLog struct {
	mu   sync.Mutex
	all  []string // events as "What Domain Detail", "connected", "lost"
	why  error    // of the last loss
	uuid string   // of the last event
}

func (e *eventLog) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, what)
}

// config is one whose connection tells e.
func (e *eventLog) config(lab *libvirttest.Lab) conn.Config {
	return conn.Config{URI: lab.URI(host), KeepAliveInterval: time.Second, KeepAliveCount: 2,
		Timeout: patience,
		Events: func(v conn.Event) {
			e.mu.Lock()
			e.uuid = v.UUID
			e.mu.Unlock()
			e.add(fmt.Sprintf("%s %s %s", v.What, v.Domain, v.Detail))
		},
		Connected: func() { e.add("connected") },
		Lost: func(err error) {
			e.mu.Lock()
			e.why = err
			e.mu.Unlock()
			e.add("lost")
		}}
}

// count is how often something was told.
func (e *eventLog) count(what string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, was := range e.all {
		if was == what {
			n++
		}
	}
	return n
}

// await waits until something was told for the nth time.
func (e *eventLog) await(t *testing.T, what string, n int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("%q was told %d times", what, n), func() error {
		if e.count(what) < n {
			e.mu.Lock()
			defer e.mu.Unlock()
			return fmt.Errorf("told was %q", e.all)
		}
		return nil
	})
}

// open opens a connection that is closed with the test.
func open(t *testing.T, config conn.Config) *conn.Conn {
	t.Helper()
	var c *conn.Conn
	testutil.EventuallyWithin(t, patience, "a connection", func() (err error) { // on a busy machine it takes longer than short limits
		c, err = conn.Open(t.Context(), config)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func list(c *conn.Connect) ([]string, error) {
	domains, err := c.ListAllDomains(0)
	names := []string{}
	for i := range domains {
		name, err := domains[i].GetName()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		_ = domains[i].Free()
	}
	return names, err
}

// xml is a domain that needs no disk and does nothing.
func xml(name string) string {
	number := crc32.ChecksumIEEE([]byte(name))
	return fmt.Sprintf(`<domain type='qemu'><name>%s</name>
<uuid>%08x-1111-4111-8111-111111111111</uuid><memory unit='MiB'>16</memory>
<os><type arch='x86_64' machine='pc'>hvm</type></os><cpu mode='custom' match='exact'
check='none'><model>qemu64</model></cpu><devices><controller type='usb' model='none'/>
<memballoon model='none'/></devices></domain>`, name, number)
}

// live starts a domain.
func live(name string) func(*conn.Connect) error {
	return func(c *conn.Connect) error {
		d, err := c.DomainCreateXML(xml(name), 0)
		if err == nil {
			_ = d.Free()
		}
		return err
	}
}

// on does something to a domain.
func on(name string, do func(*libvirt.Domain) error) func(*conn.Connect) error {
	return func(c *conn.Connect) error {
		d, err := c.LookupDomainByName(name)
		if err != nil {
			return err
		}
		defer func() { _ = d.Free() }()
		return do(d)
	}
}

// inItsOwnMounts runs a copy of this program after a command that only it sees the
// mounts of.
func inItsOwnMounts(t *testing.T, command string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private",
		"sh", "-ec", command+`; exec "$0"`, self)
	cmd.Env = append(os.Environ(), loadKey+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
