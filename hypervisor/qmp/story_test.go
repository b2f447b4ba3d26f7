package qmp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// TestStories runs the stories of testdata/story, in which
//
//	see   a line is a look: QEMU's run state, then its migration's status if it is
//	      looked at, then "disk=status" for the copy of each local disk; or "dead"; or
//	      "silent" for a QEMU that has not answered since we began.
//	      The answer is what the domain is, how its job stands, and its next step.
//
// A word of a note is one of [situation.flags], "!word" for its opposite, "doing=Word",
// "role=word", "stage=word", "last=Word", "mode=Word" or "by=5s" from now.
func TestStories(t *testing.T) {
	backendtest.Stories(t, func() backendtest.Story {
		return &situation{d: &qmp.DomainRecord{Rest: hypervisor.Shutoff}}
	})
}

// See answers a look.
func (s *situation) See(cmd string, line []string) (string, error) {
	if cmd != "see" || len(line) == 0 {
		return "", fmt.Errorf("unknown command %q, or nothing is seen", cmd)
	}
	s.l = seen(line)
	return s.tell() + "\n", nil
}

// tell is the answer to a look.
func (s situation) tell() string {
	job := "no job"
	if s.j != nil {
		job = fmt.Sprintf("%v (%v)", s.status(), qmp.Mode(s.j, s.l))
	}
	due := s.due()
	if s.l.Alive && !s.l.Heard() {
		due = qmp.DueUnanswered(s.d, s.j, now)
	}
	return fmt.Sprintf("%-12v %-22s → %v", s.state(), job, due)
}

// flags are the words that are noted of a domain and of its job.
func (s situation) flags() map[string]*bool {
	f := map[string]*bool{"own": &s.d.Own, "ran": &s.d.Ran, "ending": &s.d.Ending,
		"paused": &s.d.Paused, "unresolved": &s.d.Unresolved}
	if j := s.j; j != nil {
		for word, flag := range map[string]*bool{"cold": &j.Cold, "hold": &j.Hold,
			"stopped": &j.Stopped, "resting": &j.Resting, "guest-paused": &j.GuestPaused,
			"post-copied": &j.PostCopied, "released": &j.Released, "cancelled": &j.Cancelled,
			"acknowledged": &j.Acknowledged, "hold-switch-over": &j.Options.HoldSwitchOver} {
			f[word] = flag
		}
	}
	return f
}

// Note takes down one word.
func (s *situation) Note(word string) error {
	values := map[string]func(string) error{
		"role": func(value string) error {
			s.j = &qmp.Job{Job: qmp.BaseJob{Role: qmp.Role(value)}}
			return nil
		},
		"doing": backendtest.Word(&s.d.Doing), "rest": backendtest.Word(&s.d.Rest),
		"by": backendtest.From(now, &s.d.By)}
	if s.j != nil {
		values["stage"] = func(value string) error { s.j.Stage = qmp.Stage(value); return nil }
		values["last"] = backendtest.Word(&s.j.Last.Status)
		values["mode"] = backendtest.Word(&s.j.Last.Mode)
	}
	return backendtest.Note(word, s.flags(), values)
}

// seen is the look that a line describes.
func seen(words []string) qmp.Look {
	switch words[0] {
	case "dead":
		return qmp.Look{}
	case "silent":
		return qmp.Look{Alive: true}
	}
	l := qmp.Look{Alive: true, Run: qemu.RunState(words[0])}
	for _, word := range words[1:] {
		if disk, status, copied := strings.Cut(word, "="); copied {
			m := qemu.Job{ID: disk, Status: qemu.JobStatus(status)}
			if status == "error" {
				m.Status, m.Error = qemu.JobConcluded, "no space left"
			}
			l.Mirrors = append(l.Mirrors, m)
			continue
		}
		l.Migration = qemu.MigrationStatus(word)
	}
	return l
}
