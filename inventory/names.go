package inventory

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits on what one file may describe.
const (
	// MaxNames is how many hosts, and how many VMs, a file may have.
	MaxNames = 2_000_000
	// MaxName is how long a name may be. Source: Kubernetes' DNS subdomains.
	MaxName = 253
)

// ExpandNames returns the names that a pattern stands for, in order, or an error
// when they are more than limit. A range in brackets counts: n[1-3] is n1, n2
// and n3; n[08-10] keeps the width: n08, n09, n10; n[1,5-6] is n1, n5 and n6.
// Several ranges are combined, the last one counting fastest. Without a range a
// pattern is itself.
func ExpandNames(pattern string, limit int) ([]string, error) {
	if limit > 0 && len(pattern) <= MaxName && !strings.ContainsAny(pattern, "[]") {
		return []string{pattern}, nil // as most are
	}
	names := []string{""}
	for rest := pattern; rest != ""; {
		text, after, found := strings.Cut(rest, "[")
		if strings.Contains(text, "]") {
			return nil, fmt.Errorf("%q has a ] without a [", pattern)
		}
		counts := []string{""}
		if rest = ""; found {
			inside, tail, closed := strings.Cut(after, "]")
			if !closed {
				return nil, fmt.Errorf("%q has a [ without a ]", pattern)
			}
			var err error
			if counts, err = expandRange(inside, limit); err != nil {
				return nil, fmt.Errorf("%q: %w", pattern, err)
			}
			rest = tail
		}
		switch {
		case len(names)*len(counts) > limit:
			return nil, fmt.Errorf("%q is more than %d names", pattern, limit)
		case len(names[0])+len(text)+len(counts[0]) > MaxName:
			return nil, fmt.Errorf("%q is longer than %d characters", pattern, MaxName)
		}
		names = combine(names, text, counts)
	}
	return names, nil
}

// combine appends text and each of counts to each of names.
func combine(names []string, text string, counts []string) []string {
	all := make([]string, 0, len(names)*len(counts))
	for _, name := range names {
		for _, count := range counts {
			all = append(all, name+text+count)
		}
	}
	return all
}

// expandRange returns what stands for "1-3,7".
func expandRange(inside string, limit int) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(inside, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err1 := number(low)
		last, err2 := number(high)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fmt.Errorf("%q is no range; write [1-20] or [1,3,5-7]", part)
		case last < first:
			return nil, fmt.Errorf("the range %q goes backwards", part)
		case len(low) > len(high):
			return nil, fmt.Errorf("the ends of %q have different widths", part)
		case last-first >= limit-len(all):
			return nil, fmt.Errorf("the range %q is more than %d names", part, limit)
		}
		for n := first; n <= last; n++ {
			all = append(all, fmt.Sprintf("%0*d", width(low), n))
		}
	}
	return all, nil
}

// number reads up to nine digits.
func number(text string) (int, error) {
	if !digits(text) || len(text) > 9 {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}

// width is to how many digits numbers are filled up: only a written leading zero
// asks for it.
func width(low string) int {
	if strings.HasPrefix(low, "0") {
		return len(low)
	}
	return 1
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
