package placement

import (
	"cmp"
	"math"
	"slices"
)

// An Inventory is an amount of one resource, in bytes or in whole CPUs, as Nova's
// Placement keeps it.
type DeviceInventory struct {
	Total    int64 // 0: unknown
	Reserved int64 // not for VMs
	// Ratio is how often what is left may be given away. Default: 1.
	Ratio float64
	// Min, Max and Step bound what one VM may ask for. 0 is no bound.
	Min, Max, Step int64
}

// Capacity returns what VMs may use together: (Total - Reserved) * Ratio,
// rounded down, never negative. A host's Memory and
// CPUs are such numbers.
// Source: Nova Placement (used + ask <= (total - reserved) * allocation_ratio).
func (i DeviceInventory) Capacity() int64 { return scaled(i.Total-i.Reserved, i.Ratio) }

// Gross returns what there would be if nothing were reserved: Total * Ratio.
func (i DeviceInventory) Gross() int64 { return scaled(i.Total, i.Ratio) }

// Allows reports whether one VM may ask for so much: Min, Max and Step hold. A
// VM that asks for nothing may.
// Source: Nova Placement (min_unit <= ask <= max_unit, ask % step_size == 0).
func (i DeviceInventory) Allows(ask int64) bool {
	return ask <= 0 || ask >= i.Min && (i.Max <= 0 || ask <= i.Max) &&
		(i.Step <= 0 || ask%i.Step == 0)
}

func scaled(n int64, ratio float64) int64 {
	switch {
	case n <= 0 || ratio < 0:
		return 0
	case ratio == 0 || ratio == 1:
		return n
	}
	if f := math.Floor(float64(n) * ratio); f < math.MaxInt64 {
		return int64(f)
	}
	return math.MaxInt64
}

// Devices count host devices by class, such as "nvidia-a100"; each class occurs
// once. They are a list because few classes are looked up often.
type Devices []DeviceCount

// A DeviceCount is a number of devices of one class.
type DeviceCount struct {
	Class string
	Count int
}

// Of returns how many devices of a class there are.
func (d Devices) Of(class string) int {
	for i := range d {
		if d[i].Class == class {
			return d[i].Count
		}
	}
	return 0
}

// plus returns d with n more devices of a class, in memory of its own. A class
// of which there is none is left out.
func (d Devices) plus(class string, n int) Devices {
	sum := DeviceCount{class, d.Of(class) + n}
	rest := Devices(nil)
	for _, c := range d {
		if c.Class != class {
			rest = append(rest, c)
		}
	}
	if sum.Count != 0 {
		rest = append(rest, sum)
		slices.SortFunc(rest, func(a, b DeviceCount) int { return cmp.Compare(a.Class, b.Class) })
	}
	return rest
}
