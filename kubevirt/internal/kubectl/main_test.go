package kubectl

import (
	"os"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestMain lets no API server and no folder of one outlive the tests, also when they are ended by a time-out.
func TestMain(m *testing.M) { os.Exit(testutil.Reaped{Main: m}.Run()) }
