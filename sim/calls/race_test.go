//go:build race

package calls_test

// usual is how many worlds the long tier plays, unless GODWIT_CALLS says so: the race detector makes
// each of them ten times as slow.
const usual = 100
