//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"libvirt.org/go/libvirt"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// migrate has libvirt begin to send a VM. The caller holds the domain's lock.
func migrate(ctx context.Context, of *domain, out hypervisor.Outgoing) error {
	d := move{of}
	t, err := d.wanted(out)
	if err != nil {
		return err
	}
	f, err := d.Find(ctx)
	if err != nil {
		return err
	}
	if old := d.Node.Job(out.Job); old != nil {
		if old.Role == backend.Source && old.VM.ID == d.ID {
			return nil // whatever has become of it
		}
		return backend.Errorf(hypervisor.Conflict, "job %s is, or was, received here", out.Job)
	}
	if err := movable(f); err != nil {
		return err
	}
	if err := expected(f, t, out.Job); err != nil {
		return err
	}
	why, err := obstacles(ctx, d.domain, f, t)
	if err != nil {
		return err
	}
	if len(why) > 0 {
		return backend.Errorf(hypervisor.Conflict, "%w", &hypervisor.Refusal{Reasons: why})
	}
	if err := d.accept(ctx, f, out); err != nil {
		return err
	}
	return d.send(ctx)
}

// wanted checks a request before any daemon is called.
func (d move) wanted(out hypervisor.Outgoing) (targetAddress, error) {
	o := out.Options
	if out.Job == "" || o.Bandwidth < 0 || o.Downtime < 0 || o.Channels < 0 {
		return targetAddress{}, backend.Errorf(hypervisor.Invalid,
			"job %q with %+v makes no sense", out.Job, o)
	}
	t, err := parseAddress(out.Address)
	if err != nil {
		return t, backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	var needs hypervisor.Abilities
	if o.HoldSwitchOver {
		needs |= hypervisor.CanHoldSwitchOver
	}
	if o.Encryption == hypervisor.EncryptRequired {
		needs |= hypervisor.CanEncrypt
	}
	if o.Method != "" && o.Method != "mt" && o.Method != "xbzrle" {
		return t, backend.Errorf(hypervisor.Unsupported,
			"compression %q: libvirt 9.0 knows mt and xbzrle", o.Method)
	}
	if o.Compression && o.Method != "xbzrle" {
		needs |= hypervisor.CanCompress
	}
	return t, d.need(needs)
}

// able returns what can be done with a version of libvirt and one of QEMU, in libvirt's
// notation. The libvirtd of a target crashes when a broken post-copy is to recover, from 11.2.0
// on and until 11.4.0.
// Source: libvirt NEWS.rst, v11.4.0 ("Fix virtqemud crash when resuming failed post-copy
// migration"); QEMU commit 15f3f21d598a, in 9.0 (connections that break); QEMU 9.1
// docs/about/removed-features.rst (compress, which is libvirt's compression "mt").
func able(libvirt, qemu uint32) hypervisor.Abilities {
	all := abilities
	if libvirt >= copySynchronous {
		all |= hypervisor.CanMoveDisk
	}
	if libvirt >= 11_002_000 && libvirt < 11_004_000 {
		all &^= hypervisor.CanRecover
	}
	if qemu >= 9_000_000 {
		all |= hypervisor.CanLoseChannels
	}
	if qemu >= 9_001_000 {
		all &^= hypervisor.CanCompress
	}
	return all
}

// need refuses what this host's libvirt and QEMU cannot do.
func (d move) need(want hypervisor.Abilities) error {
	return need(d.Node.able(), want)
}

// able returns what this host can do, as it is configured.
func (n *node) able() hypervisor.Abilities {
	all := able(n.Libvirt, n.QEMU)
	if !n.TLS {
		all &^= hypervisor.CanEncrypt
	}
	if n.Settings.Type == domxml.QEMU { // a source may abort when its target dies: see docs/known-hypervisor-faults.md
		all &^= hypervisor.CanLoseChannels
	}
	return all
}

// movable refuses a domain that is not at rest or at work.
func movable(f found) error {
	switch {
	case f.State == hypervisor.Absent:
		return backend.Errorf(hypervisor.NotFound, "no such VM")
	case f.Moving().Active():
		return f.Moving().Conflict()
	case f.Observed.Sends, f.Job != nil && f.Job.Stage.Live(), f.Unresolved():
		return f.Conflict()
	case f.State == hypervisor.Shutoff && !f.Observed.Defined:
		return f.Conflict()
	case f.State != hypervisor.Running && f.State != hypervisor.Paused &&
		f.State != hypervisor.Shutoff:
		return f.Conflict()
	}
	return nil
}

// expected refuses a domain that the target does not expect, or expects to be another
// machine.
func expected(f found, t targetAddress, job hypervisor.JobID) error {
	switch {
	case t.Job != job || t.VM.ID != f.VM.ID:
		return backend.Errorf(hypervisor.Invalid, "the address is for job %s of %s", t.Job, t.VM.ID)
	case f.VM.Memory != t.VM.Memory || f.VM.CPUs != t.VM.CPUs:
		return backend.Errorf(hypervisor.Invalid, "it has %v and %d CPUs, and the target expects "+
			"%v and %d", f.VM.Memory, f.VM.CPUs, t.VM.Memory, t.VM.CPUs)
	}
	return nil
}

// accept notes the job, so that it is not forgotten whatever happens next. The job comes
// last: one that is known is one that its domain names, and that is brought to an end.
func (d move) accept(ctx context.Context, f found, out hypervisor.Outgoing) error {
	j := &jobRecord{Job: backend.Job[stage]{ID: out.Job, VM: f.VM, Role: backend.Source,
		Stage: stageSending, Started: time.Now().UTC().Round(0), Target: out.Target,
		Address: out.Address, Options: out.Options, Cold: f.State == hypervisor.Shutoff},
		Resting: f.State == hypervisor.Paused, Again: f.Observed.Run == runsCancelled}
	j.Last = j.First()
	d.Forget()
	err := d.Put(true, func(r *domainRecord) {
		r.VM, r.Job, r.Autostart, r.Ran = f.VM, out.Job, false, f.Observed.Run.Alive()
	})
	if err != nil {
		return err
	}
	return d.Node.PutJob(j, true)
}

// send has libvirt asked to migrate. What cannot be asked, now or later, ends the job.
func (d move) send(ctx context.Context) error {
	err := d.request(ctx)
	if errors.Is(err, hypervisor.Invalid) {
		return errors.Join(err, d.endJob(stageKept, backend.ErrorText(err)))
	}
	return err
}

// request asks libvirt to migrate. It is noted before that it was asked: libvirt goes on
// when we die.
func (d move) request(ctx context.Context) error {
	rec := d.Record()
	j := d.Node.Job(rec.Job)
	t, err := parseAddress(j.Address)
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	if err := d.prepare(ctx, rec, j); err != nil {
		return err
	}
	var params *libvirt.DomainMigrateParameters
	flags := flagsOf(j, t)
	err = d.Do(ctx, func(dom *libvirt.Domain) (err error) {
		params, flags, err = d.params(dom, j, t, flags)
		return err
	})
	if err != nil {
		return err
	}
	err = d.PutJob(true, func(j *jobRecord) { j.Last.Status = hypervisor.JobSetup })
	if err != nil {
		return err
	}
	return d.call(ctx, t, params, flags)
}

// call has libvirt migrate: peer to peer, which goes on without us, or managed
// directly over a connection of ours to the target.
func (d move) call(ctx context.Context, t targetAddress,
	params *libvirt.DomainMigrateParameters, flags libvirt.DomainMigrateFlags) error {
	if d.Node.Direct {
		return d.direct(ctx, t, params, flags&^libvirt.MIGRATE_PEER2PEER)
	}
	return d.Begin(ctx, func(_ *connect, dom *libvirt.Domain) error {
		return dom.MigrateToURI3(t.Peer, params, flags)
	})
}

// direct has this process lead the migration. It ends when this process does.
func (d move) direct(ctx context.Context, t targetAddress,
	params *libvirt.DomainMigrateParameters, flags libvirt.DomainMigrateFlags) error {
	peer, err := d.Node.Reach(ctx, t.Peer)
	if err != nil {
		return err
	}
	return d.Begin(ctx, func(_ *connect, dom *libvirt.Domain) error {
		outcome := make(chan error, 1)
		err := peer.Begin(context.WithoutCancel(ctx), func(to *connect) error {
			// The binding's call ends when either connection is lost.
			moved, err := dom.Migrate3(to, params, flags)
			if err == nil {
				_ = moved.Free()
			}
			return err
		}, func(err error) { outcome <- err })
		if err != nil {
			return err
		}
		return <-outcome
	})
}

// prepare makes the domain ready to go: it says for which job it goes, and a source
// that is left behind does not start with its host.
func (d move) prepare(ctx context.Context, rec *domainRecord, j *jobRecord) error {
	text, err := d.mark(rec, j).XML()
	if err != nil {
		return backend.Errorf(hypervisor.Invalid, "%w", err)
	}
	return d.Do(ctx, func(dom *libvirt.Domain) error {
		defined, err := dom.IsPersistent()
		if err != nil {
			return err
		}
		active, err := dom.IsActive()
		if err != nil {
			return err
		}
		var where libvirt.DomainModificationImpact
		if defined {
			where |= libvirt.DOMAIN_AFFECT_CONFIG
		}
		if active {
			where |= libvirt.DOMAIN_AFFECT_LIVE
		}
		err = dom.SetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, text, domxml.MarkPrefix,
			domxml.MarkURI, where)
		if err == nil {
			err = disableAutostart(dom)
		}
		if err == nil && active { // QEMU keeps that of an earlier job
			limit := cmp.Or(j.Options.Downtime, defaultDowntime)
			err = dom.MigrateSetMaxDowntime(downtime(limit), 0)
		}
		return err
	})
}

