package evacuate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/migration/placement"
)

// maxListed is how many VMs a list of the status has at most: the schema says so, too.
const maxListed = 500

// leaving returns a VM that leaves, with what was predicted of it.
func (s *site) leaving(v *vm, state v1alpha1.VMState) v1alpha1.LeavingVM {
	l := v1alpha1.LeavingVM{Namespace: v.object.Namespace, Name: v.object.Name, State: state}
	if v.current != nil {
		l.Migration = v.current.Name
	}
	if s.active == nil || s.Forecasts[s.active.Name] == nil {
		return l
	}
	if why := s.Forecasts[s.active.Name].Unplaceable[v.id]; len(why) > 0 {
		l.Reason = "no node seems to take it: " + strings.Join(why, "; ")
	}
	if w, known := s.Forecasts[s.active.Name].Writes[v.id]; known {
		l.Writes = &w
	}
	if e, found := s.Forecasts[s.active.Name].VMs[v.id]; found {
		seconds, downtime := int64(e.Seconds+0.5), int64(e.DowntimeMilliseconds+0.5)
		l.Converges = &e.Converges
		if e.Converges && e.Seconds > 0 { // else it does not move beside the others
			l.ExpectedSeconds, l.ExpectedDowntimeMilliseconds = &seconds, &downtime
		}
	}
	return l
}

// stay takes in the VMs that get no migration now.
func (s *site) stay(p *planned, d *evacuation.Decision, holds map[hypervisor.VMID]*held,
	byID map[hypervisor.VMID]*vm) {
	stops := map[hypervisor.VMID]evacuation.Stop{}
	for _, stop := range d.Stop {
		stops[stop.VM] = stop
	}
	for _, l := range d.Stay {
		v := byID[l.VM]
		stop, stopped := stops[l.VM]
		switch {
		case v.current != nil || v.unseen():
			p.leaving = append(p.leaving, s.leaving(v, v1alpha1.Moving))
		case v.object.DeletionTimestamp != nil, v.pod != nil && v.pod.DeletionTimestamp != nil:
			p.leaving = append(p.leaving, s.leaving(v, v1alpha1.ShuttingDown))
		case stopped && s.unevictable(v) != nil:
			h := s.unevictable(v)
			h.reasons = slices.Concat(l.Reasons, h.reasons)
			p.again = sooner(p.again, h.until.Sub(s.Now))
			s.keep(p, v, h)
		case stopped && v.pod != nil:
			p.evict = append(p.evict, Eviction{types.NamespacedName{Namespace: v.pod.Namespace,
				Name: v.pod.Name}, v.pod.UID, v.object.Name, grace(stop), stop.Why})
			p.leaving = append(p.leaving, s.leaving(v, v1alpha1.ShuttingDown))
		case l.Waits || stopped || v.known.Migratable: // the rest is over by itself
			w := s.leaving(v, v1alpha1.Waiting)
			if w.Reason == "" {
				w.Reason = Text(l.Reasons)
			}
			p.leaving = append(p.leaving, w)
		default:
			p.blocked = append(p.blocked, blockedVM(v, l.Reasons, s.helps(v)))
		}
	}
	for _, v := range s.vms { // in order
		if h := holds[v.id]; h != nil {
			if h.blocks {
				h.reasons = slices.Concat(evacuation.Keeps(s.params, s.guest(v)), h.reasons)
			}
			s.keep(p, v, h)
		}
	}
}

// unevictable returns what keeps the pod of a VM from being evicted now, or nil.
func (s *site) unevictable(v *vm) *held {
	if v.pod == nil {
		return nil
	}
	if h := s.Refused[v.pod.UID].held(s.Now, "eviction", helpEviction); h != nil {
		return h
	}
	return s.holding()
}

// keep takes in a VM that is held.
func (s *site) keep(p *planned, v *vm, h *held) {
	if h.blocks {
		p.blocked = append(p.blocked, blockedVM(v, h.reasons, append(s.helps(v), h.help...)))
		return
	}
	w := s.leaving(v, v1alpha1.Waiting)
	w.Reason = Text(h.reasons)
	p.leaving = append(p.leaving, w)
}

