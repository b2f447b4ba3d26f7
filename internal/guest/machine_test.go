//go:build linux

package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testutil.Reaped{Main: m}) }

// patience is how long anything may take on a busy machine before it is given
// up. Nothing is expected to take nearly as long.
var patience = testutil.Limit(testutil.DefaultLimit)

// An accelerator is how QEMU runs the guest.
type accelerator struct{ name, cpu string }

// Some nested hosts offer IA32_ARCH_CAPABILITIES and then refuse its value,
// whereupon QEMU aborts: the guest has no use for it.
func accelerators() []accelerator {
	return []accelerator{{"kvm", "host,-arch-capabilities"}, {"tcg", "qemu64"}}
}

// forEachAccelerator runs a test under each, or skips it and says why.
func forEachAccelerator(t *testing.T, test func(*testing.T, accelerator)) {
	for _, a := range accelerators() {
		t.Run(a.name, func(t *testing.T) {
			if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
				t.Skipf("no QEMU: %v", err)
			}
			if a.name != "kvm" {
				testutil.Emulated(t)
			} else if !testutil.HasKVM() {
				t.Skip("no KVM here")
			}
			test(t, a)
		})
	}
}

// A setup is how a machine of the tests is started.
type setup struct {
	accelerator
	machine   string // default: pc
	params    guest.Params
	fromDisk  bool   // through SeaBIOS
	incoming  string // where a target listens
	keepAfter bool   // a shutdown leaves the process: -no-shutdown
}

const memory = 16 << 20

// A machine is a QEMU process, spoken to by hand.
type machine struct {
	t    *testing.T
	dir  string
	conn net.Conn
	from *json.Decoder
	seen []event    // not yet asked for
	done chan error // closed when the process has been reaped
}

// An event is what QEMU says unasked.
type event struct {
	Event string
	Data  map[string]any
}

func arguments(s setup, dir, image string) []string {
	kind := s.machine
	if kind == "" {
		kind = "pc"
	}
	boot := []string{"-bios", image}
	if s.fromDisk {
		boot = []string{"-drive", "if=ide,format=raw,file=" + image}
	}
	args := append(boot, "-machine", kind, "-accel", s.name, "-cpu", s.cpu,
		"-m", strconv.Itoa(memory>>20), "-nodefaults", "-display", "none",
		"-qmp", "unix:"+filepath.Join(dir, "qmp")+",server=on,wait=off",
		"-chardev", "socket,id=listener,server=on,wait=off,path="+filepath.Join(dir, "listener"),
		"-device", "isa-debugcon,iobase=0xe9,chardev=listener", "-S")
	if s.incoming != "" {
		args = append(args, "-incoming", s.incoming)
	}
	if s.keepAfter {
		args = append(args, "-no-shutdown")
	}
	return args
}

// start runs QEMU, stopped at the guest's first instruction, and connects the
// listener to it.
func start(t *testing.T, s setup, listener *guest.HeartbeatListener, process string) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "guest") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, bootImage(t, s), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, done: make(chan error, 1)}
	command := exec.Command("qemu-system-x86_64", arguments(s, dir, image)...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, died := context.WithCancelCause(withPatience(t))
	go func() {
		err := command.Wait()
		died(fmt.Errorf("QEMU has ended: %v", err))
		m.done <- err
		close(m.done)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		for range m.done { // until it is closed
		}
	})
	if err := listener.Connect(ctx, process, filepath.Join(dir, "listener")); err != nil {
		t.Fatal(err)
	}
	m.dial(ctx)
	return m
}

func bootImage(t *testing.T, s setup) []byte {
	t.Helper()
	make := s.params.Firmware
	if s.fromDisk {
		make = s.params.BootSector
	}
	image, err := make()
	if err != nil {
		t.Fatal(err)
	}
	if s.fromDisk {
		image = append(image, zeros(1<<20)...)
	}
	return image
}

func zeros(n int) []byte { return make([]byte, n) }

