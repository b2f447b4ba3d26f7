package importer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

const cli = "testdata/cli/"

func lists() []string {
	return []string{cli + "flavors.json", cli + "hypervisors.json", cli + "servers.json"}
}

// novaSaid writes what matters of a fleet.
func novaSaid(f *inventory.Fleet) []string {
	var all []string
	for _, h := range f.Hosts {
		all = append(all, fmt.Sprintf("%s %v %d down=%v", h.Name, h.Memory, h.CPUs, h.Down))
	}
	for _, v := range f.VMs {
		all = append(all, fmt.Sprintf("%s %v %d on=%q moves=%v %s", v.ID, v.Memory, v.CPUs, v.Host,
			v.Migratable, v.NotMigratableReason))
	}
	return all
}

// want: 64 GiB less 512 MiB, and less the 8 GiB and 4 CPUs of the server that is shut off.
var want = []string{
	"c1.example.com 55.5GiB 60 down=false",
	"c2.example.com 63.5GiB 64 down=true",
	`shop/0a1b 8GiB 4 on="c1.example.com" moves=true `,
	`shop/0a1c 8GiB 4 on="" moves=false ` +
		"its status is SHUTOFF; ACTIVE and PAUSED servers move",
	`shop/build 2GiB 1 on="c2.example.com" moves=false ` +
		"its status is RESIZE; ACTIVE and PAUSED servers move",
}

func TestTheCommandsAndTheAPISayTheSame(t *testing.T) {
	for _, files := range [][]string{lists(), {"testdata/api/cloud.json"}} {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil || !importer.IsNova(data) {
				t.Errorf("%s is not recognized: %v", file, err)
			}
		}
		fleet, err := importer.ReadNova("cloud", files, inventory.Defaults{})
		if err != nil {
			t.Fatalf("%v: %v", files, err)
		}
		if diff := cmp.Diff(want, novaSaid(fleet)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", files, diff)
		}
	}
}