// defaultDowntime is the downtime that QEMU allows unless it is told otherwise.
// Source: QEMU migration/options.c (max_downtime).
const defaultDowntime = 300 * time.Millisecond

// downtime puts a downtime into libvirt's milliseconds; the least is one.
func downtime(d time.Duration) uint64 { return uint64(max(1, d.Milliseconds())) }

// bandwidth puts a cap into libvirt's MiB/s, rounded up. Source: libvirt 9.0
// qemu_conf.h (QEMU_DOMAIN_MIG_BANDWIDTH_MAX is no cap).
func bandwidth(b hypervisor.Bandwidth) uint64 {
	const mib = hypervisor.Bandwidth(hypervisor.MiB)
	if b <= 0 {
		return uint64((1<<63 - 1) / mib)
	}
	return uint64((b-1)/mib + 1)
}

// flagsOf are how the job is done, in libvirt's terms. Options that exclude each
// other give way in the order post-copy, compression, channels: QEMU 7.2 has no
// post-copy over several channels, and libvirt 9.0 no compression over them.
func flagsOf(j *jobRecord, t targetAddress) libvirt.DomainMigrateFlags {
	o := j.Options
	flags := libvirt.MIGRATE_PEER2PEER
	if j.Cold {
		return flags | libvirt.MIGRATE_OFFLINE | libvirt.MIGRATE_PERSIST_DEST
	}
	flags |= libvirt.MIGRATE_LIVE
	for _, c := range [...]struct {
		when bool
		flag libvirt.DomainMigrateFlags
	}{
		{o.AutoConverge, libvirt.MIGRATE_AUTO_CONVERGE},
		{o.PostCopy, libvirt.MIGRATE_POSTCOPY},
		{o.Compression || o.XBZRLE, libvirt.MIGRATE_COMPRESSED},
		{o.Channels > 1 && !o.PostCopy && !o.Compression && !o.XBZRLE, libvirt.MIGRATE_PARALLEL},
		{t.Hold, libvirt.MIGRATE_PAUSED},
	} {
		if c.when {
			flags |= c.flag
		}
	}
	return flags
}

