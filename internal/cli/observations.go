package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/inventory"
)

// measurements reads files of measurements, each in its own format.
func (f *flags) measurements(paths []string) (all []predict.Migration, err error) {
	var link, limit hypervisor.Bandwidth
	if f.link != "" {
		if link, err = inventory.ParseBandwidth(f.link); err != nil {
			return nil, fmt.Errorf("--link: %w", err)
		}
	}
	if f.limit != "" {
		if limit, err = inventory.ParseBandwidth(f.limit); err != nil {
			return nil, fmt.Errorf("--cap: %w", err)
		}
	}
	for _, path := range paths {
		some, err := readMeasurements(path, link, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// readMeasurements reads a file, whose format its beginning tells.
func readMeasurements(path string, link, limit hypervisor.Bandwidth) ([]predict.Migration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 1<<12)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text := string(head[:n])
	whole := io.MultiReader(strings.NewReader(text), file)
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), `{"seq":`):
		moves, err := audit.Measure(whole)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return ofLog(path, moves)
	case predict.IsPrometheus(text):
		all, skipped, err := predict.ReadPrometheus(path, whole)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("%s: none of %d migrations can be used: needs those that succeeded, took ten "+
				"seconds or more, and whose kubevirt_vmi_migration_data_processed_bytes and _data_total_bytes "+
				"were asked for", path, skipped)
		}
		for i := range all {
			all[i].Link, all[i].Options.Bandwidth = link, limit
		}
		return predict.Infer(all), err
	case predict.IsNova(text):
		all, skipped, err := predict.ReadNova(path, whole)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("%s: none of %d migrations can be used: ask about each until it has sent 95 %% of its "+
				"memory, for ten seconds or more", path, skipped)
		}
		for i := range all {
			all[i].Link, all[i].Options.Bandwidth = link, limit
		}
		return predict.Infer(all), err
	case predict.IsDomJobInfo(text):
		all, skipped, err := predict.ReadDomJobInfo(path, whole)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("%s: none of %d jobs is a migration by pre-copy that has completed: needs "+
				"the output of virsh domjobinfo --completed", path, skipped)
		}
		for i := range all {
			all[i].Link, all[i].Options.Bandwidth = link, limit
		}
		return predict.Infer(all), err
	}
	return predict.Read(path, whole)
}

// ofLog makes measurements of the migrations of a log: those whose speed the guest and the wire
// govern.
func ofLog(path string, moves []audit.Measured) ([]predict.Migration, error) {
	var all []predict.Observation
	for i := range moves {
		m := &moves[i]
		if m.Mode == hypervisor.PostCopy || m.Brownout.Percent > 0 || m.Memory <= hypervisor.MiB ||
			!m.Ended.After(m.Began) {
			continue
		}
		o := m.Options
		o.AllowAutoConverge, o.AllowPostCopy = false, false
		all = append(all, predict.Observation{Line: i + 1, Host: string(m.Source), Target: string(m.Target),
			Memory: m.Memory + m.Disks, Sent: m.Sent, Link: m.Link,
			Options: agent.TransferOptions(&o, fake.Abilities), Began: m.Began,
			Total: m.Ended.Sub(m.Began), Downtime: m.Downtime})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: none of %d migrations in the log was by pre-copy and measured by its "+
			"hypervisor: it needs a controller's log with migrations that succeeded", path, len(moves))
	}
	return predict.Infer(all), nil
}
