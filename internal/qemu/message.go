package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Message is one line from the peer: a greeting, an event or a reply.
type Message struct {
	QMP       json.RawMessage `json:"QMP"`
	Return    json.RawMessage `json:"return"`
	Error     *Refusal        `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp *Timestamp      `json:"timestamp"`
	ID        json.RawMessage `json:"id"`
}

// A Refusal is the error of a reply.
type Refusal struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

// A Timestamp is when an event happened, by the clock of QEMU's host.
type Timestamp struct {
	Seconds      int64 `json:"seconds"` // -1 if the host has no clock
	Microseconds int64 `json:"microseconds"`
}

// Parse reads a line that is an event or a reply, and exactly one of the two.
func Parse(line []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return m, Violation(line, err.Error())
	}
	said := 0
	for _, part := range []bool{m.Return != nil, m.Error != nil, m.Event != ""} {
		if part {
			said++
		}
	}
	if said != 1 {
		return m, Violation(line, "a line is either a return, or an error, or an event")
	}
	return m, nil
}

// Time returns when the event that m is happened; zero if it does not say.
func (m Message) Time() time.Time {
	t := m.Timestamp
	if t == nil || t.Seconds < 0 {
		return time.Time{}
	}
	return time.Unix(t.Seconds, t.Microseconds*int64(time.Microsecond)).UTC()
}

// Number returns the number of the command that m answers; ok is false if it
// names none that Command could have written.
func (m Message) Number() (id uint64, ok bool) {
	id, err := strconv.ParseUint(string(m.ID), 10, 64)
	return id, err == nil
}

// A Greeting is what QEMU says of itself when a connection begins.
type Greeting struct {
	Version      Version
	Capabilities []string // of the protocol: "oob"
}

// A Version is a version of QEMU.
type Version struct{ Major, Minor, Micro int }

// String returns v as QEMU says it: "7.2.22".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro) }

// ParseGreeting reads the first line of a connection.
func ParseGreeting(line []byte) (Greeting, error) {
	var m Message
	var q struct {
		Version      *struct{ QEMU Version }
		Capabilities []string
	}
	err := json.Unmarshal(line, &m)
	if err == nil && m.QMP == nil {
		err = errors.New("the first line is no greeting")
	}
	if err == nil {
		err = json.Unmarshal(m.QMP, &q)
	}
	if err == nil && q.Version == nil {
		err = errors.New("the greeting has no version")
	}
	if err != nil {
		return Greeting{}, Violation(line, err.Error())
	}
	return Greeting{Version: q.Version.QEMU, Capabilities: q.Capabilities}, nil
}
