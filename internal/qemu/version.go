//go:build linux

package qemu

import (
	"cmp"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Oldest is the oldest QEMU that works: devices are described to it as JSON,
// which 6.2 was the first to take. All else is older: pausing before the
// switch-over (2.11), parallel channels (4.0), "-action" (6.0).
var Oldest = Version{6, 2, 0}

// EndsChannels is the first QEMU whose migration ends when one of several connections
// breaks. Source: QEMU commit 15f3f21d598a.
var EndsChannels = Version{9, 0, 0}

// ResumesPostCopied is the first QEMU that lets the guest of a source run again when its
// migration fails after post-copy began, although the guest may run at the target by then. One
// that was stopped before stays stopped.
// Source: QEMU 9.0 migration/migration.c (migration_stop_vm notes vm_old_state in post-copy too;
// migration_iteration_finish). internal/tools/qemufaults shows it.
var ResumesPostCopied = Version{9, 0, 0}

// Compare returns -1, 0 or 1 as v is older than w, the same, or newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor),
		cmp.Compare(v.Micro, w.Micro))
}

// TooOld is a QEMU that is older than what is needed. It is
// [hypervisor.Unsupported].
type TooOld struct {
	Path       string
	Have, Need Version
}

// Error says what to do.
func (e *TooOld) Error() string {
	return fmt.Sprintf("QEMU %v is too old: %v or newer is needed; install it, or name another "+
		"one than %s", e.Have, e.Need, e.Path)
}

// Is makes errors.Is(err, hypervisor.Unsupported) work.
func (e *TooOld) Is(target error) bool { return target == error(hypervisor.Unsupported) }

// Require answers a *[TooOld] if the QEMU is older than oldest.
func (f Features) Require(oldest Version) error {
	if f.Version.Compare(oldest) < 0 {
		return &TooOld{Path: f.Path, Have: f.Version, Need: oldest}
	}
	return nil
}
