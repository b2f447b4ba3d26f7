package importer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/inventory"
)

// guest is a VM of a test: what it is called, its application, and of which
// applications it wants none beside itself.
type guest struct {
	name, app string
	avoids    []string
}

// cluster prints a cluster with these guests as kubectl does, in JSON.
func cluster(guests ...guest) string {
	items := []any{}
	for _, g := range guests {
		var terms []any
		for _, app := range g.avoids {
			terms = append(terms, map[string]any{
				"topologyKey":   "kubernetes.io/hostname",
				"labelSelector": map[string]any{"matchLabels": map[string]any{"app": app}},
			})
		}
		items = append(items, map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
			"metadata": map[string]any{
				"namespace": "ns", "name": g.name, "labels": map[string]any{"app": g.app},
			},
			"spec": map[string]any{
				"domain": map[string]any{"memory": map[string]any{"guest": "1Gi"}},
				"affinity": map[string]any{"podAntiAffinity": map[string]any{
					"requiredDuringSchedulingIgnoredDuringExecution": terms,
				}},
			},
		})
	}
	text, err := json.Marshal(map[string]any{"kind": "List", "items": items})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestApartGroups(t *testing.T) {
	tests := []struct {
		name   string
		guests []guest
		want   map[string][]string // groups, by VM
	}{
		{"all that are meant say so: one group",
			[]guest{{"a", "x", []string{"x"}}, {"b", "x", []string{"x"}}, {"c", "y", nil}},
			map[string][]string{"ns/a": {"ns/app=x"}, "ns/b": {"ns/app=x"}, "ns/c": nil}},
		{"one avoids others that do not mind each other: pairs",
			[]guest{{"a", "x", []string{"y"}}, {"b", "y", nil}, {"c", "y", nil}},
			map[string][]string{
				"ns/a": {`ns/app=y ns/a ns/b`, `ns/app=y ns/a ns/c`},
				"ns/b": {`ns/app=y ns/a ns/b`}, "ns/c": {`ns/app=y ns/a ns/c`},
			}},
		{"no VM is meant: no group", []guest{{"a", "x", []string{"z"}}},
			map[string][]string{"ns/a": nil}},
		{"a condition that is written twice counts once",
			[]guest{{"a", "x", []string{"x", "x"}}, {"b", "x", []string{"x"}}},
			map[string][]string{"ns/a": {"ns/app=x"}, "ns/b": {"ns/app=x"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fleet, err := kubevirtRead(cluster(tt.guests...))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, v := range fleet.VMs {
				got[string(v.ID)] = v.Placement.Apart
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// TestApartMeansWhatKubernetesMeans: two VMs share a group exactly if one of them
// avoids the other.
func TestApartMeansWhatKubernetesMeans(t *testing.T) {
	apps := rapid.SampledFrom([]string{"x", "y", "z"})
	rapid.Check(t, func(t *rapid.T) {
		var guests []guest
		for i := range rapid.IntRange(1, 7).Draw(t, "guests") {
			guests = append(guests, guest{
				fmt.Sprintf("vm%d", i), apps.Draw(t, "app"),
				rapid.SliceOfN(apps, 0, 2).Draw(t, "avoids"),
			})
		}
		fleet, err := kubevirtRead(cluster(guests...))
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range guests {
			for j, b := range guests[:i] {
				want := slices.Contains(a.avoids, b.app) || slices.Contains(b.avoids, a.app)
				if got := shareGroup(fleet.VMs[i], fleet.VMs[j]); got != want {
					t.Errorf("%+v and %+v are apart: %t, want %t", a, b, got, want)
				}
			}
		}
	})
}

func shareGroup(a, b inventory.VM) bool {
	return slices.ContainsFunc(a.Placement.Apart, func(group string) bool {
		return slices.Contains(b.Placement.Apart, group)
	})
}

func TestApartWithManyPairsIsStricterAndWarns(t *testing.T) {
	var guests []guest
	for i := range 60 {
		guests = append(guests, guest{fmt.Sprintf("a%d", i), "x", []string{"y"}},
			guest{fmt.Sprintf("b%d", i), "y", nil})
	}
	fleet, err := kubevirtRead(cluster(guests...))
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, v := range fleet.VMs {
		for _, group := range v.Placement.Apart {
			groups[group] = true
		}
	}
	if got := slices.Collect(maps.Keys(groups)); len(got) != 1 {
		t.Errorf("there are %d groups, want 1", len(got))
	}
	const want = "all of them are kept apart from each other"
	if len(fleet.Warnings) != 1 || !strings.HasSuffix(fleet.Warnings[0].Message, want) {
		t.Errorf("warnings are %v", fleet.Warnings)
	}
}
