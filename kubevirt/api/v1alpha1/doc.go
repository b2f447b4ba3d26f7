// Package v1alpha1 has the custom resource that asks for a node to be emptied.
//
// [NodeEvacuation] names a node. While it exists the node is cordoned and its VMs are migrated;
// once it is deleted the node takes VMs again. What KubeVirt's own evacuation controller moves is
// left to it: see docs/kubevirt.md.
//
// +kubebuilder:object:generate=true
// +groupName=godwit-vm.github.io
package v1alpha1

//go:generate go tool -modfile=../../tools/gen/go.mod controller-gen object crd paths=. output:crd:dir=../../config/crd
