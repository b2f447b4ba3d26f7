package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Policy decides about a running transfer, one look after the other: [Converge] is the
// default. It is a pure function: it keeps what it wants to remember in the State, keeps
// the duties that the package asks of a caller in mind (a verdict may be refused, and is
// then asked for again or not), and never asks for what the Config does not allow.
//
// A policy of one's own takes part wherever Converge does. It may use the fields of State
// as it likes, and State.Own besides.
type Policy func(Config, State, hypervisor.Progress, time.Time) (State, Decision)

// By returns Converge by one method, whatever the configuration says.
func By(m Method) Policy {
	return func(c Config, s State, p hypervisor.Progress, now time.Time) (State, Decision) {
		c.Method = m
		return Converge(c, s, p, now)
	}
}
