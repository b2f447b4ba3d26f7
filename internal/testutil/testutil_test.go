package testutil_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestPollReturnsAsSoonAsTheCheckHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		err := testutil.Poll(t.Context(), time.Minute, func() error {
			if looks++; looks < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || looks != 3 || time.Since(began) > time.Second {
			t.Errorf("%v after %d looks and %v", err, looks, time.Since(began))
		}
	})
}

// TestPollLeavesTheProcessorToWhatItWaitsFor: a look of 50 ms, as a process takes, comes five times a second.
func TestPollLeavesTheProcessorToWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		_ = testutil.Poll(t.Context(), 10*time.Second, func() error {
			looks++
			time.Sleep(50 * time.Millisecond)
			return errors.New("not yet")
		})
		if want := int(10 * time.Second / (200 * time.Millisecond)); looks < want || looks > want+1 {
			t.Errorf("%d looks in ten seconds, want %d", looks, want)
		}
	})
}

func TestPollSaysWhatItSawLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, last := time.Now(), errors.New("two of three are up")
		err := testutil.Poll(t.Context(), time.Minute, func() error { return last })
		if !errors.Is(err, last) || !strings.Contains(err.Error(), "gave up after 1m0s") {
			t.Errorf("it says %q", err)
		}
		if waited := time.Since(began); waited < time.Minute || waited > 61*time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}

func TestPollEndsWithItsContextAndWithAFinalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := testutil.Poll(ctx, time.Hour, func() error { return errors.New("down") })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "down") {
			t.Errorf("it says %q", err)
		}
		dead, began := errors.New("the process has died"), time.Now()
		err = testutil.Poll(t.Context(), time.Hour, func() error { return testutil.Stop(dead) })
		if !errors.Is(err, dead) || time.Since(began) > 0 {
			t.Errorf("it says %q after %v", err, time.Since(began))
		}
	})
}

func TestPatienceMultipliesLimits(t *testing.T) {
	for _, row := range []struct {
		patience string
		want     time.Duration
	}{{"", time.Minute}, {"5", 5 * time.Minute}, {"0.5", 30 * time.Second},
		{"0", time.Minute}, {"-1", time.Minute}, {"many", time.Minute}, {"1e9", time.Minute}} {
		t.Setenv(testutil.PatienceKey, row.patience)
		if got := testutil.Limit(time.Minute); got != row.want {
			t.Errorf("%q: %v, want %v", row.patience, got, row.want)
		}
	}
}

func TestTiers(t *testing.T) {
	for _, long := range []bool{false, true} {
		t.Setenv(testutil.LongKey, map[bool]string{true: "1"}[long])
		skipped := true
		t.Run("long", func(t *testing.T) {
			testutil.Long(t)
			skipped = false
		})
		rounds := testutil.Rounds(t, 2, 20)
		if skipped == long || (rounds == 20) != long {
			t.Errorf("long %v: skipped %v, %d rounds", long, skipped, rounds)
		}
	}
}

// A sampled is a test that notes whether it is skipped.
type sampled struct {
	testing.TB
	name    string
	skipped bool
}

func (s *sampled) Name() string         { return s.name }
func (s *sampled) Skipf(string, ...any) { s.skipped = true }

func TestASampleIsOneInSoManyAndAnotherForEachSeed(t *testing.T) {
	t.Setenv(testutil.LongKey, "")
	run := func(seed string) (ran map[int]bool) {
		ran = map[int]bool{}
		t.Setenv("RAPID_SEED", seed)
		for i := range 400 {
			s := sampled{TB: t, name: fmt.Sprintf("%s/%d", t.Name(), i)}
			if testutil.Sample(&s, 4); !s.skipped {
				ran[i] = true
			}
		}
		return ran
	}
	want := 100
	if !testutil.HasKVM() {
		want = 50
	}
	one, other := run("1"), run("2")
	if len(one) < want*6/10 || len(one) > want*14/10 {
		t.Errorf("%d of 400 ran, want about %d", len(one), want)
	}
	same := 0
	for i := range one {
		if other[i] {
			same++
		}
	}
	if same > len(one)*3/4 {
		t.Errorf("%d of %d ran with both seeds", same, len(one))
	}
	t.Setenv(testutil.LongKey, "1")
	switch ran := len(run("1")); {
	case testutil.HasKVM() && ran != 400:
		t.Errorf("the long tier ran %d of 400", ran)
	case !testutil.HasKVM() && (ran < 60 || ran > 140):
		t.Errorf("without KVM the long tier ran %d of 400, want about 100", ran)
	}
	t.Setenv(testutil.LongKey, "all")
	if ran := len(run("1")); ran != 400 {
		t.Errorf("all of the long tier ran %d of 400", ran)
	}
	for long, whole := range map[string]bool{"1": false, "all": true} {
		t.Setenv(testutil.LongKey, long)
		ran := 0
		for i := range 400 {
			s := sampled{TB: t, name: fmt.Sprintf("%s/%d", t.Name(), i)}
			if testutil.SampleLong(&s, 4); !s.skipped {
				ran++
			}
		}
		if ran < 60 || ran > 140 && !whole || whole && ran != 400 {
			t.Errorf("with %s=%s %d of 400 ran that cost much", testutil.LongKey, long, ran)
		}
	}
}
