package convergence

import (
	"slices"
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
	// Forecast waits only for what will happen: see this package, whose Choose is the
	// policy that knows all methods. [Converge] takes it for Watermark.
	Forecast
)

var methods = [...]string{"Watermark", "Legacy", "Stall", "Forecast"}

// Methods returns the words of all methods.
func Methods() []string { return slices.Clone(methods[:]) }

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
// makes no sense (negative, or not a number) counts as zero. What it points to is what
// policies are resolved to: see [StallDetector].
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
	// MaxDowntime is the longest downtime allowed, in whole milliseconds, at
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
	// and a pause does not stop the devices, so a large downtime limit makes the
	// hypervisor stop everything instead.
	VFIO bool
	// DowntimeTuning raises the downtime limit in steps. nil is the defaults in
	// Watermark and no tuning in Legacy; Stall does not look at it.
	DowntimeTuning *DowntimeTuning
	// StallDetector tunes Stall; the others do not look at it. nil is the
	// defaults.
	StallDetector *StallDetector
}

// Limits that come from QEMU.
// Source: KubeVirt v1.9.0 live-migration-source.go:447 (QEMU's default), :821
// (QEMU's maximum).
const (
	qemuDowntime    = 300 * time.Millisecond
	qemuMaxDowntime = 2_000_000 * time.Millisecond
)

// maxDowntime returns the longest downtime allowed, in whole milliseconds.
func (c *Config) maxDowntime() time.Duration {
	limit := positive(c.MaxDowntime, 900*time.Millisecond)
	return max(limit.Truncate(time.Millisecond), time.Millisecond)
}

// tuning returns the parameters of tuning, complete, and whether to tune.
func (c *Config) tuning() (DowntimeTuning, bool) {
	usual := DefaultDowntimeTuning()
	t := usual
	if c.DowntimeTuning != nil {
		t = *c.DowntimeTuning
	}
	t.Initial = positive(t.Initial, usual.Initial).Truncate(time.Millisecond)
	t.Initial = min(max(t.Initial, time.Millisecond), c.maxDowntime())
	t.Steps = positive(t.Steps, usual.Steps)
	t.StartAfterIteration = positive(t.StartAfterIteration, usual.StartAfterIteration)
	t.Cooldown = positive(t.Cooldown, usual.Cooldown)
	return t, c.DowntimeTuning != nil || c.Method != Legacy
}

// detector returns the parameters of the stall detector.
func (c *Config) detector() StallDetector {
	if c.StallDetector == nil {
		return DefaultStallDetector()
	}
	return c.StallDetector.sane()
}
