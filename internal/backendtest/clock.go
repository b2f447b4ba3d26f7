package backendtest

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/backend"
)

// Monotonic wants the times of what a guest was asked for to have the reading of the monotonic clock: then
// setting the machine's clock ahead does not end its time to shut down. Only the text of a time shows that.
func Monotonic(t testing.TB, d *backend.Domain) {
	t.Helper()
	for _, at := range []string{d.By.String(), d.Asked.String()} {
		if !strings.Contains(at, " m=") {
			t.Errorf("while it is %v a time is known only by the clock that is set: %s", d.Doing, at)
		}
	}
}
