package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/qemu"
)

func TestTheFirstEventIsNotSwallowed(t *testing.T) {
	for _, row := range []struct{ name, said string }{
		{"right after the answer", "{\"return\": {}, \"id\": 0}\r\n{\"event\": \"A\"}"},
		{"before the answer", "{\"event\": \"A\"}\r\n{\"return\": {}, \"id\": 0}"},
		{"after the greeting of a client that left", greeting + "\r\n{\"return\": {}, \"id\": 0}\r\n{\"event\": \"A\"}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := qemu.Prepare(scripted(t, func(p *peer) {
				p.say(greeting)
				p.hear()
				p.say("%s", row.said)
				p.deadEnd()
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			s := m.Subscribe()
			if err := m.Connect(); err != nil {
				t.Fatal(err)
			}
			e, err := s.Next(within(t, patience))
			if err != nil || e.Name != "A" {
				t.Errorf("got %v, %v", e, err)
			}
		})
	}
}

func TestConnectingFails(t *testing.T) {
	says := func(lines string) func(*peer) {
		return func(p *peer) { p.say("%s", lines) }
	}
	for _, row := range []struct {
		name     string
		script   func(*peer)
		protocol bool
		cause    error
	}{
		{"the peer is silent", (*peer).deadEnd, false, context.DeadlineExceeded},
		{"the peer hangs up", func(*peer) {}, false, qemu.ErrLost},
		{"half a greeting", func(p *peer) { _, _ = p.Write([]byte(greeting)) }, false,
			qemu.ErrLost},
		{"another protocol", says("SSH-2.0-OpenSSH_9.2"), true, nil},
		{"a greeting without end", says(strings.Repeat("x", 2000)), true, nil},
		{"the answer has another id", func(p *peer) {
			p.say(greeting)
			p.hear()
			p.say(`{"return": {}, "id": 17}`)
		}, true, nil},
		{"the capabilities are refused", func(p *peer) {
			p.say(greeting)
			p.hear()
			p.say(`{"error": {"class": "CommandNotFound", "desc": "no"}, "id": 0}`)
		}, false, qemu.CommandNotFound},
		{"greetings without end", func(p *peer) {
			p.say(greeting)
			p.hear()
			for range 2000 {
				p.say(greeting)
			}
		}, true, nil},
		{"events without end", func(p *peer) {
			p.say(greeting)
			p.hear()
			for range 2000 {
				p.say(`{"event": "A"}`)
			}
		}, true, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := scripted(t, row.script)
			config.MaxLine = 1000
			config.Timeout = patience
			ctx := t.Context()
			if row.cause == context.DeadlineExceeded {
				ctx = within(t, 50*time.Millisecond)
			}
			m, err := qemu.Dial(ctx, config)
			if m != nil || isProtocolError(err) != row.protocol {
				t.Errorf("got %v, %v", m, err)
			}
			expect(t, err, qemu.NotSent)
			if row.cause != nil && !errors.Is(err, row.cause) {
				t.Errorf("got %v, want %v", err, row.cause)
			}
		})
	}
}

func TestConfigs(t *testing.T) {
	for _, config := range []qemu.Config{{Timeout: -1}, {MaxLine: -1}, {MaxEvents: -1}} {
		if _, err := qemu.Prepare(config); err == nil {
			t.Errorf("%+v was accepted", config)
		}
	}
	_, err := qemu.Dial(t.Context(), qemu.Config{})
	expect(t, err, qemu.NotSent)
	_, err = qemu.Dial(t.Context(), qemu.Config{Path: "/nonexistent/qmp"})
	expect(t, err, qemu.NotSent)
}

// reply is what an echoing peer returns.
type reply struct {
	Name      string
	Arguments json.RawMessage
}

func TestNumbersKeepAllTheirDigits(t *testing.T) {
	m := dial(t, func(p *peer) { p.greet(); p.echo() })
	var got struct{ Arguments struct{ N uint64 } }
	err := m.Execute(t.Context(), "x", map[string]uint64{"N": math.MaxUint64 - 1}, &got)
	if err != nil || got.Arguments.N != math.MaxUint64-1 {
		t.Errorf("got %d, %v", got.Arguments.N, err)
	}
	var wrong struct{ Name int }
	expect(t, m.Execute(t.Context(), "x", nil, &wrong), qemu.CarriedOut)
	expect(t, m.Execute(t.Context(), "x", func() {}, nil), qemu.NotSent)
	expect(t, m.Execute(t.Context(), "\uffff", nil, nil), qemu.NotSent)
	if err := m.Execute(t.Context(), "x", nil, nil); err != nil {
		t.Errorf("the connection did not survive: %v", err)
	}
}

