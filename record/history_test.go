package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/record"
)

func TestAStoreIsJudgedByWhatWasSeen(t *testing.T) {
	h := record.History{Cluster: "c", Epoch: 2, Instance: "i", Former: []string{"old"}}
	h = h.Jumped(100, 200).Jumped(300, 400)
	doubted := h
	doubted.Doubt = &record.Doubt{By: "agent/n1", Why: "it was newer"}
	for _, c := range []struct {
		name     string
		h        record.History
		seen     record.Mark
		instance string
		want     error
	}{
		{"nothing was seen", h, record.Mark{}, "i", nil},
		{"the present", h, record.Mark{"c", 2, "i", 450}, "i", nil},
		{"the last revision before a jump", h, record.Mark{"c", 2, "i", 100}, "i", nil},
		{"the first after a jump", h, record.Mark{"c", 2, "i", 200}, "i", nil},
		{"within a jump", h, record.Mark{"c", 2, "i", 150}, "i", record.SetBack},
		{"within the last jump", h, record.Mark{"c", 2, "i", 399}, "i", record.SetBack},
		{"a revision that is not there yet", h, record.Mark{"c", 2, "i", 451}, "i", record.SetBack},
		{"an earlier epoch", h, record.Mark{"c", 1, "x", 9999}, "i", nil},
		{"a later epoch", h, record.Mark{"c", 3, "i", 1}, "i", record.SetBack},
		{"another instance was seen", h, record.Mark{"c", 2, "x", 1}, "i", record.SetBack},
		{"it is in another instance", h, record.Mark{}, "x", record.SetBack},
		{"another cluster", h, record.Mark{"d", 0, "i", 1}, "i", record.Foreign},
		{"a former cluster", h, record.Mark{"old", 9, "x", 999}, "i", nil},
		{"a doubt", doubted, record.Mark{}, "i", record.SetBack},
		{"a doubt about another's", doubted, record.Mark{Cluster: "d"}, "i", record.Foreign},
		{"after a reconciliation", doubted.Raised("alice", nil, "x", time.Now()),
			record.Mark{"c", 2, "i", 150}, "x", nil},
		{"after one that took hosts over", h.Raised("alice", []string{"d"}, "i", time.Now()),
			record.Mark{"d", 7, "i", 999}, "i", nil},
	} {
		got := c.h.Judge(c.seen, c.instance, 450)
		if c.want == nil && got != nil || c.want != nil && !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
