package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// A VM that was asked to leave a node that is gone, or that the dump does not have, is read; the mark is left out.
func TestAMarkOfANodeThatIsNotThere(t *testing.T) {
	const node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}`
	const vmi = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"namespace": "shop", "name": "web"},
		"spec": {"domain": {"memory": {"guest": "1Gi"}}}, "status": {"phase": "Running", "nodeName": "n1", "evacuationNodeName": %q}}`
	for mark, want := range map[string]hypervisor.HostName{"n1": "n1", "gone": "", "": ""} {
		f, err := importer.ReadKubeVirt("dump", strings.NewReader(node+fmt.Sprintf(vmi, mark)), inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.VMs) != 1 || f.VMs[0].EvacuateFrom != want || strings.Contains(fmt.Sprint(f.Warnings), "asked to leave gone") != (mark == "gone") {
			t.Errorf("%q: %+v, %v", mark, f.VMs, f.Warnings)
		}
	}
}
