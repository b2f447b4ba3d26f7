package agent

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// TransferOptions is the function of that name, with the connections of the configuration.
func (c Config) TransferOptions(o *migration.Options, able hypervisor.Abilities) hypervisor.TransferOptions {
	t := TransferOptions(o, able)
	if t.Channels > 0 && c.Connections > 0 {
		t.Channels = c.Connections
	}
	if t.Channels == 1 {
		t.Channels = 0 // the one that every transfer has
	}
	return t
}

// channels is how many connections a transfer takes where several can be used and lost.
// Source: KubeVirt v1.9.0 migration-source.go:724.
const channels = 8

// TransferOptions puts the resolved options of a migration into the terms of a hypervisor with
// some abilities. A transfer that may switch to post-copy takes one connection, and is not compressed, which takes several.
// Source: KubeVirt v1.9.0 live-migration-source.go (parallel threads, no post-copy); QEMU 7.2 migration/migration.c
// (migrate_caps_check: post-copy with compress).
func TransferOptions(o *migration.Options, able hypervisor.Abilities) hypervisor.TransferOptions {
	if o == nil {
		return hypervisor.TransferOptions{}
	}
	t := hypervisor.TransferOptions{Bandwidth: o.Bandwidth, AutoConverge: o.AllowAutoConverge,
		PostCopy: o.AllowPostCopy, Compression: o.Compression.On() && !o.AllowPostCopy}
	switch {
	case o.Traffic.Plain():
		t.Encryption = hypervisor.EncryptOff
	case o.Traffic == migration.TrafficEncrypted:
		t.Encryption = hypervisor.EncryptRequired
	}
	if !o.AllowPostCopy && able.Has(hypervisor.CanUseChannels|hypervisor.CanLoseChannels) {
		t.Channels = channels
	}
	return t
}

// monitorOptions puts the resolved options of a migration into convergence's terms, for a transfer
// that has come as far as p.
func monitorOptions(o *migration.Options, p hypervisor.Progress) convergence.Config {
	c := convergence.Config{Memory: p.Total, Disks: p.Disks}
	if o == nil {
		return c
	}
	c.CompletionTimeoutPerGiB, c.ProgressTimeout = o.CompletionTimeoutPerGiB, o.ProgressTimeout
	c.MaxDowntime = o.MaxDowntime
	c.AllowPostCopy, c.AllowWorkloadDisruption = o.AllowPostCopy, o.AllowWorkloadDisruption
	c.Method = o.Method()
	c.DowntimeTuning, c.StallDetector = o.DowntimeTuning, o.StallDetector
	return c
}
