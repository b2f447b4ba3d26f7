package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
)

// A notebook keeps what a server notes.
type notebook struct {
	mu    sync.Mutex
	notes []string
}

func (n *notebook) note(vm hypervisor.VMID, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	what, _, _ = strings.Cut(what, " by ")
	n.notes = append(n.notes, string(vm)+" "+what)
}

// serve serves consoles of guests that open makes, until the test ends or what it returns is called.
func serve(t *testing.T, open func(hypervisor.VMID) (io.ReadWriteCloser, error)) (path string, n *notebook,
	end func()) {
	t.Helper()
	path, n = filepath.Join(t.TempDir(), "c.sock"), &notebook{}
	l, err := daemon.ListenConsoles(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	s := daemon.ConsoleServer{Note: n.note, Open: func(_ context.Context, vm hypervisor.VMID) (io.ReadWriteCloser, error) {
		return open(vm)
	}}
	go func() {
		s.Serve(ctx, l)
		close(ended)
	}()
	end = func() { cancel(); <-ended }
	t.Cleanup(end)
	return path, n, end
}

// echoGuest is a guest that echoes in capitals.
func echoGuest(hypervisor.VMID) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go func() {
		buf := make([]byte, 64)
		for {
			n, err := far.Read(buf)
			if err != nil {
				return
			}
			_, _ = far.Write(bytes.ToUpper(buf[:n]))
		}
	}()
	return near, nil
}

// keys types one text after what was heard of the one before.
type keys struct {
	texts []string
	heard chan struct{}
}

func (k *keys) Read(p []byte) (int, error) {
	if len(k.texts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, k.texts[0])
	if k.texts = k.texts[1:]; len(k.texts) >= 0 && p[0] == daemon.ConsoleEscape {
		<-k.heard
	}
	return n, nil
}

// awaitedText says when it has heard a text.
type awaitedText struct {
	all   bytes.Buffer
	text  string
	heard chan struct{}
}

func (e *awaitedText) Write(p []byte) (int, error) {
	n, err := e.all.Write(p)
	if e.all.String() == e.text {
		close(e.heard)
	}
	return n, err
}

func TestASessionCarriesBothWaysAndEndsAtTheEscape(t *testing.T) {
	path, notes, end := serve(t, echoGuest)
	if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", s, err)
	}
	c, err := daemon.DialConsole(t.Context(), path, "default/web")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	out := &awaitedText{text: "LOGIN: ANN\r", heard: heard}
	escaped, err := daemon.AttachConsole(c, &keys{[]string{"login: ", "ann\r", "\x1dnever"}, heard}, out)
	if err != nil || !escaped || out.all.String() != "LOGIN: ANN\r" {
		t.Errorf("heard %q, escaped %v: %v", &out.all, escaped, err)
	}
	end()
	if want := []string{"default/web console opened", "default/web console closed"}; !equal(notes.notes, want) {
		t.Errorf("noted %q", notes.notes)
	}
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

func TestASessionEndsWithItsGuest(t *testing.T) {
	near, far := net.Pipe()
	path, _, _ := serve(t, func(hypervisor.VMID) (io.ReadWriteCloser, error) { return near, nil })
	c, err := daemon.DialConsole(t.Context(), path, "default/web")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = far.Write([]byte("bye"))
		_ = far.Close()
	}()
	var out bytes.Buffer
	in, typed := net.Pipe() // the user types nothing
	defer typed.Close()
	if escaped, err := daemon.AttachConsole(c, in, &out); err != nil || escaped || out.String() != "bye" {
		t.Errorf("heard %q, escaped %v: %v", &out, escaped, err)
	}
}

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	path, notes, end := serve(t, func(hypervisor.VMID) (io.ReadWriteCloser, error) {
		return nil, errors.New("its console is open")
	})
	_, err := daemon.DialConsole(t.Context(), path, "default/web")
	if refused, is := errors.AsType[*daemon.ConsoleRefusedError](err); !is || refused.Why != "its console is open" {
		t.Errorf("%v", err)
	}
	raw, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = raw.Write([]byte(strings.Repeat("x", 5000)))
	answer, _ := io.ReadAll(raw)
	if !strings.Contains(string(answer), "read who it is") {
		t.Errorf("a client that speaks something else: %q", answer)
	}
	end()
	if _, err := daemon.DialConsole(t.Context(), path, "default/web"); err == nil || len(notes.notes) > 0 {
		t.Errorf("served after its end: %v; noted %q", err, notes.notes)
	}
}
