package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// web needs 24 GiB and 4 CPUs; roomy has exactly that left.
func web() *placement.VM {
	return &placement.VM{ID: "shop/web", Memory: 24 * hypervisor.GiB, CPUs: 4}
}

func roomy() *placement.Host {
	return &placement.Host{
		Name: "n2", Memory: 64 * hypervisor.GiB, CPUs: 16,
		UsedMemory: 40 * hypervisor.GiB, UsedCPUs: 12,
		Labels: placement.Labels{"zone": "a", "cores": "16"},
	}
}

type world struct {
	vm   *placement.VM
	host *placement.Host
	o    placement.Options
}

func checkOf(change func(*world)) []placement.Reason {
	w := world{vm: web(), host: roomy()}
	change(&w)
	return placement.Check(w.vm, w.host, w.o)
}

func reasons(texts ...string) []placement.Reason {
	var all []placement.Reason
	for i := 0; i < len(texts); i += 3 {
		all = append(all, placement.Reason{Check: texts[i], Need: texts[i+1], Have: texts[i+2]})
	}
	return all
}

type checkRow struct {
	name   string
	change func(*world)
	want   []placement.Reason
}

func runRows(t *testing.T, rows []checkRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, checkOf(row.change)); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckHostAndCapacity(t *testing.T) {
	runRows(t, []checkRow{
		{"a host with exactly enough room takes the VM", func(*world) {}, nil},
		{"a host that is down takes no VM", func(w *world) { w.host.Down = true },
			reasons("down", "a live host", "down")},
		{"a closed host takes no VM", func(w *world) { w.host.Cordoned = true },
			reasons("cordon", "an uncordoned host", "cordoned")},
		{"the source is no target", func(w *world) { w.o.Source = "n2" },
			reasons("source", "another host", "the source n2")},
		{"another source does not matter", func(w *world) { w.o.Source = "n1" }, nil},
		{"a host without a name is not the source of a VM that is nowhere",
			func(w *world) { w.host.Name = "" }, nil},
		{"a host that failed the VM before is avoided",
			func(w *world) { w.o.Avoid = []hypervisor.HostName{"n9", "n2"} },
			reasons("avoided", "a host that has not failed this VM", "n2")},
		{"one byte too little memory is too little",
			func(w *world) { w.host.UsedMemory += 8 * hypervisor.GiB },
			reasons("memory", "24GiB", "16GiB")},
		{"an over-committed host says how far",
			func(w *world) { w.host.UsedMemory = 65 * hypervisor.GiB },
			reasons("memory", "24GiB", "-1GiB")},
		{"a VM that needs no memory is not refused for it", func(w *world) {
			w.vm.Memory, w.host.UsedMemory = 0, 65*hypervisor.GiB
		}, nil},
		{"too few CPUs are free", func(w *world) { w.host.UsedCPUs++ },
			reasons("cpus", "4", "3")},
		{"no inbound limit lets any number in", func(w *world) { w.host.Incoming = 99 }, nil},
		{"below the inbound limit there is room",
			func(w *world) { w.host.Incoming, w.o.Inbound = 1, 2 }, nil},
		{"at the inbound limit there is none",
			func(w *world) { w.host.Incoming, w.o.Inbound = 2, 2 },
			reasons("inbound", "fewer than 2 incoming", "2")},
	})
}

func TestCheckConstraints(t *testing.T) {
	type c = placement.Constraints
	give := func(cs placement.Constraints) func(*world) {
		return func(w *world) { w.vm.Constraints = cs }
	}
	zone := func(op placement.Operator, values ...string) []placement.Requirement {
		return []placement.Requirement{{Key: "zone", Operator: op, Values: values}}
	}
	runRows(t, []checkRow{
		{"a selector that matches is met", give(c{Selector: placement.Labels{"zone": "a"}}), nil},
		{"a selector names what differs and what is absent, sorted, not what matches",
			give(c{Selector: placement.Labels{"zone": "b", "disk": "ssd", "cores": "16"}}),
			reasons("selector", "disk=ssd, zone=b", "no disk, zone=a")},
		{"a selected empty value needs the label",
			give(c{Selector: placement.Labels{"disk": ""}}),
			reasons("selector", "disk=", "no disk")},
		{"one list of an affinity is enough",
			give(c{Affinity: [][]placement.Requirement{
				zone(placement.In, "b"), zone(placement.In, "a", "c")}}), nil},
		{"an affinity that fails shows all its lists",
			give(c{Affinity: [][]placement.Requirement{
				append(zone(placement.In, "b", "c"), zone(placement.Exists)...),
				{{Key: "disk", Operator: placement.Exists}}}}),
			reasons("affinity", "zone In b|c and zone Exists, or disk Exists", "no disk, zone=a")},
		{"an empty list of an affinity never holds",
			give(c{Affinity: [][]placement.Requirement{{}}}),
			reasons("affinity", "an empty list, which never holds", "its labels")},
	})
}

