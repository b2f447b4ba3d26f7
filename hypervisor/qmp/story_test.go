package qmp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/monitor"
)

// TestStories runs the stories of testdata/story: what a host notes and sees, and
// what it then says and does. The commands:
//
//	host  a story begins: nothing is noted but the words of the input
//	note  the words of the input are noted, too
//	see   a line is a look: QEMU's run state, then its migration's status if it is
//	      looked at, then "disk=status" for the copy of each local disk; or "dead"; or
//	      "silent" for a QEMU that has not answered since we began.
//	      The answer is what the domain is, how its job stands, and what is due.
//
// A word of a note is one of [flags], "!word" for its opposite, "doing=Word",
// "role=word", "stage=word", "last=Word", "mode=Word" or "by=5s" from now.
// -rewrite writes the answers anew.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/story", func(t *testing.T, path string) {
		var s situation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "host":
				s = situation{d: &qmp.DomainRecord{Rest: hypervisor.Shutoff}}
				fallthrough
			case "note":
				for _, word := range strings.Fields(d.Input) {
					if err := s.note(word); err != nil {
						d.Fatalf(t, "%v", err)
					}
				}
				return ""
			case "see":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					s.l = seen(t, d, strings.Fields(line))
					fmt.Fprintln(&b, s.tell())
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
		job = fmt.Sprintf("%v (%v)", s.status(), qmp.Mode(s.j, s.l))
	}
	due := s.due()
	if s.l.Alive && !s.l.Heard() {
		due = qmp.DueInSilence(s.d, s.j, now)
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
		s.j = &qmp.Job{Job: qmp.BaseJob{Role: qmp.Role(value)}}
		return nil
	case "stage":
		s.j.Stage = qmp.Stage(value)
		return nil
	case "last":
		return s.j.Last.Status.UnmarshalText([]byte(value))
	case "mode":
		return s.j.Last.Mode.UnmarshalText([]byte(value))
	case "doing":
		return s.d.Doing.UnmarshalText([]byte(value))
	case "rest":
		return s.d.Rest.UnmarshalText([]byte(value))
	case "by":
		in, err := time.ParseDuration(value)
		s.d.By = now.Add(in)
		return err
	}
	return fmt.Errorf("%q is no word of a note", word)
}

// seen is the look that a line describes.
func seen(t *testing.T, d *datadriven.TestData, words []string) qmp.Look {
	t.Helper()
	if len(words) == 0 {
		d.Fatalf(t, "nothing is seen")
	}
	switch words[0] {
	case "dead":
		return qmp.Look{}
	case "silent":
		return qmp.Look{Alive: true}
	}
	l := qmp.Look{Alive: true, Run: monitor.RunState(words[0])}
	for _, word := range words[1:] {
		if disk, status, copied := strings.Cut(word, "="); copied {
			m := monitor.Job{ID: disk, Status: monitor.JobStatus(status)}
			if status == "error" {
				m.Status, m.Error = monitor.JobConcluded, "no space left"
			}
			l.Mirrors = append(l.Mirrors, m)
			continue
		}
		l.Migration = monitor.MigrationStatus(word)
	}
	return l
}
