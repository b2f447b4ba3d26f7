//go:build linux

package domxml_test

import (
	"os"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// The QEMUs that are asked what keeps them from migrating end with the tests, however those end.
func TestMain(m *testing.M) { os.Exit(testutil.Reaped{Main: m}.Run()) }
