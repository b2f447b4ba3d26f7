package ganeti

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// What Write puts where a fleet knows nothing: disks large enough to refuse nobody.
const (
	groupID      = "00000000-0000-0000-0000-000000000000"
	nodeDisk     = 100 << 20 // MiB
	instanceDisk = 10 << 10
	specs        = "1024,1,10240,1,1,1|1,1,1,1,1,1;1073741824,1048576,1073741824,64,64,64"
	templates    = "plain,diskless,file,sharedfile,blockdev,drbd,rbd,ext"
)

// Write writes a fleet for htools, with every disk on shared storage. Names lose their
// namespace when it is "default". Htools are not told: conditions on hosts other than to be
// apart, over-commitment (CPUs are what VMs may use together), and everything about
// migrations. VMs that are not migratable have plain disks.
func Write(w io.Writer, f *inventory.Fleet) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "all|%s|preferred||\n\n", groupID)
	used := map[hypervisor.HostName]hypervisor.Bytes{}
	for i := range f.VMs {
		used[f.VMs[i].Host] += hypervisor.MiB * hypervisor.Bytes(up(f.VMs[i].Memory))
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		offline := "N"
		if h.Closed || h.Down {
			offline = "Y"
		}
		fmt.Fprintf(out, "%s|%d|0|%d|%d|%d|%d|%s|%s|1||N|0|0|1.0\n", word(string(h.Name)),
			h.Memory/hypervisor.MiB, max(0, (h.Memory-used[h.Name])/hypervisor.MiB), nodeDisk,
			nodeDisk, h.CPUs, offline, groupID)
	}
	fmt.Fprintln(out)
	exclusive := map[string]bool{}
	var order []string
	for i := range f.VMs {
		for _, group := range writeVM(out, &f.VMs[i]) {
			if !exclusive[group] {
				exclusive[group] = true
				order = append(order, group)
			}
		}
	}
	fmt.Fprintln(out)
	for _, group := range order {
		fmt.Fprintf(out, "htools:iextags:%s\n", group)
	}
	fmt.Fprintf(out, "\n|%s|%s|1.0|1024.0\nall|%s|%s|1.0|1024.0\n", specs, templates, specs,
		templates)
	return out.Flush()
}

// writeVM writes an instance, and returns the groups in which it wants to be alone.
func writeVM(out io.Writer, v *inventory.VM) (apart []string) {
	name := word(strings.TrimPrefix(string(v.ID), namespace+"/"))
	status, template := "running", "ext"
	if !v.Migratable {
		template = "plain"
	}
	if v.Host == "" {
		status = "ADMIN_down"
	}
	var tags []string
	for _, group := range v.Placement.Apart {
		group = word(strings.ReplaceAll(group, ",", "_"))
		tags, apart = append(tags, group+":1"), append(apart, group)
	}
	fmt.Fprintf(out, "%s|%d|%d|%d|%s|Y|%s||%s|%s|1|-|N\n", name, up(v.Memory), instanceDisk,
		max(1, v.CPUs), status, word(string(v.Host)), template, strings.Join(tags, ","))
	return apart
}

// up returns whole MiB, rounded up.
func up(b hypervisor.Bytes) int64 {
	return int64(cmp.Or(b/hypervisor.MiB+min(1, b%hypervisor.MiB), 1))
}

// word takes out of a name what separates fields and lines.
func word(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '|' || c < ' ' {
			return '_'
		}
		return c
	}, text)
}
