//go:build linux && libvirt_dlopen

package conn

import (
	"sync"
	"sync/atomic"

	"libvirt.org/go/libvirt"
)

// the is libvirt's event loop. libvirt has one for the whole process, and it can be
// registered only once; it needs to run only while there are connections.
var the eventLoop

// Enter starts the loop if it does not run yet. Each Enter needs one [Leave]. It fails
// with libvirt's own error when libvirt.so cannot be loaded.
func Enter() error { return the.enter() }

// Leave ends the loop, and waits until it has ended, if it has no other user. It must
// not be called from the loop.
func Leave() { the.leave() }

// idle is the period of a timer that does not fire, in libvirt's terms.
const idle = -1

// An eventLoop runs while it has users.
type eventLoop struct {
	mu         sync.Mutex
	registered bool
	timer      int // wakes the loop up so that it can end
	users      int
	stop       atomic.Bool
	ended      chan struct{}
}

func (l *eventLoop) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.register(); err != nil {
		return err
	}
	if l.users++; l.users == 1 {
		l.stop.Store(false)
		l.ended = make(chan struct{})
		go l.run(l.ended)
	}
	return nil
}

// register loads libvirt.so and makes the event loop known to it.
func (l *eventLoop) register() error {
	if l.registered {
		return nil
	}
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return err
	}
	timer, err := libvirt.EventAddTimeout(idle, func(timer int) {
		libvirt.EventUpdateTimeout(timer, idle) // once is enough
	})
	if err != nil {
		return err
	}
	l.timer, l.registered = timer, true
	return nil
}

func (l *eventLoop) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.stop.Store(true)
	libvirt.EventUpdateTimeout(l.timer, 0)
	<-l.ended
}

// run is the loop. At the end it goes round a few times more: libvirt leaves to it
// the freeing of what a closed connection watched.
func (l *eventLoop) run(ended chan struct{}) {
	defer close(ended)
	for !l.stop.Load() {
		if err := libvirt.EventRunDefaultImpl(); err != nil {
			// It fails only when no loop is registered.
			panic("libvirt's event loop: " + err.Error())
		}
	}
	for range 8 {
		libvirt.EventUpdateTimeout(l.timer, 1)
		_ = libvirt.EventRunDefaultImpl()
	}
}
