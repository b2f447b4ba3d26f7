//go:build !race

package calls_test

// usual is how many worlds the long tier plays, unless GODWIT_CALLS says so.
const usual = 1000
