// Command crds prints the custom resources of KubeVirt, as its operator installs them.
package main

import (
	"fmt"
	"os"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/yaml"
)

// all are those of install/strategy.go.
var all = []func() (*extv1.CustomResourceDefinition, error){
	components.NewKubeVirtCrd, components.NewVirtualMachineInstanceCrd, components.NewPresetCrd,
	components.NewReplicaSetCrd, components.NewVirtualMachineCrd, components.NewVirtualMachineInstanceMigrationCrd,
	components.NewVirtualMachineSnapshotCrd, components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineRestoreCrd, components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd, components.NewVirtualMachinePoolCrd,
	components.NewMigrationPolicyCrd, components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd, components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineCloneCrd, components.NewVirtualMachineBackupCrd,
	components.NewVirtualMachineBackupTrackerCrd,
}

func main() {
	for _, crd := range all {
		if err := printOne(crd); err != nil {
			fmt.Fprintln(os.Stderr, "crds:", err)
			os.Exit(1)
		}
	}
}

func printOne(make func() (*extv1.CustomResourceDefinition, error)) error {
	crd, err := make()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("---\n%s", text)
	return err
}
