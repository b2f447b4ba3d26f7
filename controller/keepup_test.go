package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/store"
)

// counting is a store that counts how often it answers everything there is.
type counting struct {
	store.Store
	resets int
}

func (s *counting) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	changes, err := s.Store.Changes(ctx, f, since)
	if changes.Reset {
		s.resets++
	}
	return changes, err
}

// A store that remembers the last changes is read often enough by one that writes many.
func TestWhatItHasWrittenItselfIsNotReadAllOverAgain(t *testing.T) {
	c := newCluster(t)
	c.config.Cluster.ParallelMigrationsPerCluster = 2
	for _, host := range []name{"n1", "n2"} {
		for i := range 600 {
			c.addVM(vmid(fmt.Sprint(host, "-", i)), host)
		}
		c.drain(host)
	}
	records := &counting{Store: c.store}
	boss := controller.New(c.config, records, store.DiscardEvents{})
	for end := c.now.Add(3 * time.Second); c.now.Before(end); {
		wake, err := boss.Reconcile(ctx, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if !wake.After(c.now) {
			t.Fatalf("at %v it wants to look at %v", c.now, wake)
		}
		c.now = wake
	}
	first := map[name]time.Time{}
	all, err := c.store.Changes(ctx, store.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Records {
		if m, ok := r.(*store.Migration); ok {
			from := name(strings.Split(string(m.Spec.VM), "-")[0])
			if at, any := first[from]; !any || m.Spec.Created.Before(at) {
				first[from] = m.Spec.Created
			}
		}
	}
	if len(first) != 2 || !first["n1"].Equal(first["n2"]) {
		t.Errorf("drained hosts do not take turns: their VMs have waited since %v", first)
	}
	if n := c.store.Memory.Len(); n != 3+2*2*600 {
		t.Errorf("%d records are stored; one migration for each VM is missing", n)
	}
	if records.resets != 1 {
		t.Errorf("everything was read %d times, want once", records.resets)
	}
}
