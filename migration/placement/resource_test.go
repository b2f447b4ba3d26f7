package placement_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration/placement"
)

func TestCapacity(t *testing.T) {
	for _, row := range []struct {
		name string
		i    placement.DeviceInventory
		want int64
	}{
		{"the ratio is 1 unless it is given", placement.DeviceInventory{Total: 10}, 10},
		{"what is reserved is not given away", placement.DeviceInventory{Total: 10, Reserved: 3}, 7},
		{"and is taken off before the ratio",
			placement.DeviceInventory{Total: 10, Reserved: 2, Ratio: 1.5}, 12},
		{"halves are rounded down", placement.DeviceInventory{Total: 3, Ratio: 1.5}, 4},
		{"more reserved than there is", placement.DeviceInventory{Total: 1, Reserved: 2}, 0},
		{"a negative ratio", placement.DeviceInventory{Total: 1, Ratio: -1}, 0},
		{"a ratio beyond numbers", placement.DeviceInventory{Total: 9, Ratio: math.MaxFloat64},
			math.MaxInt64},
	} {
		if got := row.i.Capacity(); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	if got := (placement.DeviceInventory{Total: 10, Reserved: 3, Ratio: 2}).Gross(); got != 20 {
		t.Errorf("gross %d", got)
	}
}

func TestAllows(t *testing.T) {
	i := placement.DeviceInventory{Min: 4, Max: 12, Step: 4}
	for ask, want := range map[int64]bool{
		0: true, 3: false, 4: true, 6: false, 12: true, 16: false,
	} {
		if got := i.Allows(ask); got != want {
			t.Errorf("Allows(%d) = %v", ask, got)
		}
	}
	if !(placement.DeviceInventory{}).Allows(7) {
		t.Error("without bounds 7 is not allowed")
	}
}

func TestPlusAndMinusAreOpposites(t *testing.T) {
	class := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		var d placement.Devices
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			d = d.Plus(class.Draw(t, "class"), 1)
		}
		c, n := class.Draw(t, "class"), rapid.IntRange(0, 3).Draw(t, "more")
		more := d.Plus(c, n)
		if more.Of(c) != d.Of(c)+n {
			t.Fatalf("%v plus %d %s is %v", d, n, c, more)
		}
		if diff := cmp.Diff(d, more.Plus(c, -n)); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	})
}
