package libvirt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// TestConfigIsCheckedInEveryBuild: a contradiction is found before the world is asked.
func TestConfigIsCheckedInEveryBuild(t *testing.T) {
	good := func() libvirt.Config { return libvirt.Config{Name: "n1", Dir: t.TempDir()} }
	for name, spoil := range map[string]func(*libvirt.Config){
		"Name":        func(c *libvirt.Config) { c.Name = "" },
		"Dir":         func(c *libvirt.Config) { c.Dir = "" },
		"Memory":      func(c *libvirt.Config) { c.Memory = -1 },
		"Timeout":     func(c *libvirt.Config) { c.Timeout = -1 },
		"Accelerator": func(c *libvirt.Config) { c.Accelerator = "xen" },
		"DiskDir":     func(c *libvirt.Config) { c.DiskDir = "images" },
	} {
		c := good()
		spoil(&c)
		h, err := libvirt.New(t.Context(), c)
		if h != nil || !errors.Is(err, hypervisor.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, %v", name, h, err)
		}
	}
}
