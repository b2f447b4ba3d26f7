package inventory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/inventory"
)

// refusal is a text that is no fleet, and what the error says.
type refusal struct{ name, text, want string }

const oneHost = "hosts:\n- {name: n1, memory: 64GiB, cpus: 16}\n"

func TestReadFleetRefuses(t *testing.T) {
	const host = oneHost
	checkRefusals(t, []refusal{
		{"nothing at all", "", "f:1: it is empty"},
		{"a list", "- a\n", "f:1: "},
		{"a word", "hello", "f:1: "},
		{"an unknown field", "hostz: []\n", `f:1: hostz: unknown field "hostz"`},
		{"a name twice", host + "- {name: n1, memory: 1GiB, cpus: 1}\n",
			"f:3: host n1 name: there is already a host of this name in line 2"},
		{"a range over a name", host + "- {name: \"n[1-2]\", memory: 1GiB, cpus: 1}\n",
			"f:3: host n1 name: there is already a host of this name in line 2"},
		{"no memory", "hosts:\n- {name: n1, cpus: 1}\n", "f:2: hosts[0].memory: \"\" has no unit"},
		{"negative memory", "hosts:\n- {name: n1, cpus: 1, memory: -1GiB}\n",
			`f:2: hosts[0].memory: "-1GiB" is no amount of memory: it is negative`},
		{"memory of zero", "hosts:\n- {name: n1, cpus: 1, memory: 0B}\n",
			"f:2: hosts[0].memory: needs more than 0"},
		{"no CPUs", "hosts:\n- {name: n1, memory: 1GiB}\n", "f:2: hosts[0].cpus: needs 1 or more"},
		{"a link without unit", "hosts:\n- {name: n1, cpus: 1, memory: 1GiB, link: 10}\n",
			`f:2: hosts[0].link: "10" has no unit of speed`},
		{"a taint without effect", "hosts:\n- {name: n, cpus: 1, memory: 1GiB, taints: a=b}\n",
			`f:2: hosts[0].taints[0]: "a=b" is no taint`},
		{"a name that is none", "hosts:\n- {name: \"n 1\", cpus: 1, memory: 1GiB}\n",
			`f:2: hosts[0].name: "n 1" is no name`},
		{"a range that is none", "hosts:\n- {name: \"n[1\", cpus: 1, memory: 1GiB}\n",
			`f:2: hosts[0].name: "n[1" has a [ without a ]`},
		{"too many hosts", "hosts:\n- {name: \"n[1-9999999]\", cpus: 1, memory: 1GiB}\n",
			"more than 2000000 names"},
		{"a wrong duration", "config: {progressTimeout: 150}\n",
			`f:1: config.progressTimeout: "150" is no duration`},
		{"a negative limit", "config: {parallelMigrationsPerCluster: -1}\n",
			"f:1: config.parallelMigrationsPerCluster: needs"},
		{"a policy twice", "policies:\n- {name: p}\n- {name: p}\n",
			"f:3: policy p name: there is already a policy of this name in line 2"},
		{"a policy that admission refuses", "policies:\n- {name: p, maxDowntimeMs: 0}\n",
			"f:2: policy p maxDowntime"},
		{"an override of nothing", "defaults: {overrides: [{class: idle}]}\n",
			"f:1: defaults.overrides[0]: it selects neither hosts nor vms"},
		{"an override of the wrong thing",
			"defaults: {overrides: [{hosts: {a: b}, class: idle}]}\n",
			"f:1: defaults.overrides[0]: hosts and link go together"},
	})
}

func TestReadFleetRefusesRacksAndNetworks(t *testing.T) {
	const listed = "racks: {a: {uplink: 40Gbit/s}}\nhosts:\n- {name: n1, memory: 1GiB, cpus: 1, "
	checkRefusals(t, []refusal{
		{"an up-link without unit", "racks:\n  a: {uplink: 40}\n",
			`f:2: racks.a.uplink: "40" has no unit of speed`},
		{"a speed of nothing", "hosts: []\nnetwork: {speed: 0Gbit/s}\n",
			"f:2: network.speed: needs more than 0"},
		{"an unknown field of a rack", "racks: {a: {speed: 1Gbit/s}}\n",
			`f:1: racks.a.speed: unknown field "speed"`},
		{"a rack that is not listed", listed + "rack: b}\n",
			`f:3: hosts[0].rack: there is no rack "b" under racks: list it there`},
		{"another up-link than the rack's", listed + "rack: a, uplink: 10Gbit/s}\n",
			"f:3: hosts[0].uplink: rack a has another up-link already: say it once"},
		{"two up-links of one rack", "hosts:\n" +
			"- {name: n1, memory: 1GiB, cpus: 1, rack: a, uplink: 10Gbit/s}\n" +
			"- {name: n2, memory: 1GiB, cpus: 1, rack: a, uplink: 20Gbit/s}\n",
			"f:3: hosts[1].uplink: rack a has another up-link already: say it once"},
	})
}

