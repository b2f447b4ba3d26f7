package placement_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// smt returns a cell with cores of two threads, from CPU first on.
func smt(id, first, cores int, memory hypervisor.Bytes) placement.Cell {
	c := placement.Cell{ID: id, Memory: memory}
	for i := range cores {
		c.Cores = append(c.Cores, placement.CPUSetOf(first+2*i, first+2*i+1))
	}
	return c
}

// plain returns a cell with cores of one thread.
func plain(first, cores int, memory hypervisor.Bytes) placement.Cell {
	c := placement.Cell{Memory: memory}
	for i := range cores {
		c.Cores = append(c.Cores, placement.CPUSetOf(first+i))
	}
	return c
}

func used(memory hypervisor.Bytes, cpus ...int) placement.CellUse {
	return placement.CellUse{Memory: memory, Pinned: placement.CPUSetOf(cpus...)}
}

func dedicated(policy placement.Threads) *placement.TopologyRequest {
	return &placement.TopologyRequest{Dedicated: true, Threads: policy}
}

func TestFits(t *testing.T) {
	type cells = []placement.Cell
	type uses = []placement.CellUse
	huge := smt(0, 0, 4, gib)
	huge.Pages = []placement.Pool{{Size: gib, Pages: 8}, {Size: 2 * hypervisor.MiB, Pages: 512}}
	two := &placement.TopologyRequest{Parts: []placement.Part{{CPUs: 6, Memory: gib}, {CPUs: 2, Memory: 6 * gib}}}
	for _, row := range []struct {
		name  string
		ask   *placement.TopologyRequest
		whole placement.Part
		cells cells
		use   uses
		want  bool
	}{
		{"no cells take no VM", &placement.TopologyRequest{}, placement.Part{}, nil, nil, false},
		{"one cell with exactly enough", &placement.TopologyRequest{}, placement.Part{CPUs: 8, Memory: 8 * gib},
			cells{smt(0, 0, 4, 8*gib)}, nil, true},
		{"memory of two cells is not one", &placement.TopologyRequest{}, placement.Part{CPUs: 1, Memory: 8 * gib},
			cells{smt(0, 0, 4, 4*gib), smt(1, 8, 4, 4*gib)}, nil, false},
		{"used memory counts", &placement.TopologyRequest{}, placement.Part{CPUs: 1, Memory: 8 * gib},
			cells{smt(0, 0, 4, 8*gib)}, uses{used(1)}, false},
		{"floating CPUs need as many that are not dedicated", &placement.TopologyRequest{},
			placement.Part{CPUs: 7}, cells{smt(0, 0, 4, gib)}, uses{used(0, 1, 2)}, false},
		{"the second cell is tried", dedicated(""), placement.Part{CPUs: 8},
			cells{smt(0, 0, 4, gib), smt(1, 8, 4, gib)}, uses{used(0, 3)}, true},
		{"prefer takes single threads", dedicated(placement.Prefer), placement.Part{CPUs: 2},
			cells{smt(0, 0, 2, gib)}, uses{used(0, 0, 2)}, true},
		{"require does not", dedicated(placement.Require), placement.Part{CPUs: 2},
			cells{smt(0, 0, 2, gib)}, uses{used(0, 0, 2)}, false},
		{"require needs threads at all", dedicated(placement.Require), placement.Part{CPUs: 2},
			cells{plain(0, 4, gib)}, nil, false},
		{"require leaves an odd CPU alone on its core, as Nova does",
			dedicated(placement.Require), placement.Part{CPUs: 3},
			cells{smt(0, 0, 2, gib)}, nil, true},
		{"isolate takes a core for each CPU", dedicated(placement.Isolate), placement.Part{CPUs: 4},
			cells{smt(0, 0, 4, gib)}, nil, true},
		{"isolate needs whole cores", dedicated(placement.Isolate), placement.Part{CPUs: 4},
			cells{smt(0, 0, 4, gib)}, uses{used(0, 7)}, false},
		{"isolate needs no threads", dedicated(placement.Isolate), placement.Part{CPUs: 4},
			cells{plain(0, 4, gib)}, nil, true},
		{"huge pages of the size", &placement.TopologyRequest{PageSize: gib}, placement.Part{Memory: 8 * gib},
			cells{huge}, nil, true},
		{"one page too few", &placement.TopologyRequest{PageSize: gib}, placement.Part{Memory: 8 * gib},
			cells{huge}, uses{{Pages: []placement.Pool{{Size: gib, Pages: 1}}}}, false},
		{"pages of another size are no help", &placement.TopologyRequest{PageSize: 2 * hypervisor.MiB},
			placement.Part{Memory: 8 * gib}, cells{huge}, nil, false},
		{"a fraction of a page is none", &placement.TopologyRequest{PageSize: gib},
			placement.Part{Memory: gib + 1}, cells{huge}, nil, false},
		{"parts go where they fit, the first moves aside", two, placement.Part{},
			cells{smt(0, 0, 3, 8*gib), smt(1, 6, 3, 2*gib)}, nil, true},
		{"two parts need two cells", two, placement.Part{},
			cells{smt(0, 0, 32, 64*gib)}, nil, false},
		{"a negative size fits nowhere", &placement.TopologyRequest{}, placement.Part{CPUs: -1},
			cells{smt(0, 0, 4, gib)}, nil, false},
		{"a negative page size fits nowhere", &placement.TopologyRequest{PageSize: -1}, placement.Part{},
			cells{smt(0, 0, 4, gib)}, nil, false},
		{"more cells than are known to be right fit no VM", &placement.TopologyRequest{}, placement.Part{},
			make(cells, placement.MaxCells+1), nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := placement.FitsTopology(row.ask, row.whole, row.cells, row.use); got != row.want {
				t.Errorf("Fits = %v", got)
			}
		})
	}
}

