package bench

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// xorshift is the generator xorshift64*.
// Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016.
type xorshift uint64

func (x *xorshift) below(n uint64) uint64 {
	v := *x
	v ^= v >> 12
	v ^= v << 25
	v ^= v >> 27
	*x = v
	return (uint64(v) * 0x2545F4914F6CDD1D >> 11) % n
}

// seeded returns the generator of a seed.
func seeded(seed uint64) xorshift { return xorshift(seed*0x9E3779B97F4A7C15 + 1) }

// Of the hosts and VMs of [Ganeti], in MiB where it is memory or disk.
const (
	hostMemory, hostSystem, hostDisk = 262144, 4096, 8388608
	perHost                          = 20
	fill                             = 0.70
)

// sizes are the VMs of [Ganeti]: memory in MiB, and CPUs.
var sizes = [][2]int{{2048, 1}, {2048, 1}, {2048, 1}, {4096, 2}, {4096, 2}, {4096, 2}, {8192, 4},
	{8192, 4}, {16384, 4}, {32768, 8}}

// Ganeti returns a cluster in the text format of Ganeti's htools, as hbal -t reads it: hosts of 256 GiB
// and 64 cores with up to 20 VMs of 2 to 32 GiB, on shared storage, until 70 % of the memory is full.
func Ganeti(hosts int) string {
	chance := seeded(1)
	var nodes, vms strings.Builder
	n := 0
	for i := range hosts {
		used, disks := 0, 0
		for range perHost {
			size := sizes[chance.below(uint64(len(sizes)))]
			if float64(used+size[0]) > fill*(hostMemory-hostSystem) {
				continue
			}
			disk := 20480 * (1 + int(chance.below(4)))
			used, disks = used+size[0], disks+disk
			fmt.Fprintf(&vms, "vm%06d|%d|%d|%d|running|Y|node%05d||ext||1|-|N\n", n, size[0], disk, size[1], i)
			n++
		}
		role := "N"
		if i == 0 {
			role = "M"
		}
		fmt.Fprintf(&nodes, "node%05d|%d|%d|%d|%d|%d|64|%s|uuid-0000|16||N|0|1|1.0\n", i, hostMemory,
			hostSystem, hostMemory-hostSystem-used, hostDisk, hostDisk-disks, role)
	}
	const policy = "4096,2,20480,1,1,1|128,1,1024,1,1,1;65536,32,4194304,16,8,12|" +
		"plain,diskless,file,sharedfile,blockdev,drbd,rbd,ext|4.0|32.0\n"
	return "group0|uuid-0000|preferred||\n\n" + nodes.String() + "\n" + vms.String() + "\n\n|" + policy +
		"group0|" + policy
}

// fleet reads a cluster of [Ganeti]. Its guests write nothing, and all of their memory is sent.
func fleet(hosts int) (*inventory.Fleet, error) {
	f, err := importer.ReadGaneti("cluster.data", strings.NewReader(Ganeti(hosts)),
		inventory.Defaults{Link: 10 * hypervisor.Gbit})
	if err != nil {
		return nil, err
	}
	for i := range f.VMs {
		f.VMs[i].Workload = fake.Workload{}
	}
	return f, nil
}