func TestCheckTaintsAndGroups(t *testing.T) {
	taints := []placement.Taint{
		{Key: "gpu", Value: "true", Effect: placement.NoSchedule},
		{Key: "broken", Effect: placement.NoExecute},
		{Key: "slow", Effect: placement.PreferNoSchedule},
	}
	tolerate := func(ls ...placement.Toleration) func(*world) {
		return func(w *world) {
			w.host.Taints, w.vm.Constraints.Tolerations = taints, ls
		}
	}
	apart := func(groups map[string]int, in ...string) func(*world) {
		return func(w *world) { w.host.Groups, w.vm.Constraints.Apart = groups, in }
	}
	runRows(t, []checkRow{
		{"taints repel, except those that only prefer", tolerate(),
			reasons("taints", "toleration of gpu=true:NoSchedule, broken:NoExecute", "none")},
		{"only the taints that are not tolerated are named",
			tolerate(placement.Toleration{Key: "gpu", Value: "true"}),
			reasons("taints", "toleration of broken:NoExecute", "gpu=true")},
		{"a toleration of another value is shown and does not help",
			tolerate(placement.Toleration{Key: "gpu", Value: "no"},
				placement.Toleration{Exists: true, Effect: placement.NoExecute}),
			reasons("taints", "toleration of gpu=true:NoSchedule", "gpu=no, *:NoExecute")},
		{"a VM that tolerates everything is not repelled",
			tolerate(placement.Toleration{Exists: true}), nil},
		{"a group with a member on the host keeps its other members away",
			apart(map[string]int{"db": 1, "web": 2, "x": 3}, "web", "db", "lone"),
			reasons("apart", "no VM of db, web", "1 of db, 2 of web")},
		{"a group without VMs keeps no VM away", apart(map[string]int{"x": 1}, "db"), nil},
		{"all reasons are given, not only the first", func(w *world) {
			w.host.Down, w.host.UsedCPUs, w.host.UsedMemory = true, 16, 64*hypervisor.GiB
			w.vm.Constraints.Selector = placement.Labels{"zone": "b"}
		}, reasons("down", "a live host", "down", "memory", "24GiB", "0B",
			"cpus", "4", "0", "selector", "zone=b", "zone=a")},
	})
}

func TestReasonReadsAsOneLine(t *testing.T) {
	r := placement.Reason{Check: "memory", Need: "24GiB", Have: "16GiB"}
	if got, want := r.String(), "memory needs 24GiB has 16GiB"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestRequirementHolds(t *testing.T) {
	labels := placement.Labels{"zone": "a", "cores": "16", "empty": ""}
	rows := []struct {
		name string
		r    placement.Requirement
		want bool
	}{
		{"In holds for a listed value", req("zone", placement.In, "b", "a"), true},
		{"In fails for another value", req("zone", placement.In, "b"), false},
		{"In fails without the label", req("disk", placement.In, "b"), false},
		{"In fails without the label, even for no value", req("disk", placement.In, ""), false},
		{"NotIn fails for a listed value", req("zone", placement.NotIn, "a"), false},
		{"NotIn holds for another value", req("zone", placement.NotIn, "b"), true},
		{"NotIn holds without the label", req("disk", placement.NotIn, "b"), true},
		{"NotIn without values never holds", req("zone", placement.NotIn), false},
		{"Exists holds for an empty value", req("empty", placement.Exists), true},
		{"Exists fails without the label", req("disk", placement.Exists), false},
		{"Exists with a value never holds", req("zone", placement.Exists, "a"), false},
		{"DoesNotExist holds without the label", req("disk", placement.DoesNotExist), true},
		{"DoesNotExist fails with it", req("zone", placement.DoesNotExist), false},
		{"DoesNotExist with a value never holds", req("disk", placement.DoesNotExist, "a"), false},
		{"Gt compares numbers, not texts", req("cores", placement.Gt, "9"), true},
		{"Gt is strict", req("cores", placement.Gt, "16"), false},
		{"Lt compares numbers, not texts", req("cores", placement.Lt, "100"), true},
		{"Lt is strict", req("cores", placement.Lt, "16"), false},
		{"Gt of a word never holds", req("zone", placement.Gt, "1"), false},
		{"Lt with a word never holds", req("cores", placement.Lt, "many"), false},
		{"Gt with two values never holds", req("cores", placement.Gt, "1", "2"), false},
		{"Lt fails without the label", req("disk", placement.Lt, "1"), false},
		{"an unknown operator never holds", req("zone", "Like", "a"), false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := row.r.Holds(labels); got != row.want {
				t.Errorf("%v Holds = %v, want %v", row.r, got, row.want)
			}
		})
	}
}

func req(key string, op placement.Operator, values ...string) placement.Requirement {
	return placement.Requirement{Key: key, Operator: op, Values: values}
}

func TestTolerates(t *testing.T) {
	taint := placement.Taint{Key: "gpu", Value: "true", Effect: placement.NoSchedule}
	rows := []struct {
		name string
		l    placement.Toleration
		want bool
	}{
		{"the same key and value tolerate every effect",
			placement.Toleration{Key: "gpu", Value: "true"}, true},
		{"another value does not", placement.Toleration{Key: "gpu", Value: "no"}, false},
		{"no value does not", placement.Toleration{Key: "gpu"}, false},
		{"existence is enough", placement.Toleration{Key: "gpu", Exists: true}, true},
		{"another key does not", placement.Toleration{Key: "fpga", Exists: true}, false},
		{"another effect does not",
			placement.Toleration{Key: "gpu", Exists: true, Effect: placement.NoExecute}, false},
		{"no key and existence tolerate everything", placement.Toleration{Exists: true}, true},
		{"no key and a value tolerate that value", placement.Toleration{Value: "true"}, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := row.l.Tolerates(&taint); got != row.want {
				t.Errorf("%+v Tolerates = %v, want %v", row.l, got, row.want)
			}
		})
	}
}
