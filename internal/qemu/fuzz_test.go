package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// FuzzPeer plays a server that says anything, before and after a greeting that
// is right, and hangs up. Nothing panics, hangs or leaks, and every command
// has an outcome.
func FuzzPeer(f *testing.F) {
	f.Add(false, []byte(greeting+"\r\n"))
	f.Add(false, []byte(greeting+"\r\n{\"return\": {}, \"id\": 0}\r\n{\"event\": \"A\"}\r\n"))
	f.Add(true, []byte("{\"return\": {}, \"id\": 1}\r\n{\"return\": {}, \"id\": 1}\r\n"))
	f.Add(true, []byte("{\"error\": {\"desc\": \"no\"}, \"id\": 2}\r\n"))
	f.Add(true, []byte("{\"error\": {\"class\": \"GenericError\"}}\r\n{\"return\": {}"))
	f.Fuzz(func(t *testing.T, greeted bool, said []byte) {
		config := scripted(t, func(p *peer) {
			var reading sync.WaitGroup
			defer reading.Wait()
			if greeted {
				p.greet()
			}
			reading.Go(p.deadEnd)
			_, _ = p.Write(said)
			_ = p.Close()
		})
		config.MaxLine = 4096
		m, err := qemu.Dial(context.Background(), config)
		if err != nil {
			return
		}
		defer m.Close()
		s := m.Subscribe()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				var got struct{ Status string }
				known(t, m.Execute(context.Background(), "x", nil, &got))
				known(t, m.ExecuteOOB(context.Background(), "y", nil, nil))
			})
		}
		all.Wait()
		mustEnd(t, m)
		for {
			_, err := s.Next(context.Background())
			gap, missing := errors.AsType[*qemu.Gap](err)
			if missing && gap.Ended != nil {
				break
			}
			if err != nil && !missing {
				t.Fatalf("got %v", err)
			}
		}
	})
}

// known fails the test if err leaves open what became of the command.
func known(t *testing.T, err error) {
	_, refused := errors.AsType[*qemu.Error](err)
	_, failed := errors.AsType[*qemu.Failure](err)
	if err != nil && refused == failed {
		t.Error(fmt.Errorf("neither refused nor failed: %w", err))
	}
}
