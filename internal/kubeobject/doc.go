// Package kubeobject has the parts of Kubernetes' and KubeVirt's objects that godwit reads, under
// the names that they have in JSON: Node, Namespace, ResourceQuota, VirtualMachineInstance,
// VirtualMachineInstanceMigration, MigrationPolicy and KubeVirt.
//
// It replaces the API modules of Kubernetes and KubeVirt for what reads and never writes such
// objects, so that a program that imports godwit inherits none of them. Types and fields have the
// names of those modules. Fields that godwit does not read are missing: decoding skips them. The
// tests of the module in kubevirt/ decode the same objects with the real types and compare.
package kubeobject