func grace(s evacuation.Stop) *time.Duration {
	if s.Grace == 0 {
		return nil
	}
	return &s.Grace
}

// Text writes reasons in one line.
func Text(why []placement.Reason) string {
	all := make([]string, len(why))
	for i, r := range why {
		all[i] = fmt.Sprintf("%s: needs %s, has %s", r.Check, r.Need, r.Have)
	}
	return strings.Join(all, "; ")
}

// blockedVM returns a VM that cannot leave, with what would help.
func blockedVM(v *vm, why []placement.Reason, help []string) v1alpha1.BlockedVM {
	b := v1alpha1.BlockedVM{Namespace: v.object.Namespace, Name: v.object.Name, Reasons: []string{}}
	for _, r := range why {
		b.Reasons = append(b.Reasons, Text([]placement.Reason{r}))
	}
	for _, h := range help {
		if !slices.Contains(b.Help, h) {
			b.Help = append(b.Help, h)
		}
	}
	b.Reasons, b.Help = b.Reasons[:min(len(b.Reasons), 50)], b.Help[:min(len(b.Help), 50)]
	return b
}

// status returns the status of the NodeEvacuation of a node.
func (s *site) status(p *planned) *v1alpha1.NodeEvacuationStatus {
	old := &s.active.Status
	now := metav1.NewTime(s.Now.Truncate(time.Second))
	n := &v1alpha1.NodeEvacuationStatus{ObservedGeneration: s.active.Generation, StartedAt: old.StartedAt,
		DoneAt: old.DoneAt, Conditions: slices.Clone(old.Conditions), Moved: s.moved()}
	if n.StartedAt == nil {
		n.StartedAt = &now
	}
	p.leaving = append(p.leaving, p.arriving...)
	left, moving, blocked := int32(len(p.leaving)+len(p.blocked)), int32(0), int32(len(p.blocked))
	for _, l := range p.leaving {
		if l.Migration != "" {
			moving++
		}
	}
	n.VMsLeft, n.Moving, n.Blocked = &left, &moving, &blocked
	slices.SortStableFunc(p.leaving, func(a, b v1alpha1.LeavingVM) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	n.VMs, n.BlockedVMs = p.leaving[:min(len(p.leaving), maxListed)], p.blocked[:min(len(p.blocked), maxListed)]
	switch {
	case s.node == nil:
		n.Phase = v1alpha1.NodeNotFound
	case left == 0:
		n.Phase = v1alpha1.Done
	case left == blocked:
		n.Phase = v1alpha1.Blocked
	default:
		n.Phase = v1alpha1.Evacuating
	}
	if n.Phase != v1alpha1.Done {
		n.DoneAt = nil
	} else if n.DoneAt == nil {
		n.DoneAt = &now
	}
	s.estimate(n)
	s.conditions(n, now)
	return n
}

// rank is the order of the states in the status.
func rank(state v1alpha1.VMState) int {
	return slices.Index([]v1alpha1.VMState{v1alpha1.Moving, v1alpha1.ShuttingDown, v1alpha1.LeftToKubeVirt,
		v1alpha1.Waiting, v1alpha1.Arriving}, state)
}

// estimate says when the node will be empty.
func (s *site) estimate(n *v1alpha1.NodeEvacuationStatus) {
	f := s.Forecasts[s.active.Name]
	if f == nil || n.Phase == v1alpha1.Done || n.Phase == v1alpha1.NodeNotFound {
		if n.Phase == v1alpha1.Blocked {
			n.ETA = "never"
		}
		return
	}
	n.Estimate = &v1alpha1.Estimate{At: metav1.NewTime(f.At.Truncate(time.Second)), Simulations: int32(f.Runs),
		P50: from(f.At, f.P50), P95: from(f.At, f.P95)}
	if d := s.active.Spec.Deadline; d != nil && f.Runs > 0 {
		percent := f.InTime(d.Sub(f.At))
		n.Estimate.DeadlineProbability = &percent
	}
	if n.ETA = "never"; n.Estimate.P50 != nil && *n.Blocked == 0 && f.Left == 0 {
		n.ETA = n.Estimate.P50.UTC().Format(time.RFC3339)
	}
}

// InTime returns in how many percent of the simulations the node is empty after a time, at least.
func (f *Forecast) InTime(within time.Duration) int32 {
	if f.Left > 0 {
		return 0
	}
	for _, q := range []struct {
		at      *time.Duration
		percent int32
	}{{f.Max, 100}, {f.P99, 99}, {f.P95, 95}, {f.P50, 50}} {
		if q.at != nil && *q.at <= within {
			return q.percent
		}
	}
	return 0
}

func from(at time.Time, after *time.Duration) *metav1.Time {
	if after == nil {
		return nil
	}
	return &metav1.Time{Time: at.Add(*after).Truncate(time.Second)}
}

// conditions sets the standard conditions.
func (s *site) conditions(n *v1alpha1.NodeEvacuationStatus, now metav1.Time) {
	set := func(kind string, is bool, reason, format string, args ...any) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: now,
			Message: fmt.Sprintf(format, args...), ObservedGeneration: s.active.Generation}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&n.Conditions, c)
	}
	switch {
	case s.node == nil:
		set(v1alpha1.ConditionCordoned, false, "NodeNotFound", "there is no node %s", s.name)
	case !s.node.Spec.Unschedulable:
		set(v1alpha1.ConditionCordoned, false, "Cordoning", "%s will be cordoned", s.name)
	case s.cordonedBy() != "":
		set(v1alpha1.ConditionCordoned, true, "ByThisController", "it will be uncordoned when this "+
			"NodeEvacuation is deleted")
	default:
		set(v1alpha1.ConditionCordoned, true, "ByOthers", "the node was cordoned before, and will stay so")
	}
	rest := *n.VMsLeft - *n.Blocked
	set(v1alpha1.ConditionProgressing, rest > 0, string(n.Phase), "%d of %d VMs move, %d cannot leave",
		*n.Moving, *n.VMsLeft, *n.Blocked)
	if *n.Blocked > 0 {
		set(v1alpha1.ConditionBlocked, true, "VMsCannotLeave", "%s: see blockedVMs", names(n.BlockedVMs))
	} else {
		set(v1alpha1.ConditionBlocked, false, "NothingBlocks", "no VM is kept on the node")
	}
	if n.Phase == v1alpha1.Done {
		set(v1alpha1.ConditionDone, true, "Empty", "no VM is left on %s", s.name)
	} else {
		set(v1alpha1.ConditionDone, false, string(n.Phase), "%d VMs are left on %s", *n.VMsLeft, s.name)
	}
	s.deadlineMet(n, set)
}

