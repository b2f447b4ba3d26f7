package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// changeHost changes what an operator decides about a host.
func (d *Client) changeHost(ctx context.Context, name hypervisor.HostName,
	how func(*store.Host) error) (*store.Host, error) {
	r, err := d.change(ctx, hostKey(name), func(r store.Record) (store.Record, error) {
		next := *r.(*store.Host)
		return &next, how(&next)
	})
	if err != nil {
		return nil, err
	}
	return r.(*store.Host), nil
}

func (d *Client) drain() string { return cmp.Or(d.DrainKey, evacuation.DefaultDrainKey) }

// drains reports whether a taint is the one that drains.
func (d *Client) drains(t placement.Taint) bool {
	return t.Key == d.drain() && t.Effect == placement.NoSchedule
}

// Draining reports whether a host is drained.
func (d *Client) Draining(h *store.Host) bool { return slices.ContainsFunc(h.Taints, d.drains) }

// Drains reports whether a host is drained, by the taint that the defaults name.
func Drains(defaults evacuation.Params, h *store.Host) bool {
	return (&Client{DrainKey: defaults.DrainKey}).Draining(h)
}

// Drain marks a host as draining: its VMs are migrated away, and no new ones are placed there. A
// host that drains already keeps its terms.
func (d *Client) Drain(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.DrainOn(ctx, name, evacuation.Terms{})
}

// DrainOn is Drain with terms: what happens to VMs that cannot be migrated. Unset terms stay as
// they are.
func (d *Client) DrainOn(ctx context.Context, name hypervisor.HostName, terms evacuation.Terms) (
	*store.Host, error) {
	if terms.Grace < 0 {
		return nil, refuse("drain "+string(name), "the grace period must be above zero, and is %v",
			terms.Grace)
	}
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Drain = terms.Or(h.Drain)
		h.Taints = slices.DeleteFunc(slices.Clone(h.Taints), func(t placement.Taint) bool { // it is the operator's now
			return d.drains(t) && strings.HasPrefix(t.Value, store.MaintenanceDrain)
		})
		if !d.Draining(h) {
			h.Taints = append(h.Taints, placement.Taint{Key: d.drain(), Effect: placement.NoSchedule})
		}
		return nil
	})
}

// CheckDeadline returns why the drain of a host cannot have a deadline.
func (d *Client) CheckDeadline(name hypervisor.HostName, by evacuation.Deadline) error {
	switch {
	case !by.By.After(d.Now()):
		return refuse("drain "+string(name), "the deadline %s has passed", by.By.Format(time.DateTime))
	case by.PerSource < 0 || by.PerCluster < 0:
		return refuse("drain "+string(name), "limits must not be below zero")
	}
	return nil
}

// DrainUntil gives the drain of a host a deadline, or another one.
func (d *Client) DrainUntil(ctx context.Context, name hypervisor.HostName, by evacuation.Deadline) (*store.Host, error) {
	if err := d.CheckDeadline(name, by); err != nil {
		return nil, err
	}
	return d.changeHost(ctx, name, func(h *store.Host) error {
		if h.DrainBy == nil || *h.DrainBy != by {
			h.DrainBy, h.DrainPace = &by, nil
		}
		return nil
	})
}

// Undrain cancels a drain: the controller cancels migrations that have not begun; those that
// have begun continue. Evictions of single VMs from the host are cancelled, too.
func (d *Client) Undrain(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	h, err := d.changeHost(ctx, name, func(h *store.Host) error {
		h.Taints = slices.DeleteFunc(slices.Clone(h.Taints), d.drains)
		h.Drain, h.DrainBy, h.DrainPace = evacuation.Terms{}, nil, nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	vms, err := list[*store.VM](ctx, d.Store)
	for _, v := range vms {
		if err == nil && v.EvacuateFrom == name {
			_, err = d.changeVM(ctx, v.VM.ID, "undrain "+string(name), func(v *store.VM) error {
				if v.EvacuateFrom == name {
					v.EvacuateFrom = ""
				}
				return nil
			})
		}
	}
	return h, err
}

// Cordon places no new VMs on a host; its VMs stay.
func (d *Client) Cordon(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Cordoned, h.CordonedFor = true, ""
		return nil
	})
}

