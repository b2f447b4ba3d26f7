package domxml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// copying is a disk as libvirt 9.0 shows it while it is copied.
func copying(mirror string) string {
	return `<domain type='kvm'><name>web</name><devices><disk type='file' device='disk'>
<driver name='qemu' type='raw' cache='writeback'/><source file='/images/web.data' index='1'/>` + mirror +
		`<target dev='sda' bus='scsi'/><alias name='ua-data'/></disk></devices></domain>`
}

func TestTheCopyOfADiskIsRead(t *testing.T) {
	const from = "/images/web.data"
	mirror := func(attributes string) string {
		return `<mirror type='file' file='/new' format='raw' ` + attributes + `><format type='raw'/>` +
			`<source file='/new' index='2'/></mirror>`
	}
	for _, row := range []struct {
		mirror string
		want   domxml.Copy
	}{
		{"", domxml.Copy{Image: from}},
		{mirror("job='copy'"), domxml.Copy{Image: from, To: "/new"}},
		{mirror("job='copy' ready='yes'"), domxml.Copy{Image: from, To: "/new", State: "yes"}},
		{mirror("job='copy' ready='pivot'"), domxml.Copy{Image: from, To: "/new", State: "pivot"}},
		{mirror("job='active-commit' ready='yes'"), domxml.Copy{Image: from}},
	} {
		if got, err := domxml.CopyOf(copying(row.mirror), "data"); err != nil || got != row.want {
			t.Errorf("with %q it is %+v, %v, want %+v", row.mirror, got, err, row.want)
		}
	}
	if _, err := domxml.CopyOf(copying(""), "other"); !errors.Is(err, hypervisor.NotFound) {
		t.Errorf("of a disk that is not there: %v", err)
	}
}

func TestADiskIsPutAtAPath(t *testing.T) {
	s := domxml.Settings{DiskDir: "/images"}
	disk := hypervisor.Disk{Name: "data", Path: "/new"}
	there, err := domxml.AtPath(copying(""), disk, s)
	if err != nil || !strings.Contains(there, "<source file='/new'") || !strings.Contains(there, "cache='none'") {
		t.Errorf("it is %s, %v", there, err)
	}
	disk.Path = ""
	if back, err := domxml.AtPath(there, disk, s); err != nil || back != copying("") {
		t.Errorf("put back it is %s, %v", back, err)
	}
	odd := strings.Replace(copying(""), "writeback", "unsafe", 1)
	disk.Path = "/new"
	if there, err := domxml.AtPath(odd, disk, s); err != nil || !strings.Contains(there, "cache='unsafe'") {
		t.Errorf("a cache of its owner's becomes %s, %v", there, err)
	}
}
