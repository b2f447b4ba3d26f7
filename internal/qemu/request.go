package qemu

import (
	"encoding/json"
	"os"
)

// A request is a command on its way to the peer.
type request struct {
	command   string
	arguments json.RawMessage // nil: none
	outOfBand bool
	file      *os.File // passed along, if not nil
}

func newRequest(command string, arguments any) (request, error) {
	r := request{command: command}
	encoded, err := Encode(arguments)
	if err != nil {
		return r, r.failed(NotSent, err)
	}
	r.arguments = encoded
	return r, nil
}

// encoded returns what is written to the peer, in one piece.
func (r request) encoded(id uint64) ([]byte, error) {
	return Command{Name: r.command, Arguments: r.arguments, OutOfBand: r.outOfBand,
		ID: id}.Line()
}

func (r request) failed(o Outcome, err error) error {
	return &Failure{Command: r.command, Outcome: o, Err: err}
}

// result returns what m, the reply to r, contains.
func (r request) result(m Message) (json.RawMessage, error) {
	if m.Error == nil {
		return m.Return, nil
	}
	e := &Error{Command: r.command, Class: Class(m.Error.Class), Description: m.Error.Desc}
	if e.Class == "" {
		e.Class = GenericError
	}
	return nil, e
}

// decode stores what a command returned in the caller's variable.
func (r request) decode(returned json.RawMessage, reply any) error {
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(returned, reply); err != nil {
		return r.failed(CarriedOut, err)
	}
	return nil
}

// eventIn returns the event that m is.
func eventIn(m Message) Event {
	return Event{Name: m.Event, Data: m.Data, Time: m.Time()}
}
