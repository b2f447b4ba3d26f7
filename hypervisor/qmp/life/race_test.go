//go:build race

package life_test

// raced says that the race detector is on: everything takes ten times as long, and nothing here
// is concurrent.
const raced = true
