package sim_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A disk moves while its host is drained, its agent dies at some write of that or its host fails: in the end the
// VM is on one image, the one that its record names, and no promise is broken meanwhile.
func TestADiskMovesWhateverFails(t *testing.T) {
	fates := []string{"drain n1", "crash-controller for=30s", "mute n1 times=3",
		"break n1 op=SwitchDisk how=FailAfter times=2", "break n1 op=EndDiskMove how=LateEffect delay=20s times=1"}
	for after := range 8 {
		fates = append(fates, fmt.Sprintf("crash-agent n1 for=20s after=%d", after))
	}
	for _, fate := range fates {
		t.Run(fate, func(t *testing.T) {
			p := playText(t, 1, `
hosts:
- {name: n1, memory: 16GiB, cpus: 64, link: 10Gbit/s}
- {name: n3, memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v2, host: n1, memory: 4GiB, class: idle, hardware: {disks: [{name: data, path: /nfs/old, size: 4GiB}]}}
events:
- 10s move-disk v2 data path=/nfs/new
- 0s `+fate+`
`)
			v := p.VM("default/v2")
			if len(v.DiskChanges) > 0 || v.Disks()[0].Path != "/nfs/new" {
				t.Errorf("its record: %+v", v.DiskChanges)
			}
			if fate == "drain n1" && v.Host != "n3" {
				t.Errorf("it is on %s", v.Host)
			}
			for _, c := range p.Copies("default/v2") {
				if c.State == hypervisor.Running && c.Host != v.Host {
					t.Errorf("it runs on %s too", c.Host)
				}
			}
		})
	}
}
