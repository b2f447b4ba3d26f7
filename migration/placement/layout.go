package placement

import (
	"fmt"
)

// cellsOf returns the host's cells; none when they are not known.
func cellsOf(h *Host) []Cell {
	if h.Facts == nil {
		return nil
	}
	return h.Facts.Cells
}

// hugepagesLack: the host has fewer free pages of the size than the VM is made
// of, in all its cells together. A live move keeps the size of the pages.
// Source: Nova virt/hardware.py (_numa_cell_supports_pagesize_request) and
// compute/manager.py (MoveClaim: the page size does not change).
func hugepagesLack(vm *VM, h *Host, _ options) bool {
	a := vm.Constraints.Topology
	if a == nil || a.PageSize == 0 {
		return false
	}
	if a.PageSize < 0 || vm.Memory%a.PageSize != 0 {
		return true
	}
	return int64(vm.Memory/a.PageSize) > freePages(a, h)
}

func freePages(a *TopologyRequest, h *Host) int64 {
	free, cells, use := int64(0), cellsOf(h), h.usedCells()
	for i := range cells {
		none := CellUse{}
		u := &none
		if i < len(use) {
			u = &use[i]
		}
		free += max(0, freePagesOf(a.PageSize, &cells[i], u))
	}
	return free
}

func explainHugepages(vm *VM, h *Host, _ options) (string, string) {
	a := vm.Constraints.Topology
	return fmt.Sprintf("%v in pages of %v", vm.Memory, a.PageSize),
		fmt.Sprintf("%d pages", freePages(a, h))
}

// topologyFails: the VM's layout fits into no choice of the host's cells, or
// the cells are not known.
// Source: Nova scheduler/filters/numa_topology_filter.py (host_passes).
func topologyFails(vm *VM, h *Host, _ options) bool {
	a := vm.Constraints.Topology
	return a != nil && !fitsTopology(a, vm.Whole(), cellsOf(h), h.usedCells())
}

func explainTopology(vm *VM, h *Host, _ options) (string, string) {
	a := vm.Constraints.Topology
	return a.describe(vm.Whole()), a.left(cellsOf(h), h.usedCells())
}
