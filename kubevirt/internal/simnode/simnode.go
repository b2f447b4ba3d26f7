// Package simnode plays the nodes of a cluster whose controllers are real: a kubelet and a virt-handler on each.
//
//	pod that was scheduled ──► Running and ready        pod that was deleted ──► gone
//	VMI with a target pod  ──► address, start, transfer ──► end, the VM is on the target
//
// Transfers take the time that package hypervisor/fake says. It is for tests.
package simnode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Starts is how long a launcher takes from being scheduled until it is ready, in the model's time.
const Starts = 2 * time.Second

// A VM runs from the beginning.
type VM struct {
	Namespace, Name, Node string
	GiB                   int
	Strategy              virtv1.EvictionStrategy
	Workload              fake.Workload
	// NeverReady: the launchers that its migrations make do not start.
	NeverReady bool
	// New: virt-controller has not seen it yet. It writes to each VM and launcher that is new.
	New bool
}

// Nodes are all of a cluster.
type Nodes struct {
	Client client.Client // does everything, and reads the API server

	mu        sync.Mutex
	transfers *transfers
	vms       map[types.NamespacedName]VM
	dead      map[string]time.Time          // when the pods of the node are taken away
	pods      map[types.NamespacedName]bool // something has changed about them
	vmis      map[types.NamespacedName]bool
	starting  map[types.NamespacedName]time.Time
	moves     []Move
	failures  int
	wrong     error
}

// New returns nodes whose time goes so many times faster than the clock.
func New(c client.Client, speed float64) *Nodes {
	return &Nodes{Client: c, transfers: newTransfers(speed), vms: map[types.NamespacedName]VM{}, dead: map[string]time.Time{},
		pods: map[types.NamespacedName]bool{}, vmis: map[types.NamespacedName]bool{}, starting: map[types.NamespacedName]time.Time{}}
}

// Moves returns the migrations that have succeeded so far, and how many have failed.
func (n *Nodes) Moves() ([]Move, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.moves), n.failures
}

// Err returns what the nodes could not do.
func (n *Nodes) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrong
}

// AddNode adds a node of 256 GiB.
func (n *Nodes) AddNode(ctx context.Context, name string) error {
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("250"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti")}
	for _, device := range []corev1.ResourceName{"devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net"} {
		amounts[device] = resource.MustParse("1k")
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", virtv1.NodeSchedulable: "true"}}}
	if err := n.Client.Create(ctx, o); err != nil {
		return err
	}
	o.Status = corev1.NodeStatus{Capacity: amounts, Allocatable: amounts, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}}
	if err := n.Client.Status().Update(ctx, o); err != nil {
		return err
	}
	o.Spec.Taints = nil // not-ready: Kubernetes' node controller would take it away
	if err := n.Client.Update(ctx, o); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.transfers.addHost(name, 256*hypervisor.GiB)
}

// AddVM adds a VM that runs, with its launcher.
func (n *Nodes) AddVM(ctx context.Context, v VM) error {
	memory := resource.MustParse(fmt.Sprintf("%dGi", v.GiB))
	o := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name,
		Labels: map[string]string{virtv1.NodeNameLabel: v.Node}, Annotations: map[string]string{
			virtv1.ControllerAPILatestVersionObservedAnnotation: virtv1.ApiLatestVersion, virtv1.ControllerAPIStorageVersionObservedAnnotation: virtv1.ApiStorageVersion}}}
	o.Spec.Domain.Memory = &virtv1.Memory{Guest: &memory}
	o.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: memory, corev1.ResourceCPU: resource.MustParse("100m")}
	o.Spec.Architecture, o.Spec.EvictionStrategy = "amd64", &v.Strategy
	o.Status = virtv1.VirtualMachineInstanceStatus{Phase: virtv1.Running, NodeName: v.Node, SelinuxContext: "none",
		Conditions: []virtv1.VirtualMachineInstanceCondition{{Type: virtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue},
			{Type: virtv1.VirtualMachineInstanceReady, Status: corev1.ConditionTrue}}}
	if err := n.Client.Create(ctx, o); err != nil {
		return err
	}
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "virt-launcher-" + v.Name + "-first",
		Labels:      map[string]string{virtv1.AppLabel: "virt-launcher", virtv1.CreatedByLabel: string(o.UID), virtv1.NodeNameLabel: v.Node},
		Annotations: map[string]string{virtv1.DomainAnnotation: v.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: v.Name, UID: o.UID,
			Controller: &yes, BlockOwnerDeletion: &yes}}},
		Spec: corev1.PodSpec{NodeName: v.Node, Containers: []corev1.Container{{Name: "compute", Image: "virt-launcher",
			Resources: corev1.ResourceRequirements{Requests: o.Spec.Domain.Resources.Requests}}}}}
	if !v.New {
		maps.Copy(p.Annotations, seenAnnotations(v))
	}
	if err := n.Client.Create(ctx, p); err != nil {
		return err
	}
	p = running(p)
	if !v.New {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: virtv1.VirtualMachineUnpaused,
			Status: corev1.ConditionTrue, Reason: "NotPaused", Message: "the virtual machine is not paused"})
	}
	if err := n.Client.Status().Update(ctx, p); err != nil {
		return err
	}
	if !v.New {
		o.Status.ActivePods = map[types.UID]string{p.UID: v.Node}
		o.Status.LauncherContainerImageVersion = p.Spec.Containers[0].Image
		if err := n.Client.Update(ctx, o); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.vms[client.ObjectKeyFromObject(o)] = v
	return n.transfers.boot(idOf(client.ObjectKeyFromObject(o)), v.Node, hypervisor.Bytes(v.GiB)*hypervisor.GiB, v.Workload)
}

