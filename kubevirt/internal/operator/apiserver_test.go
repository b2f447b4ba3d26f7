package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	virtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/apiserver"
	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

// A cluster is a real API server in which the manifests are installed. KubeVirt is played by the test.
type cluster struct {
	*world // makes objects
	*apiserver.Server

	c client.Client
}

// newCluster installs the manifests as the documentation says.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	server := apiserver.Start(t, "testdata/kubevirt.yaml")
	ctrl.SetLogger(logr.Discard())
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{world: &world{t: t, now: time.Now()}, Server: server}
	if c.c, err = client.New(server.Admin, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	c.kubectl("apply", "-k", "../../config/default")
	c.kubectl("apply", "--dry-run=server", "-f", "../../config/samples")
	return c
}

// kubectl runs as the administrator.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// account returns the credentials of the controller: the rights that the manifests give, no others.
func (c *cluster) account() *rest.Config {
	config := rest.CopyConfig(c.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:godwit-kubevirt:godwit-kubevirt",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:godwit-kubevirt", "system:authenticated"}}
	return config
}

// start runs the controller until stop is called, or the test ends.
func (c *cluster) start() (stop func()) {
	c.t.Helper()
	m, err := operator.New(c.account(), operator.Options{MetricsAddress: "0", LeaderElection: true, Namespace: "godwit-kubevirt"})
	if err != nil {
		c.t.Fatal(err)
	}
	t := c.t
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended with: %v", err)
		}
	}
	c.t.Cleanup(stop)
	return stop
}

func (c *cluster) create(all ...client.Object) {
	c.t.Helper()
	for _, o := range all {
		var status *corev1.NodeStatus
		if n, is := o.(*corev1.Node); is {
			status = n.Status.DeepCopy()
		}
		if err := c.c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
		if n, is := o.(*corev1.Node); is {
			n.Status = *status
			if err := c.c.Status().Update(c.t.Context(), n); err != nil {
				c.t.Fatal(err)
			}
			n.Spec.Taints = nil // not-ready: Kubernetes' node controller would take it away
			if err := c.c.Update(c.t.Context(), n); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// until waits until what the API server has is as it should be.
func (c *cluster) until(what string, check func(ctx context.Context) error) {
	c.t.Helper()
	testutil.Eventually(c.t, what, func() error { return check(c.t.Context()) })
}

func (c *cluster) all(ctx context.Context) ([]virtv1.VirtualMachineInstanceMigration, error) {
	var all virtv1.VirtualMachineInstanceMigrationList
	err := c.c.List(ctx, &all)
	return all.Items, err
}

// unfinished waits for so many unfinished migrations, and returns them.
func (c *cluster) unfinished(n int) (open []virtv1.VirtualMachineInstanceMigration) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d migrations", n), func(ctx context.Context) error {
		all, err := c.all(ctx)
		if open = nil; err != nil {
			return err
		}
		vms := map[string]bool{}
		for _, m := range all {
			if !m.IsFinal() {
				open = append(open, m)
				if vms[m.Spec.VMIName] {
					c.t.Fatalf("%s has two migrations", m.Spec.VMIName)
				}
				vms[m.Spec.VMIName] = true
			}
		}
		if len(open) != n {
			return fmt.Errorf("there are %d", len(open))
		}
		return nil
	})
	return open
}

// phase writes the phase of a migration as KubeVirt does, and moves its VM when that is the last one.
func (c *cluster) phase(m *virtv1.VirtualMachineInstanceMigration, phase virtv1.VirtualMachineInstanceMigrationPhase) {
	c.t.Helper()
	now := metav1.Now()
	if phase == virtv1.MigrationSucceeded {
		var v virtv1.VirtualMachineInstance
		if err := c.c.Get(c.t.Context(), types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.VMIName}, &v); err != nil {
			c.t.Fatal(err)
		}
		v.Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{MigrationUID: m.UID, StartTimestamp: &now,
			EndTimestamp: &now, SourceNode: v.Status.NodeName, TargetNode: "n9", Completed: true}
		m.Status.MigrationState = v.Status.MigrationState
		v.Status.NodeName, v.Status.EvacuationNodeName = "n9", ""
		for uid := range v.Status.ActivePods {
			v.Status.ActivePods[uid] = "n9"
		}
		if err := c.c.Update(c.t.Context(), &v); err != nil {
			c.t.Fatal(err)
		}
	}
	m.Status.Phase = phase
	m.Status.PhaseTransitionTimestamps = append(m.Status.PhaseTransitionTimestamps,
		virtv1.VirtualMachineInstanceMigrationPhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: now})
	if err := c.c.Update(c.t.Context(), m); err != nil {
		c.t.Fatal(err)
	}
}

