package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Config configures an Agent. A zero field takes the default that it names.
type Config struct {
	// Poll is how often a running transfer is looked at. An agent that is given hints waits
	// longer where convergence says that the ends of passes are enough, but not after a hint:
	// that may come before what it tells of can be seen. Default: 1s.
	Poll time.Duration
	// Retry is how long to wait after an error. Default: 1s.
	Retry time.Duration
	// RetryCap is the longest wait after errors about one thing: Retry doubles with each
	// in a row. Default: 30s.
	RetryCap time.Duration
	// Resync is how often all domains are looked at, asked or not. Default: 5m
	// (KubeVirt v1.9.0 virt-handler's domain resync).
	Resync time.Duration
	// ResyncCap is the longest wait: while nothing is found to be done, Resync
	// doubles. Default: 1h.
	ResyncCap time.Duration
	// MeasureEvery is how often it is measured how fast the guest of each VM writes memory, one VM at a time,
	// on hosts that can ([hypervisor.MeasureDirtyRate]). Default: never.
	MeasureEvery time.Duration
	// Session is the start of the process, as it is stored in the record of the host while this
	// agent acts for it: see store.LeaseClaim. While another one is stored the agent starts, sends
	// and resumes nothing. Default: no other process can act for the host.
	Session string
	// Admission says that the agent acts only while the record of its host says that a leader has
	// admitted its Session: until then it is not known that the store is not older than it has
	// was. Default: it acts without.
	Admission bool
	// Ledger remembers on the host itself which VMs it has had and handed over. What it knows is
	// not overruled by a record that is older. Default: nothing is remembered.
	Ledger Ledger
	// Epoch answers the epoch of the store, for VMs without a [store.Life]. Default: 0.
	Epoch func() uint64
	// DisableAutostart has the hypervisor not start a VM by itself when the host boots: it may have been
	// started elsewhere by then. It is called for every VM that is at home here. Default: the hypervisor
	// starts none.
	DisableAutostart func(context.Context, hypervisor.VMID) error
	// Connections is how many connections a transfer takes where several can be used and lost.
	// Default: 8 (KubeVirt v1.9.0 migration-source.go:724).
	Connections int
	// Converge decides how running transfers are brought to an end. Default:
	// [convergence.ChooseByForecast], as the options of each migration say.
	Converge convergence.Policy
}

// MaxConnections is how many connections a transfer can take.
// Source: QEMU 7.2 qapi/migration.json (multifd-channels, 1 to 255).
const MaxConnections = 255

// Validate returns every reason why c cannot be meant.
func (c Config) Validate() error {
	if c.Connections < 0 || c.Connections > MaxConnections {
		return fmt.Errorf("agent.Config.Connections is %d: use 1 to %d, or 0 for the default",
			c.Connections, MaxConnections)
	}
	return workqueue.CheckSpans("agent.Config", workqueue.Span{Name: "Poll", Value: c.Poll},
		workqueue.Span{Name: "Retry", Value: c.Retry}, workqueue.Span{Name: "RetryCap", Value: c.RetryCap},
		workqueue.Span{Name: "Resync", Value: c.Resync},
		workqueue.Span{Name: "ResyncCap", Value: c.ResyncCap},
		workqueue.Span{Name: "MeasureEvery", Value: c.MeasureEvery})
}

// complete returns c with the defaults filled in.
func (c Config) complete() Config {
	if c.Converge == nil {
		c.Converge = convergence.ChooseByForecast
	}
	c.Poll, c.Retry = cmp.Or(c.Poll, time.Second), cmp.Or(c.Retry, time.Second)
	c.RetryCap = cmp.Or(c.RetryCap, 30*time.Second)
	c.Resync = cmp.Or(c.Resync, 5*time.Minute)
	c.ResyncCap = cmp.Or(c.ResyncCap, time.Hour)
	return c
}
