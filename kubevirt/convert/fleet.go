package convert

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"
	migrationsv1 "kubevirt.io/api/migrations/v1alpha1"

	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
)

// A Cluster is what is known of a cluster. Nil and empty are none.
type Cluster struct {
	Nodes      []corev1.Node
	Namespaces []corev1.Namespace
	Quotas     []corev1.ResourceQuota
	Pods       []corev1.Pod // as [Pod] leaves them, or whole
	VMIs       []virtv1.VirtualMachineInstance
	Migrations []virtv1.VirtualMachineInstanceMigration
	Policies   []migrationsv1.MigrationPolicy
	KubeVirt   *virtv1.KubeVirt
}

// Fleet returns the cluster as a fleet. The name is for problems; d is what KubeVirt does not know.
// An error is [inventory.Problems].
func Fleet(name string, c *Cluster, d inventory.Defaults) (*inventory.Fleet, error) {
	var text bytes.Buffer
	if err := c.Write(&text); err != nil {
		return nil, err
	}
	return importer.ReadKubeVirt(name, &text, d)
}

// Write writes the cluster as kubectl get prints it: JSON, one object after another. What is read
// of it is in the documentation of the importer.
func (c *Cluster) Write(to *bytes.Buffer) error {
	w := writer{to: to}
	if c.KubeVirt != nil {
		w.add("kubevirt.io/v1", "KubeVirt", c.KubeVirt)
	}
	for i := range c.Nodes {
		w.add("v1", "Node", &c.Nodes[i])
	}
	for i := range c.Namespaces {
		w.add("v1", "Namespace", &c.Namespaces[i])
	}
	for i := range c.Quotas {
		w.add("v1", "ResourceQuota", &c.Quotas[i])
	}
	for i := range c.Pods {
		w.add("v1", "Pod", Pod(&c.Pods[i]))
	}
	for i := range c.Policies {
		w.add("migrations.kubevirt.io/v1alpha1", "MigrationPolicy", &c.Policies[i])
	}
	for i := range c.VMIs {
		w.add("kubevirt.io/v1", "VirtualMachineInstance", &c.VMIs[i])
	}
	for i := range c.Migrations {
		w.add("kubevirt.io/v1", "VirtualMachineInstanceMigration", &c.Migrations[i])
	}
	if to.Len() == 0 { // a cluster without anything is a fleet without anything
		to.WriteString(`{"apiVersion":"v1","kind":"List","items":[]}`)
	}
	return w.err
}

// Pod returns what is looked at of a pod: it is little of it, and clusters have many.
func Pod(p *corev1.Pod) *corev1.Pod {
	few := &corev1.Pod{Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources},
		Status: corev1.PodStatus{Phase: p.Status.Phase}}
	few.Namespace, few.Name = p.Namespace, p.Name
	few.Labels = pick(p.Labels, virtv1.AppLabel)
	few.Annotations = pick(p.Annotations, virtv1.DomainAnnotation)
	few.Spec.Containers, few.Spec.InitContainers = requests(p.Spec.Containers), requests(p.Spec.InitContainers)
	return few
}

// pick returns the entry of a key, or nil.
func pick(all map[string]string, key string) map[string]string {
	if value, found := all[key]; found {
		return map[string]string{key: value}
	}
	return nil
}

// requests returns what containers request.
func requests(all []corev1.Container) []corev1.Container {
	few := make([]corev1.Container, len(all))
	for i := range all {
		few[i].RestartPolicy, few[i].Resources.Requests = all[i].RestartPolicy, all[i].Resources.Requests
	}
	return few
}

type writer struct {
	to  *bytes.Buffer
	err error
}

// add writes an object. Objects that come from a client have no kind: it is put in front.
func (w *writer) add(version, kind string, object any) {
	text, err := json.Marshal(object)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", kind, err)
	}
	if len(text) < 2 || w.err != nil {
		return
	}
	fmt.Fprintf(w.to, `{"apiVersion":%q,"kind":%q`, version, kind)
	text = bytes.TrimPrefix(text[1:], fmt.Appendf(nil, `"kind":%q,"apiVersion":%q,`, kind, version))
	if text[0] != '}' {
		w.to.WriteByte(',')
	}
	w.to.Write(text)
	w.to.WriteByte('\n')
}
