package kubectl

import (
	"testing"
	"time"
)

func TestAGracePeriodIsASecondOrMore(t *testing.T) {
	for grace, refused := range map[time.Duration]bool{-time.Second: true, time.Millisecond: true, 0: false, time.Second: false} {
		f := drainFlags{grace: grace}
		if e, err := f.evacuation("n1", time.Now()); (err != nil) != refused || e != nil && (e.Spec.Grace != nil) != (grace > 0) {
			t.Errorf("%v: %+v, %v", grace, e, err)
		}
	}
}
