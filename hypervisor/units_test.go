package hypervisor_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
)

const (
	most    = hypervisor.Bytes(math.MaxInt64)
	fastest = hypervisor.Bandwidth(math.MaxInt64)
)

func TestAt(t *testing.T) {
	tests := []struct {
		name  string
		bytes hypervisor.Bytes
		speed hypervisor.Bandwidth
		want  time.Duration
	}{
		{"what divides is exact", 1250, 1250, time.Second},
		{"a remainder is rounded up to a nanosecond", 1, 3, 333_333_334},
		{"less than a nanosecond is one", 1, 2e9, 1},
		{"nothing takes no time", 0, 1, 0},
		{"nothing takes no time even at no speed", 0, 0, 0},
		{"less than nothing takes no time", -1, 1, 0},
		{"something at no speed lasts for ever", 1, 0, hypervisor.Forever},
		{"something at less than no speed lasts for ever", 1, -1, hypervisor.Forever},
		{"64 GiB at 10 Gbit/s", 64 * hypervisor.GiB, 10 * hypervisor.Gbit, 54_975_581_389},
		{"more than 292 years last for ever", most, 1, hypervisor.Forever},
		{"as long as can be said is said", most, 1e9 + 1, 9_223_372_027_631_403_780},
		{"for ever is not one nanosecond less", most, 1e9, hypervisor.Forever},
		{"what does not fit a duration lasts for ever", most, 1e9 - 1, hypervisor.Forever},
		{"everything at any speed does not overflow", most, fastest, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.bytes.At(tt.speed); got != tt.want {
				t.Errorf("%d.At(%d) = %d, want %d", tt.bytes, tt.speed, got, tt.want)
			}
		})
	}
}

func TestIn(t *testing.T) {
	tests := []struct {
		name  string
		speed hypervisor.Bandwidth
		time  time.Duration
		want  hypervisor.Bytes
	}{
		{"what divides is exact", 1250, time.Second, 1250},
		{"a remainder is rounded down to a byte", 3, 999 * time.Millisecond, 2},
		{"less than a byte is none", 1, time.Second - 1, 0},
		{"no speed moves nothing", 0, time.Hour, 0},
		{"less than no speed moves nothing", -1, time.Hour, 0},
		{"no time moves nothing", 1, 0, 0},
		{"less than no time moves nothing", 1, -time.Second, 0},
		{"300 ms at 10 Gbit/s", 10 * hypervisor.Gbit, 300 * time.Millisecond, 375e6},
		{"for ever at a byte a second", 1, hypervisor.Forever, 9_223_372_036},
		{"too much is the most there is", fastest, time.Second + 1, most},
		{"much too much is the most there is", fastest, hypervisor.Forever, most},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.speed.In(tt.time); got != tt.want {
				t.Errorf("%d.In(%d) = %d, want %d", tt.speed, tt.time, got, tt.want)
			}
		})
	}
}

// numbers draws small, round and huge numbers alike: the interesting ones are at
// the ends.
func numbers() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64),
		rapid.Map(rapid.IntRange(0, 62), func(bit int) int64 { return 1 << bit }),
		rapid.Int64Range(math.MaxInt64-1000, math.MaxInt64-1))
}

// TestAtAndInAreInverse: b bytes are through within d if and only if At says that
// they take no longer than d. Of all that At might round to, only the next
// nanosecond above has this property, and of In only the next byte below. No time is
// Forever, which stands for never.
func TestAtAndInAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hypervisor.Bytes(numbers().Draw(t, "bytes"))
		r := hypervisor.Bandwidth(numbers().Draw(t, "speed"))
		d := min(time.Duration(numbers().Draw(t, "time")), hypervisor.Forever-1)
		moved, took := r.In(d), b.At(r)
		if (b <= moved) != (took <= d) {
			t.Fatalf("at %d in %d: %d are moved, but %d take %d", r, d, moved, b, took)
		}
		if r.In(took) < b && took != hypervisor.Forever {
			t.Fatalf("%d at %d take %d, and then only %d are moved", b, r, took, r.In(took))
		}
	})
}

func TestAtAndInAreNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hypervisor.Bytes(rapid.Int64().Draw(t, "bytes"))
		r := hypervisor.Bandwidth(rapid.Int64().Draw(t, "speed"))
		d := time.Duration(rapid.Int64().Draw(t, "time"))
		if b.At(r) < 0 || r.In(d) < 0 {
			t.Fatalf("%d.At(%d) = %d, %d.In(%d) = %d", b, r, b.At(r), r, d, r.In(d))
		}
	})
}

func TestMoreTakesLongerAndFasterIsSooner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hypervisor.Bytes(numbers().Draw(t, "bytes"))
		r := hypervisor.Bandwidth(numbers().Draw(t, "speed"))
		more := hypervisor.Bytes(rapid.Int64Range(int64(b), math.MaxInt64).Draw(t, "more"))
		faster := hypervisor.Bandwidth(rapid.Int64Range(int64(r), math.MaxInt64).Draw(t, "faster"))
		if more.At(r) < b.At(r) {
			t.Errorf("%d take %d, but %d only %d", b, b.At(r), more, more.At(r))
		}
		if b.At(faster) > b.At(r) {
			t.Errorf("%d takes %d, but %d takes %d", r, b.At(r), faster, b.At(faster))
		}
	})
}

