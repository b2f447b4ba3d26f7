package explore_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: an exploration keeps little and throws much away.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