// params are what the job needs besides flags.
func (d move) params(dom *libvirt.Domain, j *jobRecord, t targetAddress,
	flags libvirt.DomainMigrateFlags) (*libvirt.DomainMigrateParameters,
	libvirt.DomainMigrateFlags, error) {
	p := &libvirt.DomainMigrateParameters{}
	defined, err := dom.IsPersistent()
	if err != nil {
		return p, flags, err
	}
	if j.Cold {
		return p, flags, d.change(dom, p, j, t)
	}
	if defined {
		flags |= libvirt.MIGRATE_PERSIST_DEST
	}
	if d.Node.TLS && j.Options.Encryption != hypervisor.EncryptOff {
		flags |= libvirt.MIGRATE_TLS
	}
	if b := j.Options.Bandwidth; b > 0 {
		p.BandwidthSet, p.Bandwidth = true, bandwidth(b)
	}
	if flags&libvirt.MIGRATE_COMPRESSED != 0 {
		p.CompressionSet, p.Compression = true, "mt"
		if j.Options.XBZRLE || j.Options.Method == "xbzrle" {
			p.Compression = "xbzrle"
		}
	}
	if flags&libvirt.MIGRATE_PARALLEL != 0 {
		p.ParallelConnectionsSet, p.ParallelConnections = true, j.Options.Channels
	}
	xml, err := dom.GetXMLDesc(0)
	if err != nil {
		return p, flags, err
	}
	if err := d.disks(p, xml, j, &flags); err != nil {
		return p, flags, err
	}
	return p, flags, d.change(dom, p, j, t)
}