func TestCeil(t *testing.T) {
	tests := []struct {
		name    string
		bytes   hypervisor.Bytes
		gib, gb int64
	}{
		{"nothing is none", 0, 0, 0},
		{"less than nothing is none", -5 * hypervisor.GiB, 0, 0},
		{"a byte is one", 1, 1, 1},
		{"a decimal gigabyte is one of both", 1e9, 1, 1},
		{"a byte more is two decimal ones", 1e9 + 1, 1, 2},
		{"a binary one is more than a decimal one", hypervisor.GiB, 1, 2},
		{"a byte more is two binary ones", hypervisor.GiB + 1, 2, 2},
		{"the most does not overflow", most, 1 << 33, 9_223_372_037},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.bytes.CeilGiB(); got != tt.gib {
				t.Errorf("%d.CeilGiB() = %d, want %d", tt.bytes, got, tt.gib)
			}
			if got := tt.bytes.CeilGB(); got != tt.gb {
				t.Errorf("%d.CeilGB() = %d, want %d", tt.bytes, got, tt.gb)
			}
		})
	}
}

func TestAmountsAreSaidWithUnits(t *testing.T) {
	tests := []struct {
		name  string
		bytes hypervisor.Bytes
		want  string
	}{
		{"nothing is in bytes", 0, "0B"},
		{"what is less than a KiB is in bytes", 1023, "1023B"},
		{"a whole KiB has no decimals", hypervisor.KiB, "1KiB"},
		{"a page", hypervisor.PageSize, "4KiB"},
		{"a whole number of MiB stays in MiB below a GiB", 1000 * hypervisor.MiB, "1000MiB"},
		{"half of one has a decimal", 3 * hypervisor.GiB / 2, "1.5GiB"},
		{"a whole TiB", 2 * hypervisor.TiB, "2TiB"},
		{"beyond the largest unit it counts on", 5000 * hypervisor.TiB, "5000TiB"},
		{"what is missing has a sign", -96 * hypervisor.GiB, "-96GiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.bytes.String(); got != tt.want {
				t.Errorf("%d is %q, want %q", int64(tt.bytes), got, tt.want)
			}
			if got := hypervisor.Bandwidth(tt.bytes).String(); got != tt.want+"/s" {
				t.Errorf("%d per second is %q, want %q", int64(tt.bytes), got, tt.want+"/s")
			}
		})
	}
}

func ExampleBytes_At() {
	memory, link := 16*hypervisor.GiB, 10*hypervisor.Gbit
	fmt.Println(memory.At(link).Round(time.Millisecond))
	fmt.Println(memory.At(0) == hypervisor.Forever)
	// Output:
	// 13.744s
	// true
}

func ExampleBandwidth_In() {
	fmt.Println(hypervisor.Gbit.In(100 * time.Millisecond))
	// Output: 11.9MiB
}

func ExampleBytes_CeilGB() {
	fmt.Println((4 * hypervisor.GiB).CeilGB(), (4 * hypervisor.GiB).CeilGiB())
	// Output: 5 4
}

func ExampleBytes_String() {
	fmt.Println(48*hypervisor.GiB, 1536*hypervisor.KiB, hypervisor.Bytes(640))
	// Output: 48GiB 1.5MiB 640B
}

func TestAmountsThatDifferAreToldApart(t *testing.T) {
	zeros := regexp.MustCompile(`\.0+([A-Z])`) // behind the point, which tell nothing
	const gib = hypervisor.GiB
	for _, row := range []struct {
		need, have hypervisor.Bytes
		a, b       string
	}{
		{2 * gib, gib, "2GiB", "1GiB"},
		{gib * 1270 / 1024, gib * 1240 / 1024, "1.24GiB", "1.21GiB"},
		{1300000000, 1300000001, "1300000000B", "1300000001B"},
		{64*gib + 1, 64*gib + 2, "67108864.000KiB", "67108864.001KiB"},
		{gib + 1, gib + 1, "1.0GiB", "1.0GiB"},
		{24*gib + 20<<20, 24 * gib, "24.01GiB", "24.00GiB"},
		{-gib * 1270 / 1024, -gib * 1240 / 1024, "-1.24GiB", "-1.21GiB"},
		{3, 2, "3B", "2B"},
	} {
		if a, b := hypervisor.Apart(row.need, row.have); a != row.a || b != row.b {
			t.Errorf("%d and %d are %s and %s, want %s and %s", row.need, row.have, a, b, row.a, row.b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := hypervisor.Bytes(rapid.Int64().Draw(t, "a"))
		b := a
		if by := rapid.Int64Range(-1<<32, 1<<32).Draw(t, "by"); by < 0 == (a > 0) {
			b += hypervisor.Bytes(by) // does not overflow
		}
		x, y := hypervisor.Apart(a, b)
		if same := zeros.ReplaceAllString(x, "$1") == zeros.ReplaceAllString(y, "$1"); same != (a == b) {
			t.Errorf("%d and %d are written as %s and %s", a, b, x, y)
		}
	})
}
