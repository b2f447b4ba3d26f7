package migration_test

import (
	"testing"

	"github.com/godwit-vm/godwit/migration"
)

// TestEncryptionByDefault is the whole table, by hand.
func TestEncryptionByDefault(t *testing.T) {
	const (
		asConfigured = migration.TrafficAsConfigured
		encrypted    = migration.TrafficEncrypted
		policy       = migration.TrafficPlainByPolicy
	)
	for word, want := range map[string][4]migration.Traffic{ // neither, source, target, both
		"Auto":     {asConfigured, migration.TrafficPlainTarget, migration.TrafficPlainSource, encrypted},
		"Required": {encrypted, encrypted, encrypted, encrypted},
		"Off":      {asConfigured, policy, policy, policy},
	} {
		e, known := migration.ParseEncryption(word)
		if !known || e.String() != word {
			t.Errorf("%q is read as %q, %v", word, e, known)
		}
		for i, want := range want {
			source, target := i&1 != 0, i&2 != 0
			got := e.Resolve(source, target)
			if got != want {
				t.Errorf("%s, source %v, target %v: %q, want %q", word, source, target, got, want)
			}
			if plain := got != asConfigured && got != encrypted; got.Plain() != plain {
				t.Errorf("%q is plain: %v", got, got.Plain())
			}
		}
	}
	if _, known := migration.ParseEncryption("on"); known {
		t.Error("another word is known")
	}
}
