package kubeobject

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A Quantity is an amount as Kubernetes writes it: "100m", "1.5", "64Gi", "1e3". The zero value is 0.
type Quantity struct {
	text  string
	value int64   // whole units, rounded away from zero; beyond int64 the nearest
	milli int64   // thousandths, the same way
	float float64 // as Kubernetes approximates it
}

// The errors of ParseQuantity, in the words of Kubernetes.
// Source: Kubernetes v1.34 apimachinery/pkg/api/resource/quantity.go (ErrFormatWrong and others).
var (
	errFormat = errors.New("quantities must match the regular expression " +
		"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
	errNumeric = errors.New("unable to parse numeric part of quantity")
	errSuffix  = errors.New("unable to parse quantity's suffix")
)

// maxExponent bounds the work that a number like 1e-999999999 makes. Every quantity beyond it is
// the smallest or the largest that there is.
const maxExponent = 400

// nano is the exponent of the smallest part of a unit that Kubernetes keeps.
const nano = -9

// ParseQuantity reads a quantity as Kubernetes does. A part of a unit below a billionth is
// rounded away from zero.
func ParseQuantity(text string) (Quantity, error) {
	t, err := splitQuantity(text)
	if err != nil {
		return Quantity{}, err
	}
	q := Quantity{text: text}
	if t.simple() {
		if mantissa, err := strconv.ParseInt(t.digits, 10, 64); err == nil {
			if n := mantissa << t.shift; n>>t.shift == mantissa && n >= 0 {
				q.set(t.sign*n, t.exponent)
				return q, nil
			}
		}
	}
	if t.empty {
		return Quantity{}, errNumeric
	}
	q.setExact(t)
	return q, nil
}

// terms are the parts of a quantity: sign × digits × 10^exponent × 2^shift.
type terms struct {
	sign     int64
	digits   string
	whole    int // how many of the digits are before the point
	exponent int
	shift    uint
	empty    bool // it has no digit, which is 0 where the quantity is simple
}

// splitQuantity takes a text apart.
func splitQuantity(text string) (t terms, err error) {
	t.sign = 1
	rest := text
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		if rest[0] == '-' {
			t.sign = -1
		}
		rest = rest[1:]
	}
	if text == "" {
		return t, errFormat
	}
	number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
	suffix := rest[len(number):]
	t.empty = strings.Trim(number, ".") == ""
	whole, part, _ := strings.Cut(number, ".")
	if strings.Contains(part, ".") {
		return t, errFormat
	}
	whole = strings.TrimLeft(whole, "0")
	t.digits, t.whole = whole+part, len(whole)
	if t.digits == "" {
		t.digits = "0"
	}
	t.exponent, t.shift, err = scaleOf(suffix)
	t.exponent -= len(part)
	return t, err
}

// decimals and binaries are the suffixes of quantities.
var (
	decimals = map[string]int{"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12,
		"P": 15, "E": 18}
	binaries = map[string]uint{"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
)

// scaleOf returns what a suffix multiplies by: a power of ten and one of two.
func scaleOf(suffix string) (exponent int, shift uint, err error) {
	if n, found := decimals[suffix]; found {
		return n, 0, nil
	}
	if n, found := binaries[suffix]; found {
		return 0, n, nil
	}
	letters := strings.TrimLeft(suffix, "eEinumkKMGTP")
	digits := strings.TrimLeft(letters, "+-")
	if len(letters)-len(digits) > 1 || strings.Trim(digits, "0123456789") != "" {
		return 0, 0, errFormat
	}
	if len(suffix)-len(letters) != 1 || suffix[0] != 'e' && suffix[0] != 'E' {
		return 0, 0, errSuffix
	}
	n, err := strconv.ParseInt(letters, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, 0, errSuffix
	}
	return int(max(-maxExponent, min(n, maxExponent))), 0, nil
}

// simple reports whether Kubernetes keeps the quantity as a 64-bit number and a power of ten,
// which decides how it approximates it as a float.
// Source: Kubernetes v1.34 resource/quantity.go (ParseQuantity, the fast path).
func (t *terms) simple() bool {
	before := max(1, t.whole)
	after := len(t.digits) - t.whole
	if t.digits == "0" {
		after = 0
	}
	if t.shift == 0 {
		return t.exponent >= nano && before+after <= 18
	}
	return t.exponent == 0 && before+int(float32(t.shift)*3/10) <= 14
}

// set makes q mantissa × 10^exponent. The exponent is -9 or more.
func (q *Quantity) set(mantissa int64, exponent int) {
	q.value, q.milli = scaled(mantissa, exponent), scaled(mantissa, exponent+3)
	q.float = float64(mantissa)
	if exponent != 0 && mantissa != 0 {
		q.float *= math.Pow10(exponent)
	}
}

// scaled returns n × 10^exponent, rounded away from zero.
func scaled(n int64, exponent int) int64 {
	for ; exponent > 0 && n != 0; exponent-- {
		switch {
		case n > math.MaxInt64/10:
			return math.MaxInt64
		case n < math.MinInt64/10:
			return math.MinInt64
		}
		n *= 10
	}
	if exponent >= 0 {
		return n
	}
	unit := int64(math.Pow10(-exponent))
	whole, rest := n/unit, n%unit
	switch {
	case rest > 0:
		whole++
	case rest < 0:
		whole--
	}
	return whole
}

// setExact makes q what the terms say, in billionths.
func (q *Quantity) setExact(t terms) {
	n, _ := new(big.Int).SetString(t.digits, 10) // digits only
	n.Lsh(n, t.shift)
	power := t.exponent - nano
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil)
	if power >= 0 {
		n.Mul(n, ten)
	} else {
		n = over(n, ten)
	}
	billion := big.NewInt(1_000_000_000)
	most := new(big.Int).Mul(big.NewInt(math.MaxInt64), billion)
	if t.shift > 0 && n.Cmp(most) > 0 { // as Kubernetes caps it
		q.value, q.milli, q.float = t.sign*math.MaxInt64, t.sign*math.MaxInt64, float64(t.sign)*math.MaxInt64
		return
	}
	q.value = t.sign * saturate(over(n, billion))
	q.milli = t.sign * saturate(over(n, big.NewInt(1_000_000)))
	base, _ := new(big.Float).SetPrec(53).SetInt(n).Float64()
	q.float = float64(t.sign) * base * math.Pow10(nano)
}

// over returns n / by of two positive numbers, rounded up.
func over(n, by *big.Int) *big.Int {
	whole, rest := new(big.Int).QuoRem(n, by, new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}

func saturate(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// Value returns the whole units, rounded away from zero.
func (q *Quantity) Value() int64 { return q.value }

// MilliValue returns the thousandths of a unit, rounded away from zero.
func (q *Quantity) MilliValue() int64 { return q.milli }

// AsApproximateFloat64 returns the quantity as Kubernetes approximates it.
func (q *Quantity) AsApproximateFloat64() float64 { return q.float }

// IsZero reports whether the quantity is 0.
func (q *Quantity) IsZero() bool { return q.milli == 0 }

// String returns the quantity as it was written.
func (q *Quantity) String() string {
	if q.text == "" {
		return "0"
	}
	return q.text
}

// UnmarshalJSON reads a quantity, which may be a string or a number.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		*q = Quantity{}
		return nil
	}
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	read, err := ParseQuantity(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%.40q is no quantity, which is a number with or without a unit: 500m, 4 or 64Gi", text)
	}
	*q = read
	return nil
}
