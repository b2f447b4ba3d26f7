package hypervisor

import (
	"fmt"
	"strings"
)

// A Reason is why something was refused: which check, what it needed, what there
// was. All of it is text for people; nothing is decided on it.
type Reason struct {
	Check string `json:"check"`
	Need  string `json:"need"`
	Have  string `json:"have"`
}

// String says it in one line: "memory needs 24GiB has 16GiB".
func (r Reason) String() string {
	return fmt.Sprintf("%s needs %s has %s", r.Check, r.Need, r.Have)
}

// A Refusal is the error of an operation that was refused before it began: with every
// reason, and never only the first.
type Refusal struct{ Reasons []Reason }

// Error lists the reasons.
func (r *Refusal) Error() string {
	texts := make([]string, len(r.Reasons))
	for i, why := range r.Reasons {
		texts[i] = why.String()
	}
	return strings.Join(texts, "; ")
}
