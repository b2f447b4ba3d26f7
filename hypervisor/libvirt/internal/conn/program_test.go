//go:build linux && libvirt_dlopen

package conn_test

import (
	"errors"
	"testing"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/libvirttest"
)

// A program that libvirtd runs and that fails, here qemu-img, is no function that
// libvirt.so lacks, though the error has the same numbers.
func TestAProgramThatFails(t *testing.T) {
	lab := libvirttest.Shared(t, libvirttest.Options{})
	c := open(t, new(eventLog).config(lab))
	var vol *libvirt.StorageVol
	defer func() { _ = vol.Free() }()
	err := c.Act(t.Context(), func(c *conn.Connect) error {
		pool, err := c.StoragePoolCreateXML(`<pool type='dir'><name>p</name><target><path>`+
			lab.ImagesDir()+`</path></target></pool>`, 0)
		if err != nil {
			return err
		}
		defer func() { _ = pool.Free() }()
		vol, err = pool.StorageVolCreateXML(`<volume><name>v</name><capacity>1048576</capacity>
			<target><format type='qcow2'/></target></volume>`, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path, err := vol.GetPath()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := lab.Run(host, "qemu-img", "snapshot", "-c", "s", path); err != nil {
		t.Fatal(out, err)
	}
	err = c.Act(t.Context(), func(*conn.Connect) error {
		return vol.Resize(524288, libvirt.STORAGE_VOL_RESIZE_SHRINK)
	})
	if !errors.Is(err, hypervisor.Unknown) {
		t.Errorf("qemu-img failed, and it is said: %v", err)
	}
}