func TestReadFleetRefusesVMs(t *testing.T) {
	const host, vm = oneHost, oneHost + "vms:\n- {name: a, host: n1, memory: 1GiB, "
	checkRefusals(t, []refusal{
		{"a VM on no host", host + "vms:\n- {name: a, host: n2, memory: 1GiB}\n",
			`f:4: vm default/a host: there is no host "n2"`},
		{"a VM twice", vm + "}\n- {name: a, namespace: default, memory: 1GiB}\n",
			"f:5: vm default/a name: there is already a VM of this name in line 4"},
		{"negative CPUs", vm + "cpus: -1}\n", "f:4: vms[0].cpus: needs 1 or more"},
		{"an unknown strategy", vm + "strategy: Flee}\n", "f:4: vms[0].strategy: unknown"},
		{"an unknown class", vm + "class: x}\n", `f:4: vms[0].class: unknown class "x"`},
		{"a working set beyond the memory", vm + "workingSet: 2GiB, dirty: 1MiB/s}\n",
			"f:4: vms[0].workingSet: 2GiB is more than the memory, 1GiB"},
		{"a reason although it is migratable", vm + "migratable: true, whyNot: x}\n",
			"f:4: vms[0].whyNot: it is migratable"},
		{"a toleration of nothing", vm + "tolerations: [\":NoSchedule\"]}\n",
			"f:4: vms[0].tolerations[0]: "},
		{"an unknown operator", vm + "affinity: [[{key: a, operator: Is}]]}\n",
			"f:4: vms[0].affinity[0][0]: unknown operator"},
		{"too few values", vm + "affinity: [[{key: a, operator: In}]]}\n",
			"f:4: vms[0].affinity[0][0]: a requirement has a key, and with In it takes values"},
	})
}

func checkRefusals(t *testing.T, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := inventory.ReadFleet("f", strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("ReadFleet() = %v, want %q in it", err, tt.want)
			}
			if _, is := errors.AsType[inventory.Problems](err); !is {
				t.Errorf("%T is no Problems", err)
			}
		})
	}
}

func TestReadFleetCapsWhatItReports(t *testing.T) {
	text := "vms:\n" + strings.Repeat("- {name: a, memory: 1, host: x}\n", 5000)
	_, err := inventory.ReadFleet("f", strings.NewReader(text))
	if got := strings.Count(fmt.Sprint(err), "\n"); got != 20 {
		t.Errorf("%d lines of problems, want 21", got+1)
	}
}

// TestReadFleetNeverPanics: lines of a fleet in any order, doubled, cut or garbled,
// are a fleet or Problems.
func TestReadFleetNeverPanics(t *testing.T) {
	lines := []string{
		"hosts:", "vms:", "- {name: n1, memory: 1GiB, cpus: 1}", "- name: \"n[1-3]\"",
		"  memory: 1GiB", "  cpus: 4", "  host: n1", "  apart: [a, b]", "  labels: {a: b}",
		"defaults: {link: 1Gbit/s}", "policies:", "  selectors: {}", "config:",
		"  affinity: [[{}]]", "  tolerations: [\"*\"]", "namespaces: {a: {b: c}}", "- ", "  ",
		"- - x", "  memory:", "groups: {a: {policy: affinity}}", "  groups: a", "  with: a",
		"  cells: [{cpus: 0-3, pages: {1GiB: 1}}]", "  topology: {cells: 2}", "  devices: {a: 1}",
		"  hardware: {hugepages: 1GiB, pins: [\"1\"]}", "  ratios: {cpus: 2}",
		"  reserved: {cpus: 1}", "racks: {a: {uplink: 1Gbit/s}}", "  rack: a", "  uplink: 2Gbit/s",
		"network: {speed: 1Gbit/s}",
		"  experimental: {stallDetector: {ewmaAlpha: 2}}", "  workingSet: 9GiB", "# comment",
	}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfN(rapid.SampledFrom(lines), 0, 15).Draw(t, "lines")
		text := strings.Join(chosen, "\n")
		if rapid.Bool().Draw(t, "garbled") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + rapid.String().Draw(t, "garbage") + text[at:]
		}
		fleet, err := inventory.ReadFleet("f", strings.NewReader(text))
		_, is := errors.AsType[inventory.Problems](err)
		if (fleet == nil) != is {
			t.Errorf("%q gives %v and %v", text, fleet, err)
		}
	})
}

func FuzzReadFleet(f *testing.F) {
	for _, seed := range []string{
		"", "hosts:\n- {name: \"n[1-3]\", memory: 1GiB, cpus: 1}\nvms:\n- {name: a, host: n1}\n",
		"vms: [{name: a, memory: 1GiB, class: web, apart: x, tolerations: [\"*\"]}]",
		"policies: [{name: p, selectors: {}, experimental: {compression: zstd}}]",
		everything,
		"config: {maxDowntimeMs: 1}\ndefaults: {overrides: [{vms: {}, dirty: 1MiB/s}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fleet, err := inventory.ReadFleet("f", strings.NewReader(string(text)))
		if (fleet == nil) == (err == nil) {
			t.Errorf("ReadFleet() = %v, %v", fleet, err)
		}
	})
}