// TestNovaBadFilesAreExplained replaces one piece of a file each.
func TestNovaBadFilesAreExplained(t *testing.T) {
	for _, c := range []struct{ what, file, old, new, want string }{
		{"an unknown flavor", "servers.json", "m1.small", "m1.tiny", "servers.json:24: server " +
			"build flavor: its size is not known: add the output of openstack flavor list"},
		{"an unknown host", "servers.json", `"c1"`, `"c9"`,
			`servers.json:2: server web host: there is no hypervisor "c9"`},
		{"a server twice", "servers.json", "0a1c", "0a1b", "servers.json:14: server web ID: " +
			"there is already a server with it, in line 2 of "},
		{"a server without ID", "servers.json", `"ID": "0a1d",`, "",
			"servers.json:24: server build ID: it has none"},
		{"no sizes", "hypervisors.json", `"Memory MB": 65536`, `"x": 1`, "hypervisors.json:2: " +
			"hypervisor c1.example.com: it has no memory_mb and vcpus: print the list with --long"},
		{"a negative size", "hypervisors.json", `"Memory MB": 65536`, `"Memory MB": -1`,
			"hypervisors.json:2: hypervisor c1.example.com Memory MB: needs a whole number from 0"},
		{"a size that is none", "hypervisors.json", `"vCPUs": 16`, `"vCPUs": "many"`,
			"hypervisors.json:2: hypervisor c1.example.com vCPUs: needs a whole number from 0"},
		{"a hypervisor twice", "hypervisors.json", "c2.ex", "c1.ex", "hypervisors.json:2: " +
			"hypervisor c1.example.com: there are several hypervisors of this name"},
		{"a flavor without CPUs", "flavors.json", `"VCPUs": 4`, `"VCPUs": 0`,
			"flavors.json:3: flavor m1.large: it needs RAM and VCPUs above 0"},
		{"a file that is cut off", "flavors.json", "\n]\n", "",
			"flavors.json:3: it ends in the middle: is it cut off?"},
		{"no JSON", "flavors.json", `"Disk": 80`, `"Disk" 80`,
			"flavors.json:3: it is no JSON as openstack prints it"},
		{"servers without their hosts", "servers.json", `"Host": "c1",`, "", "servers.json:2: " +
			"server web host: it has none, though its status is ACTIVE: print the list with"},
		{"something else", "flavors.json", `"VCPUs": 4`, `"Cores": 4`,
			"flavors.json:3: item: it is no server, hypervisor, flavor"},
		{"a word", "flavors.json", "[\n", "\"x\" [\n",
			"flavors.json:1: needs a list or an answer of the API"},
	} {
		t.Run(c.what, func(t *testing.T) {
			folder := t.TempDir()
			var files []string
			for _, from := range lists() {
				data, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				text := string(data)
				if filepath.Base(from) == c.file {
					text = strings.Replace(text, c.old, c.new, 1)
				}
				files = append(files, filepath.Join(folder, filepath.Base(from)))
				if err := os.WriteFile(files[len(files)-1], []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := importer.ReadNova(folder, files, inventory.Defaults{})
			if _, are := errors.AsType[yamldoc.Problems](err); !are ||
				!strings.Contains(err.Error(), folder+"/"+c.want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestWithoutHypervisorsThereIsNoFleet(t *testing.T) {
	_, err := importer.ReadNova("cloud", []string{cli + "servers.json"}, inventory.Defaults{})
	if err == nil || !strings.HasPrefix(err.Error(), "cloud: there are no hypervisors: add the") {
		t.Error(err)
	}
}

// written writes a file and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cloud.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestListsThatAreNotWholeAreRefused: a cloud would have no servers, or fewer, and room for all.
func TestListsThatAreNotWholeAreRefused(t *testing.T) {
	answer, err := os.ReadFile("testdata/api/cloud.json")
	if err != nil {
		t.Fatal(err)
	}
	paged := strings.Replace(string(answer), "\n]}\n{\"fla",
		"\n],\n\"servers_links\": [{\"rel\": \"next\"}]}\n{\"fla", 1)
	further := `{"servers": [{"id": "9", "name": "x", "status": "BUILD", "flavor": {"id": "1"}}]}`
	for _, tt := range []struct {
		what, want string
		files      []string
	}{
		{"no list of servers", "hypervisors.json:2: hypervisor c1.example.com: no list of " +
			"servers comes with it", []string{cli + "flavors.json", cli + "hypervisors.json"}},
		{"a list of servers that is empty", "", []string{cli + "hypervisors.json",
			written(t, "[]\n")}},
		{"an answer without servers", "", []string{cli + "hypervisors.json",
			written(t, `{"servers": []}`)}},
		{"an answer that goes on", "cloud.json:25: servers: the list goes on in another answer",
			[]string{written(t, paged)}},
		{"an answer and its second page", "", []string{written(t, paged), written(t, further)}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, err := importer.ReadNova("cloud", tt.files, inventory.Defaults{})
			if tt.want == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("the error is %v, want %s", err, tt.want)
			}
		})
	}
}

// TestANameThatIsNotPrintableIsLeftOut: the server's ID stands for it.
func TestANameThatIsNotPrintableIsLeftOut(t *testing.T) {
	f, err := importer.ReadNova("cloud", []string{cli + "hypervisors.json", cli + "flavors.json",
		written(t, `[{"ID": "7", "Name": "a\u001b[m", "Status": "BUILD", "Flavor": "m1.small"}]`)},
		inventory.Defaults{})
	if err != nil || f.VMs[0].ID != "default/7" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAListAsLongAsTheAPIAllowsIsWarnedOf: there may be more.
func TestAListAsLongAsTheAPIAllowsIsWarnedOf(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(
			`{"ID": "%d", "Name": "v", "Status": "BUILD", "Flavor": "m1.small"}`, i))
	}
	f, err := importer.ReadNova("cloud", []string{cli + "hypervisors.json", cli + "flavors.json",
		written(t, "["+strings.Join(many, ",")+"]")}, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range f.Warnings {
		if strings.Contains(w.Message, "a list has 1000 items, as many as the API lists at once") {
			return
		}
	}
	t.Errorf("the warnings are %v", f.Warnings)
}

func FuzzNovaRead(f *testing.F) {
	for _, file := range append(lists(), "testdata/api/cloud.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(folder, "cloud.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := importer.ReadNova(path, []string{path}, inventory.Defaults{})
		if _, are := errors.AsType[yamldoc.Problems](err); err != nil && !are {
			t.Fatalf("%T %v", err, err)
		}
	})
}

// The list of server groups is known by its columns, as the client prints them with --long.
func TestAFolderHasTheListOfServerGroups(t *testing.T) {
	for _, start := range []string{
		`[{"ID": "5", "Name": "g", "Policies": "anti-affinity", "Members": "a, b", "Project Id": "p", "User Id": "u"}]`,
		`[{"ID": "5", "Name": "g", "Policy": "anti-affinity", "Members": [], "Project Id": "p", "User Id": "u"}]`,
	} {
		if !importer.IsNova([]byte(start)) {
			t.Errorf("left out: %s", start)
		}
	}
}
