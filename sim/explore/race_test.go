//go:build race

package explore_test

// raced says that the race detector is on: everything takes ten times as long.
const raced = true
