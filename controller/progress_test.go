package controller_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// wait follows the controller's wishes for a while and returns how often it
// looked.
func (c *cluster) wait(d time.Duration) int {
	c.t.Helper()
	before, end := c.looks, c.now.Add(d)
	for !c.now.After(end) {
		c.now = c.reconcile()
	}
	return c.looks - before
}

func TestAMigrationThatFitsNowhereFailsAtItsDeadline(t *testing.T) {
	for _, r := range []struct {
		name   string
		target name
		check  string // that refuses
	}{
		{"to a host that is too small", "small", "memory"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := newCluster(t)
			c.put(&store.Host{Host: host("small", 1)})
			c.addVM("a", "n1")
			c.ask("a#u", "a", r.target)
			if looks := c.wait(time.Hour); looks > 100 {
				t.Errorf("the controller looked %d times in an hour", looks)
			}
			if m := c.move("a#u"); m.State.Phase != migration.Pending {
				t.Errorf("the migration is %s", m.State.Phase)
			}
			checks := map[string]bool{}
			for _, why := range c.boss.Why("a", c.now) {
				checks[why.Check] = true
			}
			if !checks[r.check] {
				t.Errorf("it is not said that %s refuses: %v", r.check, c.boss.Why("a", c.now))
			}
			c.wait(24 * time.Hour)
			if m := c.move("a#u"); m.State.Because != "overdue" {
				t.Errorf("after its deadline it is %s %q", m.State.Phase, m.State.Because)
			}
		})
	}
}

// A host that can never take the VM is refused at once.
func TestAMigrationToAnImpossibleHostFailsAtOnce(t *testing.T) {
	for why, target := range map[string]name{"the VM's own host": "n1", "it is not known": "n9"} {
		c := newCluster(t)
		c.addVM("a", "n1")
		c.ask("a#u", "a", target)
		c.reconcile()
		if m := c.move("a#u"); m.State.Because != "target-impossible" {
			t.Errorf("%s: it is %s %q", why, m.State.Phase, m.State.Because)
		}
	}
}

// A migration that waits behind others waits as long as the line is, however short the time
// that it has for finding a host; and the controller does not spin meanwhile.
func TestAMigrationThatWaitsForItsTurnIsNotOverdue(t *testing.T) {
	c := newCluster(t)
	c.config.Migration.Timeouts.Pending = 30 * time.Second
	c.restart()
	c.addVM("a", "n1")
	c.addVM("b", "n1")
	c.ask("a#u", "a", "n2")
	c.reconcile()
	c.now = c.now.Add(time.Second)
	c.ask("b#u", "b", "n2")
	if looks := c.wait(40 * time.Second); looks > 20 {
		t.Errorf("the controller looked %d times in 40 seconds", looks)
	}
	m := c.move("b#u")
	if m.State.Phase != migration.Pending || m.State.Because != "" {
		t.Errorf("it is %s %q", m.State.Phase, m.State.Because)
	}
}

// crowded returns a cluster where no migration may wait for a host for more than an hour, and a
// silent transfer holds the only slot.
func crowded(t *testing.T) *cluster {
	c := newCluster(t)
	c.config.Migration.Timeouts.Pending = time.Hour
	c.restart()
	c.addVM("a", "n1")
	c.ask("a#u", "a", "n2")
	c.run(time.Minute, func() bool { return c.move("a#u").State.Phase == migration.Running })
	silent := *c.move("a#u")
	silent.Target.Completed = false
	c.put(&silent)
	return c
}

// addGiant adds a VM that fits nowhere, and asks for its migration.
func (c *cluster) addGiant() {
	c.t.Helper()
	c.put(&store.VM{VM: hypervisor.VM{ID: "giant", Memory: hypervisor.TiB, CPUs: 1}, Host: "n1",
		Strategy: evacuation.LiveMigrate, Migratable: true})
	c.ask("giant#u", "giant", "")
}

