package importer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// cloudWith reads the cloud of testdata with other lists.
func cloudWith(t *testing.T, servers string, more ...string) *inventory.Fleet {
	t.Helper()
	files := []string{cli + "flavors.json", cli + "hypervisors.json", written(t, servers)}
	for _, text := range more {
		files = append(files, written(t, text))
	}
	f, err := importer.ReadNova("cloud", files, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// warned reports whether a warning has a text.
func warned(f *inventory.Fleet, text string) bool {
	return slices.ContainsFunc(f.Warnings, func(w inventory.Problem) bool { return strings.Contains(w.Message, text) })
}

const oneServer = `[{"ID": "1", "Name": "a", "Status": "ACTIVE", "Host": "c1", "Flavor": "m1.small", "Availability Zone": "east"}]`

// A host that is disabled is no target: the list of hypervisors does not say it, that of services does.
func TestADisabledServiceClosesItsHost(t *testing.T) {
	for _, text := range []string{`[
		{"ID": "1", "Binary": "nova-scheduler", "Host": "c1", "Zone": "internal", "Status": "disabled", "State": "up"},
		{"ID": "2", "Binary": "nova-compute", "Host": "c1", "Zone": "west", "Status": "disabled", "State": "up"},
		{"ID": "3", "Binary": "nova-compute", "Host": "c2", "Zone": "east", "Status": "enabled", "State": "down"}]`,
		`{"services": [
		{"id": "2", "binary": "nova-compute", "host": "c1", "zone": "west", "status": "disabled", "state": "up"},
		{"id": "3", "binary": "nova-compute", "host": "c2", "zone": "east", "status": "enabled", "state": "down"}]}`} {
		f := cloudWith(t, oneServer, text)
		if h := f.Hosts[0]; !h.Cordoned || h.Down || h.Facts.Zone != "west" {
			t.Errorf("c1: %+v", h)
		}
		if h := f.Hosts[1]; !h.Down || h.Facts.Zone != "east" {
			t.Errorf("c2: %+v", h)
		}
		if warned(f, "disabled is not known") {
			t.Errorf("it warns: %v", f.Warnings)
		}
	}
	if f := cloudWith(t, oneServer); !warned(f, "whether 2 hypervisors are disabled is not known, and each counts as a target") {
		t.Errorf("without: %v", f.Warnings)
	}
	f := cloudWith(t, oneServer, `[{"Binary": "nova-compute", "Host": "c9", "Status": "enabled"}]`)
	if !warned(f, "there is no hypervisor of this host") || !warned(f, "whether 2 hypervisors are") {
		t.Errorf("of another host: %v", f.Warnings)
	}
}

// A server that was asked for in a zone stays there, one that is in it by chance does not.
func TestAServerStaysInTheZoneThatItIsBoundTo(t *testing.T) {
	f := cloudWith(t, `[
		{"ID": "1", "Name": "a", "Status": "ACTIVE", "Host": "c1", "Flavor": "m1.small", "Availability Zone": "east", "Pinned Availability Zone": "east"},
		{"ID": "2", "Name": "b", "Status": "ACTIVE", "Host": "c2", "Flavor": "m1.small", "Availability Zone": "west", "Pinned Availability Zone": null}]`)
	if a, b := f.VMs[0].Placement.Zones, f.VMs[1].Placement.Zones; !slices.Equal(a, []string{"east"}) || b != nil {
		t.Errorf("a %v, b %v", a, b)
	}
	if f.Hosts[0].Facts.Zone != "east" || f.Hosts[1].Facts.Zone != "west" {
		t.Errorf("%+v", f.Hosts)
	}
	f = cloudWith(t, strings.ReplaceAll(oneServer, `"Availability`, `"Pinned Availability Zone": "east", "Availability`))
	if !warned(f, "the zone of 1 hypervisor is not known") {
		t.Errorf("a host without servers: %v", f.Warnings)
	}
	f = cloudWith(t, `[
		{"ID": "1", "Name": "a", "Status": "ACTIVE", "Host": "c1", "Flavor": "m1.small", "Availability Zone": "east"},
		{"ID": "2", "Name": "b", "Status": "ACTIVE", "Host": "c2", "Flavor": "m1.small", "Availability Zone": "west"}]`)
	if !warned(f, "which servers are bound to theirs is not known") {
		t.Errorf("an older list: %v", f.Warnings)
	}
}

// The servers of a group are together or apart.
func TestServerGroupsAreRules(t *testing.T) {
	const both = `[{"ID": "1", "Name": "a", "Status": "ACTIVE", "Host": "c1", "Flavor": "m1.small"},
		{"ID": "2", "Name": "b", "Status": "ACTIVE", "Host": "c1", "Flavor": "m1.small"}]`
	for _, tt := range []struct {
		text string
		want []placement.GroupRule
	}{
		{`[{"ID": "g1", "Name": "db", "Policy": "anti-affinity", "Members": "1, 2, gone"}]`,
			[]placement.GroupRule{{Group: "db", Policy: placement.AntiAffinity}}},
		{`{"server_groups": [{"id": "g1", "name": "db", "policies": ["affinity"], "members": ["1", "2"]}]}`,
			[]placement.GroupRule{{Group: "db", Policy: placement.Affinity}}},
		{`{"server_groups": [{"id": "g1", "name": "db", "policy": "anti-affinity", "rules": {"max_server_per_host": 3}, "members": ["1", "2"]},
			{"id": "g2", "name": "db", "policy": "soft-affinity", "members": ["2", "1"]}]}`,
			[]placement.GroupRule{{Group: "g1", Policy: placement.AntiAffinity, Max: 3}, {Group: "g2", Policy: placement.SoftAffinity}}},
	} {
		f := cloudWith(t, both, tt.text)
		for i := range f.VMs {
			if diff := cmp.Diff(tt.want, f.VMs[i].Placement.Groups); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.text, f.VMs[i].ID, diff)
			}
		}
		if warned(f, "server groups") || !warned(f, "not looked at: aggregates, and what properties of images ask of hosts") {
			t.Errorf("%s: %v", tt.text, f.Warnings)
		}
	}
	if f := cloudWith(t, both); !warned(f, "not looked at: server groups (add the output of openstack server group list") {
		t.Errorf("without a list: %v", f.Warnings)
	}
	f := cloudWith(t, both, `[{"ID": "g1", "Name": "db", "Policy": "chaos", "Members": "1"}]`)
	if !warned(f, `"chaos" is not known: the group is not looked at`) {
		t.Error(fmt.Sprint(f.Warnings))
	}
}