// is waits for a phase of a NodeEvacuation.
func (c *cluster) is(name string, phase v1alpha1.Phase) (e v1alpha1.NodeEvacuation) {
	c.t.Helper()
	c.until(name+" "+string(phase), func(ctx context.Context) error {
		if err := c.c.Get(ctx, types.NamespacedName{Name: name}, &e); err != nil {
			return err
		}
		if e.Status.Phase != phase {
			return fmt.Errorf("it is %+v", e.Status)
		}
		return nil
	})
	return e
}

// moved waits until so many VMs are listed as moved: a VM has moved a moment before its migration has ended.
func (c *cluster) moved(name string, n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d moved", n), func(ctx context.Context) error {
		var e v1alpha1.NodeEvacuation
		if err := c.c.Get(ctx, types.NamespacedName{Name: name}, &e); err != nil {
			return err
		}
		if len(e.Status.Moved) != n || *e.Status.VMsLeft != 0 {
			return fmt.Errorf("status %+v", e.Status)
		}
		return nil
	})
}

func (c *cluster) deleted(e *v1alpha1.NodeEvacuation) {
	c.t.Helper()
	if err := c.c.Delete(c.t.Context(), e); err != nil {
		c.t.Fatal(err)
	}
	c.until("its end", func(ctx context.Context) error {
		var n corev1.Node
		if err := c.c.Get(ctx, types.NamespacedName{Name: e.Spec.NodeName}, &n); err != nil {
			return err
		}
		if err := c.c.Get(ctx, client.ObjectKeyFromObject(e), e); !apierrors.IsNotFound(err) || n.Spec.Unschedulable {
			return fmt.Errorf("%v, cordoned %t", err, n.Spec.Unschedulable)
		}
		return nil
	})
}

// The controller, with the rights of its manifests, on a real API server.
func TestTheControllerOnARealAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, c.node("n9"))
	t.Run("the pods of the Deployment are admitted", c.admitted)
	stop := c.start()
	c.run("a drain", c.drain)
	c.run("deletion while VMs move", c.deletion)
	c.run("a VM that was marked", c.marked)
	c.run("missing rights", c.missing)
	c.run("the plugin", c.plugin)
	c.run("another takes over", func(t *testing.T) { c.takeOver(t, stop) })
}

// run runs a part of the test.
func (c *cluster) run(name string, test func(t *testing.T)) {
	whole := c.t.(*testing.T)
	defer func() { c.t = whole }()
	if !whole.Run(name, func(t *testing.T) {
		c.t = t
		test(t)
	}) {
		whole.FailNow() // the next part begins where this one ends
	}
}

// admitted asks the API server, which enforces the restricted Pod Security Standard there.
func (c *cluster) admitted(t *testing.T) {
	var d appsv1.Deployment
	if err := c.c.Get(t.Context(), types.NamespacedName{Namespace: "godwit-kubevirt", Name: "godwit-kubevirt"}, &d); err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *d.Spec.Replicas)
	}
	d.Spec.Template.Spec.PriorityClassName = "" // made by the API server a little later
	p := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	p.Namespace, p.Name = "godwit-kubevirt", "p"
	if err := c.c.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Error(err)
	}
	p.Spec.SecurityContext.RunAsNonRoot = nil
	if err := c.c.Create(t.Context(), p, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that may be root: %v", err)
	}
}

