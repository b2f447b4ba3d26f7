package cli

import (
	"os"
	"runtime/debug"
)

const garbageVariable = "GOGC" // How much the heap may grow before garbage is collected, in percent. Default: 400 in simulations, else 100.

// CollectLess lets garbage be collected less often, unless GOGC says how often: the worlds that a
// command simulates are small and short, and collecting costs a quarter of the time.
func CollectLess() {
	if os.Getenv(garbageVariable) == "" {
		debug.SetGCPercent(400)
	}
}
