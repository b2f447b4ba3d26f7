package hypervisor

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Bytes is an amount of memory or data, up to 8 EiB.
type Bytes int64

// The binary multiples of a byte.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

// PageSize is the size of the pages in which dirty memory is counted.
const PageSize = 4 * KiB

// CeilGiB returns b in GiB, rounded up.
func (b Bytes) CeilGiB() int64 { return ceilDiv(int64(b), int64(GiB)) }

// CeilGB returns b in decimal gigabytes (1e9 bytes), rounded up: the unit of
// KubeVirt's completion budget.
// Source: KubeVirt v1.9.0 virtwrap/manager.go:870 (ScaledValue(Giga)).
func (b Bytes) CeilGB() int64 { return ceilDiv(int64(b), 1e9) }

// At returns how long b takes at r, rounded up to a nanosecond, so that a
// deadline made from it is never early. It is Forever when r is not positive
// and b is.
func (b Bytes) At(r Bandwidth) time.Duration {
	switch {
	case b <= 0:
		return 0
	case r <= 0:
		return Forever
	}
	hi, lo := bits.Mul64(uint64(b), uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(r)-1, 0)
	if hi += carry; hi >= uint64(r) {
		return Forever
	}
	if q, _ := bits.Div64(hi, lo, uint64(r)); q < math.MaxInt64 {
		return time.Duration(q)
	}
	return Forever
}

// String formats b with a binary unit: exactly when it is a whole number of it,
// otherwise with one decimal, rounded down.
func (b Bytes) String() string {
	if b < 0 {
		if b == math.MinInt64 {
			return "-8388608TiB"
		}
		return "-" + (-b).String()
	}
	for _, u := range [...]struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		switch {
		case b < u.size:
		case b%u.size == 0:
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		default:
			return fmt.Sprintf("%d.%d%s", b/u.size, b%u.size*10/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// Apart writes two amounts that are compared, with as many digits as it takes to tell them apart:
// "1.24GiB" and "1.21GiB", where one decimal of each would say the same, and "24.01GiB" and "24.00GiB" for
// "24.0GiB" and "24GiB". It rounds down, as String.
func Apart(a, b Bytes) (string, string) {
	rounded := func(n Bytes) string { return strings.Replace(n.String(), ".0", "", 1) }
	if a == b || rounded(a) != rounded(b) {
		return a.String(), b.String()
	}
	sign := ""
	if a < 0 {
		if a == math.MinInt64 || b == math.MinInt64 {
			return fmt.Sprintf("%dB", int64(a)), fmt.Sprintf("%dB", int64(b))
		}
		sign, a, b = "-", -a, -b
	}
	for _, u := range [...]struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if a < u.size || b < u.size {
			continue
		}
		for digits, scale := 2, Bytes(100); digits <= 3; digits, scale = digits+1, scale*10 {
			parts := func(n Bytes) string {
				return fmt.Sprintf("%s%d.%0*d%s", sign, n/u.size, digits, n%u.size*scale/u.size, u.name)
			}
			if parts(a) != parts(b) {
				return parts(a), parts(b)
			}
		}
	}
	return fmt.Sprintf("%s%dB", sign, int64(a)), fmt.Sprintf("%s%dB", sign, int64(b))
}

// Bandwidth is a speed in bytes per second.
type Bandwidth int64

// Gbit is the decimal gigabit per second in which links are sold.
const Gbit Bandwidth = 1e9 / 8

// Forever is longer than anything lasts: the answer to "how long at no speed".
const Forever = time.Duration(math.MaxInt64)

// In returns how many bytes r moves in d, rounded down.
func (r Bandwidth) In(d time.Duration) Bytes {
	if r <= 0 || d <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(r), uint64(d))
	if hi >= uint64(time.Second) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return Bytes(min(q, math.MaxInt64))
}

// String formats r as bytes per second with a binary unit.
func (r Bandwidth) String() string { return Bytes(r).String() + "/s" }

func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
