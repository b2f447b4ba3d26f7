package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/inventory"
)

// An observer reads files of measurements, each in its own format.
type observer struct {
	link, limit hypervisor.Bandwidth // of files that do not say it; 0 is not known, and none
	connections int                  // of files that do not say it; 0 is as many as is usual
	all         []predict.Migration
	jobs        []predict.Observation // of virsh, in all files: both hosts tell of a migration
	notes       []string              // what is not known or was left out
}

// measurements reads files of measurements. The notes say what is not known or was left out.
func (f *flags) measurements(paths []string) (all []predict.Migration, notes []string, err error) {
	o := observer{connections: f.connections}
	if f.connections < 0 || f.connections > agent.MaxConnections {
		return nil, nil, fmt.Errorf("--connections: needs 1 to %d, has %d", agent.MaxConnections, f.connections)
	}
	if f.link != "" {
		if o.link, err = inventory.ParseBandwidth(f.link); err != nil {
			return nil, nil, fmt.Errorf("--link: %w", err)
		}
	}
	if f.limit != "" {
		if o.limit, err = inventory.ParseBandwidth(f.limit); err != nil {
			return nil, nil, fmt.Errorf("--cap: %w", err)
		}
	}
	for _, path := range paths {
		if err := o.open(path); err != nil {
			return nil, nil, err
		}
	}
	o.countOnce()
	return o.all, o.notes, nil
}

// countOnce takes in what virsh has told, each migration once.
func (o *observer) countOnce() {
	const virsh = "virsh domjobinfo"
	jobs := predict.CountOnce(o.jobs)
	if twice := len(o.jobs) - len(jobs); twice > 0 {
		o.note(virsh, "source and target tell of %s: each counts once", humanize.Count(twice, "migration"))
	}
	o.infer(virsh, jobs)
}

// open reads a file, whose format its beginning tells.
func (o *observer) open(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, 1<<12)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	text := string(head[:n])
	whole := io.MultiReader(strings.NewReader(text), file)
	if strings.HasPrefix(strings.TrimSpace(text), `{"seq":`) {
		moves, err := audit.Measure(whole)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return o.log(path, moves)
	}
	for i := range formats {
		if formats[i].is(text) {
			return o.observe(path, whole, &formats[i])
		}
	}
	if head := strings.TrimSpace(text); strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[") {
		return fmt.Errorf("%s: it is JSON, and neither an audit log nor an answer of Prometheus or Nova: see godwit help "+
			"calibrate for the formats", path)
	}
	all, err := predict.Read(path, whole)
	o.all = append(o.all, all...)
	return err
}

// A format is one that tells of migrations without their caps, links and connections.
type format struct {
	is   func(head string) bool
	read func(name string, r io.Reader) (all []predict.Observation, skipped int, err error)
	// connections is how many a migration usually takes.
	connections int
	twice       bool   // both hosts of a migration tell of it
	needs       string // a migration that can be used
}

var formats = []format{
	// Source: KubeVirt v1.9.0 migration-source.go:724 (8, without a limit on the VM's CPUs).
	{predict.IsPrometheus, predict.ReadPrometheus, 8, false, "migrations that succeeded, took ten seconds or more, and " +
		"whose kubevirt_vmi_migration_data_processed_bytes and _data_total_bytes were asked for"},
	{predict.IsNova, predict.ReadNova, 1, false, "answers about each migration until it has sent 95 % of its memory, for " +
		"ten seconds or more"},
	{predict.IsDomJobInfo, predict.ReadDomJobInfo, 1, true, "migrations by pre-copy that have completed and " +
		"that auto-converge did not slow, as virsh domjobinfo --completed prints them"},
}

// observe reads a file of a format.
func (o *observer) observe(path string, r io.Reader, f *format) error {
	all, skipped, err := f.read(path, r)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return fmt.Errorf("%s: none of %s can be used: needs %s", path, humanize.Count(skipped, "migration"), f.needs)
	case skipped > 0:
		o.note(path, "%d of %s cannot be used: needs %s", skipped, humanize.Count(skipped+len(all), "migration"), f.needs)
	}
	connections := cmp.Or(o.connections, f.connections)
	if connections == 1 {
		connections = 0 // the one that every transfer has
	}
	for i := range all {
		all[i].Link, all[i].Options.Bandwidth, all[i].Options.Channels = o.link, o.limit, connections
	}
	if f.twice {
		o.jobs = append(o.jobs, all...)
		return nil
	}
	o.infer(path, all)
	return nil
}

// infer makes measurements of what was observed.
func (o *observer) infer(path string, all []predict.Observation) {
	unknown := 0
	for i := range all {
		if all[i].Link <= 0 {
			unknown++
		}
	}
	if unknown > 0 {
		o.note(path, "the speed of the links of %s is not known: they are taken for faster than the processors; say it "+
			"with --link", humanize.Count(unknown, "migration"))
	}
	o.all = append(o.all, predict.Infer(all)...)
}

func (o *observer) note(path, text string, args ...any) {
	o.notes = append(o.notes, path+": "+fmt.Sprintf(text, args...))
}

// log makes measurements of the migrations of a log: those whose speed the guest and the wire
// govern.
func (o *observer) log(path string, moves []audit.Measured) error {
	var all []predict.Observation
	for i := range moves {
		m := &moves[i]
		if m.Mode == hypervisor.PostCopy || m.Brownout.Percent > 0 || m.Memory <= hypervisor.MiB ||
			!m.Ended.After(m.Began) {
			continue
		}
		all = append(all, predict.Observation{Line: i + 1, Host: string(m.Source), Target: string(m.Target),
			Memory: m.Memory + m.Disks, Sent: m.Sent, Link: cmp.Or(m.Link, o.link),
			Options: o.options(m), Began: m.Began, Total: m.Ended.Sub(m.Began), Downtime: m.Downtime})
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: none of %d migrations in the log was by pre-copy and measured by its "+
			"hypervisor: it needs a controller's log with migrations that succeeded", path, len(moves))
	}
	if skipped := len(moves) - len(all); skipped > 0 {
		o.note(path, "%d of %s are left out: by post-copy, or slowed by auto-converge", skipped,
			humanize.Count(len(moves), "migration"))
	}
	o.infer(path, all)
	return nil
}

// options returns the options of a migration of a log that went by pre-copy and was not slowed. Its source
// has chosen the connections by what it can: one, where post-copy is allowed.
func (o *observer) options(m *audit.Measured) hypervisor.TransferOptions {
	asked := m.Options
	asked.AllowAutoConverge, asked.AllowPostCopy = false, false
	config := agent.Config{Connections: o.connections}
	t := config.TransferOptions(&asked, cmp.Or(m.Abilities, fake.Abilities))
	if m.Options.AllowPostCopy {
		t.Channels = 0
	}
	return t
}
