package fake_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

func anyWorkload(t *rapid.T) fake.Workload {
	bytes := rapid.Int64Range(0, 1<<40)
	return fake.Workload{
		Rate:     hypervisor.Bandwidth(bytes.Draw(t, "rate")),
		Hot:      hypervisor.Bytes(bytes.Draw(t, "hot")),
		ColdRate: hypervisor.Bandwidth(bytes.Draw(t, "cold rate")),
		Cold:     hypervisor.Bytes(bytes.Draw(t, "cold")),
		Zero:     rapid.IntRange(0, 1000).Draw(t, "zero"),
	}
}

func anyTime(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, what))
}

// The oracle is the formula of the documentation, with the library's exponential.
func TestDirtiedIsTheDocumentedFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, d := anyWorkload(t), anyTime(t, "time")
		want := math.Min(float64(w.Cold), d.Seconds()*float64(w.ColdRate))
		if w.Hot > 0 {
			want += float64(w.Hot) * (1 - math.Exp(-d.Seconds()*float64(w.Rate)/float64(w.Hot)))
		}
		if got := float64(w.Dirtied(d)); math.Abs(got-want) > 2+want/1e9 {
			t.Fatalf("%+v in %v: %v, want %v", w, d, got, want)
		}
	})
}

func TestDirtiedNeverFallsAndNeverExceedsTheSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, d := anyWorkload(t), anyTime(t, "time")
		less, more := w.Dirtied(d), w.Dirtied(d+anyTime(t, "more"))
		if less < 0 || less > more || more > w.Hot+w.Cold {
			t.Fatalf("%+v: %d, later %d", w, less, more)
		}
	})
}

func TestDirtiedIsTheSameOnEveryMachine(t *testing.T) {
	w := fake.Workload{Rate: 123456789, Hot: hypervisor.GiB, ColdRate: 1e6, Cold: 5e6}
	tests := []struct {
		name string
		time time.Duration
		want hypervisor.Bytes
	}{
		{"nothing in no time", 0, 0},
		{"nearly linear at first", 10 * time.Millisecond, 1243858},
		{"bent in the middle", 10 * time.Second, 738681198},
		{"saturated in the end", time.Hour, hypervisor.GiB + 5e6},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := w.Dirtied(test.time); got != test.want {
				t.Errorf("dirtied %d, want %d", got, test.want)
			}
		})
	}
}

// Whatever the speed does, a pass sends its bytes, and what is left only falls.
func TestAPassSendsEverythingAtAnySpeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fake.Stream{Options: fake.Options{Memory: 1 << 30, Downtime: 1,
			Costs: anyCosts(t)}}
		now := time.Duration(0)
		s.Begin(now, fake.Workload{Zero: rapid.IntRange(0, 1000).Draw(t, "zero")}, true)
		left := s.Left(now)
		for range rapid.IntRange(0, 10).Draw(t, "changes") {
			s.Accelerate(now, hypervisor.Bandwidth(rapid.Int64Range(0, 1e9).Draw(t, "rate")),
				hypervisor.Bandwidth(rapid.Int64Range(0, 1e10).Draw(t, "burst")))
			now = min(now+time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "wait")), s.Ends())
			if s.Left(now) > left {
				t.Fatalf("%d was left, and now %d", left, s.Left(now))
			}
			left = s.Left(now)
		}
		s.Accelerate(now, 1e9, 0)
		if s.Left(s.Ends()) != 0 || s.EndPass(s.Ends()) != 0 {
			t.Fatalf("at the end %d is left", s.Left(s.Ends()))
		}
	})
}

func TestWhatIsSentAtLeast(t *testing.T) {
	vm := hypervisor.VM{Memory: 4000, Hardware: &hypervisor.Hardware{Disks: []hypervisor.Disk{
		{Name: "local", Size: 70}, {Name: "shared", Path: "/shared", Size: 600}}}}
	for zero, want := range map[int]hypervisor.Bytes{0: 4070, 250: 3070, 1000: 70} {
		if got := (fake.Workload{Zero: zero}).Least(vm); got != want {
			t.Errorf("with %d ‰ zeros it is %d, want %d", zero, got, want)
		}
	}
}
