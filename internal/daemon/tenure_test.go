package daemon

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// TestALostControllerEndsNoTenure: a heartbeat that meets one which was lost just after the last is stored at the
// next one before the agent has to begin anew.
func TestALostControllerEndsNoTenure(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} {
		held := newTenure(&store.LeaseClaim{}, every, func() time.Duration { return 0 })
		if left := held.most - every - boltstore.AnswerTimeout; left < 3*time.Second {
			t.Errorf("every %v: a controller may take %v, and %v are left for the next", every, boltstore.AnswerTimeout, left)
		}
	}
}
