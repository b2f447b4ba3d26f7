package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// cloudFolder is a folder with the lists of a cloud, and one more file.
func cloudFolder(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range lists() {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(from)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What stands where a list was to be is no plan without its servers.
func TestAFileOfACloudThatIsNoListIsRefused(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"an error of the API", `{"forbidden": {"code": 403, "message": "not allowed"}}`,
			"servers-2.json:1: it is an error of the API and no list: forbidden, code 403: not allowed"},
		{"an error without a message", `{"forbidden":{"code":403}}`,
			"servers-2.json:1: it is an error of the API and no list: forbidden, code 403"},
		{"an error behind a list of something else", "[1]\n" + `{"error": {"code": 401, "title": "Unauthorized"}}`,
			"servers-2.json:2: it is an error of the API and no list: error, code 401"},
		{"an error behind a list", `{"hypervisors": []}` + "\n" + `{"computeFault": {"code": 500}}`,
			"servers-2.json:2: it is an error of the API and no list: computeFault, code 500"},
		{"an empty file", "", "servers-2.json:1: the file is empty"},
		{"only spaces", " \n", "servers-2.json:1: the file is empty"},
		{"a page", "<html><body>502 Bad Gateway</body></html>", "servers-2.json:1: it is no JSON as openstack prints it"},
		{"JSON that is cut off", "[\n  {", "servers-2.json:1: it ends in the middle: is it cut off?"},
	} {
		_, err := importer.Read(cloudFolder(t, "servers-2.json", c.text), inventory.Defaults{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestAFileOfACloudThatIsSomethingElseIsAWarning(t *testing.T) {
	for _, text := range []string{`{"name": "x", "code": 500}`, `[{"Mountpoint": "/"}]`, `{"volumes": []}`} {
		f, err := importer.Read(cloudFolder(t, "volumes.json", text), inventory.Defaults{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		said := ""
		for _, w := range f.Warnings {
			said += w.Error() + "\n"
		}
		if !strings.Contains(said, "volumes.json:1: not recognised, left out: ") {
			t.Errorf("%s: the warnings are\n%s", text, said)
		}
	}
}

// A list may be elsewhere, with a link to it.
func TestAListOfACloudBehindALinkIsRead(t *testing.T) {
	dir := cloudFolder(t, "empty", "")
	to := filepath.Join(t.TempDir(), "list")
	from := filepath.Join(dir, "servers.json")
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
	f, err := importer.Read(dir, inventory.Defaults{})
	if err != nil || len(f.VMs) != len(want)-2 {
		t.Errorf("%v, %v", f, err)
	}
}
