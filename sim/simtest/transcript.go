package simtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// line says in a sentence what went wrong, and when.
func (f *failure) line() string { return fmt.Sprintf("%s, at %s", f.Name, sim.Clock(f.At)) }

// Replay plays one transcript, or any scenario, and fails the test when something goes wrong.
// Give it the options of the [Check] that wrote it.
func Replay(t testing.TB, file string, options ...Option) {
	t.Helper()
	gather(t, options).replay(t, file)
}

// replayAll plays the transcripts of a test, and reports whether nothing went wrong.
func replayAll(t testing.TB, s *settings) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.folder(t.Name()), "*.yaml"))
	slices.Sort(files)
	for _, file := range files {
		if !s.replay(t, file) {
			return false
		}
	}
	return true
}

func (s *settings) replay(t testing.TB, file string) bool {
	t.Helper()
	parsed, err := config.ReadFile(file)
	if err != nil {
		t.Errorf("simtest: this transcript cannot be read: %v", err)
		return false
	}
	stage := s.stage()
	var f *failure
	hung := s.attended(stage, func() { f, err = stage.scene(parsed) })
	if hung != nil {
		f = hung
	}
	switch {
	case err != nil:
		t.Errorf("simtest: the world of %s cannot be built: %v", file, err)
	case f != nil:
		t.Errorf("simtest: in the world of %s: %s\n%s", file, f.line(), f.Detail)
	}
	return err == nil && f == nil
}

// folder is where the transcripts of a test are.
func (s *settings) folder(test string) string {
	return filepath.Join(s.dir, "simtest", fileName(test))
}

// fileName makes a name for a file out of any.
func fileName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, text), "-.")
}

// write writes a transcript, and returns where.
func (s *settings) write(test string, f *find, found string) (string, error) {
	dir := s.folder(test)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fileName(f.failure.Name)+".yaml")
	return path, os.WriteFile(path, []byte(s.transcript(test, f, found)), 0o666)
}

// How much of what happened is written.
const (
	decisions = 6
	entries   = 100
)

// transcript writes a world as a scenario, with what went wrong in it.
func (s *settings) transcript(test string, f *find, found string) string {
	var trace, decided []string
	stage := s.stage()
	stage.trace = func(e sim.Entry) { trace = append(trace, e.String()) }
	stage.watch = func(at time.Duration, before, after *store.Migration) {
		if text := decision(at, before, after); text != "" {
			decided = append(decided, text)
		}
	}
	// Why a VM stays the controller explains by asking the policy again, which may hang or panic.
	stays, told := "", ""
	if failed := s.attended(stage, func() { _, _ = stage.play(f.world) }); failed == nil || !failed.hangs {
		if s.attended(stage, func() { told = staying(stage.world) }) == nil {
			stays = told
		}
	}
	var b strings.Builder
	comment(&b, test+": "+f.failure.line(), "")
	comment(&b, "", f.failure.Detail)
	comment(&b, "found in "+found, "")
	comment(&b, "the last decisions:", last(decided, decisions))
	comment(&b, "", stays)
	b.WriteString(f.world.String())
	comment(&b, "what happened:", last(trace, entries))
	return b.String()
}

// decision says what was decided about a migration, and why.
func decision(at time.Duration, before, after *store.Migration) string {
	s := &after.State
	if s.Phase == before.State.Phase && s.Because == before.State.Because {
		return ""
	}
	text := fmt.Sprintf("%s  %s  %s → %s", sim.Clock(at), after.Spec.ID, word(before.State.Phase),
		word(s.Phase))
	if s.Target != "" {
		text += fmt.Sprintf("  %s→%s", s.Source, s.Target)
	}
	if s.Because != "" {
		text += fmt.Sprintf("  because %v", s.Because)
	}
	return text
}

// staying lists the VMs that stay on drained hosts, and why.
func staying(w *sim.World) string {
	var lines []string
	if w == nil {
		return ""
	}
	for _, e := range w.Evacuations() {
		for _, left := range e.Left {
			lines = append(lines, fmt.Sprintf("%s stays on %s: %v", left.VM, e.Host, left.Reasons))
		}
	}
	return last(lines, decisions)
}

// word names a phase; a migration that was only asked for has none yet.
func word(p migration.Phase) string {
	if text := p.String(); text != "" {
		return text
	}
	return "asked for"
}

// last returns the last of many lines.
func last(lines []string, n int) string {
	if len(lines) <= n {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("… %d before\n", len(lines)-n) + strings.Join(lines[len(lines)-n:], "\n")
}

// comment writes a headline and a text below it, as comments of YAML.
func comment(b *strings.Builder, head, text string) {
	if head != "" {
		b.WriteString("# " + head + "\n")
	}
	if text == "" {
		return
	}
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		b.WriteString("#   " + line)
	}
}
