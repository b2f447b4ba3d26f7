package simtest_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// People err with second agents, empty directories and words that are wrong, and no invariant is
// violated.
func TestWherePeopleErr(t *testing.T) {
	testutil.Unraced(t)
	simtest.Check(t, simtest.Erring(), simtest.Runs(testutil.Rounds(t, 60, 3000)))
}

// A backup of the store is restored, and reconciled, and no invariant is violated: nor is one when the
// world has come to rest after that.
func TestWhereTheStoreIsSetBack(t *testing.T) {
	testutil.Unraced(t)
	simtest.Check(t, simtest.SetBack(), simtest.Runs(testutil.Rounds(t, 60, 3000)))
}