// A migration that is held up by something else after a long time in line is not overdue at once.
func TestWhoStoodInLineHasItsTimeAfterwards(t *testing.T) {
	for name, holds := range map[string]func(*store.VM){
		"a backup begins":   func(v *store.VM) { v.Blockers.Backup = true },
		"its VM is stopped": func(v *store.VM) { v.Stopped, v.Ended = true, true },
	} {
		c := crowded(t)
		c.addVM("b", "n1")
		c.ask("b#u", "b", "n2")
		c.wait(3 * time.Hour)
		next := *c.vm("b")
		holds(&next)
		c.put(&next)
		c.wait(50 * time.Minute)
		if m := c.move("b#u"); m.State.Because == "overdue" {
			t.Errorf("50 minutes after %s it is %s", name, m.State.Because)
		}
		c.wait(11 * time.Minute)
		if m := c.move("b#u"); !m.State.Phase.Final() {
			t.Errorf("an hour after %s it is %s", name, m.State.Phase)
		}
	}
}

// A controller that was not there when the time was over gives no more of it.
func TestARestartGivesWhoFitsNowhereNoMoreTime(t *testing.T) {
	c := newCluster(t)
	c.config.Migration.Timeouts.Pending = time.Hour
	c.restart()
	c.addGiant()
	c.wait(59 * time.Minute)
	if m := c.move("giant#u"); m.State.Phase != migration.Pending {
		t.Fatalf("after 59 minutes it is %s %q", m.State.Phase, m.State.Because)
	}
	c.now = c.now.Add(10 * time.Minute)
	c.restart()
	c.wait(10 * time.Second)
	if m := c.move("giant#u"); m.State.Because != "overdue" {
		t.Errorf("after the restart it is %s %q", m.State.Phase, m.State.Because)
	}
}

// Whose turn comes late has its time from then on.
func TestAMigrationWhoseTurnComesLateIsNotOverdueAtOnce(t *testing.T) {
	c := crowded(t)
	c.addGiant()
	c.wait(3 * time.Hour)
	arrived := *c.move("a#u")
	arrived.Target.Completed, arrived.Source.Released = true, true
	c.put(&arrived)
	c.wait(50 * time.Minute)
	if m := c.move("giant#u"); m.State.Phase != migration.Pending || m.Version > 99 {
		t.Errorf("50 minutes after its turn it is %s %q, and was written at %d", m.State.Phase,
			m.State.Because, m.Version)
	}
	c.wait(11 * time.Minute)
	if m := c.move("giant#u"); m.State.Because != "overdue" {
		t.Errorf("an hour after its turn it is %s %q", m.State.Phase, m.State.Because)
	}
}

// A migration that was refused has had its turn: it fails in time, also while others wait.
func TestAMigrationThatFitsNowhereIsOverdueThoughOthersWait(t *testing.T) {
	c := newCluster(t)
	c.config.Migration.Timeouts.Pending = time.Hour
	c.restart()
	c.addGiant()
	c.reconcile()
	for i := range 90 {
		vm := vmid(fmt.Sprint("b", i))
		c.addVM(vm, "n1")
		c.ask(migration.ID(vm+"#u"), vm, "n2")
		c.wait(time.Minute)
	}
	if m := c.move("giant#u"); m.State.Because != "overdue" {
		t.Errorf("it is %s %q", m.State.Phase, m.State.Because)
	}
}

// The source has begun and is never heard of again: the outcome is called
// unknown in time, and the controller does not spin while it stays so.
func TestASilentSourceIsWaitedForPatiently(t *testing.T) {
	for _, r := range []struct {
		name  string
		spoil func(*store.Migration)
		wait  time.Duration
	}{
		{"a transfer that is overdue", func(*store.Migration) {}, 25 * time.Hour},
		{"a transfer that was cancelled", func(m *store.Migration) { m.Cancel = true },
			5 * time.Minute},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := newCluster(t)
			c.addVM("a", "n1")
			c.ask("a#u", "a", "n2")
			c.run(time.Minute, func() bool {
				return c.move("a#u").State.Phase == migration.Running
			})
			next := *c.move("a#u")
			next.Target.Completed = false
			r.spoil(&next)
			c.put(&next)
			c.wait(r.wait)
			m := c.move("a#u")
			if !m.State.Conditions.Has(migration.OutcomeUnknown) {
				t.Errorf("the outcome is not called unknown: %v", m.State.Conditions.Words())
			}
			if looks := c.wait(time.Hour); looks > 100 {
				t.Errorf("the controller looked %d times in an hour", looks)
			}
		})
	}
}

