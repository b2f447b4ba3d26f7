package controller_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

const gib = hypervisor.GiB

// want asks for a host as a client that knows force does.
func (c *cluster) want(id migration.ID, vm vmid, target name, force placement.Force) {
	c.t.Helper()
	c.put(&store.Migration{Spec: migration.Spec{ID: id, VM: vm, Created: c.now, Target: target,
		Force: force}})
}

// changeVM writes a VM as its operator does.
func (c *cluster) changeVM(id vmid, how func(*store.VM)) {
	c.t.Helper()
	next := *c.vm(id)
	how(&next)
	c.put(&next)
}

func (c *cluster) final(id migration.ID) func() bool {
	return func() bool { return c.move(id).State.Phase.Final() && c.move(id).State.Released }
}

// auditor keeps the steps of the reservations.
type auditor struct {
	store.DiscardEvents
	steps []placement.ReservationStep
	last  placement.LedgerEntry
}

// Audit implements [store.Auditor].
func (a *auditor) Audit(e placement.LedgerEntry) { a.steps, a.last = append(a.steps, e.Step), e }

// What can never be is refused at once, in data that a client can read.
func TestARefusedRequestSaysWhy(t *testing.T) {
	torn := func(v *store.VM) {
		v.Placement = &placement.Constraints{With: []vmid{"x"}, Without: []vmid{"x"}}
	}
	none := func(*store.VM) {}
	for _, r := range []struct {
		name    string
		vm      func(*store.VM)
		target  name
		force   placement.Force
		because string
		outcome placement.Outcome
		check   string
	}{
		{"a host that is not known", none, "n9", placement.No, "target-impossible",
			placement.BadRequest, "host"},
		{"the VM's own host", none, "n1", placement.Yes, "target-impossible", placement.Conflict,
			"source"},
		{"force without a host", none, "", placement.Yes, "bad-request", placement.BadRequest, "force"},
		{"a force that there is not", none, "n2", 7, "bad-request", placement.BadRequest, "force"},
		{"constraints that contradict each other", torn, "n2", placement.No, "bad-request",
			placement.BadRequest, "same-host"},
		{"the same, to anywhere", torn, "", placement.Absent, "bad-request", placement.BadRequest,
			"same-host"},
		{"a host without room", func(v *store.VM) { v.VM.Memory = 60 * gib }, "small", placement.No,
			"conflict", placement.Conflict, "memory"},
		{"force onto a host without memory", func(v *store.VM) { v.VM.Memory = 60 * gib }, "small",
			placement.Yes, "conflict", placement.Conflict, "memory-exists"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := newCluster(t)
			c.put(&store.Host{Host: host("small", 1024)})
			c.addVM("a", "n1")
			c.changeVM("a", r.vm)
			c.want("a#u", "a", r.target, r.force)
			c.reconcile()
			m := c.move("a#u")
			failed := m.State.Phase == migration.Failed
			if !failed || m.State.Because != r.because || m.Decision == nil {
				t.Fatalf("it is %s %q, decided %+v", m.State.Phase, m.State.Because, m.Decision)
			}
			if m.Decision.Outcome != r.outcome || !slices.ContainsFunc(m.Decision.Why,
				func(why placement.Reason) bool { return why.Check == r.check }) {
				t.Errorf("decided %+v", m.Decision)
			}
			if m.State.Target != "" || len(c.boss.Claims()) != 1 {
				t.Errorf("a refused request holds something: %v", c.boss.Claims())
			}
		})
	}
}

