package qemu_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		name, line string
		refused    bool
	}{
		{"a return", `{"return": {}, "id": 1}`, false},
		{"a return of nothing", `{"return": null, "id": 1}`, false},
		{"an error", `{"error": {"class": "GenericError", "desc": "no"}, "id": 1}`, false},
		{"an error without class", `{"error": {"desc": "no"}, "id": 1}`, false},
		{"an event", `{"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}}`, false},
		{"an event without time", `{"event": "STOP"}`, false},
		{"keys that are new", `{"event": "STOP", "novelty": 1}`, false},
		{"nothing", `{}`, true},
		{"only an id", `{"id": 1}`, true},
		{"a return and an error", `{"return": {}, "error": {"desc": "no"}, "id": 1}`, true},
		{"a return and an event", `{"return": {}, "event": "STOP"}`, true},
		{"an error that is none", `{"error": null, "id": 1}`, true},
		{"an error that is a word", `{"error": "no", "id": 1}`, true},
		{"an event that is a number", `{"event": 5}`, true},
		{"a list", `[{"return": {}}]`, true},
		{"half an object", `{"return": {`, true},
		{"two objects in a line", `{"return": {}} {"return": {}}`, true},
		{"the first line of a pretty monitor", `{`, true},
		{"garbage", "\x00\xff\x17", true},
		{"deep nesting", `{"return":` + strings.Repeat("[", 100_000), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := qemu.Parse([]byte(row.line))
			_, protocol := errors.AsType[*qemu.ProtocolError](err)
			if protocol != row.refused || (err != nil) != row.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTime(t *testing.T) {
	for _, row := range []struct {
		name, line string
		want       time.Time
	}{
		{"as it is", `{"event":"E","timestamp":{"seconds":1795240361,"microseconds":727232}}`,
			time.Date(2026, 11, 21, 5, 52, 41, 727232000, time.UTC)},
		{"none is given", `{"event":"E"}`, time.Time{}},
		{"the host has no clock", `{"event":"E","timestamp":{"seconds":-1,"microseconds":-1}}`,
			time.Time{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := qemu.Parse([]byte(row.line))
			if err != nil || !m.Time().Equal(row.want) {
				t.Errorf("got %v, %v; want %v", m.Time(), err, row.want)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for _, row := range []struct {
		name, id string
		want     uint64
		ok       bool
	}{
		{"a number", `18446744073709551615`, math.MaxUint64, true},
		{"a number too large", `18446744073709551616`, 0, false},
		{"a word", `"1"`, 0, false},
		{"a fraction", `1.0`, 0, false},
		{"below zero", `-1`, 0, false},
		{"nothing", `null`, 0, false},
		{"an object", `{}`, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := qemu.Parse([]byte(`{"return":{},"id":` + row.id + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := m.Number(); ok != row.ok || ok && id != row.want {
				t.Errorf("got %d, %v", id, ok)
			}
		})
	}
}

func TestParseGreeting(t *testing.T) {
	const real = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, ` +
		`"package": "Debian 1:7.2"}, "capabilities": ["oob"]}}`
	got, err := qemu.ParseGreeting([]byte(real))
	want := qemu.Greeting{Version: qemu.Version{Major: 7, Minor: 2, Micro: 22},
		Capabilities: []string{"oob"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got.Version.String() != "7.2.22" {
		t.Errorf("got %s", got.Version)
	}
	for name, line := range map[string]string{
		"another protocol":           "SSH-2.0-OpenSSH_9.2",
		"a reply":                    `{"return": {}}`,
		"a greeting of nothing":      `{"QMP": null}`,
		"a greeting without version": `{"QMP": {}}`,
		"a version that is a word":   `{"QMP": {"version": "7.2"}}`,
		"capabilities that are none": `{"QMP": {"version": {}, "capabilities": 5}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := qemu.ParseGreeting([]byte(line))
			if _, ok := errors.AsType[*qemu.ProtocolError](err); !ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAViolationKeepsOnlyTheBeginningOfTheLine(t *testing.T) {
	line := []byte(strings.Repeat("x", 1000))
	err := qemu.Violation(line, "too long")
	line[0] = 'y'
	if len(err.Line) > 100 || err.Line[0] != 'x' {
		t.Errorf("got %q", err.Line)
	}
}

func TestEncode(t *testing.T) {
	testutil.Unraced(t)
	deep := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	for _, row := range []struct {
		name      string
		arguments any
		want      string
		refused   bool
	}{
		{"nothing", nil, "", false},
		{"a large number", map[string]uint64{"n": math.MaxUint64},
			`{"n":18446744073709551615}`, false},
		{"a raw message", json.RawMessage(`{"a": 1}`), `{"a":1}`, false},
		{"brackets in a string", json.RawMessage(`"` + strings.Repeat(`\"[`, 2000) + `"`),
			`"` + strings.Repeat(`\"[`, 2000) + `"`, false},
		{"as deep as QEMU reads", deep(1000), string(deep(1000)), false},
		{"deeper", deep(1100), "", true},
		{"a channel", make(chan int), "", true},
		{"half an object", json.RawMessage(`{"a":`), "", true},
		{"bytes that are no text", json.RawMessage("\"\xff\""), "", true},
		{"a rune that is no character", "\uffff", "", true},
		{"more than QEMU reads", strings.Repeat("x", 64<<20), "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := qemu.Encode(row.arguments)
			if (err != nil) != row.refused || string(got) != row.want {
				t.Errorf("got %.80s, %v", got, err)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for _, row := range []struct {
		name    string
		command qemu.Command
		want    string
	}{
		{"plain", qemu.Command{Name: "stop", ID: 7}, `{"execute":"stop","id":7}`},
		{"with arguments", qemu.Command{Name: "closefd",
			Arguments: json.RawMessage(`{"fdname":"a"}`), ID: 8},
			`{"execute":"closefd","arguments":{"fdname":"a"},"id":8}`},
		{"out of band", qemu.Command{Name: "yank", OutOfBand: true, ID: 9},
			`{"exec-oob":"yank","id":9}`},
		{"a name with a quote", qemu.Command{Name: `a","id":1,"b":"`, ID: 10},
			`{"execute":"a\",\"id\":1,\"b\":\"","id":10}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := row.command.Line()
			if err != nil || string(got) != row.want+"\n" {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	if _, err := (qemu.Command{Name: "a\uffff"}).Line(); err == nil {
		t.Error("a name that QEMU cannot read was accepted")
	}
}

// FuzzParse: whatever a line is, it is a message or a violation.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"return": {}, "id": 1}`))
	f.Add([]byte(`{"QMP": {"version": {"qemu": {"micro": 1}}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := qemu.Parse(line)
		if _, protocol := errors.AsType[*qemu.ProtocolError](err); (err != nil) != protocol {
			t.Errorf("got %v", err)
		}
		_, _ = m.Number()
		_ = m.Time()
		if _, err := qemu.ParseGreeting(line); err != nil {
			_ = err.Error()
		}
	})
}
