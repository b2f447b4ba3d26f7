package importer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

const gib = hypervisor.GiB

func sample(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/cluster.data")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(text string) (*inventory.Fleet, error) {
	return importer.ReadGaneti("c.data", strings.NewReader(text), inventory.Defaults{})
}

func TestAClusterIsRead(t *testing.T) {
	fleet, err := read(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range fleet.Hosts {
		got = append(got, fmt.Sprintf("%s %v %d down=%v closed=%v %v", h.Name, h.Memory, h.CPUs,
			h.Down, h.Cordoned, h.Labels))
	}
	for _, v := range fleet.VMs {
		got = append(got, fmt.Sprintf("%s %v %d on=%q moves=%v %v %v %v", v.ID, v.Memory, v.CPUs,
			v.Host, v.Migratable, v.Placement.Selector, v.Placement.Apart,
			v.Placement.Affinity))
	}
	want := []string{
		"n1 61GiB 61 down=false closed=false " +
			"map[accepts/hv:old:yes group:east host:n1 power:a]",
		"n2 63GiB 64 down=false closed=false " +
			"map[accepts/hv:new:yes accepts/hv:old:yes group:east host:n2 power:b]",
		"n3 63GiB 32 down=false closed=true map[group:west host:n3]",
		"n4 0B 0 down=true closed=true map[group:east host:n4]",
		`default/db 4GiB 2 on="n2" moves=true map[accepts/hv:new:yes group:east] [service:web] []`,
		`default/local 1GiB 1 on="n2" moves=false map[accepts/hv:new:yes group:east] [] ` +
			`[[{host In [n2]}]]`,
		`default/off 2GiB 1 on="" moves=true map[accepts/hv:old:yes group:east] [] []`,
		`default/web 8GiB 4 on="n1" moves=true ` +
			`map[accepts/hv:old:yes group:east] [service:web] [[{host In [n1 n2]}]]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGanetiBadFilesAreExplained replaces one piece of the sample each.
func TestGanetiBadFilesAreExplained(t *testing.T) {
	for _, c := range []struct{ what, old, new, want string }{
		{"an unknown policy word", "preferred", "often", `c.data:1: group east alloc_policy: ` +
			`unknown word "often"; use preferred, last_resort or unallocable`},
		{"a group twice", "west|uuid-west", "east|uuid-west",
			"c.data:2: group east: there is already a group of this name or UUID"},
		{"a negative amount", "|56320|", "|-5|",
			`c.data:4: node n1 f_mem: needs a whole number from 0 to`},
		{"an overflowing amount", "|56320|", "|99999999999999999999|",
			`c.data:4: node n1 f_mem: needs a whole number from 0 to`},
		{"an unknown group", "|M|uuid-east", "|M|uuid-south",
			`c.data:4: node n1 group: there is no group with the UUID "uuid-south"`},
		{"a node twice", "n2|65536", "n1|65536",
			"c.data:5: host n1 name: there is already a host of this name in line 4"},
		{"a node without memory", "n2|65536|1024", "n2|0|0",
			"c.data:5: node n2 t_mem: a node that is not offline has memory"},
		{"a short node", "n3|65536|1024|64512|1000000|900000|16|N|uuid-west", "n3|65536",
			"c.data:6: node n3: needs 8 fields separated by |, has 2"},
		{"an unknown status", "running|Y|n1", "flying|Y|n1",
			`c.data:9: instance web status: unknown word "flying"`},
		{"an unknown primary", "Y|n1|n2", "Y|n9|n2",
			`c.data:9: instance web primary: there is no node "n9"`},
		{"an unknown secondary", "Y|n1|n2", "Y|n1|n9",
			`c.data:9: instance web secondary: there is no node "n9"`},
		{"an instance twice", "db|4096", "web|4096",
			"c.data:10: instance web: line 9 has an instance of this name. Htools keep both"},
		{"a secondary that is the primary", "Y|n1|n2", "Y|n1|n1",
			"c.data:9: instance web secondary: it is the primary, too"},
		{"a ratio of 0", "|2.0|", "|0|",
			"c.data:20: policy west vcpu_ratio: needs a number above 0"},
		{"a ratio that is none", "|2.0|", "|NaN|",
			"c.data:20: policy west vcpu_ratio: needs a number above 0"},
		{"a sixth section", "west|1024,1", "\nwest|1024,1", "c.data:21: there is a sixth section"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := read(strings.Replace(sample(t), c.old, c.new, 1))
			if _, are := errors.AsType[yamldoc.Problems](err); !are ||
				!strings.Contains("\n"+err.Error(), "\n"+c.want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	_, err := read(strings.Join(strings.SplitAfter(sample(t), "\n")[:9], ""))
	if err == nil || !strings.Contains(err.Error(), "it ends in section 3 of 4 at least") {
		t.Errorf("cut off: %v", err)
	}
}

// drawFleet draws a fleet with what the format can say.
func drawFleet(t *rapid.T) *inventory.Fleet {
	f := &inventory.Fleet{}
	hosts := rapid.IntRange(1, 5).Draw(t, "hosts")
	for i := range hosts {
		h := inventory.Host{Down: rapid.Bool().Draw(t, "down")}
		h.Cordoned = h.Down
		h.Host = hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("h%d", i)), Memory: 64 * gib,
			CPUs: rapid.IntRange(1, 100).Draw(t, "CPUs"), Link: inventory.DefaultLink}
		f.Hosts = append(f.Hosts, h)
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "VMs") {
		v := inventory.VM{Migratable: rapid.Bool().Draw(t, "moves")}
		v.ID = hypervisor.VMID(fmt.Sprintf("default/v%d", i))
		v.Memory = hypervisor.MiB * hypervisor.Bytes(rapid.IntRange(1, 6000).Draw(t, "memory"))
		v.CPUs = rapid.IntRange(1, 8).Draw(t, "CPUs")
		if at := rapid.IntRange(0, hosts-1).Draw(t, "host"); rapid.Bool().Draw(t, "runs") {
			v.Host = f.Hosts[at].Name
		}
		if rapid.Bool().Draw(t, "apart") {
			v.Placement.Apart = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group")}
		}
		f.VMs = append(f.VMs, v)
	}
	return f
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFleet(t)
		var text bytes.Buffer
		if err := importer.WriteGaneti(&text, want); err != nil {
			t.Fatal(err)
		}
		got, err := read(text.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		if !importer.IsGaneti(text.Bytes()) {
			t.Fatalf("it is not recognized:\n%s", &text)
		}
		for i, h := range got.Hosts {
			if w := want.Hosts[i]; h.Host != w.Host || h.Down != w.Down || h.Cordoned != w.Cordoned {
				t.Fatalf("host %+v, want %+v\n%s", h.Host, w.Host, &text)
			}
		}
		for i, v := range got.VMs {
			w := want.VMs[slices.IndexFunc(want.VMs, func(w inventory.VM) bool {
				return w.ID == v.ID
			})]
			together := len(w.Placement.Apart) > 0 && len(v.Placement.Apart) > 0 &&
				v.Placement.Apart[0] == w.Placement.Apart[0]+":1"
			if v.VM != w.VM || v.Host != runsOn(want, w) || v.Migratable != w.Migratable ||
				!together && len(w.Placement.Apart)+len(v.Placement.Apart) > 0 {
				t.Fatalf("VM %d %+v, want %+v\n%s", i, v, w, &text)
			}
		}
	})
}

// runsOn returns where a VM runs: on a host that is down it does not.
func runsOn(f *inventory.Fleet, v inventory.VM) hypervisor.HostName {
	for _, h := range f.Hosts {
		if h.Name == v.Host && h.Down {
			return ""
		}
	}
	return v.Host
}

// An instance that is stopped keeps its memory and its CPUs on its primary node, but one that is offline has none.
func TestAStoppedInstanceKeepsItsRoom(t *testing.T) {
	for status, want := range map[string]string{"running": "63GiB 62", "ADMIN_down": "43GiB 53", "USER_down": "43GiB 53",
		"ERROR_down": "43GiB 53", "ERROR_nodedown": "43GiB 53", "ADMIN_offline": "63GiB 62"} {
		// The free memory of its node is what is not taken by instances that run.
		text := strings.Replace(sample(t), "off|2048|10240|1|ADMIN_down", "off|20480|10240|9|"+status, 1)
		if status == "running" {
			text = strings.Replace(text, "|56320|", "|35840|", 1)
		}
		fleet, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		if h := fleet.Hosts[0]; fmt.Sprintf("%v %d", h.Memory, h.CPUs) != want {
			t.Errorf("%s: n1 has %v and %d CPUs for VMs, want %s", status, h.Memory, h.CPUs, want)
		}
	}
}

// A drbd instance is on its primary or its secondary: it can go, and come back.
func TestADRBDInstanceMovesBetweenItsTwoNodes(t *testing.T) {
	for _, on := range []struct{ primary, secondary string }{{"n1", "n2"}, {"n2", "n1"}} {
		fleet, err := read(strings.Replace(sample(t), "Y|n1|n2|drbd",
			"Y|"+on.primary+"|"+on.secondary+"|drbd", 1))
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(fleet.VMs, func(v inventory.VM) bool { return v.ID == "default/web" })
		for _, h := range fleet.Hosts {
			host, vm := inventory.PlacementHost(&h), inventory.PlacementVM(&fleet.VMs[at])
			vm.Constraints.Selector = nil // tags limit it, too
			vm.Constraints.Apart = nil
			takes := placement.Fits(&vm, &host, placement.Options{})
			if want := h.Name == "n1" || h.Name == "n2"; takes != want {
				t.Errorf("primary %s: %s takes it: %v, want %v", on.primary, h.Name, takes, want)
			}
		}
	}
}

// A node that is offline while its instances run is drained; while they do not, it is down.
func TestAnOfflineNodeWhoseInstancesRunIsDrained(t *testing.T) {
	for _, tt := range []struct {
		status string
		down   bool
		memory string
	}{{"running", false, "12GiB"}, {"ERROR_nodeoffline", true, "0B"}} {
		text := strings.Replace(sample(t), "\n\nweb|", "\n\nx|12288|10240|8|"+tt.status+
			"|Y|n4||ext||1|-|N\nweb|", 1)
		fleet, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		h := fleet.Hosts[3]
		if h.Down != tt.down || !h.Cordoned || h.Memory.String() != tt.memory {
			t.Errorf("%s: %+v, want down %v, closed, %s", tt.status, h, tt.down, tt.memory)
		}
		if !tt.down && h.CPUs < 8 {
			t.Errorf("its VM has 8 CPUs, it has %d", h.CPUs)
		}
	}
}

// htools are the judges of what is written for them.
func TestHtoolsReadWhatIsWritten(t *testing.T) {
	hbal := testutil.Installed(t, "hbal", "ganeti-htools")
	fleet := &inventory.Fleet{}
	for i := range 4 {
		h := inventory.Host{}
		h.Host = hypervisor.Host{Name: hypervisor.HostName(fmt.Sprintf("h%d", i)), Memory: 64 * gib,
			CPUs: 64}
		fleet.Hosts = append(fleet.Hosts, h)
	}
	for i := range 3 { // they must be apart, so that each leaves for a host of its own
		v := inventory.VM{Host: hypervisor.HostName(fmt.Sprintf("h%d", i)), Migratable: true,
			Placement: placement.Constraints{Apart: []string{"web"}}}
		v.ID, v.Memory, v.CPUs = hypervisor.VMID(fmt.Sprintf("default/v%d", i)), 8*gib, 4
		fleet.VMs = append(fleet.VMs, v)
	}
	var text bytes.Buffer
	if err := importer.WriteGaneti(&text, fleet); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fleet.data")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(hbal, "-t", path, "-O", "h0", "--evac-mode").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v0 h0 => h3") &&
		!strings.Contains(strings.Join(strings.Fields(string(out)), " "), "v0 h0 => h3") {
		t.Errorf("%v\n%s\n%s", err, out, &text)
	}
}

func FuzzGanetiRead(f *testing.F) {
	f.Add(sample(f))
	f.Add("\n\n\n\n")
	f.Add("g|u|preferred\n\nn|1|1|1|1|1|1|N|u\n\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		fleet, err := read(text)
		if _, are := errors.AsType[yamldoc.Problems](err); err != nil && !are {
			t.Fatalf("%T %v", err, err)
		}
		if fleet == nil {
			return
		}
		for _, h := range fleet.Hosts {
			if h.Memory < 0 || h.CPUs < 0 {
				t.Errorf("host %+v", h)
			}
		}
	})
}
