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

const fleet = "testdata/fleet"

// said writes what matters of a fleet.
func said(f *inventory.Fleet) []string {
	var all []string
	for _, h := range f.Hosts {
		all = append(all, fmt.Sprintf("%s %v %d", h.Name, h.Memory, h.CPUs))
	}
	for _, v := range f.VMs {
		all = append(all, fmt.Sprintf("%s %v %d on=%q moves=%v", v.ID, v.Memory, v.CPUs, v.Host,
			v.Migratable))
	}
	for _, w := range f.Warnings {
		all = append(all, w.Error())
	}
	return all
}

func TestFoldersOfHostsAreAFleet(t *testing.T) {
	if !importer.IsDomains(fleet) || importer.IsDomains("testdata") {
		t.Error("it is not told from other folders")
	}
	f, err := importer.ReadDomains(fleet, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"n1 63.5GiB 64",
		"n2 31.5GiB 64",
		`default/gpu 4GiB 2 on="n1" moves=false`,
		`default/idle 2GiB 4 on="" moves=true`,
		`shop/web 8GiB 4 on="n1" moves=true`,
		fleet + ": libvirt has no limit on virtual CPUs, and does not say how much memory hosts, and QEMU besides its guests, need " +
			"themselves: 4 for each CPU are taken, and 512MiB are reserved on each host",
		fleet + "/n2: host n2: none of its 2 domains runs, as their XML says: it counts as empty. " +
			"Files of /etc/libvirt/qemu are definitions; virsh dumpxml writes what runs",
		fleet + "/n2/default.xml:1: network: left out: it is neither a domain nor capabilities",
	}
	if diff := cmp.Diff(want, said(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if why := f.VMs[0].NotMigratableReason; !strings.Contains(why, "hostdev") {
		t.Errorf("gpu does not move: %q", why)
	}
}

func TestTheFolderOfOneHostIsAFleet(t *testing.T) {
	f, err := importer.ReadDomains(fleet+"/n1", inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Hosts) != 1 || f.Hosts[0].Name != "n1" || len(f.VMs) != 2 {
		t.Errorf("%v", said(f))
	}
}

// A VM that has moved is defined on both hosts, and runs on the later one.
func TestADomainIsWhereItRuns(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(fleet)); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(os.Rename(folder+"/n1/web.xml", folder+"/web"),
		os.Rename(folder+"/n2/web.xml", folder+"/n1/web.xml"),
		os.Rename(folder+"/web", folder+"/n2/web.xml"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := importer.ReadDomains(folder, inventory.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if web := f.VMs[2]; web.ID != "shop/web" || web.Host != "n2" {
		t.Errorf("%s is on %q, want shop/web on n2", web.ID, web.Host)
	}
}

// TestBadFilesAreExplained replaces one piece of a file each.
func TestBadFilesAreExplained(t *testing.T) {
	for _, c := range []struct{ what, file, old, new, want string }{
		{"no memory", "n1/web.xml", "<memory unit='GiB'>8</memory>", "", "n1/web.xml:1: domain: "},
		{"memory of 0", "n1/web.xml", ">8<", ">0<",
			"n1/web.xml:1: domain shop_web: needs memory and CPUs"},
		{"memory that is none", "n1/web.xml", ">8<", ">lots<", "n1/web.xml:1: domain: "},
		{"no XML", "n1/web.xml", "<", "", "n1/web.xml: it is no XML"},
		{"a file that is cut off", "n1/web.xml", "</domain>", "", "n1/web.xml:9: domain: "},
		{"it runs twice", "n2/web.xml", "<domain type='kvm'", "<domain type='kvm' id='3'",
			"n2/web.xml:1: domain shop_web: it runs on host n1, too, says "},
		{"no capabilities", "n1/capabilities.xml", "capabilities", "capable",
			"n1: host n1: its size is not known: put the output of virsh capabilities beside"},
		{"two capabilities", "n1/web.xml", "", "", "n1/web.xml:1: capabilities: there are others"},
		{"an unknown unit", "n1/capabilities.xml", "unit='KiB'", "unit='furlong'",
			`n1/capabilities.xml:1: capabilities memory: needs KiB, has the unit "furlong"`},
		{"a negative number", "n1/capabilities.xml", "num='8'", "num='-8'",
			"n1/capabilities.xml:1: capabilities cpus num: needs a whole number from 0 to"},
		{"no cells", "n1/capabilities.xml", "cell ", "sell ", "n1/capabilities.xml:"},
	} {
		t.Run(c.what, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(fleet)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, c.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(data), c.old, c.new)
			if c.old == "" {
				other, err := os.ReadFile(filepath.Join(fleet, "n1/capabilities.xml"))
				if err != nil {
					t.Fatal(err)
				}
				text = string(other)
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = importer.ReadDomains(folder, inventory.Defaults{})
			if _, are := errors.AsType[yamldoc.Problems](err); !are ||
				!strings.Contains(err.Error(), folder+"/"+c.want) {
				t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"n1/web.xml", "n1/gpu.xml", "n1/capabilities.xml"} {
		data, err := os.ReadFile(filepath.Join(fleet, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(folder, "a.xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := importer.ReadDomains(folder, inventory.Defaults{})
		if _, are := errors.AsType[yamldoc.Problems](err); err != nil && !are {
			t.Fatalf("%T %v", err, err)
		}
	})
}

// A host of unknown size is left out: each VM on it is named with its own file, not with the last one.
func TestAVMOnAHostOfUnknownSizeIsNamedWithItsOwnFile(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(fleet)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "n1", "capabilities.xml")); err != nil {
		t.Fatal(err)
	}
	_, err := importer.ReadDomains(folder, inventory.Defaults{})
	if err == nil || !strings.Contains(err.Error(), "n1/web.xml:1: vm shop/web host: there is no host") {
		t.Errorf("%v", err)
	}
}
