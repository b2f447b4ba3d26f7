package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// A server that has a host takes room there, whatever its status: as a VM that runs, or as
// memory that stays reserved.
func TestAServerWithAHostTakesRoomWhateverItsStatus(t *testing.T) {
	for _, status := range []string{"ACTIVE", "BUILD", "ERROR", "HARD_REBOOT", "MIGRATING", "PASSWORD",
		"PAUSED", "REBOOT", "REBUILD", "RESCUE", "RESIZE", "REVERT_RESIZE", "SHELVED", "SHUTOFF",
		"SOFT_DELETED", "SUSPENDED", "UNKNOWN", "VERIFY_RESIZE"} {
		for _, power := range []string{"null", `"Running"`, `"Paused"`, `"NOSTATE"`, `"Shutdown"`,
			`"Crashed"`, `"Suspended"`, "0", "1", "3", "4", "6", "7"} {
			f := cloudOf(t, fmt.Sprintf(`{"ID": "1", "Name": "v", "Status": "%s", "Host": "c1",
				"Power State": %s, "Flavor": "m1.large"}`, status, power))
			v, h := f.VMs[0], f.Hosts[0]
			taken := 65536*hypervisor.MiB - 512*hypervisor.MiB - h.Memory
			if v.Host != "" {
				taken += v.Memory
			}
			if taken != 8*hypervisor.GiB {
				t.Errorf("%s, power state %s: it takes %v of its host, want 8GiB", status, power, taken)
			}
			runs := map[string]bool{`"Running"`: true, `"Paused"`: true, "1": true, "3": true}[power]
			if runs && v.Host == "" {
				t.Errorf("%s, power state %s: it runs, and is on no host", status, power)
			}
			down := strings.Contains(`"Shutdown" "Crashed" "Suspended" 4 6 7`, power)
			if down && v.Host != "" {
				t.Errorf("%s, power state %s: it is on %s, and does not run", status, power, v.Host)
			}
			moves := (status == "ACTIVE" || status == "PAUSED") && !down
			if v.Migratable != moves || v.Migratable == (v.NotMigratableReason != "") {
				t.Errorf("%s, power state %s: migratable %v (%s), want %v", status, power, v.Migratable,
					v.NotMigratableReason, moves)
			}
		}
	}
}

func TestAServerWithoutAHostTakesNoRoom(t *testing.T) {
	for _, status := range []string{"SHELVED_OFFLOADED", "BUILD", "ERROR"} {
		f := cloudOf(t, fmt.Sprintf(
			`{"ID": "1", "Name": "v", "Status": "%s", "Flavor": "m1.large"}`, status))
		if f.VMs[0].Host != "" || f.Hosts[0].Memory != 65024*hypervisor.MiB || f.VMs[0].Migratable {
			t.Errorf("%s: %+v on %+v", status, f.VMs[0], f.Hosts[0])
		}
	}
}

// cloudOf reads a cloud with servers, as openstack prints them.
func cloudOf(t *testing.T, servers string) *inventory.Fleet {
	t.Helper()
	f, err := importer.ReadNova("cloud", []string{cli + "flavors.json", cli + "hypervisors.json",
		written(t, "["+servers+"]")}, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The extra specs of a flavor constrain its servers, or are warned of.
func TestExtraSpecsConstrainOrWarn(t *testing.T) {
	for _, tt := range []struct {
		specs, whyNot, warns string
		cpus                 int
		devices              string
	}{
		{`{}`, "", "", 4, "[]"},
		{`{"pci_passthrough:alias": "a1:2"}`, "it has a PCI device, a1",
			"none takes its servers", 4, "[{PCI:a1 2 true}]"},
		{`{"resources:VGPU": "1"}`, "it has a virtual GPU", "none takes its servers", 4,
			"[{VGPU 1 true}]"},
		{`{"resources1:VGPU": "2"}`, "it has a virtual GPU", "none takes its servers", 4,
			"[{VGPU 2 true}]"},
		{`{"resources:CUSTOM_FPGA": "1"}`, "", "none takes its servers", 4,
			"[{CUSTOM_FPGA 1 false}]"},
		{`{"resources:VGPU": "0"}`, "", "", 4, "[]"},
		{`{"hw:cpu_policy": "dedicated"}`, "", "", 16, "[]"},
		{`{"hw:cpu_policy": "shared"}`, "", "", 4, "[]"},
		{`{"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}`, "", "", 20, "[]"},
		{`{"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"}`, "", "", 10, "[]"},
		{`{"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"}`, "", "", 13, "[]"},
		{`{"resources:PCPU": "4"}`, "", "", 16, "[]"},
		{`{"hw:mem_page_size": "1GB"}`, "", "not looked at: hw:mem_page_size", 4, "[]"},
		{`{"hw:numa_nodes": "2", "trait:HW_CPU_X86_AVX": "required"}`, "",
			"not looked at: hw:numa_nodes, trait:HW_CPU_X86_AVX", 4, "[]"},
		{`{"hw:mem_encryption": "True"}`, "its memory is encrypted", "", 4, "[]"},
		{`{"hw:mem_encryption": "False"}`, "", "", 4, "[]"},
		{`{"hw:tpm_version": "2.0"}`, "it has a virtual TPM", "", 4, "[]"},
		{`{"quota:vif_inbound_average": "10"}`, "", "", 4, "[]"},
		{`"hw:cpu_policy='dedicated', hw:mem_page_size='large'"`, "",
			"not looked at: hw:mem_page_size", 16, "[]"},
		{`"pci_passthrough:alias='a:1,b:2'"`, "it has a PCI device, a", "none takes", 4,
			"[{PCI:a 1 true} {PCI:b 2 true}]"},
	} {
		flavors := written(t, `[{"ID": "3", "Name": "m1.large", "RAM": 8192, "VCPUs": 4,
			"Properties": `+tt.specs+`}]`)
		servers := written(t, `[{"ID": "1", "Name": "v", "Status": "ACTIVE", "Host": "c1",
			"Flavor": "m1.large"}]`)
		f, err := importer.ReadNova("cloud", []string{flavors, cli + "hypervisors.json", servers},
			inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		v := f.VMs[0]
		cpus := max(v.CPUs, v.CPURequest)
		if cpus != tt.cpus || fmt.Sprint(v.Placement.Devices) != tt.devices ||
			!strings.HasPrefix(v.NotMigratableReason, tt.whyNot) || v.Migratable != (tt.whyNot == "") {
			t.Errorf("%s: %d CPUs, devices %v, why not %q", tt.specs, cpus, v.Placement.Devices,
				v.NotMigratableReason)
		}
		warned := ""
		for _, w := range f.Warnings {
			if strings.Contains(w.Field, "extra specs") {
				warned += w.Message
			}
		}
		if (warned == "") != (tt.warns == "") || !strings.Contains(warned, tt.warns) {
			t.Errorf("%s: warned %q, want %q", tt.specs, warned, tt.warns)
		}
	}
}
