//go:build race

package testutil

// Raced says that the race detector is on. What is not concurrent then takes up to ten times as
// long, and finds nothing more.
const Raced = true
