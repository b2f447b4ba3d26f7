//go:build linux

package qemu

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Side is an end of a transfer.
type Side string

// The sides, as credentials name them.
const (
	AtSource Side = "client"
	AtTarget Side = "server"
)

// defaultDowntime is the downtime allowed to a transfer that names none.
// Source: QEMU 7.2 migration/migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
const defaultDowntime = 300 * time.Millisecond

// mostDowntime is the longest downtime that QEMU can be allowed.
// Source: QEMU 7.2 migration/migration.h (MAX_MIGRATE_DOWNTIME_SECONDS).
const mostDowntime = 2000 * time.Second

// defaultChannels is how many connections a transfer takes that needs several and
// names no number.
const defaultChannels = 2

// credentials is what the TLS credentials are called in QEMU.
const credentials = "migration-tls"

// CheckOptions refuses options that make no sense, and those that this host cannot
// do.
func (l *Launcher) CheckOptions(o hypervisor.TransferOptions) error {
	if o.Bandwidth < 0 || o.Downtime < 0 || o.Downtime > mostDowntime || o.Channels < 0 ||
		o.Channels > 255 {
		return Refuse(hypervisor.Invalid, "options %+v: no number may be negative, "+
			"and 255 channels and %v of downtime are the most", o, mostDowntime)
	}
	method := o.Method != ""
	if method && (!o.Compression || o.Method != "zlib" && o.Method != "zstd") {
		return Refuse(hypervisor.Invalid, "Method %q: it is zlib or zstd, with Compression",
			o.Method)
	}
	if o.Compression && o.PostCopy {
		return Refuse(hypervisor.Unsupported, "QEMU does not compress what post-copy sends")
	}
	var wants hypervisor.Abilities
	for _, w := range []struct {
		wanted  bool
		ability hypervisor.Abilities
	}{
		{o.AutoConverge, hypervisor.CanAutoConverge}, {o.PostCopy, hypervisor.CanPostCopy},
		{manyChannels(o), hypervisor.CanUseChannels}, {o.Compression, hypervisor.CanCompress},
		{o.XBZRLE, hypervisor.CanXBZRLE}, {o.HoldSwitchOver, hypervisor.CanHoldSwitchOver},
		{o.Encryption == hypervisor.EncryptRequired, hypervisor.CanEncrypt},
	} {
		if w.wanted {
			wants |= w.ability
		}
	}
	if m := l.method(o); m != "" && !slices.Contains(l.Features.MultifdMethods, m) {
		return Refuse(hypervisor.Unsupported, "QEMU %v on this host does not know %s",
			l.Features.Version, m)
	}
	return l.Need(wants)
}

// Abilities are what this host can do, as it is configured.
func (l *Launcher) Abilities() hypervisor.Abilities {
	able := l.Features.Abilities() | hypervisor.CanMoveCold | hypervisor.CanResize |
		hypervisor.CanTakeBack // the source's process waits for its release
	if l.TLS == nil {
		able &^= hypervisor.CanEncrypt
	}
	if l.Passed {
		able &^= hypervisor.CanUseChannels | hypervisor.CanCompress
	}
	return able
}

// Need answers Unsupported when this host lacks an ability.
func (l *Launcher) Need(wants hypervisor.Abilities) error {
	if lacks := wants &^ l.Abilities(); lacks != 0 {
		return Refuse(hypervisor.Unsupported, "%s on this host cannot do it: %s",
			l.Features.Software(), strings.Join(lacks.Names(), ", "))
	}
	return nil
}

// Within returns the options for one VM. Where the host says that connections can be lost,
// one whose QEMU was started before the host's was replaced, and cannot lose any, takes one.
func (in *Instance) Within(ctx context.Context, o hypervisor.TransferOptions,
) (hypervisor.TransferOptions, error) {
	loses := in.launcher.Features.Abilities().Has(hypervisor.CanLoseChannels)
	if !loses || !manyChannels(o) || o.Compression {
		return o, nil
	}
	major, err := in.Major(ctx)
	if major < EndsChannels.Major {
		o.Channels = 1
	}
	return o, err
}

