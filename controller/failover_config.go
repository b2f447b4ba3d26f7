package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A Fencer cuts hosts off from power or from their disks.
type Fencer interface {
	// Cut asks for a host to be cut off, and answers how that goes. It never waits.
	// Repeated with the same attempt it begins nothing; with another it begins anew,
	// as soon as what is under way for the host has ended. It answers
	//
	//   - the fence agent that has proved that the host is off: "fence_ipmilan";
	//   - "" and no error while that is under way;
	//   - an error when the attempt has failed, which errors.Is finds to be
	//     [hypervisor.Unsupported] when the host has no device to cut it off with.
	Cut(ctx context.Context, host hypervisor.HostName, attempt string) (by string, err error)
}

// FailoverConfig configures a FailoverController. A zero field takes the default that it names.
type FailoverConfig struct {
	// Grace is how long an agent sends no heartbeat before its host is called lost, and
	// how long a failover controller that has just begun, or could not look, waits with every
	// judgement. Default: 30s, half of Nova's service_down_time (60s), since being
	// lost alone costs a host nothing but new VMs.
	Grace time.Duration
	// FenceAfter is how long an agent is silent before its host is fenced; at least
	// Grace, so that hosts that fell silent together are counted together: less is taken as Grace. Default: 60s
	// (Proxmox ha-manager fence_delay; oVirt TimeoutToResetVdsInSeconds).
	FenceAfter time.Duration
	// StormShare is the share of all hosts that may be silent or fenced; while more
	// are, no host is fenced. It is rounded down; of three hosts and more at least one may be. Default: a third.
	StormShare float64
	// FenceAtOnce is how many hosts are being cut at one time. Default: 3 (Masakari
	// host_failure_recovery_threads).
	FenceAtOnce int
	// FenceIdle fences lost hosts, too, that nothing would be rebuilt from.
	FenceIdle bool
	// Priority orders VMs that are to be rebuilt: the larger number first, then the VM
	// with more memory. A VM of a negative priority stays. Default: [byStrategy].
	Priority func(*store.VM) int
	// Placement decides about targets, as in controller.Config.
	Placement placement.Config
	// Evacuation says by what taint a host is drained, which takes no VM then.
	Evacuation evacuation.Params
	// Unmarked says that the store has hosts, and that nothing is remembered of it here: it may be
	// a backup. See [FailoverConfig.Doubts]. Default: what was seen of it is remembered.
	Unmarked bool
	// Vouched is called when agents are admitted from now on. Default: nothing is called.
	Vouched func()
	// Poll is how often a cut that is under way is asked about. Default: 1s.
	Poll time.Duration
	// Retry is how long to wait after an error, and how long a VM waits that fits
	// nowhere. Default: 5s.
	Retry time.Duration
	// RetryCap is the longest wait between two attempts to fence a host. Default: 5m.
	RetryCap time.Duration
}

// Validate returns every reason why c cannot be meant.
func (c FailoverConfig) Validate() error {
	var errs []error
	if !(c.StormShare >= 0 && c.StormShare <= 1) {
		errs = append(errs, fmt.Errorf("controller.FailoverConfig.StormShare is %v: use a share from 0 to 1, "+
			"or 0 for the default", c.StormShare))
	}
	if c.FenceAtOnce < 0 {
		errs = append(errs, fmt.Errorf("controller.FailoverConfig.FenceAtOnce is %d: use a positive number, "+
			"or 0 for the default", c.FenceAtOnce))
	}
	return errors.Join(append(errs, workqueue.CheckSpans("controller.FailoverConfig",
		workqueue.Span{Name: "Grace", Value: c.Grace}, workqueue.Span{Name: "FenceAfter", Value: c.FenceAfter},
		workqueue.Span{Name: "Poll", Value: c.Poll}, workqueue.Span{Name: "Retry", Value: c.Retry},
		workqueue.Span{Name: "RetryCap", Value: c.RetryCap}))...)
}

// Complete returns c with the defaults filled in.
func (c FailoverConfig) Complete() FailoverConfig {
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.FenceAfter = max(cmp.Or(c.FenceAfter, time.Minute), c.Grace)
	c.StormShare = cmp.Or(c.StormShare, 1.0/3)
	c.FenceAtOnce = cmp.Or(c.FenceAtOnce, 3)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Retry = cmp.Or(c.Retry, 5*time.Second)
	c.RetryCap = cmp.Or(c.RetryCap, 5*time.Minute)
	if c.Priority == nil {
		c.Priority = byStrategy
	}
	return c
}

// byStrategy is the default priority of a VM: first those whose operators insist that
// they are never shut down, last those whose operators do not mind.
func byStrategy(v *store.VM) int {
	switch v.Strategy {
	case evacuation.LiveMigrate:
		return 3
	case evacuation.LiveMigrateIfPossible, evacuation.External:
		return 2
	case evacuation.None:
		return 0
	}
	return 1
}

// backoff returns how long to wait after so many attempts to fence a host.
func (c *FailoverConfig) backoff(attempts int) time.Duration {
	return workqueue.Backoff(c.Retry, c.RetryCap, attempts-1)
}

// least is how many hosts make a cluster in which one may always be fenced.
const least = 3

// allowed returns how many of so many hosts may be silent or fenced at once without
// the observer itself being cut off: the share, rounded down. Of three hosts
// and more it is at least one, or a small cluster would never recover; of two it is
// none by default, since neither can tell which of them is cut off.
// Source: OpenShift MachineHealthCheck (maxUnhealthy: a share is rounded down, and
// nothing is remediated beyond it); oVirt engine FencingPolicy
// (skipFencingIfConnectivityBroken, hostsWithBrokenConnectivityThreshold).
func (c *FailoverConfig) allowed(hosts int) int {
	const rounding = 1e-9 // a third of three is one
	n := int(float64(hosts)*c.StormShare + rounding)
	if hosts >= least {
		n = max(n, 1)
	}
	return min(n, hosts)
}
