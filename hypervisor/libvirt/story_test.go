package libvirt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// TestStories runs the stories of testdata/story: what a host notes and sees, and
// what it then says and does. The commands:
//
//	host    a story begins: nothing is noted but the words of the input
//	note    the words of the input are noted, too
//	see     a line is a look: libvirt's word, then "sends", "aborted", "stood",
//	        "moving", "early", "rebooted", "transient", "call=Word" or "mark=job". The answer is
//	        what the domain is, how its job stands, and what is due.
//	settle  a line is a look; what is due is done until nothing is. What was done
//	        stays noted.
//
// A word of a note is one of [flags], "!word" for its opposite, "role=word",
// "stage=word", "last=Word", "doing=Word" or "by=5s" from now. -rewrite writes the
// answers anew.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/story", func(t *testing.T, path string) {
		var s situation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "host":
				s = situation{d: &libvirt.DomainRecord{}}
				fallthrough
			case "note":
				for _, word := range strings.Fields(d.Input) {
					if err := s.note(word); err != nil {
						d.Fatalf(t, "%v", err)
					}
				}
				return ""
			case "see", "settle":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					if err := s.see(strings.Fields(line)); err != nil {
						d.Fatalf(t, "%v", err)
					}
					fmt.Fprintln(&b, s.tell())
					if d.Cmd == "settle" {
						s = s.tellSteps(&b)
					}
				}
				return b.String()
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// tell is the answer to a look.
func (s situation) tell() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%v (%v)", s.status(), libvirt.Mode(s.j, s.l))
	}
	return fmt.Sprintf("%-12v %-20s → %v", s.state(), job, s.due())
}

// tellSteps does what is due, and tells each step.
func (s situation) tellSteps(b *strings.Builder) situation {
	for _, done := range s.steps()[1:] {
		s = done.situation
		if s.d == nil {
			fmt.Fprintf(b, "  %v: forgotten\n", done.step)
			return s
		}
		fmt.Fprintf(b, "  %v: %s\n", done.step, s.tell())
	}
	return s
}

// flags are the words that are noted of a domain and of its job.
func (s situation) flags() map[string]*bool {
	f := map[string]*bool{"ran": &s.d.Ran, "has-crashed": &s.d.Crashed,
		"unresolved": &s.d.Unresolved}
	if j := s.j; j != nil {
		for word, flag := range map[string]*bool{"cold": &j.Cold, "hold": &j.Hold,
			"seen": &j.Seen, "stopped": &j.Stopped, "resting": &j.Resting,
			"guest-paused": &j.GuestPaused, "post-copied": &j.PostCopied,
			"cancelled": &j.Cancelled, "ended": &j.Aborted, "again": &j.Again} {
			f[word] = flag
		}
	}
	return f
}

// note takes down one word.
func (s *situation) note(word string) error {
	key, value, valued := strings.Cut(word, "=")
	if name, no := strings.CutPrefix(word, "!"); !valued {
		flag := s.flags()[name]
		if flag == nil {
			return fmt.Errorf("%q is no word of a note, or there is no job yet", word)
		}
		*flag = !no
		return nil
	}
	switch key {
	case "role":
		s.j = &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.Role(value)}}
		return nil
	case "stage":
		s.j.Stage = libvirt.Stage(value)
		return nil
	case "last":
		return s.j.Last.Status.UnmarshalText([]byte(value))
	case "doing":
		return s.d.Doing.UnmarshalText([]byte(value))
	case "by":
		in, err := time.ParseDuration(value)
		s.d.By = now.Add(in)
		return err
	}
	return fmt.Errorf("%q is no word of a note", word)
}

// see takes the look that a line describes.
func (s *situation) see(line []string) error {
	if len(line) == 0 {
		return fmt.Errorf("nothing is seen")
	}
	s.l = libvirt.Look{Run: libvirt.ShuttingDown + 1, Defined: line[0] != "Gone"}
	for run := libvirt.Gone; run <= libvirt.ShuttingDown; run++ {
		if run.String() == line[0] {
			s.l.Run = run
		}
	}
	if s.l.Run > libvirt.ShuttingDown {
		return fmt.Errorf("%q is no word of libvirt's", line[0])
	}
	seen := map[string]*bool{"sends": &s.l.Sends, "aborted": &s.l.Aborted, "stood": &s.l.Stood,
		"moving": &s.l.Moving, "early": &s.l.Early, "rebooted": &s.l.Rebooted}
	calls := map[string]libvirt.LibvirtCall{"Calling": libvirt.Calling, "Succeeded": libvirt.Succeeded,
		"Refused": libvirt.Refused, "Broken": libvirt.Broken}
	for _, word := range line[1:] {
		name, isCall := strings.CutPrefix(word, "call=")
		call, known := calls[name]
		switch {
		case isCall && known:
			s.l.Call = call
		case word == "mark=job":
			s.l.Job = "job"
		case word == "transient":
			s.l.Defined = false
		case seen[word] != nil:
			*seen[word] = true
		default:
			return fmt.Errorf("%q is nothing that is seen", word)
		}
	}
	return nil
}
