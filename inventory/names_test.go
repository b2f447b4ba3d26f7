package inventory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/inventory"
)

func TestExpandNames(t *testing.T) {
	tests := []struct {
		name, pattern string
		want          []string
		err           string
	}{
		{"a name is itself", "db", []string{"db"}, ""},
		{"a range counts", "n[9-11]", []string{"n9", "n10", "n11"}, ""},
		{"a leading zero keeps the width", "n[08-10]", []string{"n08", "n09", "n10"}, ""},
		{"a range of one", "n[7-7]", []string{"n7"}, ""},
		{"zero may be counted from", "n[0-1]", []string{"n0", "n1"}, ""},
		{"numbers and ranges mix", "n[1,5-6]x", []string{"n1x", "n5x", "n6x"}, ""},
		{"the last range counts fastest", "r[1-2]n[1-2]",
			[]string{"r1n1", "r1n2", "r2n1", "r2n2"}, ""},
		{"backwards", "n[3-1]", nil, "goes backwards"},
		{"open", "n[1-2", nil, "a [ without a ]"},
		{"closed only", "n1-2]", nil, "a ] without a ["},
		{"empty", "n[]", nil, "is no range"},
		{"half a range", "n[1-]", nil, "is no range"},
		{"letters", "n[a-c]", nil, "is no range"},
		{"ends of different widths", "n[001-2]", nil, "different widths"},
		{"too many", "n[1-101]", nil, "more than 100 names"},
		{"too many together", "n[1-11]m[1-11]", nil, "more than 100 names"},
		{"far too many", "n[0-999999999]", nil, "more than 100 names"},
		{"many small ranges", "n[" + strings.Repeat("1,", 200) + "1]", nil, "more than 100 names"},
		{"numbers that are too large", "n[1-99999999999999999999]", nil, "is no range"},
		{"too long", strings.Repeat("x", 300) + "[1-9]", nil, "longer than 253"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inventory.ExpandNames(tt.pattern, 100)
			if (tt.err == "") != (err == nil) ||
				err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRangesCount: a pattern stands for the product of its ranges' lengths, and no
// name twice.
func TestRangesCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, want := "", 1
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			low := rapid.IntRange(0, 50).Draw(t, "low")
			high := rapid.IntRange(low, low+12).Draw(t, "high")
			pattern += fmt.Sprintf("%s[%d-%d]",
				rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "text"), low, high)
			want *= high - low + 1
		}
		names, err := inventory.ExpandNames(pattern, 100_000)
		if pattern == "" {
			want = len(names)
		}
		if err != nil || len(names) != want {
			t.Fatalf("%q is %d names, %v; want %d", pattern, len(names), err, want)
		}
		slices.Sort(names)
		if got := len(slices.Compact(names)); got != want {
			t.Errorf("%q has %d different names, want %d", pattern, got, want)
		}
	})
}

func FuzzRange(f *testing.F) {
	for _, seed := range []string{
		"n[1-3]", "a[01-10]b[2,4]", "[", "]", "[-]", "[1-999999999]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		names, err := inventory.ExpandNames(pattern, 1000)
		if (err == nil) == (len(names) == 0) || len(names) > 1000 {
			t.Errorf("ExpandNames(%q) = %d names, %v", pattern, len(names), err)
		}
	})
}

func ExampleExpandNames() {
	names, _ := inventory.ExpandNames("rack[1-2]-n[08-10]", 100)
	fmt.Println(strings.Join(names, " "))
	// Output: rack1-n08 rack1-n09 rack1-n10 rack2-n08 rack2-n09 rack2-n10
}