func withPatience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (m *machine) dial(ctx context.Context) {
	m.t.Helper()
	for {
		conn, err := net.Dial("unix", filepath.Join(m.dir, "qmp"))
		if err == nil {
			m.conn = conn
			break
		}
		if ctx.Err() != nil {
			m.t.Fatal(err, context.Cause(ctx))
		}
		time.Sleep(2 * time.Millisecond)
	}
	m.t.Cleanup(func() { m.conn.Close() })
	if err := m.conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		m.t.Fatal(err)
	}
	m.from = json.NewDecoder(m.conn)
	m.do("qmp_capabilities", nil)
}

// do runs a command and returns its answer; events before it are kept.
func (m *machine) do(command string, arguments map[string]any) map[string]any {
	m.t.Helper()
	line, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if arguments == nil {
		line, err = json.Marshal(map[string]any{"execute": command})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		m.t.Fatal(err)
	}
	for {
		var answer struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
			event
		}
		if err := m.from.Decode(&answer); err != nil {
			m.t.Fatalf("%s: %v", command, err)
		}
		switch {
		case answer.Event != "":
			m.seen = append(m.seen, answer.event)
		case answer.Error != nil:
			m.t.Fatalf("%s: %s", command, answer.Error.Desc)
		case answer.Return != nil:
			var fields map[string]any
			_ = json.Unmarshal(*answer.Return, &fields) // a list is of no interest
			return fields
		}
	}
}

// event waits for an event and returns its data.
func (m *machine) event(name string) map[string]any {
	m.t.Helper()
	for {
		for len(m.seen) > 0 {
			next := m.seen[0]
			m.seen = m.seen[1:]
			if next.Event == name {
				return next.Data
			}
		}
		var next event
		if err := m.from.Decode(&next); err != nil {
			m.t.Fatalf("wait for the event %s: %v", name, err)
		}
		m.seen = append(m.seen, next)
	}
}

// dump stops the guest and returns its memory.
func (m *machine) dump() *os.File {
	m.t.Helper()
	m.do("stop", nil)
	path := filepath.Join(m.dir, "memory")
	m.do("pmemsave", map[string]any{"val": 0, "size": memory, "filename": path})
	f, err := os.Open(path)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { f.Close() })
	return f
}

// exited waits until the process has ended by itself, without an error.
func (m *machine) exited() {
	m.t.Helper()
	select {
	case err := <-m.done:
		if err != nil {
			m.t.Errorf("QEMU ended: %v", err)
		}
	case <-time.After(patience):
		m.t.Error("QEMU did not end")
	}
}

func newListener(t *testing.T) *guest.HeartbeatListener {
	t.Helper()
	p, err := guest.NewHeartbeatListener()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func await(t *testing.T, p *guest.HeartbeatListener, until func(guest.HeartbeatLog) bool) guest.HeartbeatLog {
	t.Helper()
	if err := p.Wait(withPatience(t), until); err != nil {
		t.Fatal(err)
	}
	return p.Log()
}

func beats(n int64) func(guest.HeartbeatLog) bool {
	return func(r guest.HeartbeatLog) bool { return r.Beats >= n }
}

// damaged is memory with one byte changed.
type damaged struct {
	io.ReaderAt
	at int64
}

func (d damaged) ReadAt(buf []byte, off int64) (int, error) {
	n, err := d.ReaderAt.ReadAt(buf, off)
	if i := d.at - off; i >= 0 && i < int64(n) {
		buf[i] ^= 0x01
	}
	return n, err
}

// wantDamage fails unless err is damage at an address, or elsewhere in the same
// stamp: of the page that was being written either half may be the right one.
func wantDamage(t interface{ Errorf(string, ...any) }, err error, at int64) {
	var d *guest.Damage
	if !errors.As(err, &d) ||
		d.Address != at && (at%guest.PageSize >= 8 || d.Address&^7 != at&^7) {
		t.Errorf("the error is %v; want damage at %#x", err, at)
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
