package placement

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxCPU is the highest number of a host's CPU.
const MaxCPU = 8191

// A Set is a set of CPUs by number: CPU i is bit i%64 of word i/64. The last
// word is not zero, so that equal sets are equal slices.
type CPUSet []uint64

// CPUSetOf returns the set of the given CPUs. Numbers below 0 or above [MaxCPU]
// are left out.
func CPUSetOf(cpus ...int) CPUSet {
	var s CPUSet
	for _, i := range cpus {
		s = s.with(i)
	}
	return s
}

// ParseCPUSet reads a set as the kernel writes it: "0-3,8". An error says which
// part is none.
func ParseCPUSet(text string) (CPUSet, error) {
	var s CPUSet
	if text == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, errFrom := strconv.Atoi(low)
		to, errTo := strconv.Atoi(high)
		if errFrom != nil || errTo != nil || from < 0 || to < from || to > MaxCPU {
			return nil, fmt.Errorf("%q in the set of CPUs %q: want a number up to %d or a range "+
				"like 0-3", part, text, MaxCPU)
		}
		for i := from; i <= to; i++ {
			s = s.with(i)
		}
	}
	return s, nil
}

// Has reports whether CPU i is in s.
func (s CPUSet) Has(i int) bool { return i >= 0 && i/64 < len(s) && s[i/64]>>(i%64)&1 == 1 }

// Len returns how many CPUs are in s.
func (s CPUSet) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// CPUs lists the CPUs in s, in order.
func (s CPUSet) CPUs() []int {
	var all []int
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			all = append(all, 64*i+bits.TrailingZeros64(w))
		}
	}
	return all
}

// String writes s as the kernel does: "0-3,8".
func (s CPUSet) String() string {
	var parts []string
	all := s.CPUs()
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		part := strconv.Itoa(all[i])
		if j > i {
			part += "-" + strconv.Itoa(all[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// MarshalText stores s as "0-3,8".
func (s CPUSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSet reads.
func (s *CPUSet) UnmarshalText(text []byte) error {
	parsed, err := ParseCPUSet(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}

// with returns s and CPU i. It may change s.
func (s CPUSet) with(i int) CPUSet {
	if i < 0 || i > MaxCPU {
		return s
	}
	for i/64 >= len(s) {
		s = append(s, 0)
	}
	s[i/64] |= 1 << (i % 64)
	return s
}

// free returns how many CPUs of s are not in taken.
func (s CPUSet) free(taken CPUSet) int {
	n := 0
	for i, w := range s {
		if i < len(taken) {
			w &^= taken[i]
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// plus returns the CPUs of s and of o, in memory of its own.
func (s CPUSet) plus(o CPUSet) CPUSet {
	all := slices.Clone(s)
	for i, w := range o {
		if i < len(all) {
			all[i] |= w
		} else {
			all = append(all, w)
		}
	}
	return all.trimmed()
}

// minus returns the CPUs of s that are not in o, in memory of its own.
func (s CPUSet) minus(o CPUSet) CPUSet {
	rest := slices.Clone(s)
	for i := range min(len(rest), len(o)) {
		rest[i] &^= o[i]
	}
	return rest.trimmed()
}

func (s CPUSet) trimmed() CPUSet {
	for len(s) > 0 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	if len(s) == 0 {
		return nil
	}
	return s
}
