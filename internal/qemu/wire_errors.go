package qemu

import "fmt"

// A ProtocolError is something that no QMP server says. It ends the connection.
type ProtocolError struct {
	What string // what is wrong with it
	Line []byte // how the offending line begins, if there is one
}

// Error says what is wrong and shows the beginning of the line.
func (e *ProtocolError) Error() string {
	if len(e.Line) == 0 {
		return "the peer does not speak QMP: " + e.What
	}
	return fmt.Sprintf("the peer does not speak QMP: %s: %q", e.What, e.Line)
}

// maxExcerpt is how much of an offending line an error keeps, in bytes.
const maxExcerpt = 80

// Violation returns a ProtocolError about a line, of which it keeps the
// beginning.
func Violation(line []byte, what string) *ProtocolError {
	excerpt := append([]byte(nil), line[:min(len(line), maxExcerpt)]...)
	return &ProtocolError{What: what, Line: excerpt}
}
