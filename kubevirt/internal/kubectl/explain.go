package kubectl

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/convert"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
	"github.com/godwit-vm/godwit/migration/placement"
)

// An Explanation is why VMs leave a node, or stay.
type Explanation struct {
	Node    string                 `json:"node"`
	Leaving []v1alpha1.LeavingVM   `json:"leaving"`
	Blocked []v1alpha1.BlockedVM   `json:"blocked"`
	Nodes   *placement.Explanation `json:"nodes,omitempty"` // of a VM: which take it
	// Writes is of a VM how fast its guest writes to memory; nil is that it is not known.
	Writes *dirty.Rate `json:"writes,omitempty"`

	vm hypervisor.VMID
}

func (p *plugin) explain() *cobra.Command {
	return &cobra.Command{Use: "explain NODE|VMI|NAMESPACE/VMI", Short: "Explain what a drain would do, and why",
		Long: `Explain what a drain of a node would do with its VMs, or with one VM, and every reason why a VM would stay; of a
VM also which nodes take it, and why the others do not. Nothing is changed.

A name that a node has is a node's.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.nodes,
		RunE: func(c *cobra.Command, args []string) error {
			cl, namespace, err := p.open()
			if err != nil {
				return err
			}
			v, err := p.look(c.Context(), cl)
			if err != nil {
				return err
			}
			e, err := explain(v, args[0], namespace)
			if err != nil {
				return err
			}
			measured, err := p.measured(c.Context())
			if err != nil {
				return err
			}
			if all, err := rates(&v.Cluster, measured); err == nil { // else the VMs say what is wrong with them
				e.lay(all)
			}
			return p.print(c.OutOrStdout(), e, func(w io.Writer) { p.text(w, e) })
		}}
}

// explain decides as if the node were emptied.
func explain(v *evacuate.View, name, namespace string) (*Explanation, error) {
	e := &Explanation{}
	vm := ""
	for i := range v.Nodes {
		if v.Nodes[i].Name == name {
			e.Node = name
		}
	}
	if e.Node == "" {
		if vm = name; !strings.Contains(name, "/") {
			vm = namespace + "/" + name
		}
		for i := range v.VMIs {
			if o := &v.VMIs[i]; o.Namespace+"/"+o.Name == vm {
				e.Node = o.Status.NodeName
			}
		}
		if e.Node == "" {
			return nil, fmt.Errorf("there is no node %s, and no VMI %s that runs", name, vm)
		}
	}
	asked := &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: "explained"},
		Spec: v1alpha1.NodeEvacuationSpec{NodeName: e.Node}}
	for i := range v.Evacuations {
		if v.Evacuations[i].Spec.NodeName == e.Node {
			asked.Spec = v.Evacuations[i].Spec
		}
	}
	as := *v
	as.Evacuations = []v1alpha1.NodeEvacuation{*asked}
	s := evacuate.Decide(&as).Status["explained"]
	e.Leaving, e.Blocked = s.VMs, s.BlockedVMs
	if vm == "" {
		return e, nil
	}
	e.Leaving = slices.DeleteFunc(e.Leaving, func(l v1alpha1.LeavingVM) bool { return l.Namespace+"/"+l.Name != vm })
	e.Blocked = slices.DeleteFunc(e.Blocked, func(l v1alpha1.BlockedVM) bool { return l.Namespace+"/"+l.Name != vm })
	fleet, _, err := convert.Sound("cluster", &v.Cluster, inventory.Defaults{})
	if err != nil {
		return nil, err
	}
	if q, found := inventory.Ask(fleet, hypervisor.VMID(vm)); found {
		all := q.Explain(&placement.Config{})
		e.vm = hypervisor.VMID(vm)
		e.Nodes = &all
	}
	return e, nil
}

// lay takes in how fast guests write.
func (e *Explanation) lay(all map[hypervisor.VMID]dirty.Rate) {
	for i := range e.Leaving {
		l := &e.Leaving[i]
		l.Writes = rateOf(all, hypervisor.VMID(l.Namespace+"/"+l.Name))
	}
	if r, known := all[e.vm]; known {
		e.Writes = &r
	}
}

func (p *plugin) text(w io.Writer, e *Explanation) {
	if len(e.Leaving) > 0 {
		fmt.Fprintln(w, "VM\tSTATE\tTAKES\tDOWNTIME\tGUEST WRITES\tMIGRATION\tREASON")
	}
	for i := range e.Leaving {
		p.leaving(w, &e.Leaving[i])
	}
	blocked(w, e.Node, e.Blocked)
	if len(e.Leaving)+len(e.Blocked) == 0 {
		fmt.Fprintf(w, "no VM is on %s\n", e.Node)
	}
	if e.Nodes == nil {
		return
	}
	if e.Writes == nil {
		fmt.Fprintln(w, "its guest writes to memory:", unknown)
	} else {
		r := forecast.WriteRate(*e.Writes)
		fmt.Fprintln(w, "its guest writes to memory:", p.writes(&r))
	}
	fmt.Fprintln(w, "NODE\tTAKES IT")
	for _, h := range e.Nodes.Hosts {
		takes := "yes"
		if len(h.Why) > 0 {
			takes = "no: " + evacuate.Text(h.Why)
		}
		fmt.Fprintf(w, "%s\t%s\n", h.Host, takes)
	}
}
