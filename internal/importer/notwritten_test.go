package importer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// Each kind is said once, with a count and an example.
func TestWhatIsNotWrittenIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	text := `
hosts:
- {name: n1, memory: 64GiB, cpus: 8, labels: {group: east}, taints: "gpu:NoSchedule", maxVMs: 3}
- {name: n2, memory: 64GiB, cpus: 8, labels: {group: west}, ratios: {cpus: 4}, aggregates: fast}
aggregates: {fast: {ssd: "true"}}
groups: {db: {policy: affinity}}
policies: [{name: slow, allowPostCopy: true}]
vms:
- {name: web, host: n1, memory: 4GiB, nodeSelector: {group: east}, strategy: None}
- {name: app, host: n1, memory: 4GiB, nodeSelector: {group: east}, apart: [app]}
- {name: db, host: n2, memory: 4GiB, groups: db, with: web, zones: a, devices: [{class: gpu}], networks: lan}
- {name: own, host: n2, memory: 4GiB, platform: {cpuModel: Skylake}, topology: {dedicated: true}, specs: {ssd: "true"}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := importer.Read(path, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"not written: conditions on labels of hosts: 2 VMs, such as default/app (group=east)",
		"not written: availability zones: 1 VM, such as default/db (a)",
		"not written: conditions on aggregates of hosts: 1 VM, such as default/own (ssd=true)",
		"not written: groups of VMs: 1 VM, such as default/db (db)",
		"not written: with or without certain other VMs: 1 VM, such as default/db (default/web)",
		"not written: conditions on processors and hypervisors: 1 VM, such as default/own (Skylake)",
		"not written: dedicated CPUs, NUMA nodes and huge pages: 1 VM, such as default/own (a layout)",
		"not written: devices of hosts: 1 VM, such as default/db (gpu)",
		"not written: networks: 1 VM, such as default/db (lan)",
		"not written: eviction strategies: 1 VM, such as default/web (None)",
		"not written: taints: 1 host, such as n1 (gpu)",
		"not written: sizes before what is reserved and given away more than once: 1 host, such as n2 (8 CPUs, written are 32)",
		"not written: aggregates: 1 host, such as n2 (fast)",
		"not written: limits of VMs, and of moves at once: 1 host, such as n1 (3 VMs)",
		"not written: migration policies: 1, such as slow",
	}
	if diff := cmp.Diff(want, importer.NotWritten(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A fleet that the format holds loses nothing: also one with instances that stay on their node.
func TestWhatIsHeldIsNoLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	text := "hosts:\n- {name: \"n[1-2]\", memory: 64GiB, cpus: 8}\nvms:\n- {name: web, host: n1, memory: 4GiB, apart: [a]}\n" +
		"- {name: db, host: n2, memory: 4GiB, migratable: false}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := importer.Read(path, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if lost := importer.NotWritten(f); len(lost) > 0 {
		t.Errorf("it is said that it loses %q", lost)
	}
}