// seenAnnotations are those that virt-controller gives to a launcher.
// Source: KubeVirt 1.8, as its virt-controller wrote them.
func seenAnnotations(v VM) map[string]string {
	freezer := func(what string) string {
		return fmt.Sprintf(`["/usr/bin/virt-freezer", "--%s", "--name", "%s", "--namespace", "%s"]`, what, v.Name, v.Namespace)
	}
	return map[string]string{"descheduler.alpha.kubernetes.io/request-evict-only": "",
		"pre.hook.backup.velero.io/container": "compute", "pre.hook.backup.velero.io/command": freezer("freeze"),
		"pre.hook.backup.velero.io/timeout": "60s", "post.hook.backup.velero.io/container": "compute",
		"post.hook.backup.velero.io/command": freezer("unfreeze")}
}

func (n *Nodes) isDead(node string) bool {
	_, is := n.dead[node]
	return is
}

func idOf(key types.NamespacedName) hypervisor.VMID { return hypervisor.VMID(key.String()) }

// Lost is how long the pods of a dead node stay, in the model's time, until an operator has said that it is out of
// service: until then KubeVirt waits for a launcher there without an end.
const Lost = 20 * time.Second

// Die ends a node: its kubelet says nothing any more, and what it sends and receives breaks off.
func (n *Nodes) Die(ctx context.Context, name string) error {
	n.mu.Lock()
	n.dead[name] = time.Now().Add(time.Duration(float64(Lost) / n.transfers.speed))
	n.transfers.advance()
	err := n.transfers.net.CrashHost(hypervisor.HostName(name))
	n.mu.Unlock()
	if err != nil {
		return err
	}
	var o corev1.Node
	if err := n.Client.Get(ctx, types.NamespacedName{Name: name}, &o); err != nil {
		return err
	}
	o.Status.Conditions[0].Status = corev1.ConditionUnknown
	if err := n.Client.Status().Update(ctx, &o); err != nil {
		return err
	}
	o.Spec.Taints = append(o.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
	if err := n.Client.Update(ctx, &o); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := n.Client.List(ctx, &pods); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range pods.Items {
		n.pods[client.ObjectKeyFromObject(&pods.Items[i])] = true
	}
	return nil
}

// Run plays until ctx ends. The cache shows pods and VMIs.
func (n *Nodes) Run(ctx context.Context, c cache.Cache) error {
	for o, changed := range map[client.Object]map[types.NamespacedName]bool{&corev1.Pod{}: n.pods, &virtv1.VirtualMachineInstance{}: n.vmis} {
		i, err := c.GetInformer(ctx, o)
		if err != nil {
			return err
		}
		mark := func(o any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if o, is := o.(client.Object); is {
				changed[client.ObjectKeyFromObject(o)] = true
			}
		}
		if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: mark, UpdateFunc: func(_, o any) { mark(o) }}); err != nil {
			return err
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := n.step(ctx, c); err != nil && ctx.Err() == nil {
				n.mu.Lock()
				n.wrong = err
				n.mu.Unlock()
			}
		}
	}
}

