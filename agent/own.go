package agent

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// learnOwn takes in what is stored about this host. When it is no longer cut off, all that
// had to wait for that is looked at.
func (a *Agent) learnOwn(h *store.Host) {
	before := a.cutOff()
	if a.own != nil && a.own.Version >= h.Version {
		return
	}
	opened := a.own != nil && (a.own.Cordoned != h.Cordoned || !slices.Equal(a.own.Taints, h.Taints))
	a.own = h
	if opened {
		a.startWaiting()
	}
	if !before || a.cutOff() {
		return
	}
	for _, v := range a.home.Sorted() {
		a.queue.Add(v.Key())
	}
	for _, m := range a.moves.Sorted() {
		a.queue.Add(m.Key())
	}
}

// startWaiting looks at the VMs that are off and are to run: this host may take them again.
func (a *Agent) startWaiting() {
	for _, v := range a.home.Sorted() {
		if v.Startable() {
			a.queue.Add(v.Key())
		}
	}
}

// closedTo returns why no VM like v is to be started on this host: it is drained, closed or
// tainted; "" is that nothing keeps it. To start a VM that is off is to choose this host anew: what has run here
// and crashed starts again, since it still counts as being here.
// Source: Kubernetes v1.34.1 plugins/tainttoleration, nodeunschedulable (both keep new pods away
// and leave those alone that run).
func (a *Agent) closedTo(v *store.VM) string {
	if a.own == nil {
		return ""
	}
	if a.own.Cordoned {
		return string(a.host) + " is closed"
	}
	var tolerates []placement.Toleration
	if v.Placement != nil {
		tolerates = v.Placement.Tolerations
	}
	if slices.ContainsFunc(a.own.Taints, drains) {
		return string(a.host) + " is drained"
	}
	if t, repelled := placement.Repels(a.own.Taints, tolerates); repelled {
		return string(a.host) + " has the taint " + t.Key + ", which it does not tolerate"
	}
	return ""
}

// drains reports whether a taint drains its host, by the key that is the default: a VM that
// tolerates it leaves the host all the same.
func drains(t placement.Taint) bool {
	return t.Key == evacuation.DefaultDrainKey && t.Effect == placement.NoSchedule
}

// ownRecord returns what is stored about this host, to be named as a condition of a write:
// when nothing is stored, that nothing is.
func (a *Agent) ownRecord() *store.Host {
	if a.own == nil {
		return &store.Host{Host: hypervisor.Host{Name: a.host}}
	}
	return a.own
}

// cutOff reports whether this host is being fenced, or was, or has another agent, as far as this
// agent knows. Its VMs may then be started elsewhere: it starts none, lets none go on, and sends
// none. What runs is left alone.
// Source: Proxmox VE HA, pve-ha-lrm (an LRM without its lock starts no service).
func (a *Agent) cutOff() bool {
	return a.own != nil && (a.own.Fenced || a.own.Fencing != nil) || a.replaced(a.own)
}

// replaced reports whether another agent acts for this host, by the record of the host: it has
// taken the name while this one slept, or this one has not taken it yet, or is not admitted.
func (a *Agent) replaced(own *store.Host) bool {
	return a.config.Session != "" && (own == nil || own.Session != a.config.Session) ||
		a.unadmitted(own)
}

// unadmitted reports whether no leader has admitted this agent, by the record of the host. The
// store may be an older one then, which another host or controller is about to recognise.
func (a *Agent) unadmitted(own *store.Host) bool {
	return a.config.Admission && (own == nil || own.Admitted != a.config.Session)
}

// tellWaits says, once for each reason, why no leader admits this agent.
func (a *Agent) tellWaits(now time.Time) {
	if a.own == nil || a.own.Session != a.config.Session || a.own.Waits == a.waits {
		return
	}
	if a.waits = a.own.Waits; a.waits != "" {
		a.recorder.Note(now, a.host, "", "acts on nothing yet, and VMs run on: "+a.waits)
	}
}

// mayRun reads once more whether this host is cut off, before a VM goes on here that no
// write announces. It asks again: this agent may never hear of what was read.
func (a *Agent) mayRun(ctx context.Context, m *store.Migration, now time.Time) (bool, error) {
	h, err := store.HostNamed(ctx, a.store, a.host)
	may := err == nil && !h.Fenced && h.Fencing == nil && !a.replaced(h)
	if !may {
		a.again(m, now, a.config.Retry)
	}
	return may, err
}

// tellRefused says, once for each, that another agent was refused this host's name.
func (a *Agent) tellRefused(now time.Time) {
	if a.own == nil || a.own.Refused == nil || a.own.Refused.At.Equal(a.refused) {
		return
	}
	r := a.own.Refused
	a.refused = r.At
	a.recorder.Note(now, a.host, "", "another agent calls itself "+string(a.host)+
		" and was refused: identity "+r.Identity.String()+": "+r.Why)
}
