package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// TestStories runs the stories of testdata/story, in which
//
//	see     a line is a look: libvirt's word, then "sends", "aborted", "stood",
//	        "moving", "early", "rebooted", "transient", "call=Word" or "mark=job". The answer is
//	        what the domain is, how its job stands, and its next step.
//	settle  a line is a look; steps are done until none is left. What was done
//	        stays noted.
//
// A word of a note is one of [situation.flags], "!word" for its opposite, "role=word",
// "stage=word", "last=Word", "doing=Word" or "by=5s" from now.
func TestStories(t *testing.T) {
	backendtest.Stories(t, func() backendtest.Story {
		return &situation{d: &libvirt.DomainRecord{}}
	})
}

// See answers a look.
func (s *situation) See(cmd string, line []string) (string, error) {
	if cmd != "see" && cmd != "settle" {
		return "", fmt.Errorf("unknown command %q", cmd)
	}
	if err := s.see(line); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintln(&b, s.tell())
	if cmd == "settle" {
		*s = s.tellSteps(&b)
	}
	return b.String(), nil
}

// tell is the answer to a look.
func (s situation) tell() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%v (%v)", s.status(), libvirt.Mode(s.j, s.l))
	}
	return fmt.Sprintf("%-12v %-20s → %v", s.state(), job, s.due())
}

// tellSteps performs all next steps, and tells each.
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

// Note takes down one word.
func (s *situation) Note(word string) error {
	values := map[string]func(string) error{
		"role": func(value string) error {
			s.j = &libvirt.Job{Job: libvirt.BaseJob{ID: "job", Role: libvirt.Role(value)}}
			return nil
		},
		"doing": backendtest.Word(&s.d.Doing), "by": backendtest.From(now, &s.d.By)}
	if s.j != nil {
		values["stage"] = func(value string) error { s.j.Stage = libvirt.Stage(value); return nil }
		values["last"] = backendtest.Word(&s.j.Last.Status)
	}
	return backendtest.Note(word, s.flags(), values)
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