// manyChannels reports whether a transfer takes several connections. Post-copy
// takes one: QEMU 7.2 cannot do both, and a VM that asks for both needs the first more.
// Source: KubeVirt v1.9.0 live-migration-source.go (parallel threads, no post-copy).
func manyChannels(o hypervisor.TransferOptions) bool {
	return !o.PostCopy && (o.Channels > 1 || o.Compression)
}

// method returns how to compress; "" is not at all.
func (l *Launcher) method(o hypervisor.TransferOptions) string {
	switch {
	case !o.Compression:
		return ""
	case o.Method != "":
		return o.Method
	case slices.Contains(l.Features.MultifdMethods, "zstd"):
		return "zstd"
	}
	return "zlib"
}

// Configure makes a QEMU move memory as the options say. Both ends must do it. A
// source that copies disks waits before the switch-over until the copies are
// complete.
func (in *Instance) Configure(ctx context.Context, o hypervisor.TransferOptions, at Side,
	copies bool) error {
	l := in.launcher
	many := manyChannels(o)
	wanted := map[Capability]bool{
		CapEvents:            true,
		CapReturnPath:        true,
		CapLateBlockActivate: true,
		CapPauseBefore:       o.HoldSwitchOver || copies,
		CapAutoConverge:      o.AutoConverge,
		CapXBZRLE:            o.XBZRLE,
		CapMultifd:           many,
		CapPostcopy:          o.PostCopy,
	}
	if !maps.Equal(wanted, in.capable) { // QEMU takes some milliseconds to set them
		in.capable = nil
		if err := in.SetCapabilities(ctx, wanted); err != nil {
			return err
		}
		in.capable = wanted
	}
	p := Limited(o.Bandwidth)
	p.DowntimeLimit = Downtime(o.Downtime)
	if many {
		channels, method := max(o.Channels, defaultChannels), "none"
		if m := l.method(o); m != "" {
			method = m
		}
		p.MultifdChannels, p.MultifdCompression = &channels, &method
	}
	if err := in.Encrypt(ctx, at, o, &p); err != nil {
		return err
	}
	return in.SetParameters(ctx, p)
}

// Limited are the parameters that limit how fast a migration sends, in every phase; 0 is no limit.
func Limited(b hypervisor.Bandwidth) Parameters {
	return Parameters{MaxBandwidth: Bandwidth(b), MaxPostcopyBandwidth: Bandwidth(b)}
}

// Encrypts returns how a transfer with these options is encrypted; nil is not at all.
func (l *Launcher) Encrypts(o hypervisor.TransferOptions) *TLS {
	if o.Encryption == hypervisor.EncryptOff {
		return nil
	}
	return l.TLS
}

// Encrypt makes the credentials of one side, if traffic is to be encrypted. The disks that are
// copied next are encrypted like the memory.
func (in *Instance) Encrypt(ctx context.Context, at Side, o hypervisor.TransferOptions,
	p *Parameters) error {
	none := ""
	if p == nil {
		p = &Parameters{} // disks only
	}
	p.TLSCreds, p.TLSHostname = &none, &none
	t := in.launcher.Encrypts(o)
	if in.tls = t; t == nil {
		return nil
	}
	_ = in.ObjectDel(ctx, credentials) // of a migration the other way round
	object := map[string]any{"qom-type": "tls-creds-x509", "id": credentials, "dir": t.Dir,
		"endpoint": at, "verify-peer": true}
	if t.PSK {
		object["qom-type"] = "tls-creds-psk"
		delete(object, "verify-peer")
	}
	if err := in.ObjectAdd(ctx, object); err != nil {
		return Refuse(hypervisor.Invalid, "credentials in %s: %w", t.Dir, err)
	}
	creds, name := credentials, t.Hostname
	p.TLSCreds, p.TLSHostname = &creds, &name
	return nil
}

// Bandwidth puts a limit into QEMU's terms.
func Bandwidth(b hypervisor.Bandwidth) *int64 {
	n := int64(b)
	return &n
}

// Downtime puts a limit into QEMU's terms; 0 is its default.
func Downtime(d time.Duration) *int64 {
	if d == 0 {
		d = defaultDowntime
	}
	ms := max(1, d.Milliseconds())
	return &ms
}