// disks says which disks are copied: the local ones.
func (d move) disks(p *libvirt.DomainMigrateParameters, xml string, j *jobRecord,
	flags *libvirt.DomainMigrateFlags) error {
	names, err := d.localTargets(xml, j.VM)
	if err != nil || len(names) == 0 {
		return err
	}
	p.MigrateDisksSet, p.MigrateDisks = true, names
	*flags |= libvirt.MIGRATE_NON_SHARED_DISK
	return nil
}

// localTargets returns libvirt's names of the local disks: "sda".
func (d move) localTargets(xml string, vm hypervisor.VM) ([]string, error) {
	local := map[string]bool{}
	for _, disk := range vm.LocalDisks() {
		local[d.Node.Settings.Image(d.Name, disk.Name)] = true
	}
	var dom lx.Domain
	if len(local) == 0 {
		return nil, nil
	}
	if err := dom.Unmarshal(xml); err != nil || dom.Devices == nil {
		return nil, backend.Errorf(hypervisor.Conflict, "its XML cannot be read: %w", err)
	}
	var names []string
	for _, disk := range dom.Devices.Disks {
		file := disk.Source != nil && disk.Source.File != nil && local[disk.Source.File.File]
		if file && disk.Target != nil {
			names = append(names, disk.Target.Dev)
		}
	}
	return names, nil
}

// differences are what the VM is to be made of at its target in place of what it is
// made of here, as far as the guest does not see it.
func differences(here, there hypervisor.VM) domxml.Changes {
	var c domxml.Changes
	if here.Hardware == nil || there.Hardware == nil {
		return c
	}
	if !slices.EqualFunc(here.Hardware.Pins, there.Hardware.Pins, slices.Equal) {
		c.Pins = append([][]int{}, there.Hardware.Pins...)
	}
	for _, disk := range there.Hardware.Disks {
		i := slices.IndexFunc(here.Hardware.Disks, func(d hypervisor.Disk) bool {
			return d.Name == disk.Name
		})
		if i >= 0 && here.Hardware.Disks[i].Path != disk.Path && !disk.Local() {
			if c.Disks == nil {
				c.Disks = map[string]string{}
			}
			c.Disks[disk.Name] = disk.Path
		}
	}
	return c
}

// change makes the domain at the target another one, if that is wanted: its pins and
// the paths of its disks may differ.
func (d move) change(dom *libvirt.Domain, p *libvirt.DomainMigrateParameters, j *jobRecord,
	t targetAddress) error {
	c := differences(j.VM, t.VM)
	rewrite := d.Node.Rewrite
	if c.Disks == nil && c.Pins == nil && rewrite == nil {
		return nil
	}
	for _, form := range [...]struct {
		flags libvirt.DomainXMLFlags
		set   *bool
		text  *string
	}{
		{libvirt.DOMAIN_XML_SECURE | libvirt.DOMAIN_XML_MIGRATABLE, &p.DestXMLSet, &p.DestXML},
		{libvirt.DOMAIN_XML_SECURE | libvirt.DOMAIN_XML_MIGRATABLE | libvirt.DOMAIN_XML_INACTIVE,
			&p.PersistXMLSet, &p.PersistXML},
	} {
		xml, err := dom.GetXMLDesc(form.flags)
		if err == nil {
			xml, err = domxml.Change(xml, c)
		}
		if err == nil && rewrite != nil {
			xml, err = rewrite(t.Host, xml)
		}
		if err != nil {
			return backend.Errorf(hypervisor.Invalid, "change it for %s: %w", t.Host, err)
		}
		*form.set, *form.text = true, strings.TrimSpace(xml)
	}
	return nil
}
