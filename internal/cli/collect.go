package cli

import (
	"os"
	"runtime/debug"
)

// CollectLess lets garbage be collected less often, unless GOGC says how often: the worlds that a
// command simulates are small and short, and collecting costs a quarter of the time.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