// Each step of a reservation is one line of the audit, and one writing: a controller that
// starts anew has the same claims.
func TestAReservationIsAudited(t *testing.T) {
	for _, r := range []struct {
		name  string
		spoil func(*store.Migration)
		want  []placement.ReservationStep
		home  name
	}{
		{"it succeeds", func(*store.Migration) {}, []placement.ReservationStep{placement.StepAccepted,
			placement.Succeeded}, "n2"},
		{"it is cancelled", func(m *store.Migration) { m.Cancel = true },
			[]placement.ReservationStep{placement.StepAccepted, placement.RolledBack}, "n1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c, audit := newCluster(t), &auditor{}
			c.boss = controller.New(c.config, c.store, audit)
			c.addVM("a", "n1")
			c.changeVM("a", func(v *store.VM) {
				v.Placement = &placement.Constraints{Tenant: "t1"}
			})
			c.want("a#u", "a", "n2", placement.No)
			c.reconcile()
			want := []placement.Reservation{
				{VM: "a", Host: "n2", Tenant: "t1", Amount: placement.Amount{Memory: gib, CPUs: 1},
					By: "a#u", Owner: "user", Deadline: c.move("a#u").State.Deadline},
				{VM: "a", Move: "a#u", Host: "n1", Tenant: "t1", By: "a#u", Owner: "user",
					Amount:   placement.Amount{Memory: gib, CPUs: 1},
					Deadline: c.move("a#u").State.Deadline},
			}
			if diff := cmp.Diff(want, c.boss.Claims()); diff != "" {
				t.Fatalf("while it moves (-want +got):\n%s", diff)
			}
			next := *c.move("a#u")
			r.spoil(&next)
			c.put(&next)
			c.run(time.Minute, c.final("a#u"))
			if diff := cmp.Diff(r.want, audit.steps); diff != "" {
				t.Errorf("audit (-want +got):\n%s", diff)
			}
			claims := c.boss.Claims()
			if len(claims) != 1 || claims[0].Host != r.home || claims[0].By != "" {
				t.Errorf("in the end: %+v", claims)
			}
			c.restart()
			c.reconcile()
			if diff := cmp.Diff(claims, c.boss.Claims()); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
		})
	}
}

// A move counts on both sides. Who is asked for by name is refused; who may go anywhere
// waits, and says so, until there is quota.
func TestAQuotaCountsBothSides(t *testing.T) {
	c := newCluster(t)
	c.config.Quotas = map[string]placement.Amount{"t1": {Memory: 2 * gib, CPUs: 8}}
	c.restart()
	for _, id := range []vmid{"a", "b"} {
		c.addVM(id, "n1")
		c.changeVM(id, func(v *store.VM) { v.Placement = &placement.Constraints{Tenant: "t1"} })
	}
	c.want("a#u1", "a", "n2", placement.No)
	c.reconcile()
	if m := c.move("a#u1"); m.State.Because != "conflict" ||
		m.Decision.Why[0].Check != "quota-memory" || m.Decision.Code != placement.CapacityLacks {
		t.Fatalf("it is %s %q: %+v", m.State.Phase, m.State.Because, m.Decision)
	}
	c.want("a#u2", "a", "", placement.Absent)
	c.wait(time.Minute)
	m := c.move("a#u2")
	if m.State.Phase != migration.Pending || !m.State.Conditions.Has(migration.RejectedByQuota) {
		t.Fatalf("it is %s %v", m.State.Phase, m.State.Conditions.Words())
	}
	gone := c.vm("b")
	if err := c.store.Delete(ctx, gone); err != nil {
		t.Fatal(err)
	}
	c.run(10*time.Minute, c.final("a#u2"))
	if m := c.move("a#u2"); m.State.Phase != migration.Succeeded {
		t.Errorf("it is %s %q", m.State.Phase, m.State.Because)
	}
}

