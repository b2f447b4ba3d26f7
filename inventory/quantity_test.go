package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

func TestBytes(t *testing.T) {
	tests := []struct {
		name, text string
		want       hypervisor.Bytes
		err        string // part of the error; "" is none
	}{
		{"binary units", "64GiB", 64 * hypervisor.GiB, ""},
		{"decimal units", "512MB", 512_000_000, ""},
		{"a decimal is exact", "1.5TiB", 1536 * hypervisor.GiB, ""},
		{"a decimal is rounded down to a byte", "0.1KiB", 102, ""},
		{"zero is an amount", "0B", 0, ""},
		{"leading zeros are allowed", "007KiB", 7 * hypervisor.KiB, ""},
		{"the largest amount", "9223372036854775807B", 1<<63 - 1, ""},
		{"one more is too large", "9223372036854775808B", 0, "8 EiB or more"},
		{"far more is too large", "9999999999PiB", 0, "8 EiB or more"},
		{"a number without unit", "64", 0, "no unit of memory"},
		{"a unit of Kubernetes", "64Gi", 0, "no unit of memory"},
		{"a unit in the wrong case", "64gib", 0, "no unit of memory"},
		{"a unit without number", "GiB", 0, "is no number"},
		{"a negative amount", "-1GiB", 0, "negative"},
		{"a space", "64 GiB", 0, "is no number"},
		{"a point without decimals", "1.GiB", 0, "is no number"},
		{"an exponent", "1e3GiB", 0, "is no number"},
		{"a comma", "1,5GiB", 0, "is no number"},
		{"too many digits", "12345678901234567890B", 0, "too many digits"},
		{"too many decimals", "1.0000000001GiB", 0, "too many digits"},
		{"a speed", "64GiB/s", 0, "no unit of memory"},
		{"nothing", "", 0, "no unit of memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inventory.ParseBytes(tt.text)
			check(t, got, tt.want, err, tt.err)
		})
	}
}

func TestBandwidth(t *testing.T) {
	tests := []struct {
		name, text string
		want       hypervisor.Bandwidth
		err        string
	}{
		{"a link as it is sold", "25Gbit/s", 25 * hypervisor.Gbit, ""},
		{"half a bit too little is rounded down", "12bit/s", 1, ""},
		{"bytes", "800MiB/s", hypervisor.Bandwidth(800 * hypervisor.MiB), ""},
		{"decimal bytes", "125MB/s", hypervisor.Gbit, ""},
		{"decimals", "2.5Gbit/s", 312_500_000, ""},
		{"zero", "0bit/s", 0, ""},
		{"more bits than fit in 64", "40000000Tbit/s", 5_000_000_000_000_000_000, ""},
		{"less than a byte", "7bit/s", 0, "less than a byte"},
		{"no time", "10Gbit", 0, "no unit of speed"},
		{"no unit", "10/s", 0, "no unit of speed"},
		{"the common other spelling", "10Gbps", 0, "no unit of speed"},
		{"negative", "-1Gbit/s", 0, "negative"},
		{"too large", "9999999999Tbit/s", 0, "8 EiB or more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inventory.ParseBandwidth(tt.text)
			check(t, got, tt.want, err, tt.err)
		})
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		name, text string
		want       time.Duration
		err        string
	}{
		{"seconds", "150s", 150 * time.Second, ""},
		{"mixed units", "1h30m", 90 * time.Minute, ""},
		{"zero with a unit", "0s", 0, ""},
		{"a bare zero", "0", 0, "no duration"},
		{"a bare number", "150", 0, "no duration"},
		{"negative", "-1s", 0, "negative"},
		{"negative zero", "-0s", 0, "negative"},
		{"nothing", "", 0, "no duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inventory.ParseDuration(tt.text)
			check(t, got, tt.want, err, tt.err)
		})
	}
}

// check compares a parser's answer with what a row wants.
func check[T comparable](t *testing.T, got, want T, err error, wantErr string) {
	t.Helper()
	if wantErr == "" && err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
		t.Fatalf("error %v, want %q in it", err, wantErr)
	}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSizesRoundTrip: what String prints is read back: exactly when it is a whole
// number of the unit, and else as far as its one decimal goes.
func TestSizesRoundTrip(t *testing.T) {
	units := []hypervisor.Bytes{
		1, hypervisor.KiB, hypervisor.MiB, hypervisor.GiB, hypervisor.TiB,
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		n := hypervisor.Bytes(rapid.Int64Range(0, 1023).Draw(t, "n"))
		whole := n * unit
		got, err := inventory.ParseBytes(whole.String())
		if err != nil || got != whole {
			t.Fatalf("Bytes(%q) = %d, %v; want %d", whole, got, err, whole)
		}
		speed, err := inventory.ParseBandwidth(hypervisor.Bandwidth(whole).String())
		if err != nil || speed != hypervisor.Bandwidth(whole) {
			t.Fatalf("Bandwidth(%q) = %d, %v", whole, speed, err)
		}
		odd := whole + hypervisor.Bytes(rapid.Int64Range(0, int64(unit)).Draw(t, "rest"))
		got, err = inventory.ParseBytes(odd.String())
		if err != nil || max(got-odd, odd-got) > max(odd/5, 1) {
			t.Fatalf("Bytes(%q) = %d, %v; want nearly %d", odd, got, err, odd)
		}
	})
}

func FuzzBytes(f *testing.F) {
	for _, seed := range []string{"64GiB", "1.5TiB", "-1B", "0.000000001PiB", "9e9GB", "B", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := inventory.ParseBytes(text); n < 0 || err != nil && n != 0 {
			t.Errorf("Bytes(%q) = %d, %v", text, n, err)
		}
	})
}

func FuzzBandwidth(f *testing.F) {
	for _, seed := range []string{
		"10Gbit/s", "800MiB/s", "1bit/s", "-1B/s", "/s", "9999999Tbit/s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := inventory.ParseBandwidth(text); n < 0 || err != nil && n != 0 {
			t.Errorf("Bandwidth(%q) = %d, %v", text, n, err)
		}
	})
}

func ExampleBandwidth() {
	link, _ := inventory.ParseBandwidth("10Gbit/s")
	_, err := inventory.ParseBandwidth("10")
	fmt.Println(int64(link), err)
	// Output: 1250000000 "10" has no unit of speed; write 10Gbit/s or 800MiB/s
}