// TestRepliesFindTheirCommands lets a peer answer in any order, late, with
// refusals and events in between.
func TestRepliesFindTheirCommands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		commands := rapid.IntRange(1, 20).Draw(rt, "commands")
		seed := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(rt, "order")
		m := dial(t, func(p *peer) {
			p.greet()
			answerInOrder(p, commands, seed)
			p.deadEnd()
		})
		var all sync.WaitGroup
		for i := range commands {
			all.Go(func() {
				name := fmt.Sprintf("c%d", i)
				var got string
				err := m.Execute(context.Background(), name, nil, &got)
				refused, ok := errors.AsType[*qemu.Error](err)
				if ok && refused.Command == name && refused.Description == name {
					return
				}
				if err != nil || got != name {
					t.Errorf("%s: got %s, %v", name, got, err)
				}
			})
		}
		all.Wait()
		_ = m.Close()
	})
}

// answerInOrder collects what a client sends without an answer, and answers it
// in an order of its own.
func answerInOrder(p *peer, commands int, order []int) {
	for commands > 0 {
		var held []command
		for range min(commands, len(order)) {
			c, ok := p.hear()
			if !ok {
				return
			}
			held = append(held, c)
		}
		commands -= len(held)
		for _, i := range order {
			if i >= len(held) {
				continue
			}
			c := held[i]
			p.say(`{"event": "E", "data": {"return": 1}}`)
			if i%3 == 0 {
				p.say(`{"id": %d, "error": {"class": "GenericError", "desc": %q}}`, c.ID, c.Execute)
			} else {
				p.say(`{"id": %d, "return": %q}`, c.ID, c.Execute)
			}
		}
	}
}

