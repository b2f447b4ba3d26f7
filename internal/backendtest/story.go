package backendtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// A Story is what a host notes and sees, and what it then says and does.
type Story interface {
	// Note takes down one word.
	Note(word string) error
	// See answers a look, which a line describes.
	See(cmd string, line []string) (string, error)
}

// Stories runs the stories of testdata/story. The commands:
//
//	host  a story begins: nothing is noted but the words of the input
//	note  the words of the input are noted, too
//
// Any other is for [Story.See], line by line. -rewrite writes the answers anew.
func Stories(t *testing.T, begin func() Story) {
	datadriven.Walk(t, "testdata/story", func(t *testing.T, path string) {
		var s Story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "host":
				s = begin()
				fallthrough
			case "note":
				for _, word := range strings.Fields(d.Input) {
					if err := s.Note(word); err != nil {
						d.Fatalf(t, "%v", err)
					}
				}
				return ""
			}
			var b strings.Builder
			for line := range strings.Lines(d.Input) {
				answer, err := s.See(d.Cmd, strings.Fields(line))
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				b.WriteString(answer)
			}
			return b.String()
		})
	})
}

// Note takes down one word: one of flags, "!word" for its opposite, or "key=value" for one of values.
func Note(word string, flags map[string]*bool, values map[string]func(string) error) error {
	key, value, valued := strings.Cut(word, "=")
	if valued {
		if set := values[key]; set != nil {
			return set(value)
		}
		return fmt.Errorf("%q is no word of a note", word)
	}
	name, no := strings.CutPrefix(word, "!")
	flag := flags[name]
	if flag == nil {
		return fmt.Errorf("%q is no word of a note, or there is no job yet", word)
	}
	*flag = !no
	return nil
}

// Word sets a word of a type that reads itself.
func Word(to interface{ UnmarshalText([]byte) error }) func(string) error {
	return func(value string) error { return to.UnmarshalText([]byte(value)) }
}

// From sets a time so long after another.
func From(now time.Time, to *time.Time) func(string) error {
	return func(value string) error {
		in, err := time.ParseDuration(value)
		*to = now.Add(in)
		return err
	}
}