// What a forced move violates is kept until another move has paid it back, and a client
// that asks for compatibility is on record for what it owes only.
func TestDebtsAreKeptUntilTheyArePaid(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	closed := *c.host("n2")
	closed.Cordoned = true
	c.put(&closed)
	c.want("a#u1", "a", "n2", placement.Yes)
	c.run(time.Minute, c.final("a#u1"))
	want := []placement.PolicyViolation{{VM: "a", Host: "n2", Action: placement.ForcedMigrate,
		Reason: placement.Reason{Check: "cordon", Need: "an uncordoned host", Have: "cordoned"}}}
	if f := c.vm("a").Forced; f == nil || !cmp.Equal(want, f.Debts) {
		t.Fatalf("got %+v, want the debts %v", f, want)
	}
	c.want("a#u2", "a", "n3", placement.Yes) // forced, and nothing refuses
	c.run(time.Minute, c.final("a#u2"))
	if f := c.vm("a").Forced; f == nil || len(f.Debts) > 0 || f.Move != "a#u2" {
		t.Errorf("after a move that violates nothing: %+v", f)
	}
	c.want("a#u3", "a", "n1", placement.No)
	c.run(time.Minute, c.final("a#u3"))
	if f := c.vm("a").Forced; f != nil {
		t.Errorf("after a move that was not forced: %+v", f)
	}
}

// Two controllers work on one store. While one is about to write, an operator asks for more and
// the other looks: it has not seen what is being written. However that interleaves, the VMs
// that are handed over to a host have room there together.
func TestTwoControllersDoNotGiveTheSameRoomAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRace(t, rapid.IntRange(1, 2).Draw(t, "at once"), func() migration.Priority {
			return migration.Priority(50 * rapid.IntRange(0, 2).Draw(t, "priority"))
		})
		for range rapid.IntRange(5, 40).Draw(t, "turns") {
			switch turn := rapid.IntRange(0, 3).Draw(t, "who"); turn {
			case 0, 1:
				_, _ = r.rivals[turn].Reconcile(ctx, r.now)
			case 2:
				r.line.at = rapid.IntRange(1, 4).Draw(t, "write")
				_, _ = r.rivals[0].Reconcile(ctx, r.now)
			default:
				r.hosts()
			}
			r.now = r.now.Add(time.Second)
			if over := r.handedOver(); over > 3*gib {
				t.Fatalf("%v are handed over to a host with 3GiB: %s", over, r)
			}
		}
	})
}

// The same room is given to two, and both hold it. Who is asked about first is refused, in a
// word and with the reason; then the other fits.
func TestARoomThatWasGivenAwayTwiceIsRefusedLate(t *testing.T) {
	r := newRace(t, 1, func() migration.Priority { return migration.SystemCritical })
	r.line.at = 2 // a has been accepted, and is about to be given its target
	_, _ = r.rivals[0].Reconcile(ctx, r.now)
	if n := r.onTheWay(); n != 2 {
		t.Fatalf("%d hold the host: %s", n, r)
	}
	for range 20 {
		r.hosts()
		for _, boss := range r.rivals {
			_, _ = boss.Reconcile(ctx, r.now)
		}
		r.now = r.now.Add(time.Second)
	}
	refused, came := 0, 0
	for _, m := range r.moves() {
		switch {
		case m.State.Phase == migration.Succeeded:
			came++
		case m.State.Because == "conflict" && m.State.Target == "last" &&
			m.Decision.Why[0].Check == "memory":
			refused++
		}
	}
	if came != 1 || refused != 1 {
		t.Errorf("%d came and %d were refused late: %s", came, refused, r)
	}
}

// A race is two controllers, a host with room for one VM, and VMs that are asked onto it.
type race struct {
	*cluster
	rivals [2]*controller.Controller
	line   *between // of the first
	left   []vmid   // that were not asked for yet
}

func newRace(t tester, atOnce int, urgency func() migration.Priority) *race {
	r := &race{cluster: newCluster(t), left: []vmid{"a", "b", "c", "d"}}
	r.config.Cluster.ParallelMigrationsPerCluster = atOnce
	r.put(&store.Host{Host: host("last", 3*1024)})
	for _, id := range r.left {
		r.addVM(id, "n1")
		r.changeVM(id, func(v *store.VM) { v.VM.Memory = 2 * gib })
	}
	r.line = &between{saboteur: r.store, then: func() {
		r.askNext(urgency())
		_, _ = r.rivals[1].Reconcile(ctx, r.now)
	}}
	r.rivals = [2]*controller.Controller{newBoss(r.cluster, r.line), newBoss(r.cluster, r.store)}
	for _, boss := range r.rivals {
		_, _ = boss.Reconcile(ctx, r.now)
	}
	r.askNext(0)
	return r
}

