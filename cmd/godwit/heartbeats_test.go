package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// wrapper stands in for QEMU, which waits until the listener hears its guest.
const wrapper = `#!/bin/sh
vm=
for arg; do
	case $arg in
	guest=*) vm=${arg#guest=} vm=${vm%%%%,*} ;;
	esac
done
test -n "$vm" || exec %[1]s "$@"
exec %[1]s "$@" -device isa-debugcon,iobase=0xe9,chardev=heartbeats \
	-chardev "socket,id=heartbeats,path=%[2]s/$(echo "$vm" | tr / +)@$$,server=on,wait=on"
`

// A listener hears the guests of a script: they say when they have booted, and count their heartbeats.
type listener struct {
	dir  string // of the sockets
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	pulses map[string]*guest.HeartbeatListener // by VM
	known  map[string]bool                     // sockets
	failed error
}

// listen is the command heartbeats: it listens to the QEMUs of all agents that start from now on.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: heartbeats")
	}
	f, err := features()
	ts.Check(err)
	dir, err := os.MkdirTemp("", "w") // a socket's path is short
	ts.Check(err)
	w := &listener{dir: dir, pulses: map[string]*guest.HeartbeatListener{}, known: map[string]bool{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	path, err := exec.LookPath(f.Path)
	ts.Check(err)
	ts.Check(os.Mkdir(ts.MkAbs("bin"), 0o700))
	ts.Check(os.WriteFile(ts.MkAbs("bin/qemu-system-x86_64"), fmt.Appendf(nil, wrapper, path, dir), 0o700))
	ts.Setenv("PATH", ts.MkAbs("bin")+":"+ts.Getenv("PATH"))
	w.done.Go(w.look)
	heartbeatListeners.Store(ts.Getenv("WORK"), w)
	ts.Defer(func() {
		w.stop()
		w.done.Wait()
		heartbeatListeners.Delete(ts.Getenv("WORK"))
		_ = os.RemoveAll(dir)
	})
}

// heartbeatListeners are those of the scripts, by their directories.
var heartbeatListeners sync.Map

// look connects to every QEMU that waits.
func (w *listener) look() {
	for ; w.ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		sockets, _ := filepath.Glob(filepath.Join(w.dir, "*@*"))
		for _, path := range sockets {
			if !w.known[path] {
				w.known[path] = true
				w.connect(path)
			}
		}
	}
}

func (w *listener) connect(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, process, _ := strings.Cut(filepath.Base(path), "@")
	vm := strings.ReplaceAll(name, "+", "/")
	p := w.pulses[vm]
	if p == nil {
		var err error
		if p, err = guest.NewHeartbeatListener(); err != nil {
			w.failed = err
			return
		}
		w.pulses[vm] = p
		w.done.Go(func() {
			<-w.ctx.Done()
			_ = p.Close()
		})
	}
	w.done.Go(func() { // one that was killed makes no socket any more
		ctx, cancel := context.WithTimeout(w.ctx, testutil.Limit(time.Minute))
		defer cancel()
		_ = p.Connect(ctx, process, path)
	})
}

// once VM BOOTS fails unless the guest has booted so often in all its QEMUs together, and has counted on
// without going back or being heard from two of them, and goes on.
func once(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: once VM BOOTS")
	}
	p := pulseOf(ts, args[0])
	before := p.Log().Beats
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		if now := p.Log(); now.Beats < before+10 {
			return fmt.Errorf("%s: %d heartbeats, the last from process %s at %v", args[0],
				now.Beats, now.From, now.Last)
		}
		return nil
	}))
	r := p.Log()
	ts.Check(r.Check())
	if strconv.Itoa(r.Boots) != args[1] {
		ts.Fatalf("%s has booted %d times, want %s", args[0], r.Boots, args[1])
	}
}

// twice VM fails unless the guest was heard from two QEMUs by turns.
func twice(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: twice VM")
	}
	p := pulseOf(ts, args[0])
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		if p.Log().Twice() == nil {
			return fmt.Errorf("%s was not heard from two QEMUs", args[0])
		}
		return nil
	}))
}

// alone VM fails unless the guest is heard from one QEMU only, and that is so for a while.
func alone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: alone VM")
	}
	p := pulseOf(ts, args[0])
	ts.Check(testutil.Poll(context.Background(), eventually, func() error {
		from, beats, returns := p.Log().From, p.Log().Beats, p.Log().Returns
		time.Sleep(200 * time.Millisecond)
		if now := p.Log(); now.From != from || now.Beats < beats+10 || now.Returns != returns {
			return fmt.Errorf("%s was heard from %s and from %s, %d times more", args[0], from, now.From,
				now.Beats-beats)
		}
		return nil
	}))
}

func pulseOf(ts *testscript.TestScript, vm string) *guest.HeartbeatListener {
	found, is := heartbeatListeners.Load(ts.Getenv("WORK"))
	if !is {
		ts.Fatalf("no guest is listened to: heartbeats is missing")
	}
	w := found.(*listener)
	w.mu.Lock()
	defer w.mu.Unlock()
	ts.Check(w.failed)
	p := w.pulses[vm]
	if p == nil {
		ts.Fatalf("%s was never heard", vm)
	}
	return p
}
