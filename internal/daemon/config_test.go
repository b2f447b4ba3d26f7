package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/daemon"
)

const example = `
hosts:
  n1:
    - devices:
        - agent: fence_ipmilan
          options: {ip: 10.0.0.1, username: godwit, password: "s3cret", lanplus: 1,
            v: 1.10, x: true}
          delay: 5s
    - devices:
        - {agent: /opt/fence_apc, options: {plug: 07}, timeout: 2m}
        - {agent: /opt/fence_apc}
  n2: [{devices: [{agent: fence_virsh}]}]
`

func TestTheConfigurationIsReadAsItIsMeant(t *testing.T) {
	c, err := daemon.ParseFence("f.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	first := c.Hosts["n1"][0].Devices[0]
	want := daemon.Options{"ip": "10.0.0.1", "username": "godwit", "password": "s3cret",
		"lanplus": "1", "v": "1.10", "x": "true"}
	if diff := cmp.Diff(map[string]string(want), map[string]string(first.Options)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	second := c.Hosts["n1"][1].Devices
	if first.Delay != 5*time.Second || first.Timeout != time.Minute ||
		second[0].Timeout != 2*time.Minute || second[0].Options["plug"] != "07" ||
		len(second) != 2 || c.Hosts["n2"][0].Devices[0].Agent != "fence_virsh" {
		t.Errorf("read as %+v", c)
	}
	for _, format := range []string{"%v", "%+v", "%#v"} {
		text := fmt.Sprintf(format, c.Hosts)
		if strings.Contains(text, "s3cret") {
			t.Errorf("it prints its password: %s", text)
		}
	}
	if c, err := daemon.ParseFence("f.yaml", nil); err != nil || len(c.Hosts) != 0 {
		t.Errorf("nothing is read as %v, %v", c, err)
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	device := func(text string) string { return "hosts:\n  n1:\n  - devices:\n    - " + text }
	for text, want := range map[string]string{
		"hosts: 7":                                          "line 1",
		"hosts:\n  n1: [":                                   "line 2",
		"host:\n  n1: 1":                                    "line 1, column 1: unknown field",
		device("{agnt: s3cret}"):                            "line 4, column 8: unknown",
		device("{agent: x, delay: s3cret}"):                 "line 4",
		device("{agent: x, timeout: -1s}"):                  "must not be negative",
		device("{delay: 1s}"):                               "level 1 of host n1: it needs",
		"hosts: {n1: []}":                                   "host n1 has no level",
		"hosts: {n1: [{devices: []}]}":                      "level 1 of host n1 has no device",
		device("{agent: x, options: {action: s3cret}}"):     "option action is not to be set",
		device(`{agent: x, options: {p: "s3cret\ny=z"}}`):   "option p has more than one line",
		device("{agent: x, options: {'a b': s3cret}}"):      "cannot be the name of an option",
		device("{agent: x, options: {p: [s3cret]}}"):        "line 4",
		device("{agent: x, options: {p: 'a\n\n  s3cret'}}"): "more than one line",
		"\x00s3cret":                                        "",
		strings.Repeat("# s3cret\n", 2e5):                   "longer than",
	} {
		_, err := daemon.ParseFence("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "s3cret") ||
			!strings.HasPrefix(err.Error(), "fencing: f.yaml") {
			t.Errorf("%.80q: the error is %v", text, err)
		}
	}
}

func TestAFileThatOthersReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fencing.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false,
		0o604: false, 0o620: false, 0o644: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := daemon.LoadFence(path)
		if good != (err == nil) || !good && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	for _, path := range []string{path + "x", filepath.Dir(path)} {
		if _, err := daemon.LoadFence(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Load(%s): %v", path, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("hosts: {a: [{devices: [{agent: x, options: {p: s3cret}}]}]}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := daemon.ParseFence("f.yaml", text)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
	})
}
