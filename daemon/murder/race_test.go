//go:build linux && race

package murder_test

// raced says that the daemons are built with the race detector, as the test is.
const raced = true
