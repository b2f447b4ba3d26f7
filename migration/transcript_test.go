package migration_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/godwit-vm/godwit/migration"
)

// TestTranscripts runs the transcripts of testdata/step. A line holds facts, and
// the decision follows. The commands:
//
//	new   a migration in Pending with nothing wrong; with "compatible" KubeVirt's
//	      rules decide; then the facts of its input
//	look  time passes ("after=5s"), the facts of the input become true, and Step
//	      decides; the new state is kept, the actions are shown and not performed
//
// A fact is a word of [words], "!word" for its opposite, "phase=Word",
// "claim=...", "target=...", "attachment=...", "gate=...", "backoff=20s", "quota",
// "critical", "late", or "unanswered".
// -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/step", func(t *testing.T, path string) {
		var s situation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				s = newSituation(d.HasArg("compatible"))
				must(t, d, s.learn(d.Input))
				return ""
			case "look":
				return s.look(t, d)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// TestRules pins both tables: their order is the specification.
func TestRules(t *testing.T) {
	datadriven.RunTest(t, "testdata/rules.golden",
		func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for i, r := range migration.RuleTable(d.HasArg("compatible")) {
				row := fmt.Sprintf("%2d  %-25s  %-13s  %s", i+1, r.Name, r.Verdict, r.Note)
				fmt.Fprintln(&b, strings.TrimRight(row, " "))
			}
			return b.String()
		})
}

func newSituation(asKubeVirt bool) situation {
	if asKubeVirt {
		return healthy(&compatible)
	}
	return healthy(&byDefault)
}

// words are the facts that hold or do not.
var words = map[string]func(*situation) *bool{
	"vm-exists": vmExists, "vm-ended": vmFinal, "vm-deleting": vmDeleting, "vm-runs": vmRunning,
	"vm-stopping": vmStopping,
	"hotplug":     hotplug, "utility-volumes": utilityVolumes, "backup": backup,
	"cpu-change": cpuChange, "peer-failure": peerFailure, "named": targetNamed,
	"address": address, "began": began, "started": started, "completed": completed,
	"kept": reportedFailed, "aborting": aborting, "post-copy": postCopy, "arrived": hasArrived,
	"canceled": canceled, "replaced": isReplaced, "handed-off": handedOff, "impossible": impossible,
	"unresolved": unresolved, "lost": lost,
}

// kinds are the ways in which an instance may be.
var kinds = map[string]migration.Instance{
	"absent":        {},
	"starting":      {Exists: true, Pending: true},
	"unschedulable": {Exists: true, Pending: true, Unschedulable: true},
	"ready":         {Exists: true, Ready: true},
	"told":          {Exists: true, Ready: true, Told: true},
	"deleting":      {Exists: true, Ready: true, Deleting: true},
	"down":          {Exists: true, Down: true},
}

var refusals = map[string]migration.Refusal{"none": migration.NotRefused,
	"bad-request": migration.BadRequest, "conflict": migration.Conflict,
	"outdated": migration.Outdated}

var claimWords = map[string]migration.Ownership{"none": migration.Unclaimed,
	"self": migration.ClaimedBySelf, "other": migration.ClaimedByOther,
	"ended": migration.ClaimedByEnded}

func must(t *testing.T, d *datadriven.TestData, err error) {
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
}

// learn makes facts true.
func (s *situation) learn(facts string) error {
	for word := range strings.FieldsSeq(facts) {
		name, no := strings.CutPrefix(word, "!")
		if fact, ok := words[name]; ok {
			*fact(s) = !no
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		if !s.learnValue(name, value) {
			return fmt.Errorf("unknown fact %q; words: %v", word, slices.Sorted(maps.Keys(words)))
		}
	}
	return nil
}

func (s *situation) learnValue(name, value string) (ok bool) {
	switch name {
	case "phase":
		s.state.Deadline = time.Time{} // the first look sets it
		return s.state.Phase.UnmarshalText([]byte(value)) == nil
	case "claim":
		s.seen.Ownership, ok = claimWords[value]
	case "target":
		s.seen.Target, ok = kinds[value]
		s.seen.Target.Created = s.seen.Now
	case "attachment":
		s.seen.Attachment, ok = kinds[value]
	case "gate":
		for g := migration.Open; g <= migration.NoHostFits && !ok; g++ {
			s.seen.Gate, ok = g, strings.HasPrefix(g.String(), value)
		}
	case "backoff":
		wait, err := time.ParseDuration(value)
		s.seen.Backoff, ok = s.seen.Now.Add(wait), err == nil
	case "quota":
		s.seen.TargetError, ok = migration.QuotaExceeded, value == ""
	case "refusal":
		s.seen.Refusal, ok = refusals[value]
	case "late":
		s.state.Deadline, ok = s.seen.Now.Add(-time.Second), value == ""
	case "unanswered":
		abort.turn(s, 2)
		ok = value == ""
	case "critical":
		s.spec.Priority, ok = migration.SystemCritical, value == ""
	}
	return ok
}

// look lets time pass, decides, keeps the new state, and shows the decision.
func (s *situation) look(t *testing.T, d *datadriven.TestData) string {
	for _, arg := range d.CmdArgs {
		wait, err := time.ParseDuration(strings.Join(arg.Vals, ""))
		if arg.Key != "after" || err != nil {
			d.Fatalf(t, "look takes after=DURATION, not %s", arg)
		}
		s.seen.Now = s.seen.Now.Add(wait)
	}
	must(t, d, s.learn(d.Input))
	decision := s.step()
	if broken := breach(s, &decision); broken != "" {
		d.Fatalf(t, "broken: %s", broken)
	}
	before := s.state
	s.state = decision.State
	return show(before, &decision)
}

// show lists what a decision came to.
func show(before migration.State, d *migration.Decision) string {
	var b strings.Builder
	phase := d.State.Phase.String()
	if before.Phase != d.State.Phase {
		phase = before.Phase.String() + " → " + phase
	}
	fmt.Fprintln(&b, strings.TrimSpace(phase))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %s: %s\n", name, text)
		}
	}
	line("rule", d.Rule)
	if d.State.Because != d.Rule {
		line("because", d.State.Because)
	}
	line("conditions", strings.Join(d.State.Conditions.Words(), " "))
	var actions, notes, wakes []string
	for a := range d.Actions.All() {
		actions = append(actions, a.String())
	}
	for _, n := range d.Notes() {
		notes = append(notes, string(n))
	}
	for _, w := range d.Requeues() {
		wakes = append(wakes, fmt.Sprintf("%s at %d", w.After, w.Priority))
	}
	line("actions", strings.Join(actions, " "))
	line("notes", strings.Join(notes, " "))
	line("wakes", strings.Join(wakes, ", "))
	if d.State.Released {
		line("released", "nothing is left to be decided")
	}
	if d.Refused {
		line("refused", "another migration of the VM is under way")
	}
	if d.Stuck {
		line("stuck", "an action cannot succeed")
	}
	return b.String()
}
