package fake_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

const (
	window = 100 * ms
)

func anyRate(t *rapid.T, what string) hypervisor.Bandwidth {
	return hypervisor.Bandwidth(rapid.Int64Range(1e7, 1e10).Draw(t, what))
}

func anyCosts(t *rapid.T) fake.Costs {
	return fake.Costs{
		PageOverhead: 8, ZeroPage: 9,
		ScanRate:   rapid.SampledFrom([]hypervisor.Bandwidth{0, 1e8, 1e10}).Draw(t, "scan"),
		FirstTouch: rapid.SampledFrom([]hypervisor.Bandwidth{0, 1e7, 1e9}).Draw(t, "touch"),
		Window:     rapid.SampledFrom([]time.Duration{0, window}).Draw(t, "window"),
	}
}

// stream is a stream of a GiB that has begun at time zero.
func stream(o fake.Options, w fake.Workload, rate, burst hypervisor.Bandwidth) *fake.Stream {
	o.Memory = gib
	s := &fake.Stream{Options: o}
	s.Begin(0, w, true)
	s.Accelerate(0, rate, burst)
	return s
}

// With a window a pass ends at a look, a multiple of half a window, when the rest
// fits, and not before.
func TestAWindowedPassEndsWhenTheRestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(1, 2000).Draw(t, "limit")) * ms
		rate := hypervisor.Bandwidth(rapid.Int64Range(1e7, 1e9).Draw(t, "rate"))
		s := stream(fake.Options{Downtime: limit, Costs: fake.Costs{Window: window}},
			fake.Workload{}, rate, 0)
		ends := s.Ends()
		fits := func(at time.Duration, slack hypervisor.Bytes) bool {
			return at >= window && s.Left(at) < rate.In(limit)+slack
		}
		if s.Left(ends) != 0 && (ends%(window/2) != 0 || !fits(ends, 0)) {
			t.Fatalf("ends at %v with %d left", ends, s.Left(ends))
		}
		before := (ends - 1) / (window / 2) * (window / 2)
		if fits(before, -100) { // what a window sends is rounded down
			t.Fatalf("ends at %v, but %d at %v fitted", ends, s.Left(before), before)
		}
	})
}

// An oracle makes all the looks that the closed form skips.
type oracle struct {
	limit time.Duration
	sent  map[time.Duration]hypervisor.Bytes // when windows begin
	next  time.Duration                      // half a window after the last look
}

// walk looks until a time, and returns the first look at which the rest fits.
func (o *oracle) walk(s *fake.Stream, until time.Duration, busy bool) (time.Duration, bool) {
	for ; o.next <= until; o.next += window / 2 {
		begins := o.next / window * window
		if o.next == begins {
			o.sent[begins] = s.Sent(begins)
		} else if !busy {
			continue
		}
		last := o.sent[begins] - o.sent[begins-window]
		speed := hypervisor.Bandwidth(float64(last) / float64(window) * float64(time.Second))
		if o.next > 0 && begins > 0 && s.Left(o.next) < speed.In(o.limit) {
			o.next += window / 2
			return o.next - window/2, true
		}
	}
	return 0, false
}

func TestThePassEndsAtTheFirstLookAtWhichTheRestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := anyCosts(t)
		costs.Window = window
		o := oracle{limit: time.Duration(rapid.IntRange(1, 3000).Draw(t, "limit")) * ms,
			sent: map[time.Duration]hypervisor.Bytes{}}
		load := anyWorkload(t)
		s := stream(fake.Options{Downtime: o.limit, Costs: costs}, load, 0, 0)
		for now, began := time.Duration(0), time.Duration(0); s.Passes() < 4; {
			rate, burst := anyRate(t, "rate"), anyRate(t, "burst")
			s.Accelerate(now, rate, burst)
			busy := burst <= rate || burst.In(window/2) < rate.In(window)
			ends := s.Ends()
			until := now + time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(t, "wait"))
			until = min(until, ends)
			want, fits := o.walk(s, until, busy)
			switch {
			case fits && max(want, began+ms) != ends: // no pass is shorter than that
				t.Fatalf("ends at %v, but at %v the rest fitted", ends, want)
			case until == ends && !fits && s.Left(ends) > 0:
				t.Fatalf("ends at %v with %d that does not fit", ends, s.Left(ends))
			case until == ends:
				s.EndPass(ends)
				s.Again(ends)
				began = ends
			}
			now = until
		}
	})
}

func TestASenderThatKnowsNoSpeedYetTakesTheRestToFit(t *testing.T) {
	load := fake.Workload{ColdRate: 1e10, Cold: gib}
	for _, test := range []struct {
		name string
		rate hypervisor.Bandwidth
		want bool
	}{
		{"the first pass is over before a window is", 20_000_000_000, true},
		{"the first window showed that the rest does not fit", 1_000_000_000, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := stream(fake.Options{Downtime: ms, Costs: fake.Costs{Window: window}}, load,
				test.rate, 0)
			if got := s.Fits(s.EndPass(s.Ends())); got != test.want {
				t.Errorf("fits: %v, want %v", got, test.want)
			}
		})
	}
}

func TestACapLetsAWindowsShareThroughAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := anyRate(t, "rate"), anyRate(t, "burst")
		s := stream(fake.Options{Costs: fake.Costs{Window: window}}, fake.Workload{}, rate,
			max(rate, burst))
		at := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "at"))
		share := rate.In(window)
		want := share*hypervisor.Bytes(at/window) + min(share, max(rate, burst).In(at%window))
		if got := s.Sent(at); got != min(gib, want) && burst > rate {
			t.Fatalf("%d bytes after %v at %d in bursts of %d, want %d", got, at, rate, burst, want)
		}
	})
}

