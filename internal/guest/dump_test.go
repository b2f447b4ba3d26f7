package guest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/guest"
)

// A guest that boots is let go on and looked at again, and what keeps it from going on is told.
func TestAStoppedGuestGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	if err := os.WriteFile(path, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	looks, runs := 0, true
	set := func(to bool) func() error { return func() error { runs = to; return nil } }
	err := guest.Stopped(t.Context(), set(false), func() error {
		if looks++; runs {
			t.Error("it runs, and is looked at")
		}
		if looks < 3 {
			return guest.Params{}.VerifyDump(path, 8<<20) // nothing is there yet
		}
		return nil
	}, set(true))
	if err != nil || looks != 3 || !runs {
		t.Errorf("got %v after %d looks; it runs: %t", err, looks, runs)
	}
	stands := errors.New("it stands")
	err = guest.Stopped(t.Context(), set(false), func() error { return nil },
		func() error { return stands })
	if !errors.Is(err, stands) {
		t.Errorf("got %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	boots := func() error { return guest.ErrBoots }
	if err = guest.Stopped(over, set(false), boots, set(true)); !errors.Is(err, guest.ErrBoots) {
		t.Errorf("got %v of a guest that never comes up", err)
	}
}
