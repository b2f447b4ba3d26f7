package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// tenant is an agent that claims host h9.
type tenant struct {
	*store.LeaseClaim
	t   *testing.T
	err error
}

func claims(t *testing.T, s store.Store, session string, how store.Tenancy) *tenant {
	t.Helper()
	how.Host, how.Session, how.HeartbeatInterval = "h9", session, time.Second
	if how.Identity.ID == "" {
		how.Identity = store.Identity{ID: "id", Machine: "m"}
	}
	c, err := store.NewLeaseClaim(s, how)
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{LeaseClaim: c, t: t}
}

// looks lets tenants look for a while, each as often as it wants.
func looks(from, until time.Duration, tenants ...*tenant) {
	for at := from; at <= until; at += 200 * time.Millisecond {
		for _, c := range tenants {
			_, c.err = c.Reconcile(context.Background(), time.Unix(0, 0).Add(at))
		}
	}
}

func hostNow(t *testing.T, s store.Store) *store.Host {
	t.Helper()
	h, err := store.HostNamed(t.Context(), s, "h9")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func known(id *store.Identity) *store.Host {
	return &store.Host{Host: hypervisor.Host{Name: "h9", Memory: 1}, Identity: id}
}

// seconds are what a claim waits for at most when no other process lives.
const seconds = time.Second

func TestWhoClaimsAHost(t *testing.T) {
	mine := store.Identity{ID: "id", Machine: "m"}
	for _, row := range []struct {
		name    string
		stored  *store.Host  // nil: the host was never seen
		lease   *store.Lease // nil: none
		how     store.Tenancy
		within  time.Duration // it holds the host by then, and not earlier
		foreign bool
	}{
		{name: "a new host"},
		{name: "a host of a godwit that knew of no identities, alone", stored: known(nil)},
		{name: "a host of a godwit that knew of no identities, whose lease may be in use",
			stored: known(nil), lease: &store.Lease{Owner: "host/h9", Session: "x", Boot: "b"},
			how: store.Tenancy{Boot: "b", Lock: "l"}, within: 3 * seconds},
		{name: "its own, given back", stored: known(&mine),
			lease: &store.Lease{Owner: "host/h9"}},
		{name: "its own, whose agent was killed on this machine", stored: known(&mine),
			lease: &store.Lease{Owner: "host/h9", Session: "x", Boot: "b", Lock: "l"},
			how:   store.Tenancy{Boot: "b", Lock: "l"}},
		{name: "its own, whose agent may live on this machine", stored: known(&mine),
			lease: &store.Lease{Owner: "host/h9", Session: "x", Boot: "b", Lock: "l"},
			how:   store.Tenancy{Boot: "b"}, within: 3 * seconds},
		{name: "its own, with a lock of another place on this machine", stored: known(&mine),
			lease: &store.Lease{Owner: "host/h9", Session: "x", Boot: "b", Lock: "l"},
			how:   store.Tenancy{Boot: "b", Lock: "m"}, within: 3 * seconds},
		{name: "its own, after a restart of the machine", stored: known(&mine),
			lease: &store.Lease{Owner: "host/h9", Session: "x", Boot: "b", Lock: "l"},
			how:   store.Tenancy{Boot: "c", Lock: "l"}, within: 3 * seconds},
		{name: "with an emptied directory", stored: known(&mine),
			how: store.Tenancy{Identity: store.Identity{ID: "new", Machine: "m"}}, foreign: true},
		{name: "with a copied directory on another machine", stored: known(&mine),
			how: store.Tenancy{Identity: store.Identity{ID: "id", Machine: "n"}}, foreign: true},
		{name: "from another machine", stored: known(&mine),
			how: store.Tenancy{Identity: store.Identity{ID: "new", Machine: "n"}}, foreign: true},
		{name: "from another machine, by an operator's word",
			stored: func() *store.Host {
				h := known(&mine)
				h.Adopt = &store.Adoption{ID: "new", By: "alice"}
				return h
			}(), how: store.Tenancy{Identity: store.Identity{ID: "new", Machine: "n"}}},
		{name: "from another machine, by an operator's word for a third one",
			stored: func() *store.Host {
				h := known(&mine)
				h.Adopt = &store.Adoption{ID: "other", By: "alice"}
				return h
			}(), how: store.Tenancy{Identity: store.Identity{ID: "new", Machine: "n"}},
			foreign: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := store.NewMemory()
			for _, r := range []store.Record{row.stored, row.lease} {
				if r == (*store.Host)(nil) || r == (*store.Lease)(nil) {
					continue
				}
				if _, err := s.Put(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			c := claims(t, s, "mine", row.how)
			looks(0, 0, c)
			if now := row.within == 0 && !row.foreign; c.Holds() != now {
				t.Errorf("at once it holds the host: %t, %v", c.Holds(), c.err)
			}
			looks(0, 5*seconds, c)
			if c.Holds() == row.foreign {
				t.Errorf("it holds the host: %t, %v", c.Holds(), c.err)
			}
			h := hostNow(t, s)
			_, foreign := errors.AsType[*store.ForeignError](c.err)
			if foreign != row.foreign || (h.Session == "mine") == row.foreign ||
				(h.Refused != nil) != row.foreign {
				t.Errorf("it ends with %v, and %+v is stored", c.err, h)
			}
		})
	}
}

// TestASecondAgentIsRefused, whatever it has copied, and both sides can tell.
func TestASecondAgentIsRefused(t *testing.T) {
	s := store.NewMemory()
	first := claims(t, s, "first", store.Tenancy{Boot: "b"})
	looks(0, seconds, first)
	clone := claims(t, s, "clone", store.Tenancy{Boot: "c", Lock: "l"})
	looks(seconds, 20*seconds, first, clone)
	_, two := errors.AsType[*store.IdentityError](clone.err)
	if !two || clone.Holds() || !first.Holds() || first.err != nil {
		t.Errorf("the clone holds the host: %t, %v; the first: %t, %v", clone.Holds(), clone.err,
			first.Holds(), first.err)
	}
	if h := hostNow(t, s); h.Session != "first" || h.Refused == nil || h.Refused.Boot != "c" {
		t.Errorf("%+v is stored", h)
	}
}

// TestAnAgentThatSleptHasNoSay: when another one has taken the host meanwhile, its record is
// another one, and what the sleeper announces is refused.
func TestAnAgentThatSleptHasNoSay(t *testing.T) {
	s := store.NewMemory()
	first := claims(t, s, "first", store.Tenancy{Boot: "b"})
	looks(0, seconds, first)
	asleep := hostNow(t, s)
	second := claims(t, s, "second", store.Tenancy{Boot: "c"})
	looks(seconds, 10*seconds, second)
	if !second.Holds() {
		t.Fatalf("no owner lives, and it does not take over: %v", second.err)
	}
	_, err := s.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "vm"}, Host: "h9"}, asleep)
	if !errors.Is(err, store.Stale) {
		t.Errorf("the sleeper announces something: %v", err)
	}
	looks(10*seconds, 11*seconds, first)
	if _, two := errors.AsType[*store.IdentityError](first.err); !two || first.Holds() {
		t.Errorf("the sleeper holds the host: %t, %v", first.Holds(), first.err)
	}
}
