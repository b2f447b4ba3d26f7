package convert_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/convert"
)

// VMIs that cannot be read are left out and named, whichever they are; the others and their migrations stay.
func TestVMIsThatCannotBeReadAreLeftOut(t *testing.T) {
	memory := resource.MustParse("1Gi")
	for _, odd := range [][]int{{}, {0}, {6}, {2, 3}, {0, 1, 2, 3, 4, 5, 6}} {
		c := &convert.Cluster{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}}
		var want []hypervisor.VMID
		for i := range 7 {
			v := virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("vm", i)}}
			v.Status.NodeName = "n1"
			if slices.Contains(odd, i) {
				want = append(want, hypervisor.VMID("shop/"+v.Name))
			} else {
				v.Spec.Domain.Memory = &virtv1.Memory{Guest: &memory}
			}
			m := virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("m", i)}}
			m.Spec.VMIName = v.Name
			c.VMIs, c.Migrations = append(c.VMIs, v), append(c.Migrations, m)
		}
		f, wrong, err := convert.Sound("cluster", c, inventory.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(wrong)); !slices.Equal(got, want) || len(f.VMs) != 7-len(odd) || len(f.Migrations) != 7-len(odd) {
			t.Errorf("%v: %v is wrong, %d VMs, %d migrations", odd, wrong, len(f.VMs), len(f.Migrations))
		}
		for _, why := range wrong {
			if !strings.Contains(why, "a VM needs memory") {
				t.Error(why)
			}
		}
	}
}
