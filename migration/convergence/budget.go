package convergence

import (
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Budget returns how long KubeVirt lets a migration take: perGiB, in whole
// seconds, for each decimal gigabyte of memory and copied disks, rounded up.
// 0 is no limit. It never exceeds [hypervisor.Forever].
// Source: KubeVirt v1.9.0 manager.go:852 (getVMIMigrationDataSize).
func Budget(memory, disks hypervisor.Bytes, perGiB time.Duration) time.Duration {
	return times(perGiB.Truncate(time.Second), plus(memory, disks).CeilGB())
}

// size returns what the migration has to move at most.
func (l *evaluation) size() hypervisor.Bytes { return plus(l.memory(), l.disks()) }

// memory returns the size of the guest's memory.
func (l *evaluation) memory() hypervisor.Bytes {
	if l.c.Memory > 0 {
		return l.c.Memory
	}
	return l.p.Total
}

// disks returns the size of the disks that are copied before it.
func (l *evaluation) disks() hypervisor.Bytes {
	if l.c.Disks > 0 {
		return l.c.Disks
	}
	return l.p.Disks
}

// budget returns how long this transfer may take in all; 0 is no limit.
//
// KubeVirt counts the VM's size, so that an idle VM of 512 GiB may take a day.
// Here the first pass shows how much data there really is (a hypervisor does not
// send pages that hold only zeros); from its end on, that data is the measure. Disks are
// there by then, and count no more.
func (l *evaluation) budget() time.Duration {
	if l.c.Method != Watermark {
		return Budget(l.size(), 0, l.c.CompletionTimeoutPerGiB)
	}
	whole := times(l.c.CompletionTimeoutPerGiB, l.size().CeilGiB())
	if l.s.Watermark.Data <= 0 {
		return whole
	}
	rest := times(l.c.CompletionTimeoutPerGiB, l.s.Watermark.Data.CeilGiB())
	return min(whole, later(l.s.Watermark.FirstPass, rest))
}

// acceptable returns KubeVirt's acceptableCompletionTime, in seconds, before any
// extension.
func (l *evaluation) acceptable() int64 { return int64(l.budget() / time.Second) }

// plus adds without overflow; amounts below zero count as zero.
func plus(a, b hypervisor.Bytes) hypervisor.Bytes {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// later adds two spans, neither below zero, without overflow.
func later(a, b time.Duration) time.Duration {
	if a > hypervisor.Forever-b {
		return hypervisor.Forever
	}
	return a + b
}

// times multiplies without overflow; factors below zero count as zero.
func times(d time.Duration, n int64) time.Duration {
	switch {
	case d <= 0 || n <= 0:
		return 0
	case int64(d) > math.MaxInt64/n:
		return hypervisor.Forever
	}
	return d * time.Duration(n)
}