func TestWhatLimitsASender(t *testing.T) {
	tests := []struct {
		name  string
		costs fake.Costs
		load  fake.Workload
		want  time.Duration // the first pass
	}{
		{"nothing but the wire", fake.Costs{}, fake.Workload{}, gib.At(1e9)},
		{"the target's first touch of a page", fake.Costs{FirstTouch: 5e8},
			fake.Workload{}, gib.At(5e8)},
		{"a first touch faster than the wire does not", fake.Costs{FirstTouch: 5e9},
			fake.Workload{}, gib.At(1e9)},
		{"the search for what is not zero", fake.Costs{ZeroPage: 8, ScanRate: 1 << 30},
			fake.Workload{Zero: 1000}, gib.At(1 << 30)},
		{"zeros that are found at once cost their wire", fake.Costs{ZeroPage: 8},
			fake.Workload{Zero: 1000}, (gib / 512).At(1e9)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := stream(fake.Options{Costs: test.costs}, test.load, 1e9, 0)
			if got := s.Ends(); (got - test.want).Abs() > ms {
				t.Errorf("takes %v, want %v", got, test.want)
			}
		})
	}
}

// A quarter of what remains of a page is on the wire in the time that the whole
// page takes to compress.
func TestCompressionIsAsFastAsTheProcessors(t *testing.T) {
	s := stream(fake.Options{Compress: true,
		Costs: fake.Costs{Compression: 250, CompressRate: 1 << 28}}, fake.Workload{}, 1e10, 0)
	if got := s.Ends(); (got - 4*time.Second).Abs() > ms {
		t.Errorf("a GiB at 256 MiB/s takes %v", got)
	}
	if got := s.Sent(s.Ends()); got != gib/4 {
		t.Errorf("sent %d, want a quarter of a GiB", got)
	}
}

// passes runs a stream to the end of so many passes and returns how long each took.
func passes(s *fake.Stream, n int) []time.Duration {
	var took []time.Duration
	now := time.Duration(0)
	for range n {
		ends := s.Ends()
		took = append(took, ends-now)
		now = ends
		s.EndPass(now)
		s.Again(now)
	}
	return took
}

func TestXBZRLESendsWhatIsKnownAsChanges(t *testing.T) {
	load := fake.Workload{ColdRate: 1e10, Cold: 256 * mib}
	tests := []struct {
		name  string
		cache hypervisor.Bytes
		third hypervisor.Bytes // sent in full in the third pass
	}{
		{"without a cache everything is sent again", 0, 256 * mib},
		{"of a set larger than the cache a part is known", 64 * mib, 192 * mib},
		{"all of a set that fits the cache is known", 256 * mib, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := stream(fake.Options{XBZRLE: true,
				Costs: fake.Costs{Delta: fake.Delta{Cache: test.cache}}}, load, 1e9, 0)
			took := passes(s, 3)
			if want := (256 * mib).At(1e9); (took[1] - want).Abs() > ms {
				t.Errorf("the second pass takes %v, want %v", took[1], want)
			}
			if want := max(ms, test.third.At(1e9)); (took[2] - want).Abs() > ms {
				t.Errorf("the third pass takes %v, want %v", took[2], want)
			}
		})
	}
}

// What the guest writes comes first in the first pass: what a look leaves of that
// pass and what was written meanwhile are not the same.
func TestAPassThatEndsEarlyLeavesItsRestAndWhatWasWritten(t *testing.T) {
	load := fake.Workload{ColdRate: 1e10, Cold: 256 * mib}
	s := stream(fake.Options{Downtime: 300 * ms, Costs: fake.Costs{Window: window}}, load,
		1e9, 0)
	ends := s.Ends()
	left := s.Left(ends)
	if rest := s.EndPass(ends); left == 0 || rest != left+256*mib {
		t.Errorf("%d was left, and %d must be sent: not the two together", left, rest)
	}
}

// The brake takes 60 percent in stops of 15 ms, 70 percent in stops of 23 ms.
func TestAGuestThatMakesUpForAStopIsSlowedOnlyByLongerOnes(t *testing.T) {
	for _, test := range []struct {
		name    string
		catchUp time.Duration
		slowed  int // the first throttle that makes a difference
	}{
		{"no stop is made up for", 0, 20},
		{"stops of 16 ms are", 16 * ms, 70},
	} {
		t.Run(test.name, func(t *testing.T) {
			const rate = 950_000_000
			load := fake.Workload{ColdRate: rate, Cold: gib, CatchUp: test.catchUp}
			s := stream(fake.Options{AutoConverge: true}, load, 1e9, 0)
			throttle := 0
			for range 200 {
				now := s.Ends()
				s.EndPass(now)
				s.Again(now)
				want := hypervisor.Bandwidth(rate)
				if throttle >= test.slowed {
					want = rate / 100 * hypervisor.Bandwidth(100-throttle)
				}
				if got := s.DirtyRate(); got < want-want/1000 || got > want {
					t.Fatalf("throttled by %d percent it dirties %d, want %d", throttle, got, want)
				}
				throttle = s.Throttle()
			}
			if throttle < test.slowed {
				t.Errorf("throttled by %d percent only", throttle)
			}
		})
	}
}