func TestALateReplyIsDropped(t *testing.T) {
	late := make(chan struct{})
	m := dial(t, func(p *peer) {
		p.greet()
		c, _ := p.hear()
		<-late
		p.say(`{"return": {"name": "late"}, "id": %d}`, c.ID)
		p.echo()
	})
	err := m.Execute(within(t, 20*time.Millisecond), "slow", nil, nil)
	expect(t, err, qemu.Unknown, context.DeadlineExceeded)
	close(late)
	var got reply
	if err := m.Execute(t.Context(), "next", nil, &got); err != nil || got.Name != "next" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTheDefaultTimeoutHolds(t *testing.T) {
	config := scripted(t, func(p *peer) { p.greet(); p.deadEnd() })
	config.Timeout = 100 * time.Millisecond
	m, err := qemu.Dial(within(t, patience), config)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	err = m.Execute(context.Background(), "x", nil, nil)
	expect(t, err, qemu.Unknown, context.DeadlineExceeded)
}

// TestWhatWaitsHereHasNoEffect fills QEMU's queue: what comes then waits on our
// side, and an out-of-band command overtakes all of it.
func TestWhatWaitsHereHasNoEffect(t *testing.T) {
	full := make(chan struct{})
	m := dial(t, func(p *peer) {
		p.greet()
		for range 7 {
			p.hear()
		}
		close(full)
		if c, ok := p.hear(); ok {
			p.say(`{"return": %q, "id": %d}`, c.ExecOOB, c.ID)
		}
		if c, ok := p.hear(); ok {
			p.say(`{"event": "UNWANTED", "data": {"command": %q}}`, c.Execute)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 7 {
		all.Go(func() { expect(t, m.Execute(ctx, "hangs", nil, nil), qemu.Unknown) })
	}
	<-full
	err := m.Execute(within(t, 20*time.Millisecond), "waits", nil, nil)
	expect(t, err, qemu.NotSent, context.DeadlineExceeded)
	var got string
	if err := m.ExecuteOOB(t.Context(), "yank", nil, &got); err != nil || got != "yank" {
		t.Errorf("got %q, %v", got, err)
	}
	cancel()
	all.Wait()
}

func TestWithoutOOB(t *testing.T) {
	m := dial(t, func(p *peer) {
		p.say(greetingWithoutOOB)
		if c, _ := p.hear(); c.Arguments != nil {
			t.Errorf("capabilities %s were asked for that are not offered", c.Arguments)
		}
		p.say(`{"return": {}, "id": 0}`)
		p.echo()
	})
	err := m.ExecuteOOB(t.Context(), "yank", nil, nil)
	expect(t, err, qemu.NotSent)
	if _, ok := errors.AsType[*qemu.UnsupportedError](err); !ok {
		t.Errorf("got %v", err)
	}
	if got := m.Greeting().Version.String(); got != "2.0.0" {
		t.Errorf("got version %s", got)
	}
}

func TestAPeerThatDoesNotRead(t *testing.T) {
	t.Run("not one byte: no effect, and the connection goes on", func(t *testing.T) {
		tried := make(chan struct{})
		m := dial(t, func(p *peer) { p.greet(); <-tried; p.echo() })
		for range 10 { // more than may wait at once: none of them keeps its seat
			err := m.Execute(within(t, 10*time.Millisecond), "x", nil, nil)
			expect(t, err, qemu.NotSent, context.DeadlineExceeded)
		}
		close(tried)
		if err := m.Execute(t.Context(), "y", nil, nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("half a command: the outcome is unknown, and nothing can follow", func(t *testing.T) {
		tried := make(chan struct{})
		m := dial(t, func(p *peer) {
			p.greet()
			_, _ = p.Read(make([]byte, 5))
			<-tried
		})
		defer close(tried)
		err := m.Execute(within(t, 50*time.Millisecond), "x", nil, nil)
		expect(t, err, qemu.Unknown, qemu.ErrLost)
		if err := mustEnd(t, m); !errors.Is(err, qemu.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHostileReplies(t *testing.T) {
	for _, row := range []struct {
		name, said string // with the id of the first command as %[1]d
		survives   bool
	}{
		{"an unknown id", `{"return": {}, "id": 4711}`, false},
		{"no id", `{"return": {}}`, false},
		{"an id that is a word", `{"return": {}, "id": "%[1]d"}`, false},
		{"the id twice", "{\"return\":{},\"id\":%[1]d}\n{\"return\":{},\"id\":%[1]d}", false},
		{"garbage", "\x00\xff\x17", false},
		{"a second greeting", greeting, false},
		{"a long line", strings.Repeat("x", 5000), false},
		{"an error without class", `{"error": {"desc": "no"}, "id": %[1]d}`, true},
		{"an error without id", `{"error": {"class": "GenericError", "desc": "JSON"}}`, true},
		{"an unexpected error", "{\"return\":{},\"id\":%[1]d}\n{\"error\":{\"desc\":\"JSON\"}}",
			false},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := scripted(t, func(p *peer) {
				p.greet()
				c, _ := p.hear()
				said := row.said
				if strings.Contains(said, "%") {
					said = fmt.Sprintf(said, c.ID)
				}
				p.say("%s", said)
				p.echo()
			})
			config.MaxLine = 1000
			m, err := qemu.Dial(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			err = m.Execute(t.Context(), "x", nil, nil)
			if row.survives {
				if !errors.Is(err, qemu.GenericError) {
					t.Errorf("got %v", err)
				}
				if err := m.Execute(t.Context(), "y", nil, nil); err != nil {
					t.Errorf("the connection did not survive: %v", err)
				}
				return
			}
			if err != nil { // an answer may have come before the violation
				expect(t, err, qemu.Unknown)
			}
			if why := mustEnd(t, m); !isProtocolError(why) {
				t.Errorf("got %v", why)
			}
			err = m.Execute(t.Context(), "y", nil, nil)
			expect(t, err, qemu.NotSent)
		})
	}
}

func TestAnErrorWithoutIDBelongsToNeitherOfTwo(t *testing.T) {
	m := dial(t, func(p *peer) {
		p.greet()
		p.hear()
		p.hear()
		p.say(`{"error": {"class": "GenericError", "desc": "JSON parse error"}}`)
		p.deadEnd()
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			err := m.Execute(context.Background(), "x", nil, nil)
			expect(t, err, qemu.Unknown)
			if !isProtocolError(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
}

func TestTheEndInTheMiddleOfAReply(t *testing.T) {
	m := dial(t, func(p *peer) {
		p.greet()
		c, _ := p.hear()
		_, _ = fmt.Fprintf(p, `{"return": {}, "id": %d}`, c.ID) // no end of line
	})
	expect(t, m.Execute(t.Context(), "x", nil, nil), qemu.Unknown, qemu.ErrLost)
	expect(t, m.Execute(t.Context(), "x", nil, nil), qemu.NotSent, qemu.ErrLost)
}

// TestFloodsOfEventsHoldNothingUp subscribes and does not listen.
func TestFloodsOfEventsHoldNothingUp(t *testing.T) {
	m := dial(t, func(p *peer) {
		p.greet()
		for c, ok := p.hear(); ok; c, ok = p.hear() {
			for i := range 3000 {
				p.say(`{"event": "E", "data": %d}`, i)
			}
			p.say(`{"return": {}, "id": %d}`, c.ID)
		}
	})
	s := m.Subscribe()
	if err := m.Execute(t.Context(), "x", nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err := s.Next(t.Context())
	gap, ok := errors.AsType[*qemu.Gap](err)
	if !ok || gap.Lost != 3000-1024 {
		t.Fatalf("got %v", err)
	}
	if e, err := s.Next(t.Context()); err != nil || string(e.Data) != "1976" {
		t.Errorf("got %s, %v", e.Data, err)
	}
}

func TestErrorsSayWhatMayBeDone(t *testing.T) {
	texts := []string{
		(&qemu.Error{Command: "a", Class: qemu.DeviceNotFound, Description: "d"}).Error(),
		(&qemu.Failure{Command: "a", Outcome: qemu.NotSent, Err: qemu.ErrLost}).Error(),
		(&qemu.Failure{Command: "a", Err: qemu.ErrLost}).Error(),
		(&qemu.Failure{Command: "a", Outcome: qemu.CarriedOut,
			Err: qemu.ErrLost}).Error(),
	}
	want := []string{
		"a: QEMU refused: d (DeviceNotFound)",
		"a: not sent, so it had no effect: the connection to QEMU was lost",
		"a: outcome unknown: the connection to QEMU was lost; observe before repeating it",
		"a: carried out, but its reply is of no use: the connection to QEMU was lost",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q", texts)
	}
}