func TestFitChoosesCPUs(t *testing.T) {
	for _, row := range []struct {
		policy      placement.Threads
		cpus        int
		use         placement.CellUse
		want, taken string
	}{
		{placement.Prefer, 2, used(0, 0), "2-3", "2-3"},
		{placement.Prefer, 3, used(0, 0, 3, 5), "1-2,4", "1-2,4"},
		{placement.Require, 4, used(0, 0), "2-5", "2-5"},
		{placement.Isolate, 2, used(0, 0), "2,4", "2-5"},
	} {
		cell := smt(7, 0, 4, gib)
		seats, ok := placement.Fit(dedicated(row.policy), placement.Part{CPUs: row.cpus},
			[]placement.Cell{cell}, []placement.CellUse{row.use})
		if !ok || seats[0].CPUs.String() != row.want || seats[0].Taken.String() != row.taken {
			t.Errorf("%s of %d: %v, %v; want CPUs %s of %s", row.policy, row.cpus, seats, ok,
				row.want, row.taken)
		}
	}
}

func TestSetsReadAndWriteAsTheKernelDoes(t *testing.T) {
	for _, text := range []string{"", "0", "0-3,8", "63-64,127,130-131"} {
		var s placement.CPUSet
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%q reads as %q, %v", text, s, err)
		}
	}
	for _, text := range []string{",", "x", "3-1", "-1", "0-", "9999999", "1,,2"} {
		if s, err := placement.ParseCPUSet(text); err == nil {
			t.Errorf("%q reads as %v", text, s)
		}
	}
	if s := placement.CPUSetOf(3, -1, placement.MaxCPU+1); s.Len() != 1 || !s.Has(3) || s.Has(-1) {
		t.Errorf("SetOf leaves nonsense in: %v", s)
	}
}