// Uncordon places VMs on a host again.
func (d *Client) Uncordon(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Cordoned, h.CordonedFor = false, ""
		return nil
	})
}

// ConfirmDown stores an operator's confirmation that a host is off and stays off. It counts as
// fencing: the host's VMs are restarted elsewhere, and run twice if the host runs after all.
func (d *Client) ConfirmDown(ctx context.Context, name hypervisor.HostName, by string) (*store.Host,
	error) {
	what := "host confirm-down " + string(name)
	if strings.TrimSpace(by) == "" {
		return nil, refuse(what, "the operator's name is missing: write --by NAME")
	}
	return d.changeHost(ctx, name, func(h *store.Host) error {
		switch {
		case h.ConfirmedDownBy != "" && h.ConfirmedDownBy != by:
			return refuse(what, "already confirmed down by %s", h.ConfirmedDownBy)
		case !h.NotReady:
			return refuse(what, "its agent still sends heartbeats")
		}
		h.ConfirmedDownBy = by
		return nil
	})
}

// ClearDown withdraws an operator's confirmation, unless the host already counts as fenced.
func (d *Client) ClearDown(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		if h.Fenced {
			return refuse("host clear-down "+string(name), "it counts as fenced, and its VMs may "+
				"have been started elsewhere")
		}
		h.ConfirmedDownBy = ""
		return nil
	})
}

// Adopt assigns the name of a host to the agent with this identity: its directory was lost or
// restored, or the machine was replaced. "" is the agent that was last refused the name. For the
// agent that already has the name, it clears the alarm about another one, and changes nothing else.
func (d *Client) Adopt(ctx context.Context, name hypervisor.HostName, id, by string) (*store.Host,
	error) {
	what := "host adopt " + string(name)
	if strings.TrimSpace(by) == "" {
		return nil, refuse(what, "the operator's name is missing: write --by NAME")
	}
	r, err := d.Store.Get(ctx, store.Key{Kind: store.LeaseKind, Name: string(
		store.HostLease(name))})
	if err != nil {
		return nil, err
	}
	l, beats := r.(*store.Lease)
	beats = beats && l.Session != ""
	return d.changeHost(ctx, name, func(h *store.Host) error {
		id := id
		if id == "" && h.Refused != nil {
			id = h.Refused.Identity.ID
		}
		switch {
		case id == "":
			return refuse(what, "no agent was refused its name: there is nothing to adopt")
		case h.Identity != nil && h.Identity.ID == id && (beats || h.Refused == nil ||
			h.Refused.Identity.ID != id): // it has the name
			h.Refused, h.Adopt = nil, nil
			return nil
		case beats && !h.NotReady:
			return refuse(what, "its agent sends heartbeats, or did until a moment ago: if it is the "+
				"wrong one, stop it, and try again when godwit host list shows the host as lost")
		case h.Identity == nil:
			return refuse(what, "its name is not assigned yet: start its agent")
		}
		h.Adopt, h.Refused = &store.Adoption{ID: id, By: by}, nil
		return nil
	})
}

// LabelHost sets labels of a host; an empty value removes one.
func (d *Client) LabelHost(ctx context.Context, name hypervisor.HostName, labels placement.Labels) (
	*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Labels = labelled(h.Labels, labels)
		return nil
	})
}

// labelled is a copy of labels with changes; an empty value removes a label.
func labelled[M ~map[string]string](labels, changes M) M {
	next := M{}
	maps.Copy(next, labels)
	maps.Copy(next, changes)
	maps.DeleteFunc(next, func(_, value string) bool { return value == "" })
	return next
}
