package inventory

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A unit is a suffix and how many of the smallest unit it stands for.
type unit struct {
	name string
	size uint64
}

// The units, longest suffix first among those that end alike. Binary units are
// for memory, decimal ones for wires; both are accepted for both.
var byteUnits = [...]unit{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15},
	{"B", 1},
}

var bitUnits = [...]unit{
	{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}, {"bit", 1},
}

// ParseBytes reads an amount of memory: a number, with decimals if need be, and
// a unit, without space: 64GiB, 1.5TiB, 512MB, 0B. It is rounded down to a whole
// byte. A number without unit is an error, and so are a negative one and one of
// 8 EiB or more. It reads everything that [hypervisor.Bytes.String] prints of an
// amount that is not negative.
func ParseBytes(text string) (hypervisor.Bytes, error) {
	number, u, ok := split(text, byteUnits[:])
	if !ok {
		return 0, fmt.Errorf("%q has no unit of memory; write 64GiB, 512MiB or 4KiB", text)
	}
	n, err := scale(number, u.size, 1)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount of memory: %w", text, err)
	}
	return hypervisor.Bytes(n), nil
}

// ParseBandwidth reads a speed: as [ParseBytes], per second, or in decimal bits
// as links are sold: 10Gbit/s, 800MiB/s, 125MB/s. It is rounded down to a whole
// byte per second; less than one, other than 0, is an error.
func ParseBandwidth(text string) (hypervisor.Bandwidth, error) {
	amount, found := strings.CutSuffix(text, "/s")
	number, u, isBits := split(amount, bitUnits[:])
	divisor := uint64(8)
	ok := isBits
	if !isBits {
		number, u, ok = split(amount, byteUnits[:])
		divisor = 1
	}
	if !found || !ok {
		return 0, fmt.Errorf("%q has no unit of speed; write 10Gbit/s or 800MiB/s", text)
	}
	n, err := scale(number, u.size, divisor)
	if err == nil && n == 0 && strings.Trim(number, "0.") != "" {
		err = fmt.Errorf("less than a byte per second")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no speed: %w", text, err)
	}
	return hypervisor.Bandwidth(n), nil
}

// ParseDuration reads a duration that is not negative, with a unit: 150s, 900ms,
// 1h30m. Unlike [time.ParseDuration] it does not read a bare 0.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || strings.Trim(text, "+-0") == "":
		return 0, fmt.Errorf("%q is no duration; write 150s, 900ms or 1h30m", text)
	case d < 0 || strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}

// split cuts the unit off text.
func split(text string, units []unit) (string, unit, bool) {
	for _, u := range units {
		if number, found := strings.CutSuffix(text, u.name); found {
			return number, u, true
		}
	}
	return text, unit{}, false
}

// scale returns number·size/divisor rounded down, exactly: whole units and
// decimals apart, in 128 bits. At most 9 decimals count.
func scale(number string, size, divisor uint64) (int64, error) {
	if strings.HasPrefix(number, "-") {
		return 0, fmt.Errorf("it is negative")
	}
	whole, decimals, point := strings.Cut(number, ".")
	if !digits(whole) || point && !digits(decimals) {
		return 0, fmt.Errorf("%q is no number", number)
	}
	if len(strings.TrimLeft(whole, "0")) > 19 || len(decimals) > 9 {
		return 0, fmt.Errorf("it has too many digits")
	}
	hi, lo := bits.Mul64(decimal(whole), size)
	partHi, part := bits.Mul64(decimal(decimals), size)
	part, _ = bits.Div64(partHi, part, power10(len(decimals)))
	lo, carry := bits.Add64(lo, part, 0)
	if hi += carry; hi >= divisor {
		return 0, errTooLarge
	}
	n, _ := bits.Div64(hi, lo, divisor)
	if n > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(n), nil
}

var errTooLarge = fmt.Errorf("it is 8 EiB or more")

// decimal returns the value of at most 19 digits after leading zeros; "" is 0.
func decimal(text string) uint64 {
	var n uint64
	for _, c := range text {
		n = n*10 + uint64(c-'0')
	}
	return n
}

func power10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}
