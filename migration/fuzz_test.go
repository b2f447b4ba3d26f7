package migration_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/migration"
)

// What is read as a phase is written as the same word; all else is an error, and
// leaves the phase alone.
func FuzzPhaseUnmarshal(f *testing.F) {
	for _, p := range migration.Phases() {
		f.Add([]byte(p.String()))
	}
	for _, bad := range []string{"pending", "Pending ", "Running\x00", "7", "Synchronizing"} {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := migration.Scheduled
		if err := p.UnmarshalText(text); err != nil {
			if p != migration.Scheduled {
				t.Fatalf("%q: an error, and the phase %q", text, p)
			}
			return
		}
		back, err := p.MarshalText()
		if err != nil || string(back) != string(text) {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}

// What is read as conditions holds, each word once, and is read again as the same.
func FuzzConditionsJSON(f *testing.F) {
	for _, text := range []string{`null`, `[]`, `["migrationBlockedByBackup"]`, `["nonsense"]`,
		`["migrationOutcomeUnknown","migrationAbortRequested"]`, `[""]`, `{}`, `[1]`, `[`,
		`["migrationBlockedByBackup","migrationBlockedByBackup"]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var cs, back migration.Conditions
		if json.Unmarshal(text, &cs) != nil {
			return
		}
		var words []string
		if err := json.Unmarshal(text, &words); err != nil {
			t.Fatalf("%s was read as conditions: %v", text, err)
		}
		for _, w := range words {
			if !slices.Contains(cs.Words(), w) {
				t.Fatalf("%s was read as %v", text, cs.Words())
			}
		}
		stored, err := json.Marshal(cs)
		if err != nil || json.Unmarshal(stored, &back) != nil || back != cs {
			t.Fatalf("%s became %s, %v", text, stored, err)
		}
	})
}

// No number of seconds overflows: the sign stays, and more is not less.
func FuzzParseSeconds(f *testing.F) {
	for _, text := range []string{"", "0", "-5", "+7", "150", "150s", "abc", "9223372036",
		"9223372037", "9223372036854775807", "-9223372036854775808", "1e9", "0x10", "1_000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := migration.ParseSeconds(text)
		if d == nil {
			return
		}
		n, err := json.Number(text).Int64()
		if err != nil {
			t.Fatalf("%q became %s", text, *d)
		}
		const most = math.MaxInt64 / int64(time.Second)
		if *d%time.Second != 0 || (n < 0) != (*d < 0) || n == 0 != (*d == 0) {
			t.Fatalf("%d became %s", n, *d)
		}
		if got := int64(*d / time.Second); got != n && max(n, -n) <= most && n != math.MinInt64 {
			t.Fatalf("%d became %d seconds", n, got)
		}
	})
}
