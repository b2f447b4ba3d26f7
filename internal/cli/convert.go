package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

const convertHelp = `Read a fleet in any format that godwit reads, a file or a folder, and write it for
another program. The content decides the format, not the file name:

  godwit's own YAML, also a scenario, whose events are left out; what kubectl prints of a
  cluster with KubeVirt; the text format of Ganeti's htools; what openstack ... list --long
  -f json prints, or the compute API's answers, one file or a folder; a folder with the XML of
  libvirt's domains, one folder for each host

What writes a fleet of these:

  KubeVirt, a file:
    kubectl get nodes,pods,vmis,vmims,migrationpolicies,kubevirts,namespaces,resourcequotas \
      -A -o json > cluster.json
  OpenStack, a folder, as an administrator:
    openstack server list --all-projects --long --limit -1 -f json > servers.json
    openstack --os-compute-api-version 2.87 hypervisor list --long -f json > hypervisors.json
    openstack flavor list --all --long -f json > flavors.json
    openstack compute service list -f json > services.json
    openstack server group list --all-projects --long -f json > groups.json
  Ganeti, on its master:
    hscan -L
  libvirt, a folder for each host, named like it:
    virsh dumpxml VM > n1/VM.xml
    virsh capabilities > n1/capabilities.xml

It is written as the text format of htools, for hbal -t, hspace -t and the like. It holds sizes, where VMs
are, which of them are to be apart, which hosts are cordoned, and which VMs do not move. What it cannot hold
is left out, and a warning names each kind with a count and an example:

  conditions on labels of hosts, groups of nodes among them, and taints; availability zones,
  aggregates; groups of VMs, VMs that are to be with or without others; processors, hypervisors,
  NUMA nodes, huge pages, devices, networks; what is reserved on hosts and given away more than
  once (what VMs may use is written); limits of VMs; local disks; quotas; migration policies,
  eviction strategies and migrations under way

Links and how fast guests change their memory are always left out.

Exit status: 0 written, 2 bad input.`

// ConvertCommand returns godwit convert.
func ConvertCommand() *cobra.Command {
	var to string
	var f FleetFlags
	c := &cobra.Command{
		Use:   "convert FLEET --to ganeti",
		Short: "Write a fleet in the format of another program",
		Long:  convertHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to != "ganeti" {
				return fmt.Errorf("--to is %q: write --to ganeti", to)
			}
			s, err := f.Read(args[0], c.ErrOrStderr())
			if err != nil {
				return err
			}
			var lost []inventory.Problem
			for _, what := range importer.NotWritten(s.Fleet) {
				lost = append(lost, inventory.Problem{File: args[0], Message: what})
			}
			Warn(c.ErrOrStderr(), lost)
			return importer.WriteGaneti(c.OutOrStdout(), s.Fleet)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `FORMAT`: ganeti")
	f.Add(c)
	return c
}
