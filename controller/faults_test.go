package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// evacuated reports whether the VMs have left n1 and nothing is left to do.
func (c *cluster) evacuated(vms ...vmid) func() bool {
	return func() bool {
		for _, id := range vms {
			if v := c.vm(id); v.Host == "n1" || v.ActiveMigration != "" {
				return false
			}
		}
		for _, m := range c.moves() {
			if !m.State.Released || !m.Source.Released && m.State.Phase == migration.Succeeded {
				return false
			}
		}
		return true
	}
}

// drained is the cluster of two VMs whose host is drained.
func drained(t *testing.T) *cluster {
	c := newCluster(t)
	c.addVM("a", "n1")
	c.addVM("b", "n1")
	c.drain("n1")
	return c
}

// Each of the controller's writes goes wrong once, in each way: both VMs leave
// their host all the same, and at no time does more move than may.
func TestADrainSurvivesEveryWriteThatGoesWrong(t *testing.T) {
	calm := drained(t)
	calm.run(time.Hour, calm.evacuated("a", "b"))
	writes := calm.store.puts
	if writes < 10 {
		t.Fatalf("a drain took %d writes", writes)
	}
	for _, f := range []struct {
		name string
		how  sabotage
	}{
		{"takes effect without an answer", unanswered},
		{"does not take effect", unavailable},
		{"is overtaken", overtaken},
	} {
		for k := 1; k <= writes; k++ {
			t.Run(fmt.Sprintf("write %d %s", k, f.name), func(t *testing.T) {
				c := drained(t)
				c.store.at, c.store.how = k, f.how
				c.run(time.Hour, c.evacuated("a", "b"))
				if n := len(c.moves()); n != 2 {
					t.Errorf("%d migrations of two VMs:%s", n, c)
				}
			})
		}
	}
}

func TestADrainSurvivesTheControllersDeathAfterEveryWrite(t *testing.T) {
	calm := drained(t)
	calm.run(time.Hour, calm.evacuated("a", "b"))
	for k := 1; k <= calm.store.puts; k++ {
		t.Run(fmt.Sprintf("write %d is the last", k), func(t *testing.T) {
			c := drained(t)
			c.store.at, c.store.how = k, fatal
			for c.store.puts <= k && !c.evacuated("a", "b")() {
				c.reconcile()
				c.hosts()
				c.now = c.now.Add(time.Second)
			}
			c.store.how = harmless
			c.restart()
			c.run(time.Hour, c.evacuated("a", "b"))
		})
	}
}

// Another process writes the VM at the very moment when the controller writes down
// where it is now: the controller tries again, although the migration is over.
func TestAVMIsSettledAlthoughOthersWriteIt(t *testing.T) {
	for times := 1; times <= 3; times++ {
		c := newCluster(t)
		c.addVM("a", "n1")
		c.ask("a#u", "a", "n2")
		c.run(time.Minute, func() bool { return c.move("a#u").Target.Completed })
		rival := &rival{cluster: c, left: times}
		c.restartOver(rival)
		for range 20 { // the hosts say nothing that would make it look again
			c.now = c.reconcile()
		}
		if v := c.vm("a"); v.Host != "n2" || v.ActiveMigration != "" {
			t.Errorf("after %d writes by others:%s", times, c)
		}
		if rival.left > 0 {
			t.Errorf("the rival wrote %d times less than it should", rival.left)
		}
	}
}

// A VM still names a migration that has ended, because where it is now could not
// be written down: no other migration may move it from where it no longer is.
func TestAVMThatIsNotSettledDoesNotMove(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	c.ask("a#1", "a", "n2")
	c.run(time.Minute, func() bool { return c.move("a#1").Target.Completed })
	blocked := &blocked{saboteur: c.store}
	c.restartOver(blocked)
	c.reconcile()
	if p := c.move("a#1").State.Phase; p != migration.Succeeded {
		t.Fatalf("a#1 is %s", p)
	}
	c.ask("a#2", "a", "n3")
	for range 100 {
		c.reconcile()
		c.hosts()
		c.now = c.now.Add(time.Second)
	}
	if m := c.move("a#2"); m.State.Target != "" {
		t.Fatalf("the second migration moves a VM whose host is not known:%s", c)
	}
	blocked.open = true
	c.run(time.Hour, func() bool { return c.vm("a").Host == "n3" && c.vm("a").ActiveMigration == "" })
	if m := c.move("a#2"); m.State.Source != "n2" {
		t.Errorf("the second migration left from %s:%s", m.State.Source, c)
	}
}

// The record of the migration that a VM names is gone: it is not known where the VM
// is, and no migration moves it.
func TestAVMWhoseMigrationIsForgottenDoesNotMove(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	v := *c.vm("a")
	v.ActiveMigration = "a#lost"
	c.put(&v)
	c.ask("a#1", "a", "")
	for range 10 {
		c.reconcile()
		c.hosts()
		c.now = c.now.Add(time.Second)
	}
	if m := c.move("a#1"); m.State.Because != "other-in-progress" || m.State.Target != "" {
		t.Errorf("the migration is %s %q:%s", m.State.Phase, m.State.Because, c)
	}
	if got := c.vm("a").ActiveMigration; got != "a#lost" {
		t.Errorf("the VM is claimed by %q", got)
	}
}

// restartOver starts a new controller that sees the store through another one.
func (c *cluster) restartOver(s store.Store) { c.boss = newBoss(c, s) }

// The VM has moved since the target was chosen: it is not handed over, because
// its migration would begin where it no longer is.
func TestAVMThatHasMovedIsNotHandedOver(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	c.ask("a#1", "a", "n2")
	c.run(time.Minute, func() bool { return c.move("a#1").State.Phase == migration.Scheduling })
	v := *c.vm("a")
	v.Host = "n3"
	c.put(&v)
	for range 300 {
		c.reconcile()
		c.hosts()
		c.now = c.now.Add(time.Second)
	}
	if m := c.move("a#1"); m.Target.Address != "" || m.State.Because != "overdue" {
		t.Errorf("the migration leaves from %s:%s", m.State.Source, c)
	}
}
