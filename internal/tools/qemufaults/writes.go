//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
)

// lostWrites moves a guest that writes its memory in turn, and reads all of the memory at the
// target. What is missing is the outcome.
func lostWrites(o options) (string, error) {
	p := guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: o.rate, Random: true}
	two, err := newPair(o, p)
	if err != nil {
		return "", err
	}
	defer two.end()
	s, t := two.source, two.target
	relay, err := net.Listen("unix", t.path("relay"))
	if err != nil {
		return "", err
	}
	defer relay.Close()
	var cut atomic.Bool
	go pass(relay, t.path("in"), &cut)
	narrow := int64(64 << 20)
	if o.slow > 0 {
		narrow = 1 << 20
	}
	err = errors.Join(s.bandwidth(narrow),
		s.do("migrate", map[string]any{"uri": "unix:" + t.path("relay")}, nil))
	if err == nil {
		_, err = s.await("active", "completed")
	}
	if err != nil {
		return "", err
	}
	time.Sleep(o.slow)
	if o.cut {
		cut.Store(true)
		time.Sleep(100 * time.Millisecond)
		cut.Store(false)
	}
	if o.slow > 0 {
		err = s.bandwidth(1 << 30)
	}
	if err != nil {
		return "", err
	}
	if _, err := s.await("completed"); err != nil {
		return "", err
	}
	if _, err := t.await("completed"); err != nil {
		return "", err
	}
	return two.read(p)
}

// read reads the memory of the target's guest, before it has run there, and after.
func (two *pair) read(p guest.Params) (string, error) {
	before, err := two.target.damage(p)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	beats := two.pulse.Log().Beats
	err = errors.Join(two.target.do("cont", nil, nil), two.pulse.Wait(ctx,
		func(r guest.HeartbeatLog) bool { return r.Beats > beats+3 }), two.target.do("stop", nil, nil))
	if err != nil {
		return "", err
	}
	after, err := two.target.damage(p)
	switch r := two.pulse.Log(); {
	case err != nil:
		return "", err
	case before != "":
		return "DAMAGE ON ARRIVAL: " + before, nil
	case after != "" || r.Errors > 0:
		return fmt.Sprintf("DAMAGE LATER: %s, the guest itself found %d", after, r.Errors), nil
	case r.Check() != nil:
		return "", r.Check()
	}
	return "the memory is whole", nil
}

// damage says what is wrong with the memory of a guest that stands; "" is nothing.
func (m *machine) damage(p guest.Params) (string, error) {
	size := int64(guest.Base + p.Fill)
	err := m.do("pmemsave", map[string]any{"val": 0, "size": size, "filename": m.path("memory")},
		nil)
	if err != nil {
		return "", err
	}
	f, err := os.Open(m.path("memory"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	var d *guest.Damage
	if err = p.Verify(f, size); errors.As(err, &d) {
		return d.What, nil
	}
	return "", err
}

// pass passes a migration on, except while it is cut.
func pass(relay net.Listener, to string, cut *atomic.Bool) {
	near, far, err := meet(relay, to)
	if err != nil {
		return
	}
	defer near.Close()
	defer far.Close()
	go io.Copy(near, far)
	buf := make([]byte, 256<<10)
	for {
		n, err := near.Read(buf)
		for cut.Load() {
			time.Sleep(time.Millisecond)
		}
		if _, failed := far.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// meet accepts the connection of a source, and connects to the target that it is meant for.
func meet(relay net.Listener, to string) (near, far net.Conn, err error) {
	if near, err = relay.Accept(); err != nil {
		return nil, nil, err
	}
	if far, err = net.Dial("unix", to); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return near, far, nil
}
