//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
)

// postcopyResume loses the connection of a post-copy at its very end: the target has every page
// and runs the guest, and its last message, that it has ended well, does not reach the source.
// What the source does then is the outcome.
func postcopyResume(o options) (string, error) {
	two, err := newPair(o, guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20,
		Random: true})
	if err != nil {
		return "", err
	}
	defer two.end()
	relay, err := net.Listen("unix", two.target.path("relay"))
	if err != nil {
		return "", err
	}
	defer relay.Close()
	lose := make(chan bool)
	go passWithoutEnd(relay, two.target.path("in"), lose)
	s, t := two.source, two.target
	err = errors.Join(s.capable("postcopy-ram"), t.capable("postcopy-ram"), s.bandwidth(1<<20),
		s.do("migrate", map[string]any{"uri": "unix:" + two.target.path("relay")}, nil))
	if err == nil {
		_, err = s.await("active")
	}
	if err == nil && o.stop {
		err = s.do("stop", nil, nil)
	}
	if err == nil {
		err = s.do("migrate-start-postcopy", nil, nil)
	}
	if err == nil {
		_, err = s.await("postcopy-active")
	}
	if err == nil { // as a manager does that was told so
		err = t.letRun()
	}
	if err == nil {
		_, err = t.await("completed")
	}
	if err != nil {
		return "", err
	}
	lose <- true
	time.Sleep(500 * time.Millisecond) // for many heartbeats of each
	return verdict(two)
}

// letRun lets an incoming guest run as soon as it can.
func (m *machine) letRun() error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		run, _, err := m.status()
		if err != nil || run == "paused" {
			return errors.Join(err, m.do("cont", nil, nil))
		}
		if time.Now().After(end) {
			return fmt.Errorf("the target is %s", run)
		}
	}
}

// verdict says what both ends say, and what the guest says.
func verdict(two *pair) (string, error) {
	var said []string
	for _, m := range []*machine{two.source, two.target} {
		run, migration, err := m.status()
		if err != nil {
			return "", err
		}
		said = append(said, run+" ("+migration+")")
	}
	guests := "the guest ran once"
	if r := two.pulse.Log(); r.Returns > 0 {
		guests = "THE GUEST RUNS TWICE"
	} else if err := r.Check(); err != nil {
		guests = err.Error()
	}
	return fmt.Sprintf("source %s, target %s: %s", said[0], said[1], guests), nil
}

// passWithoutEnd passes a migration on, but the target's message that it has ended, and ends
// the connection when it is told to.
func passWithoutEnd(relay net.Listener, to string, lose <-chan bool) {
	near, far, err := meet(relay, to)
	if err != nil {
		return
	}
	defer near.Close()
	defer far.Close()
	go io.Copy(far, near)
	go passReturnPath(near, far)
	<-lose
}

// shut is the message of a return path that the target has ended.
// Source: QEMU 10.0 migration/migration.h (MIG_RP_MSG_SHUT), migration.c
// (migrate_send_rp_message: type and length, 16 bits each, big-endian).
const shut = 1

func passReturnPath(to io.Writer, from io.Reader) {
	header := make([]byte, 4)
	for {
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint16(header[2:]))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if binary.BigEndian.Uint16(header) == shut {
			return
		}
		if _, err := to.Write(slices.Concat(header, body)); err != nil {
			return
		}
	}
}
