package client

import (
	"cmp"
	"context"
	"slices"
	"strings"

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

// Drain asks for every VM to leave a host, and for none to come. A host that is drained already
// keeps its terms.
func (d *Client) Drain(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.DrainOn(ctx, name, evacuation.Terms{})
}

// DrainOn is Drain with terms: what becomes of VMs that cannot be migrated. What they do not say
// stays as it is.
func (d *Client) DrainOn(ctx context.Context, name hypervisor.HostName, terms evacuation.Terms) (
	*store.Host, error) {
	if terms.Grace < 0 {
		return nil, refuse("drain "+string(name), "the grace period needs to be above zero, and is %v",
			terms.Grace)
	}
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Drain = terms.Or(h.Drain)
		if !d.Draining(h) {
			h.Taints = append(slices.Clip(h.Taints), placement.Taint{Key: d.drain(),
				Effect: placement.NoSchedule})
		}
		return nil
	})
}

// Undrain takes a drain back: the controller cancels what has not begun, what has begun goes
// on. VMs that were asked one by one to leave the host may stay, too.
func (d *Client) Undrain(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	h, err := d.changeHost(ctx, name, func(h *store.Host) error {
		h.Taints = slices.DeleteFunc(slices.Clone(h.Taints), d.drains)
		h.Drain = evacuation.Terms{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	vms, err := list[*store.VM](ctx, d.Store)
	for _, v := range vms {
		if err == nil && v.Mark == name {
			_, err = d.changeVM(ctx, v.VM.ID, func(v *store.VM) error {
				if v.Mark == name {
					v.Mark = ""
				}
				return nil
			})
		}
	}
	return h, err
}

// Close keeps new VMs from a host; those that are there stay.
func (d *Client) Close(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Closed = true
		return nil
	})
}

// Open lets VMs onto a host again.
func (d *Client) Open(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		h.Closed = false
		return nil
	})
}

// Dead stores an operator's word that a host is off and stays off. It counts as a fencing:
// the host's VMs are then started elsewhere, and if it runs after all they run twice.
func (d *Client) Dead(ctx context.Context, name hypervisor.HostName, by string) (*store.Host,
	error) {
	what := "host dead " + string(name)
	if strings.TrimSpace(by) == "" {
		return nil, refuse(what, "say whose word it is")
	}
	return d.changeHost(ctx, name, func(h *store.Host) error {
		switch {
		case h.Dead != "" && h.Dead != by:
			return refuse(what, "%s has given their word already", h.Dead)
		case !h.Lost:
			return refuse(what, "its agent is heard: it is not off")
		}
		h.Dead = by
		return nil
	})
}

// Alive takes an operator's word back, as long as nothing has followed from it.
func (d *Client) Alive(ctx context.Context, name hypervisor.HostName) (*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		if h.Fenced {
			return refuse("host alive "+string(name), "it counts as fenced, and its VMs may "+
				"have been started elsewhere")
		}
		h.Dead = ""
		return nil
	})
}

// Adopt stores an operator's word that the name of a host belongs to the agent with an identity
// from now on: its directory was lost or restored, or the machine was replaced. "" is the agent
// that was refused the name last. The word for the agent that has the name already takes the
// alarm about another one back, and changes nothing else.
func (d *Client) Adopt(ctx context.Context, name hypervisor.HostName, id, by string) (*store.Host,
	error) {
	what := "host adopt " + string(name)
	if strings.TrimSpace(by) == "" {
		return nil, refuse(what, "say whose word it is")
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
		case beats && !h.Lost:
			return refuse(what, "its agent is heard, or was until a moment ago: if it is the wrong "+
				"one stop it, and ask again when godwit host list says that the host is lost")
		case h.Identity == nil:
			return refuse(what, "its name belongs to nobody yet: start its agent")
		}
		h.Adopt, h.Refused = &store.Adoption{ID: id, By: by}, nil
		return nil
	})
}

// Label sets labels of a host; an empty value takes one off.
func (d *Client) Label(ctx context.Context, name hypervisor.HostName, labels placement.Labels) (
	*store.Host, error) {
	return d.changeHost(ctx, name, func(h *store.Host) error {
		next := placement.Labels{}
		for k, v := range h.Labels {
			next[k] = v
		}
		for k, v := range labels {
			if next[k] = v; v == "" {
				delete(next, k)
			}
		}
		h.Labels = next
		return nil
	})
}
