//go:build linux

package qmp_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// roleKey tells what a copy of this program is to be.
const roleKey = "GODWIT_TEST_ROLE"

func TestMain(m *testing.M) {
	backendtest.Serve(openPost)
	if os.Getenv(roleKey) == "tracer" {
		os.Exit(trace(os.Args[1]))
	}
	os.Exit(testutil.Reaped{Main: leakless{m}}.Run())
}

// leakless runs tests, and fails if they leave goroutines behind.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	status := l.M.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}