func (c *cluster) drain(t *testing.T) {
	c.create(c.node("n1"))
	for i, s := range []virtv1.EvictionStrategy{"", virtv1.EvictionStrategyLiveMigrate, virtv1.EvictionStrategyExternal} {
		c.create(c.vmi(fmt.Sprintf("a%d", i), "n1", s, i+1))
	}
	e := c.evacuation("drain", "n1")
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	c.create(e)
	c.until("an estimate", func(ctx context.Context) error {
		if err := c.c.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if s := e.Status; s.Estimate == nil || s.Estimate.P50 == nil || s.ETA == "" || s.VMs[0].ExpectedSeconds == nil {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	for left := 3; left > 0; left-- {
		all := c.unfinished(min(2, left))
		for _, phase := range []virtv1.VirtualMachineInstanceMigrationPhase{virtv1.MigrationPending,
			virtv1.MigrationRunning, virtv1.MigrationSucceeded} {
			c.phase(&all[0], phase)
		}
	}
	done := c.is("drain", v1alpha1.Done)
	c.moved("drain", 3)
	if all, err := c.all(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("%d migrations, %v", len(all), err)
	}
	out := c.kubectl("get", "nodeevacuations", "drain")
	if want := "NAME NODE PHASE VMS LEFT MOVING BLOCKED ETA AGE drain n1 Done 0 0 0"; !strings.HasPrefix(
		strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("%s, want %s", out, want)
	}
	c.quiet(t)
	c.deleted(&done)
}

// quiet checks that nothing is written while nothing changes.
func (c *cluster) quiet(t *testing.T) {
	var before, after v1alpha1.NodeEvacuation
	for _, e := range []*v1alpha1.NodeEvacuation{&before, &after} {
		if err := c.c.Get(t.Context(), types.NamespacedName{Name: "drain"}, e); err != nil {
			t.Fatal(err)
		}
		var n corev1.Node // an event that causes a decision
		if err := c.c.Get(t.Context(), types.NamespacedName{Name: "n1"}, &n); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataLabel(&n.ObjectMeta, "seen", n.ResourceVersion)
		if err := c.c.Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		c.settled("n1")
	}
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("it was written: %+v, %+v", before.Status, after.Status)
	}
}

// settled waits until the controller has looked at the present state of things: by a NodeEvacuation of a
// node that does not exist, which is decided about together with all others.
func (c *cluster) settled(name string) {
	c.t.Helper()
	e := c.evacuation("settled-"+fmt.Sprint(time.Now().UnixNano()), "no-"+name)
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	c.create(e)
	c.is(e.Name, v1alpha1.NodeNotFound)
	if err := c.c.Delete(c.t.Context(), e); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) deletion(t *testing.T) {
	c.create(c.node("n2"), c.vmi("b0", "n2", "", 1), c.vmi("b1", "n2", "", 2))
	e := c.evacuation("deletion", "n2")
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	c.create(e)
	all := c.unfinished(2)
	c.phase(&all[0], virtv1.MigrationRunning)
	c.deleted(e)
	if left := c.unfinished(1); left[0].Name != all[0].Name {
		t.Errorf("%s is left, want %s, which runs", left[0].Name, all[0].Name)
	}
	c.phase(&all[0], virtv1.MigrationSucceeded)
}

func (c *cluster) marked(t *testing.T) {
	v := c.vmi("c0", "n3", virtv1.EvictionStrategyExternal, 1)
	v.Status.EvacuationNodeName = "n3"
	c.create(c.node("n3"), v)
	all := c.unfinished(1)
	if all[0].Spec.VMIName != "c0" || all[0].Annotations[virtv1.EvacuationMigrationAnnotation] != "n3" {
		t.Errorf("%+v", all[0])
	}
	c.phase(&all[0], virtv1.MigrationSucceeded)
	c.until("an event", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.c.List(ctx, &events, client.InNamespace("shop")); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "c0" && e.Reason == "Evacuating" {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// missing takes a right away: the event says so, and once it is given again the drain goes on.
func (c *cluster) missing(t *testing.T) {
	rule := "/rules/7/verbs"
	c.kubectl("patch", "clusterrole", "godwit-kubevirt", "--type=json", "-p",
		`[{"op":"replace","path":"`+rule+`","value":["get","list","watch"]}]`)
	c.create(c.node("n4"), c.vmi("d0", "n4", "", 1))
	e := c.evacuation("missing", "n4")
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	c.create(e)
	c.until("an event", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.c.List(ctx, &events, client.InNamespace("shop")); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "d0" && strings.Contains(e.Message, "forbidden") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	c.kubectl("apply", "-k", "../../config/rbac", "--server-side", "--force-conflicts")
	all := c.unfinished(1)
	c.phase(&all[0], virtv1.MigrationSucceeded)
	c.is("missing", v1alpha1.Done)
	c.deleted(e)
}

// takeOver stops the controller while a VM moves. The next one leads at once, and goes on.
func (c *cluster) takeOver(t *testing.T, stop func()) {
	c.create(c.node("n5"), c.vmi("e0", "n5", "", 1), c.vmi("e1", "n5", "", 1))
	e := c.evacuation("take-over", "n5")
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	c.create(e)
	all := c.unfinished(2)
	stop()
	c.phase(&all[0], virtv1.MigrationSucceeded)
	c.start()
	c.phase(&all[1], virtv1.MigrationSucceeded)
	c.is("take-over", v1alpha1.Done)
	c.moved("take-over", 2)
	if all, err := c.all(t.Context()); err != nil || len(all) != 3+2-1+1+1+1+2 {
		t.Errorf("%d migrations, %v", len(all), err)
	}
	c.deleted(e)
}
