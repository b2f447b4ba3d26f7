package simtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// A fatal is a test that ends at the first thing said against it.
type fatal struct{ recorder }

func (f *fatal) Fatalf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// What was forgotten is told at once and by its name, not by what it breaks in the first world.
func TestNilIsToldByName(t *testing.T) {
	for want, option := range map[string]simtest.Option{
		"my order":       simtest.Evacuation("my order", nil),
		"my monitor":     simtest.Convergence("my monitor", nil),
		"my retry":       simtest.Retry("my retry", nil),
		"filter mine":    simtest.Filter(placement.Filter{Name: "mine"}),
		"weigher mine":   simtest.Weigher(placement.Weigher{Name: "mine"}),
		"Configure":      simtest.Configure(nil),
		"at all times":   simtest.Always("at all times", nil),
		"at the end":     simtest.AtRest("at the end", nil),
		"some day":       simtest.Eventually("some day", 1, nil),
		"in every world": simtest.Everywhere("in every world", nil),
		"waste":          simtest.Measure("waste", simtest.Seconds, nil),
	} {
		t.Run(want, func(t *testing.T) {
			said := &fatal{recorder{TB: t, name: t.Name()}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				simtest.Check(said, simtest.Busy(), option, simtest.Runs(1))
			}()
			<-done
			if len(said.said) != 1 || !strings.Contains(said.said[0], "nil was given for "+want) {
				t.Errorf("said %q", said.said)
			}
		})
	}
}
