package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/store"
)

func TestAStoreIsJudgedByWhatWasSeen(t *testing.T) {
	h := store.History{Cluster: "c", Epoch: 2, Instance: "i", Former: []string{"old"}}
	h = h.Jumped(100, 200).Jumped(300, 400)
	doubted := h
	doubted.Doubt = &store.Doubt{By: "agent/n1", Why: "it was newer"}
	for _, c := range []struct {
		name     string
		h        store.History
		seen     store.Mark
		instance string
		want     error
	}{
		{"nothing was seen", h, store.Mark{}, "i", nil},
		{"the present", h, store.Mark{"c", 2, "i", 450}, "i", nil},
		{"the last revision before a jump", h, store.Mark{"c", 2, "i", 100}, "i", nil},
		{"the first after a jump", h, store.Mark{"c", 2, "i", 200}, "i", nil},
		{"within a jump", h, store.Mark{"c", 2, "i", 150}, "i", store.SetBack},
		{"within the last jump", h, store.Mark{"c", 2, "i", 399}, "i", store.SetBack},
		{"a revision that is not there yet", h, store.Mark{"c", 2, "i", 451}, "i", store.SetBack},
		{"an earlier epoch", h, store.Mark{"c", 1, "x", 9999}, "i", nil},
		{"a later epoch", h, store.Mark{"c", 3, "i", 1}, "i", store.SetBack},
		{"another instance was seen", h, store.Mark{"c", 2, "x", 1}, "i", store.SetBack},
		{"it is in another instance", h, store.Mark{}, "x", store.SetBack},
		{"another cluster", h, store.Mark{"d", 0, "i", 1}, "i", store.Foreign},
		{"a former cluster", h, store.Mark{"old", 9, "x", 999}, "i", nil},
		{"a doubt", doubted, store.Mark{}, "i", store.SetBack},
		{"a doubt about another's", doubted, store.Mark{Cluster: "d"}, "i", store.Foreign},
		{"after a reconciliation", doubted.Raised("alice", nil, "x", time.Now()),
			store.Mark{"c", 2, "i", 150}, "x", nil},
		{"after one that took hosts over", h.Raised("alice", []string{"d"}, "i", time.Now()),
			store.Mark{"d", 7, "i", 999}, "i", nil},
	} {
		got := c.h.Judge(c.seen, c.instance, 450)
		if c.want == nil && got != nil || c.want != nil && !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