func (s *site) deadlineMet(n *v1alpha1.NodeEvacuationStatus,
	set func(kind string, is bool, reason, format string, args ...any)) {
	deadline := s.active.Spec.Deadline
	switch {
	case deadline == nil:
		meta.RemoveStatusCondition(&n.Conditions, v1alpha1.ConditionDeadlineMet)
	case n.DoneAt != nil && !n.DoneAt.After(deadline.Time):
		set(v1alpha1.ConditionDeadlineMet, true, "InTime", "the node was empty in time")
	case n.DoneAt != nil, s.Now.After(deadline.Time):
		set(v1alpha1.ConditionDeadlineMet, false, "Missed", "the node was not empty in time")
	case *n.Blocked > 0:
		set(v1alpha1.ConditionDeadlineMet, false, "Blocked", "VMs that cannot leave stand in the way")
	case n.Estimate == nil || n.Estimate.DeadlineProbability == nil:
		meta.RemoveStatusCondition(&n.Conditions, v1alpha1.ConditionDeadlineMet)
	case s.Forecasts[s.active.Name].Left > 0:
		set(v1alpha1.ConditionDeadlineMet, false, "VMsStay", "in the simulations %d VMs cannot leave",
			s.Forecasts[s.active.Name].Left)
	default:
		p := *n.Estimate.DeadlineProbability
		set(v1alpha1.ConditionDeadlineMet, p >= 95, "Estimated", "in at least %d %% of %d simulations the node is empty in time",
			p, n.Estimate.Simulations)
	}
}