func TestAskIsStoredAsWritten(t *testing.T) {
	a := placement.TopologyRequest{Parts: []placement.Part{{CPUs: 2, Memory: gib}}, Dedicated: true,
		Threads: placement.Isolate, PageSize: 2 * hypervisor.MiB}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back placement.TopologyRequest
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestEvenAndValid(t *testing.T) {
	whole := placement.Part{CPUs: 8, Memory: 8 * gib}
	parts, ok := placement.Even(2, whole)
	if a := (placement.TopologyRequest{Parts: parts}); !ok || !a.Valid(whole) {
		t.Errorf("two halves: %v, %v", parts, ok)
	}
	for _, n := range []int{-1, 0, 3, 1 << 40} {
		if parts, ok := placement.Even(n, whole); ok {
			t.Errorf("divided by %d: %v", n, parts)
		}
	}
	for name, a := range map[string]placement.TopologyRequest{
		"an unknown policy":   {Threads: "maybe"},
		"a broken page":       {PageSize: 3 * gib},
		"a negative page":     {PageSize: -gib},
		"parts that are less": {Parts: []placement.Part{{CPUs: 4, Memory: 8 * gib}}},
		"a negative part": {Parts: []placement.Part{{CPUs: 9, Memory: 9 * gib},
			{CPUs: -1, Memory: -gib}}},
		"more parts than fit": {Parts: make([]placement.Part, placement.MaxCells+1)},
		"parts in half a page": {PageSize: gib, Parts: []placement.Part{
			{CPUs: 8, Memory: gib / 2}, {Memory: 15 * gib / 2}}},
	} {
		if a.Valid(whole) {
			t.Errorf("%s is valid", name)
		}
	}
}

func drawCells(t *rapid.T) ([]placement.Cell, []placement.CellUse) {
	var cells []placement.Cell
	var use []placement.CellUse
	for i := range rapid.IntRange(0, 4).Draw(t, "cells") {
		threads := rapid.IntRange(1, 3).Draw(t, "threads")
		c := placement.Cell{ID: i, Memory: hypervisor.Bytes(rapid.IntRange(0, 6).Draw(t, "memory")),
			Pages: []placement.Pool{{Size: 2, Pages: rapid.Int64Range(0, 3).Draw(t, "pages")}}}
		var u placement.CellUse
		for core := range rapid.IntRange(0, 3).Draw(t, "cores") {
			var cpus []int
			for k := range threads {
				cpu := 100*i + threads*core + k
				cpus = append(cpus, cpu)
				if rapid.IntRange(0, 3).Draw(t, "pinned") == 0 {
					u.Pinned = placement.CPUSetOf(append(u.Pinned.CPUs(), cpu)...)
				}
			}
			c.Cores = append(c.Cores, placement.CPUSetOf(cpus...))
		}
		cells, use = append(cells, c), append(use, u)
	}
	return cells, use
}

func drawAsk(t *rapid.T) (*placement.TopologyRequest, placement.Part) {
	a := &placement.TopologyRequest{Dedicated: rapid.Bool().Draw(t, "dedicated"),
		Threads: rapid.SampledFrom([]placement.Threads{"", placement.Prefer, placement.Isolate,
			placement.Require}).Draw(t, "policy"),
		PageSize: hypervisor.Bytes(rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "page"))}
	part := rapid.Custom(func(t *rapid.T) placement.Part {
		return placement.Part{CPUs: rapid.IntRange(0, 5).Draw(t, "cpus"),
			Memory: hypervisor.Bytes(rapid.IntRange(0, 4).Draw(t, "memory"))}
	})
	a.Parts = rapid.SliceOfN(part, 0, 3).Draw(t, "parts")
	return a, part.Draw(t, "whole")
}

// fitsSomehow tries every way to give each part a cell of its own.
func fitsSomehow(a *placement.TopologyRequest, parts []placement.Part, cells []placement.Cell, u []placement.CellUse,
) bool {
	if len(parts) == 0 {
		return true
	}
	one := *a
	one.Parts = nil
	for i := range cells {
		if !placement.FitsTopology(&one, parts[0], cells[i:i+1], u[i:i+1]) {
			continue
		}
		rest := append(append([]placement.Cell{}, cells[:i]...), cells[i+1:]...)
		restUse := append(append([]placement.CellUse{}, u[:i]...), u[i+1:]...)
		if fitsSomehow(a, parts[1:], rest, restUse) {
			return true
		}
	}
	return false
}

func TestAFitIsFoundWhenThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, use := drawCells(t)
		a, whole := drawAsk(t)
		parts := a.Parts
		if len(parts) == 0 {
			parts = []placement.Part{whole}
		}
		want := fitsSomehow(a, parts, cells, use)
		if got := placement.FitsTopology(a, whole, cells, use); got != want {
			t.Fatalf("Fits = %v, trying all ways says %v", got, want)
		}
		if seats, ok := placement.Fit(a, whole, cells, use); ok != want || ok &&
			len(seats) != len(parts) {
			t.Fatalf("Fit = %v, %v; want %v", seats, ok, want)
		}
	})
}

// TestSeatsAreWhatWasAskedFor: nothing that was taken is taken again, policies
// are kept, and giving back is exact.
func TestSeatsAreWhatWasAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, use := drawCells(t)
		a, whole := drawAsk(t)
		seats, ok := placement.Fit(a, whole, cells, use)
		if !ok {
			t.Skip("it does not fit")
		}
		seen := map[int]bool{}
		for i, s := range seats {
			if seen[s.Cell] {
				t.Fatalf("two parts in cell %d", s.Cell)
			}
			seen[s.Cell] = true
			part := whole
			if len(a.Parts) > 0 {
				part = a.Parts[i]
			}
			checkSeat(t, a, part, s, place{&cells[s.Cell], use[s.Cell]})
		}
		before := trim(use)
		after := placement.Free(placement.Take(append([]placement.CellUse{}, use...), seats), seats)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("taken and given back (-before +after):\n%s", diff)
		}
	})
}

// A place is a cell and what was taken of it before.
type place struct {
	cell *placement.Cell
	use  placement.CellUse
}

func trim(use []placement.CellUse) []placement.CellUse {
	return placement.Free(append([]placement.CellUse(nil), use...), nil)
}

func checkSeat(
	t *rapid.T, a *placement.TopologyRequest, p placement.Part, s placement.Seat, at place,
) {
	c, u := at.cell, at.use
	if s.Memory != p.Memory || a.Dedicated != (s.CPUs.Len() == p.CPUs) && p.CPUs > 0 {
		t.Fatalf("the seat %+v is not the part %+v", s, p)
	}
	for _, cpu := range s.Taken.CPUs() {
		if u.Pinned.Has(cpu) {
			t.Fatalf("CPU %d was taken", cpu)
		}
	}
	for _, cpu := range s.CPUs.CPUs() {
		if !s.Taken.Has(cpu) {
			t.Fatalf("CPU %d runs a VM and is not taken", cpu)
		}
	}
	for _, core := range c.Cores {
		here, taken := 0, 0
		for _, cpu := range core.CPUs() {
			if s.CPUs.Has(cpu) {
				here++
			}
			if s.Taken.Has(cpu) {
				taken++
			}
		}
		if a.Threads == placement.Isolate && (here > 1 || here == 1 && taken < core.Len()) {
			t.Fatalf("isolated CPUs share core %v", core)
		}
	}
}

func TestMoreOfACellNeverRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, use := drawCells(t)
		a, whole := drawAsk(t)
		before := placement.FitsTopology(a, whole, cells, use)
		for i := range cells {
			cells[i].Memory += hypervisor.Bytes(rapid.IntRange(0, 2).Draw(t, "more"))
			cells[i].Pages[0].Pages += rapid.Int64Range(0, 2).Draw(t, "more pages")
			cells[i].Cores = append(cells[i].Cores, placement.CPUSetOf(1000+i))
		}
		if before && !placement.FitsTopology(a, whole, cells, use) {
			t.Fatal("larger cells refuse what smaller ones took")
		}
	})
}
