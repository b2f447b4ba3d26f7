// Package life is cases about VMs on one host, and about targets that wait for a source.
package life

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/stage"
)

type world = stage.World

const (
	source = stage.Source
	target = stage.Target
	theVM  = stage.TheVM
)

// Groups are the cases of this package.
func Groups() []stage.Group {
	return []stage.Group{
		{Name: "lifecycle", Trials: slices.Concat(lives, limits)},
		{Name: "hardware", Trials: slices.Concat(sizes, disks, measurements)},
		{Name: "receive", Trials: slices.Concat(targets, restingTargets, refusedTargets)},
	}
}
