package hypervisor

import (
	"fmt"
	"math"
	"math/bits"
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
