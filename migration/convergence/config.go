package convergence

import (
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Method is a way to tell whether a transfer converges.
type Method uint8

// The methods.
const (
	// Watermark watches the lowest backlog reached: godwit's own.
	Watermark Method = iota
	// Legacy is KubeVirt's default monitor.
	// Source: KubeVirt v1.9.0 live-migration-source.go:762 (handleLegacyConvergence).
	Legacy
	// Stall is KubeVirt's stall detector, behind the gate MigrationStallDetection.
	// Source: KubeVirt v1.9.0 live-migration-source.go:705 (handleStallDetection).
	Stall
)

var methods = [...]string{"Watermark", "Legacy", "Stall"}

// String returns the method's word.
func (m Method) String() string {
	return word(methods[:], int(m))
}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (m Method) MarshalText() ([]byte, error) {
	return store("method", methods[:], int(m))
}

// UnmarshalText reads a word that MarshalText wrote.
func (m *Method) UnmarshalText(text []byte) error {
	i, err := load("method", methods[:], text)
	*m = Method(i)
	return err
}

// Config says what is allowed and how long things may take. It stays the same
// during one migration. A zero field takes the default it names; a value that
// makes no sense (negative, or not a number) counts as zero.
type Config struct {
	// Method is how convergence is judged. Default: Watermark.
	Method Method
	// Memory is the size of the guest's memory. Default: the transfer's Total.
	Memory hypervisor.Bytes
	// Disks is the size of the disks that are copied along, before memory. Default: the
	// transfer's Disks.
	Disks hypervisor.Bytes
	// CompletionTimeoutPerGiB is what the budget allows for each GiB (in Legacy
	// and Stall: in whole seconds, for each decimal gigabyte). 0 is no budget.
	CompletionTimeoutPerGiB time.Duration
	// ProgressTimeout is how long a transfer may go without progress; 0 is for
	// ever. Legacy counts it in whole seconds; Stall does not look at it.
	ProgressTimeout time.Duration
	// MaxDowntime is the longest blackout allowed, in whole milliseconds, at
	// least one. Default: 900 ms.
	// Source: KubeVirt v1.9.0 virt-config.go:39 (maxDowntimeMs).
	MaxDowntime time.Duration
	// AllowPostCopy permits StartPostCopy. Legacy asks for
	// AllowWorkloadDisruption as well; Stall does before the budget is used up.
	AllowPostCopy bool
	// AllowWorkloadDisruption permits to stop the guest for longer than
	// MaxDowntime so that the transfer ends.
	AllowWorkloadDisruption bool
	// VFIO says that the VM has passed-through devices: post-copy is impossible
	// and a pause does not stop the devices, so a large blackout limit makes the
	// hypervisor stop everything instead.
	VFIO bool
	// DowntimeTuning raises the blackout limit in steps. nil is the defaults in
	// Watermark and no tuning in Legacy; Stall does not look at it.
	DowntimeTuning *DowntimeTuning
	// StallDetector tunes Stall; the others do not look at it. nil is the
	// defaults.
	StallDetector *StallDetector
}

// DowntimeTuning raises the blackout limit step by step while the transfer does
// not end.
// Source: KubeVirt v1.9.0 live-migration-source.go:66 (defaults), :458 (tuneDowntime).
type DowntimeTuning struct {
	// Initial is the first limit, at most MaxDowntime. Default: 150 ms.
	Initial time.Duration
	// Steps is how many steps lead from Initial to MaxDowntime. Default: 7.
	Steps int
	// StartAfterIteration is the first pass in which the limit rises. Default: 3.
	StartAfterIteration int
	// Cooldown is the time between two steps. Default: 10 s.
	Cooldown time.Duration
}

// StallDetector holds the parameters of [Stall].
// Source: KubeVirt v1.9.0 migration-source.go:693 (defaults).
type StallDetector struct {
	// Margin is how much two backlogs may differ and still be the same, in
	// percent. Default: 4.
	Margin int
	// ProgressTimeout is how old a minimum must be before a transfer that has not
	// undercut it counts as stalled; in whole milliseconds. Default: 40 s.
	ProgressTimeout time.Duration
	// SwitchoverTimeout is how long the hypervisor may take to switch over once
	// it may; in whole seconds. Default: 60 s.
	SwitchoverTimeout time.Duration
	// Alpha is the weight of a new sample of the bandwidth, in (0, 1].
	// Default: 0.4.
	Alpha float64
	// PrecopyPossibleFactor times MaxDowntime is the estimated blackout at which
	// to try MaxDowntime still makes sense. Default: 1.5.
	PrecopyPossibleFactor float64
	// PatienceWindowDecayFactor shortens the wait for a better minimum each time
	// that it ends in vain. Default: 0.5.
	PatienceWindowDecayFactor float64
	// CompletionTimeoutFactor times the budget is when the transfer must have
	// ended after a forced switch-over. Default: 2.
	CompletionTimeoutFactor float64
	// SwitchAnywhere acts as soon as the transfer has stalled and does not wait
	// for a local minimum (KubeVirt: searchLocalMinima false). Default: wait.
	SwitchAnywhere bool
}

// Limits that come from QEMU.
// Source: KubeVirt v1.9.0 live-migration-source.go:447 (QEMU's default), :821
// (QEMU's maximum).
const (
	qemuDowntime    = 300 * time.Millisecond
	qemuMaxDowntime = 2_000_000 * time.Millisecond
)

// maxDowntime returns the longest blackout allowed, in whole milliseconds.
func (c *Config) maxDowntime() time.Duration {
	limit := positive(c.MaxDowntime, 900*time.Millisecond)
	return max(limit.Truncate(time.Millisecond), time.Millisecond)
}

// tuning returns the parameters of tuning, complete, and whether to tune.
func (c *Config) tuning() (DowntimeTuning, bool) {
	var t DowntimeTuning
	if c.DowntimeTuning != nil {
		t = *c.DowntimeTuning
	}
	t.Initial = positive(t.Initial, 150*time.Millisecond).Truncate(time.Millisecond)
	t.Initial = min(max(t.Initial, time.Millisecond), c.maxDowntime())
	t.Steps = positive(t.Steps, 7)
	t.StartAfterIteration = positive(t.StartAfterIteration, 3)
	t.Cooldown = positive(t.Cooldown, 10*time.Second)
	return t, c.DowntimeTuning != nil || c.Method != Legacy
}

// detector returns the parameters of the stall detector, complete.
func (c *Config) detector() StallDetector {
	var d StallDetector
	if c.StallDetector != nil {
		d = *c.StallDetector
	}
	d.Margin = min(positive(d.Margin, 4), 100)
	d.ProgressTimeout = positive(d.ProgressTimeout, 40*time.Second)
	d.SwitchoverTimeout = positive(d.SwitchoverTimeout, 60*time.Second)
	d.Alpha = min(factor(d.Alpha, 0.4), 1)
	d.PrecopyPossibleFactor = factor(d.PrecopyPossibleFactor, 1.5)
	d.PatienceWindowDecayFactor = factor(d.PatienceWindowDecayFactor, 0.5)
	d.CompletionTimeoutFactor = factor(d.CompletionTimeoutFactor, 2)
	return d
}

// positive returns v, or the default when v is not positive.
func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// factor returns v, or the default when v is not a positive number.
func factor(v, otherwise float64) float64 {
	if v > 0 && !math.IsInf(v, 0) {
		return v
	}
	return otherwise
}