// step does what there is to do now. What fails is tried again.
func (n *Nodes) step(ctx context.Context, c client.Reader) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods, vmis := maps.Clone(n.pods), maps.Clone(n.vmis)
	clear(n.pods)
	clear(n.vmis)
	var wrong error
	for key := range pods {
		if err := n.kubelet(ctx, c, key); err != nil {
			n.pods[key], wrong = true, fmt.Errorf("pod %s: %w", key, err)
		}
	}
	for key := range vmis {
		if err := n.virtHandler(ctx, c, key); err != nil {
			n.vmis[key], wrong = true, fmt.Errorf("VMI %s: %w", key, err)
		}
	}
	for _, o := range n.transfers.ended(ctx) {
		if err := n.end(ctx, o); err != nil {
			wrong = fmt.Errorf("end of %s: %w", o.vm, err)
		}
	}
	return wrong
}

// kubelet does what that of a pod's node does.
func (n *Nodes) kubelet(ctx context.Context, c client.Reader, key types.NamespacedName) error {
	var p corev1.Pod
	if err := c.Get(ctx, key, &p); err != nil {
		delete(n.starting, key)
		return client.IgnoreNotFound(err)
	}
	lost, dead := n.dead[p.Spec.NodeName]
	switch {
	case dead && time.Now().Before(lost):
		n.pods[key] = true
		return nil
	case dead || p.DeletionTimestamp != nil:
		return client.IgnoreNotFound(n.Client.Delete(ctx, &p, client.GracePeriodSeconds(0)))
	case p.Spec.NodeName == "" || p.Status.Phase != corev1.PodPending:
		return nil
	case n.vms[types.NamespacedName{Namespace: p.Namespace, Name: p.Annotations[virtv1.DomainAnnotation]}].NeverReady:
		return nil
	}
	if _, known := n.starting[key]; !known {
		n.starting[key] = time.Now().Add(time.Duration(float64(Starts) / n.transfers.speed))
	}
	if time.Now().Before(n.starting[key]) {
		n.pods[key] = true
		return nil
	}
	return ignoreStale(n.Client.Status().Update(ctx, running(&p)))
}

// ignoreStale: the next event shows the object.
func ignoreStale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// running returns a pod with all its containers ready.
func running(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime, p.Status.PodIP = corev1.PodRunning, &now, "10.0.0.1"
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	return p
}