// Whatever is stored, the controller always wants to look later than now, and
// not all the time.
func TestTheControllerDoesNotSpin(t *testing.T) {
	testutil.Unraced(t)
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		vms := rapid.SampledFrom([]vmid{"a", "b", "c"})
		places := rapid.SampledFrom([]name{"", "n1", "n2", "n3", "n9"})
		asked := 0
		for _, id := range []vmid{"a", "b", "c"} {
			c.addVM(id, rapid.SampledFrom([]name{"n1", "n2"}).Draw(t, "host"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"a user asks": func(t *rapid.T) {
				asked++
				c.ask(migration.ID(fmt.Sprint("u", asked)), vms.Draw(t, "vm"), places.Draw(t, "to"))
			},
			"a host is drained": func(t *rapid.T) { c.drain("n1") },
			"a host is lost, fenced or comes back": func(t *rapid.T) {
				next := *c.host(rapid.SampledFrom([]name{"n1", "n2", "n3"}).Draw(t, "host"))
				next.NotReady = rapid.Bool().Draw(t, "lost")
				next.Fenced = rapid.Bool().Draw(t, "fenced")
				c.put(&next)
			},
			"a VM changes": func(t *rapid.T) {
				next := *c.vm(vms.Draw(t, "vm"))
				next.Blockers.Backup = rapid.Bool().Draw(t, "backup")
				next.Stopped = rapid.Bool().Draw(t, "stopped")
				c.put(&next)
			},
			"a migration is cancelled": func(t *rapid.T) {
				if all := c.moves(); len(all) > 0 {
					next := *rapid.SampledFrom(all).Draw(t, "migration")
					next.Cancel = true
					c.put(&next)
				}
			},
			"the hosts act":             func(*rapid.T) { c.hosts() },
			"the next write goes wrong": func(t *rapid.T) { c.breakNext(t) },
			"time passes": func(t *rapid.T) {
				hours := rapid.SampledFrom([]int{0, 0, 0, 1, 25}).Draw(t, "hours")
				d := time.Minute + time.Duration(hours)*time.Hour
				if looks := c.wait(d); looks > 200+int(d/(5*time.Second)) {
					t.Fatalf("%d looks in %v: %s", looks, d, c)
				}
				c.check()
			},
		})
	})
}

func (c *cluster) breakNext(t *rapid.T) {
	c.store.at = c.store.puts + 1
	c.store.how = rapid.SampledFrom([]sabotage{unanswered, unavailable, overtaken}).Draw(t, "how")
}

// What failed is told until it has succeeded.
func TestAnOldFailureIsNotWhyAVMStays(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	c.ask("a#1", "a", "n1")
	c.reconcile()
	told := func() bool {
		return slices.ContainsFunc(c.boss.Why("a", c.now), func(r placement.Reason) bool {
			return r.Need == "to succeed"
		})
	}
	if !told() {
		t.Errorf("it is not said that a#1 has failed: %v", c.boss.Why("a", c.now))
	}
	c.ask("a#2", "a", "n2")
	c.run(time.Hour, func() bool { return c.move("a#2").State.Phase == migration.Succeeded })
	if c.reconcile(); told() {
		t.Errorf("a#2 has succeeded: %v", c.boss.Why("a", c.now))
	}
}

// A migration that was deleted and asked for again by the same name is under way, though the
// controller has missed that there was none in between: its VM gets no other one.
func TestANameIsGivenAgain(t *testing.T) {
	c := newCluster(t)
	limits := *c.config.Cluster
	limits.ParallelMigrationsPerCluster = 0 // it is to wait
	c.config.Cluster = &limits
	c.restart()
	c.addVM("a", "n1")
	c.put(&store.Migration{Spec: migration.Spec{ID: "m", VM: "a", Created: c.now},
		State: migration.State{Phase: migration.Failed, Because: "canceled", Released: true}})
	c.reconcile()
	if err := c.store.Delete(ctx, c.move("m")); err != nil {
		t.Fatal(err)
	}
	c.ask("m", "a", "")
	c.reconcile()
	c.drain("n1")
	for range 3 {
		c.reconcile()
	}
	if all := c.moves(); len(all) != 1 || all[0].State.Phase != migration.Pending {
		t.Fatalf("there are %d migrations of one VM, the first is %v", len(all), all[0].State.Phase)
	}
}
