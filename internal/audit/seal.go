package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	stdhash "hash"
	"io"
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
)

// The hashes of an audit log find changes by accident. A user who may write to the file can make them anew.
// A seal is what the owner of a key says of lines, and needs the key to be made. Seals are kept where the
// writer of the log cannot write: then also what was cut off at the end is found.

// A Seal says what lines of a log were, under a key.
type Seal struct {
	From      uint64    `json:"from"` // the first number
	To        uint64    `json:"to"`   // and the last
	Digest    string    `json:"digest"`
	At        time.Time `json:"at"`
	Prev      string    `json:"prev"` // the signature of the seal before; "": there is none
	Signature string    `json:"signature"`
}

// message is what is signed.
func (s *Seal) message() []byte {
	return fmt.Appendf(nil, "godwit audit seal 1\n%d\n%d\n%s\n%s\n%s\n", s.From, s.To, s.Digest,
		s.At.UTC().Format(time.RFC3339Nano), s.Prev)
}

func (s *Seal) sign(key ed25519.PrivateKey) {
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.message()))
}

func (s *Seal) signed(key ed25519.PublicKey) bool {
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	return err == nil && ed25519.Verify(key, s.message(), signature)
}

// ReadSeals reads seals, one a line. An error names the line.
func ReadSeals(r io.Reader) (all []Seal, err error) {
	err = scan(r, func(row int, text []byte) error {
		var s Seal
		if err := json.Unmarshal(text, &s); err != nil || s.From == 0 || s.To < s.From {
			return fmt.Errorf("line %d: it is no seal of an audit log", row)
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// Sealed is what CheckSeals found.
type Sealed struct {
	First    uint64    `json:"first"`    // the first number that a seal vouches for
	Last     uint64    `json:"last"`     // and the last
	Unsealed int       `json:"unsealed"` // lines after it
	Findings []Finding `json:"findings,omitempty"`
}

// A sealing goes through the lines of a log, seal by seal.
type sealing struct {
	seals []Seal // that are to come
	sum   stdhash.Hash
	first uint64 // the first line that was added to sum; 0: none was
	last  uint64 // the last line that was seen
	found Sealed
	row   int
	since uint64 // lines before it may be missing
	whole int    // lines of the present file
	torn  int    // and those that are no lines of a log
	// ends is told where each file ends: what was added to sum since the last seal.
	ends func(first, last uint64, digest string)
}

// CheckSeals says what of a log is not as it was sealed, or is not there. The files are its parts, the
// oldest first. Lines before number since may be missing, as after a rotation; 0: none may. A line is
// whatever the file has there, torn ones too.
func CheckSeals(files []io.Reader, seals []Seal, key ed25519.PublicKey, since uint64) (Sealed, error) {
	s := sealing{sum: sha256.New()}
	return s.check(files, seals, key, since)
}

func (s *sealing) check(files []io.Reader, seals []Seal, key ed25519.PublicKey, since uint64) (Sealed, error) {
	s.since = since
	prev, next := "", uint64(0)
	for i := range seals {
		seal := &seals[i]
		switch {
		case !seal.signed(key):
			s.find("seal %d, of the lines %d to %d, was not made with this key", i+1, seal.From, seal.To)
		case seal.Prev != prev || next > 0 && seal.From != next:
			s.find("seal %d, of the lines %d to %d, does not follow the one before", i+1, seal.From, seal.To)
		}
		prev, next = seal.Signature, seal.To+1
		if seal.From >= since {
			s.seals = append(s.seals, *seal)
		}
	}
	if len(s.seals) > 0 {
		s.found.First, s.found.Last = s.seals[0].From, s.seals[len(s.seals)-1].To
	}
	for i, f := range files {
		s.whole, s.torn = 0, 0
		if err := scan(f, s.line); err != nil {
			return s.found, err
		}
		if len(seals) == 0 && s.ends != nil && s.foreign(i > 0) {
			return s.found, &ForeignError{i, s.torn}
		}
		s.end()
	}
	for _, seal := range s.seals {
		s.find("the lines %d to %d are sealed, and not all here", max(seal.From, s.last+1), seal.To)
	}
	return s.found, nil
}

// foreign reports whether the present file is no audit log. One that is empty is a new one, and one that follows
// another may begin with a line that a crash has torn.
func (s *sealing) foreign(follows bool) bool {
	return s.whole == 0 && s.torn > 0 && !(follows && s.torn == 1)
}

// A ForeignError is a file that is not an audit log.
type ForeignError struct {
	File  int // which of the files it is, from 0
	Lines int
}

// Error says why.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("not an audit log: %s, and none has a number", humanize.Count(e.Lines, "line"))
}

func (s *sealing) find(format string, args ...any) {
	s.found.Findings = append(s.found.Findings, Finding{s.row, fmt.Sprintf(format, args...)})
}

// line takes the next line of a file.
func (s *sealing) line(_ int, text []byte) error {
	s.row++
	s.sum.Write(text)
	s.sum.Write([]byte("\n"))
	l, err := parse(text)
	if err != nil { // torn: it belongs to the next whole one
		s.torn++
		return nil
	}
	s.whole++
	if s.last = l.Seq; s.first == 0 {
		s.first = l.Seq
	}
	for len(s.seals) > 0 && l.Seq > s.seals[0].To {
		s.find("the lines %d to %d are sealed, and not all here", s.seals[0].From, s.seals[0].To)
		s.seals = s.seals[1:]
	}
	switch {
	case len(s.seals) == 0 && l.Seq > s.found.Last:
		s.found.Unsealed++
	case len(s.seals) == 0:
		s.find("number %d is there again, after the last line that is sealed", l.Seq)
	case s.seals[0].From == s.found.First && l.Seq < min(s.since, s.found.First):
		s.restart() // it may be missing
	case len(s.seals) > 0 && l.Seq == s.seals[0].To:
		if s.first != s.seals[0].From || s.digest() != s.seals[0].Digest {
			s.find("the lines %d to %d are not what was sealed on %s", s.seals[0].From, s.seals[0].To,
				s.seals[0].At.UTC().Format(time.RFC3339))
		}
		s.seals = s.seals[1:]
		s.restart()
	}
	return nil
}

// end takes in that a file ends. A seal is of lines of one file: a torn line at an end is none's.
func (s *sealing) end() {
	if s.first > 0 && len(s.seals) > 0 {
		s.find("the lines %d to %d at the end of a file have no seal, and later ones have", s.first, s.last)
	}
	if s.ends != nil && s.first > 0 {
		s.ends(s.first, s.last, s.digest())
	}
	s.restart()
}

func (s *sealing) restart() {
	s.sum.Reset()
	s.first = 0
}

func (s *sealing) digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// An UnsoundError is a log that is not sealed, because it is not what was sealed before.
type UnsoundError struct{ Findings []Finding }

// Error says what is wrong first.
func (e *UnsoundError) Error() string {
	return fmt.Sprintf("it is not sealed: %s: find out who has changed it", e.Findings[0].What)
}

// MakeSeals returns the seals of the lines of a log that have none: one for each file that has some. It
// fails with an *[UnsoundError] when what was sealed before has changed, or is not here. Nothing was sealed before of
// what is not an audit log: that is a *[ForeignError].
func MakeSeals(files []io.Reader, before []Seal, key ed25519.PrivateKey, since uint64, at time.Time) ([]Seal,
	error) {
	var made []Seal
	prev, next := "", uint64(0)
	if n := len(before); n > 0 {
		prev, next = before[n-1].Signature, before[n-1].To+1
	}
	s := sealing{sum: sha256.New()}
	s.ends = func(first, last uint64, digest string) {
		if last < next {
			return
		}
		if next > 0 && first != next {
			s.find("the lines %d to %d have no seal, and are not here: name the files before as well", next,
				first-1)
		}
		seal := Seal{From: first, To: last, Digest: digest, At: at.UTC(), Prev: prev}
		seal.sign(key)
		made, prev, next = append(made, seal), seal.Signature, last+1
	}
	found, err := s.check(files, before, key.Public().(ed25519.PublicKey), since)
	if err == nil && len(found.Findings) > 0 {
		err = &UnsoundError{found.Findings}
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}