// names lists the first VMs.
func names(all []v1alpha1.BlockedVM) string {
	var some []string
	for _, b := range all[:min(len(all), 3)] {
		some = append(some, b.Namespace+"/"+b.Name)
	}
	if more := len(all) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(some, ", ")
}

// moved returns what the migrations off the node have come to since it began. What was seen before
// stays: KubeVirt keeps the last five migrations of a VM.
func (s *site) moved() []v1alpha1.MovedVM {
	var seen []v1alpha1.MovedVM
	for i := range s.Migrations {
		m := &s.Migrations[i]
		if m.IsFinal() && m.Annotations[virtv1.EvacuationMigrationAnnotation] == s.name &&
			!m.CreationTimestamp.Before(&s.active.CreationTimestamp) {
			seen = append(seen, movedVM(m))
		}
	}
	byEnd := func(a, b v1alpha1.MovedVM) int {
		return cmp.Or(ended(&a).Compare(ended(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortStableFunc(seen, byEnd)
	all := slices.Clone(s.active.Status.Moved)
	for _, n := range seen {
		at := slices.IndexFunc(all, func(o v1alpha1.MovedVM) bool { return o.Namespace == n.Namespace && o.Name == n.Name })
		switch {
		case at < 0:
			all = append(all, n)
		case !ended(&all[at]).After(ended(&n)) && all[at].MigrationUID != n.MigrationUID:
			n.Failures += all[at].Failures
			all[at] = n
		}
	}
	slices.SortStableFunc(all, byEnd)
	return all[max(0, len(all)-maxListed):]
}

func ended(m *v1alpha1.MovedVM) time.Time {
	if m.EndedAt == nil {
		return time.Time{}
	}
	return m.EndedAt.Time
}

func movedVM(m *virtv1.VirtualMachineInstanceMigration) v1alpha1.MovedVM {
	n := v1alpha1.MovedVM{Namespace: m.Namespace, Name: m.Spec.VMIName, Migration: m.Name, MigrationUID: m.UID,
		Outcome: v1alpha1.OutcomeSucceeded}
	if m.Status.Phase == virtv1.MigrationFailed {
		n.Outcome, n.Failures = v1alpha1.OutcomeFailed, 1
	}
	for i := range m.Status.PhaseTransitionTimestamps {
		t := &m.Status.PhaseTransitionTimestamps[i]
		switch {
		case t.Phase == virtv1.MigrationRunning:
			n.StartedAt = &t.PhaseTransitionTimestamp
		case t.Phase == m.Status.Phase:
			n.EndedAt = &t.PhaseTransitionTimestamp
		}
	}
	if n.EndedAt == nil {
		n.EndedAt = &m.CreationTimestamp
	}
	if state := m.Status.MigrationState; state != nil {
		n.TargetNode = state.TargetNode
		if n.Outcome == v1alpha1.OutcomeFailed {
			n.Reason = state.FailureReason[:min(len(state.FailureReason), 1024)]
		}
	}
	return n
}

// conflict is the status of a NodeEvacuation whose node another one empties.
func conflict(e, other *v1alpha1.NodeEvacuation, now time.Time) *v1alpha1.NodeEvacuationStatus {
	n := &v1alpha1.NodeEvacuationStatus{ObservedGeneration: e.Generation, Phase: v1alpha1.Conflict,
		Conditions: slices.Clone(e.Status.Conditions), StartedAt: e.Status.StartedAt, Moved: e.Status.Moved}
	meta.SetStatusCondition(&n.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing,
		Status: metav1.ConditionFalse, Reason: "Conflict", ObservedGeneration: e.Generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		Message:            fmt.Sprintf("%s empties %s already, and is older", other.Name, e.Spec.NodeName)})
	return n
}
