//go:build race

package main

// raced says that the race detector is on: a command takes ten times as long to start.
const raced = true