// askNext asks for the next VM's move onto the host.
func (r *race) askNext(p migration.Priority) {
	if len(r.left) == 0 {
		return
	}
	id := r.left[0]
	r.left = r.left[1:]
	r.put(&store.Migration{Spec: migration.Spec{ID: migration.ID(id) + "#u", VM: id,
		Created: r.now, Target: "last", Force: placement.No, Priority: p}})
}

// onTheWay counts the migrations that hold the host, and have not come there.
func (r *race) onTheWay() (n int) {
	for _, m := range r.moves() {
		if m.State.Target == "last" && !m.State.Phase.Final() {
			n++
		}
	}
	return n
}

// handedOver adds up the VMs that the host has, or is to receive.
func (r *race) handedOver() (sum hypervisor.Bytes) {
	for _, m := range r.moves() {
		v := r.vm(m.Spec.VM)
		if m.State.Target == "last" && (v.ActiveMigration == m.Spec.ID || v.Host == "last") {
			sum += v.VM.Memory
		}
	}
	return sum
}

// between is a store in which something happens just before a write.
type between struct {
	*saboteur
	at   int
	then func()
}

// The controller dies between the success of a migration and the writing of where the VM is:
// until then no other VM is given the room.
func TestAVMThatHasLandedKeepsItsRoomUntilItIsWrittenDown(t *testing.T) {
	c := newCluster(t)
	c.put(&store.Host{Host: host("last", 3*1024)})
	for _, id := range []vmid{"a", "b"} {
		c.addVM(id, "n1")
		c.changeVM(id, func(v *store.VM) { v.VM.Memory = 2 * gib })
	}
	c.want("a#u", "a", "last", placement.No)
	c.run(time.Minute, func() bool { return c.move("a#u").Source.Started })
	shut := &blocked{saboteur: c.store}
	c.boss = newBoss(c, shut)
	for range 5 {
		c.hosts()
		c.reconcile()
		c.now = c.now.Add(time.Second)
	}
	if m, v := c.move("a#u"), c.vm("a"); m.State.Phase != migration.Succeeded || v.Host != "n1" {
		t.Fatalf("it is %s, and the VM on %s", m.State.Phase, v.Host)
	}
	for _, claim := range c.boss.Claims() {
		if claim.VM == "a" && (claim.Host != "last" || claim.Move != "") {
			t.Errorf("a holds %+v", claim)
		}
	}
	c.want("b#u", "b", "last", placement.No)
	c.wait(time.Minute)
	if m := c.move("b#u"); m.State.Because != "conflict" || m.State.Target != "" {
		t.Errorf("the room is given to b: %s %q", m.State.Phase, m.State.Because)
	}
}

// A host is drained of a VM that no host can take. Its migration waits, says why, and goes on
// when an operator has corrected the VM: it does not fail again and again.
func TestADrainWaitsForAVMThatContradictsItself(t *testing.T) {
	c := newCluster(t)
	c.addVM("a", "n1")
	c.changeVM("a", func(v *store.VM) {
		v.Placement = &placement.Constraints{With: []vmid{"x"}, Without: []vmid{"x"}}
	})
	c.drain("n1")
	c.wait(10 * time.Minute)
	if m := c.move("a#1"); len(c.moves()) != 1 || m.State.Phase != migration.Pending {
		t.Fatalf("after ten minutes: %s", c)
	}
	c.changeVM("a", func(v *store.VM) { v.Placement = nil })
	c.run(10*time.Minute, c.final("a#1"))
	if m := c.move("a#1"); m.State.Phase != migration.Succeeded {
		t.Errorf("it is %s %q", m.State.Phase, m.State.Because)
	}
}
