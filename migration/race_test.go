//go:build race

package migration_test

// raceEnabled says that the race detector slows everything down.
const raceEnabled = true
