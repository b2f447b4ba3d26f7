package importer_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// Every format is told by its content: the files lie under names that say nothing.
func TestEveryFormatIsTold(t *testing.T) {
	for from, host := range map[string]hypervisor.HostName{
		"../../inventory/testdata/fleet.yaml":   "a1",
		"../../inventory/testdata/cluster.json": "worker-1",
		"../../inventory/testdata/cluster.yaml": "worker-1",
		"testdata/cluster.data":                 "n1",
		"testdata/api/cloud.json":               "c1.example.com",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "fleet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := importer.Read(path, inventory.Defaults{})
		if err != nil {
			t.Errorf("%s: %v", from, err)
		} else if f.Hosts[0].Name != host {
			t.Errorf("%s: the first host is %s, want %s", from, f.Hosts[0].Name, host)
		}
	}
}

// What is written of a fleet of any format is read again, with the same VMs that run.
func TestWhatIsConvertedIsRead(t *testing.T) {
	for _, from := range []string{"../../inventory/testdata/fleet.yaml", "../../inventory/testdata/cluster.json",
		"../../inventory/testdata/cluster.yaml", "testdata/cluster.data",
		"testdata/api/cloud.json", "testdata/cli", "testdata/fleet",
		"testdata/quota.yaml", "testdata/host-model.yaml",
		"testdata/cpu-requests.yaml", "testdata/overcommit.yaml"} {
		fleet, err := importer.Read(from, inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := importer.WriteGaneti(&text, fleet); err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		path := filepath.Join(t.TempDir(), "fleet")
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := importer.Read(path, inventory.Defaults{})
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		if len(again.Hosts) != len(fleet.Hosts) || len(again.VMs) != len(fleet.VMs) ||
			running(again) != running(fleet) {
			t.Errorf("%s: %d hosts and %d VMs, of which %d run; want %d, %d and %d", from,
				len(again.Hosts), len(again.VMs), running(again), len(fleet.Hosts), len(fleet.VMs),
				running(fleet))
		}
	}
}

// running counts the VMs on hosts that are not down.
func running(f *inventory.Fleet) (n int) {
	down := map[hypervisor.HostName]bool{"": true}
	for _, h := range f.Hosts {
		down[h.Name] = h.Down
	}
	for _, v := range f.VMs {
		if !down[v.Host] {
			n++
		}
	}
	return n
}

func TestFoldersAreTold(t *testing.T) {
	for from, hosts := range map[string]int{
		"testdata/cli": 2, "testdata/fleet": 2,
		"testdata/fleet/n1": 1,
	} {
		f, err := importer.Read(from, inventory.Defaults{})
		if err != nil {
			t.Errorf("%s: %v", from, err)
		} else if len(f.Hosts) != hosts {
			t.Errorf("%s: %d hosts, want %d", from, len(f.Hosts), hosts)
		}
	}
}

func TestWhatIsNoFleetIsAProblem(t *testing.T) {
	for _, text := range []string{"", "[]", "a|b|c\n\n", "PAR1", "<domain/>", "{", "vm,t0\n"} {
		path := filepath.Join(t.TempDir(), "fleet")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := importer.Read(path, inventory.Defaults{})
		if _, are := errors.AsType[yamldoc.Problems](err); !are {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := importer.Read(t.TempDir(), inventory.Defaults{})
	if _, are := errors.AsType[yamldoc.Problems](err); !are {
		t.Errorf("an empty folder: %v", err)
	}
	_, err = importer.Read(filepath.Join(t.TempDir(), "none"), inventory.Defaults{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestFilesAreThoseThatWereRead: one, or all of a folder, and where links lead.
func TestFilesAreThoseThatWereRead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, folder := filepath.Join(dir, "f"), filepath.Join(dir, "d")
	inner, link := filepath.Join(folder, "below", "x"), filepath.Join(dir, "link")
	for _, err := range []error{os.WriteFile(file, nil, 0o600),
		os.MkdirAll(filepath.Dir(inner), 0o700), os.WriteFile(inner, nil, 0o600),
		os.Symlink("d", link), os.Symlink("f", link+"2"),
		os.Symlink(file, filepath.Join(folder, "y"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	gone := filepath.Join(dir, "gone")
	for path, want := range map[string][]string{
		file: {file}, link + "2": {file}, gone: {gone},
		folder: {inner, filepath.Join(folder, "y")},
		link:   {inner, filepath.Join(folder, "y")},
	} {
		if got := importer.Files(path); !slices.Equal(got, want) {
			t.Errorf("Files(%s) = %v, want %v", path, got, want)
		}
	}
}