// virtHandler does what those of the source and the target of a VM do.
func (n *Nodes) virtHandler(ctx context.Context, c client.Reader, key types.NamespacedName) error {
	var old virtv1.VirtualMachineInstance
	if err := c.Get(ctx, key, &old); err != nil {
		return client.IgnoreNotFound(err)
	}
	s := old.Status.MigrationState
	if s == nil || s.Completed || s.Failed || s.EndTimestamp != nil || n.isDead(s.SourceNode) {
		return nil
	}
	v := old.DeepCopy()
	now := metav1.Now()
	switch to := v.Status.MigrationState; {
	case s.TargetNode == "" || n.isDead(s.TargetNode) && s.StartTimestamp == nil:
		return nil
	case s.TargetNodeAddress == "":
		to.TargetNodeAddress, to.TargetDirectMigrationNodePorts = "10.0.0.2", map[string]int{"49152": 49152}
	case s.StartTimestamp == nil:
		m := n.vms[key]
		within := 150 * time.Second * time.Duration(m.GiB) // KubeVirt's completionTimeoutPerGiB
		if err := n.transfers.send(ctx, string(s.MigrationUID), key.String(), s.SourceNode, s.TargetNode, within); err != nil {
			return n.fail(ctx, v, err.Error())
		}
		to.StartTimestamp, to.Mode = &now, virtv1.MigrationPreCopy
	case s.AbortRequested:
		n.transfers.cancel(ctx, hypervisor.JobID(s.MigrationUID))
		return nil
	default:
		return nil
	}
	return client.IgnoreNotFound(n.Client.Patch(ctx, v, client.MergeFrom(&old)))
}

// end writes how a transfer has ended.
func (n *Nodes) end(ctx context.Context, o outcome) error {
	var old virtv1.VirtualMachineInstance
	var key types.NamespacedName
	for k := range n.vms {
		if idOf(k) == o.vm {
			key = k
		}
	}
	if err := n.Client.Get(ctx, key, &old); err != nil {
		return client.IgnoreNotFound(err)
	}
	v := old.DeepCopy()
	s := v.Status.MigrationState
	if s == nil || hypervisor.JobID(s.MigrationUID) != o.job {
		return nil
	}
	if o.err != "" {
		return n.fail(ctx, v, o.err)
	}
	n.moves = append(n.moves, o.Move)
	now := metav1.Now()
	s.EndTimestamp, s.Completed, s.TargetNodeDomainDetected, s.TargetNodeDomainReadyTimestamp = &now, true, true, &now
	v.Labels[virtv1.NodeNameLabel] = string(o.to)
	v.Status.NodeName, v.Status.EvacuationNodeName = string(o.to), ""
	delete(v.Annotations, virtv1.EvictionSourceAnnotation)
	if err := n.Client.Patch(ctx, v, client.MergeFrom(&old)); err != nil {
		return err
	}
	return n.exit(ctx, v, s.TargetPod, corev1.PodSucceeded)
}

// fail writes that a migration has failed. The launcher at the target ends.
func (n *Nodes) fail(ctx context.Context, v *virtv1.VirtualMachineInstance, why string) error {
	n.failures++
	var old virtv1.VirtualMachineInstance
	if err := n.Client.Get(ctx, client.ObjectKeyFromObject(v), &old); err != nil {
		return client.IgnoreNotFound(err)
	}
	v = old.DeepCopy()
	s := v.Status.MigrationState
	if s == nil {
		return nil
	}
	now := metav1.Now()
	if s.StartTimestamp == nil {
		s.StartTimestamp = &now
	}
	s.EndTimestamp, s.Completed, s.Failed, s.FailureReason = &now, true, true, why
	if s.AbortRequested {
		s.AbortStatus = virtv1.MigrationAbortSucceeded
	}
	return client.IgnoreNotFound(n.Client.Patch(ctx, v, client.MergeFrom(&old)))
}

// exit ends the launchers of a VM but one.
func (n *Nodes) exit(ctx context.Context, v *virtv1.VirtualMachineInstance, but string, phase corev1.PodPhase) error {
	var all corev1.PodList
	if err := n.Client.List(ctx, &all, client.InNamespace(v.Namespace), client.MatchingLabels{virtv1.CreatedByLabel: string(v.UID)}); err != nil {
		return err
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.Name == but || p.Status.Phase != corev1.PodRunning || n.isDead(p.Spec.NodeName) {
			continue
		}
		p.Status.Phase = phase
		for j := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[j].Ready = false
			p.Status.ContainerStatuses[j].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
		if err := n.Client.Status().Update(ctx, p); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
