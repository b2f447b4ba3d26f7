package v1alpha1_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/apiserver"
)

// The API server refuses what is wrong, and shows what people look for.
func TestTheAPIServerKnowsNodeEvacuations(t *testing.T) {
	server := apiserver.Start(t, "../../config/crd/godwit-vm.github.io_nodeevacuations.yaml")
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Admin, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("specs", func(t *testing.T) { specs(t, c) })
	t.Run("the node cannot be changed", func(t *testing.T) { unchangeable(t, c) })
	t.Run("printer columns", func(t *testing.T) { columns(t, c, server.Admin) })
}

func evacuation(name, node string) *v1alpha1.NodeEvacuation {
	return &v1alpha1.NodeEvacuation{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeEvacuationSpec{NodeName: node}}
}

func specs(t *testing.T, c client.Client) {
	for name, test := range map[string]struct {
		set  func(*v1alpha1.NodeEvacuationSpec)
		want string // "" is accepted
	}{
		"the node alone":  {func(s *v1alpha1.NodeEvacuationSpec) {}, ""},
		"no node":         {func(s *v1alpha1.NodeEvacuationSpec) { s.NodeName = "" }, "spec.nodeName"},
		"a bad node name": {func(s *v1alpha1.NodeEvacuationSpec) { s.NodeName = "Node_1" }, "spec.nodeName"},
		"an unknown order": {func(s *v1alpha1.NodeEvacuationSpec) { s.Order = "Random" },
			`Unsupported value: "Random"`},
		"an unknown choice": {func(s *v1alpha1.NodeEvacuationSpec) { s.Unmovable = "Kill" },
			`Unsupported value: "Kill"`},
		"a limit of none": {func(s *v1alpha1.NodeEvacuationSpec) {
			s.Limits = &v1alpha1.Limits{ParallelOutbound: new(int32)}
		}, "greater than or equal to 1"},
		"a negative grace": {func(s *v1alpha1.NodeEvacuationSpec) {
			s.Grace = &metav1.Duration{Duration: -time.Second}
		}, "grace is from 1s to 24h"},
		"a grace of half a second": {func(s *v1alpha1.NodeEvacuationSpec) {
			s.Grace = &metav1.Duration{Duration: 500 * time.Millisecond}
		}, "grace is from 1s to 24h"},
		"a grace of a week": {func(s *v1alpha1.NodeEvacuationSpec) {
			s.Grace = &metav1.Duration{Duration: 7 * 24 * time.Hour}
		}, "grace is from 1s to 24h"},
		"everything": {func(s *v1alpha1.NodeEvacuationSpec) {
			two := int32(2)
			*s = v1alpha1.NodeEvacuationSpec{NodeName: "rack-1.node-2", Deadline: &metav1.Time{Time: time.Unix(2e9, 0)},
				Order: v1alpha1.LongestFirst, Limits: &v1alpha1.Limits{ParallelOutbound: &two},
				Unmovable: v1alpha1.ShutDown, Grace: &metav1.Duration{Duration: 5 * time.Minute}}
		}, ""},
	} {
		e := evacuation("e", "n1")
		test.set(&e.Spec)
		err := c.Create(t.Context(), e, client.DryRunAll)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if test.want == "" && (e.Spec.Order == "" || e.Spec.Unmovable == "") {
			t.Errorf("%s: no defaults: %+v", name, e.Spec)
		}
	}
}

func unchangeable(t *testing.T, c client.Client) {
	e := evacuation("fixed", "n1")
	if err := c.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Spec.NodeName = "n2"
	if err := c.Update(t.Context(), e); err == nil || !strings.Contains(err.Error(), "nodeName cannot be changed") {
		t.Errorf("the node was changed: %v", err)
	}
	e.Spec.NodeName, e.Spec.Unmovable = "n1", v1alpha1.ShutDown
	if err := c.Update(t.Context(), e); err != nil || e.Generation != 2 {
		t.Errorf("generation %d, %v", e.Generation, err)
	}
	e.Status.Phase = v1alpha1.Done
	if err := c.Status().Update(t.Context(), e); err != nil || e.Generation != 2 {
		t.Errorf("generation %d, %v", e.Generation, err)
	}
}

func columns(t *testing.T, c client.Client, admin *rest.Config) {
	e := evacuation("shown", "node-7")
	if err := c.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	left, moving, blocked := int32(12), int32(2), int32(0)
	e.Status = v1alpha1.NodeEvacuationStatus{Phase: v1alpha1.Evacuating, VMsLeft: &left, Moving: &moving,
		Blocked: &blocked, ETA: "2026-11-26T10:00:00Z"}
	if err := c.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	table, err := tableOf(t.Context(), admin, "shown")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range table.ColumnDefinitions {
		names = append(names, strings.ToUpper(c.Name))
	}
	if got, want := strings.Join(names, ", "), "NAME, NODE, PHASE, VMS LEFT, MOVING, BLOCKED, ETA, AGE"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
	cells, err := json.Marshal(table.Rows[0].Cells[:7])
	if err != nil {
		t.Fatal(err)
	}
	if want := `["shown","node-7","Evacuating",12,2,0,"2026-11-26T10:00:00Z"]`; string(cells) != want {
		t.Errorf("cells %s, want %s", cells, want)
	}
}

// tableOf asks for a NodeEvacuation as kubectl get does.
func tableOf(ctx context.Context, config *rest.Config, name string) (*metav1.Table, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	text, err := c.Get().Resource("nodeevacuations").Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var table metav1.Table
	return &table, json.Unmarshal(text, &table)
}
