package recovery_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/recovery"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// vm is a record of the VM v, of a life.
func vm(host string, moves int) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: "v", Memory: 1 << 20, CPUs: 1},
		Host: hypervisor.HostName(host), Moves: moves, Boots: 1}
}

// runs, rests and left are what an agent says of it.
func runs(r *store.VM) store.Holding { return in(r, hypervisor.Running) }

func rests(r *store.VM) store.Holding { return in(r, hypervisor.Shutoff) }

func in(r *store.VM, s hypervisor.DomainState) store.Holding {
	return store.Holding{VM: "v", State: s, Record: r}
}

func left(r *store.VM, to string, by migration.ID) store.Holding {
	return store.Holding{VM: "v", Record: r, Left: &store.Departure{To: hypervisor.HostName(to), Move: by}}
}

// anew gives a record a life.
func anew(r *store.VM, n store.Revision) *store.VM {
	r.Life = &store.Life{ID: "x", After: n}
	return r
}

func unstarted(r *store.VM) *store.VM {
	r.Boots = 0
	return r
}

// What migrations have left on hosts where a VM is no more is removed by agents, on the word of a record
// that says how the migration ended; and no name is given twice.
func TestWhatMigrationsHaveLeftIsRemoved(t *testing.T) {
	job := func(h store.Holding, id migration.ID) store.Holding {
		h.Job = id
		return h
	}
	moving := &store.Migration{Version: 7, Spec: migration.Spec{ID: "v#3", VM: "v", Priority: 1}}
	for _, c := range []struct {
		name     string
		n1, n2   store.Holding
		stored   []*store.Migration
		ended    migration.Phase // Unset is none
		source   hypervisor.HostName
		version  store.Version
		left     bool // what rests on n1 is removed
		numbered int
	}{
		{name: "it was handed over", n1: job(in(vm("n1", 1), hypervisor.HandedOver), "v#3"),
			n2: job(runs(vm("n2", 2)), "v#3"), ended: migration.Succeeded, source: "n1", numbered: 3},
		{name: "it is being received", n1: job(in(nil, hypervisor.Receiving), "v#3"),
			n2: job(runs(vm("n2", 2)), "v#3"), ended: migration.Failed, source: "n2", numbered: 3},
		{name: "the store has the migration", stored: []*store.Migration{moving},
			n1: job(in(nil, hypervisor.Received), "v#3"), n2: job(runs(vm("n2", 2)), "v#3"),
			ended: migration.Failed, source: "n2", version: 7, numbered: 3},
		{name: "it rests", n1: rests(vm("n1", 1)), n2: runs(vm("n2", 2)), left: true},
		{name: "it left by a migration that the store has lost",
			n1: left(vm("n1", 1), "n2", "v#9"), n2: runs(vm("n2", 2)), numbered: 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.n1.VM, c.n2.VM = "v", "v"
			r := recovery.Plan(recovery.Input{Migrations: c.stored, Hosts: []*store.Host{
				{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{VMs: []store.Holding{c.n1}}},
				{Host: hypervisor.Host{Name: "n2"}, Account: &store.HostInventory{VMs: []store.Holding{c.n2}}}}})
			if c.ended == migration.Unset && len(r.Ended) > 0 || c.ended != migration.Unset && len(r.Ended) != 1 {
				t.Fatalf("%d migrations have ended", len(r.Ended))
			}
			for _, m := range r.Ended {
				if m.Spec.ID != "v#3" || m.State.Phase != c.ended || m.State.Source != c.source ||
					m.Version != c.version {
					t.Errorf("it ended so: %+v", m)
				}
			}
			if len(r.Obsolete) > 0 {
				t.Errorf("what has ended is deleted: %+v", r.Obsolete)
			}
			if (len(r.Left) == 1) != c.left {
				t.Errorf("what rests is removed: %+v", r.Left)
			}
			if next := recovery.Next(&r.Findings[0]); next.Numbered != c.numbered {
				t.Errorf("it is numbered %d, want %d", next.Numbered, c.numbered)
			}
		})
	}
}

// What may rest of a VM on a host that is off is removed when the host is on again, also where neither the
// store nor another host knows that the VM was there. Where the store was right, it knows of all moves.
func TestWhatMayRestOnAHostThatIsOffIsRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored *store.VM
		want   []hypervisor.HostName
	}{
		{"the store does not know the VM", nil, []hypervisor.HostName{"n5", "n3", "n4"}},
		{"it has moved since the backup", vm("n1", 1), []hypervisor.HostName{"n5", "n3", "n4"}},
		{"it has not moved since the backup", vm("n2", 2), []hypervisor.HostName{"n5"}},
	} {
		in := recovery.Input{Without: []hypervisor.HostName{"n3", "n4", "n5"}, Hosts: []*store.Host{
			{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{}},
			{Host: hypervisor.Host{Name: "n2"}, Account: &store.HostInventory{VMs: []store.Holding{runs(vm("n2", 2))}}},
			{Host: hypervisor.Host{Name: "n3"}}, {Host: hypervisor.Host{Name: "n4"}},
			// n5 had told before it was said to be off.
			{Host: hypervisor.Host{Name: "n5"}, Account: &store.HostInventory{VMs: []store.Holding{rests(vm("n1", 1))}}}}}
		if c.stored != nil {
			in.VMs = []*store.VM{c.stored}
		}
		var got []hypervisor.HostName
		for _, r := range recovery.Plan(in).Left {
			proof := map[bool]hypervisor.Proof{false: hypervisor.OperatorWord, true: hypervisor.ProcessReaped}[r.Source == "n5"]
			if got = append(got, r.Source); r.Target != "n2" || r.Evidence.Proof != proof {
				t.Errorf("%s: a record of %+v", c.name, r)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: what rests is removed on %v, want %v", c.name, got, c.want)
		}
	}
}

// A VM that is stopped, and still there, has not ended: its agent shuts it down, paused or not.
func TestAPausedVMThatIsToBeOffHasNotEnded(t *testing.T) {
	for state, ended := range map[hypervisor.DomainState]bool{hypervisor.Running: false, hypervisor.Paused: false,
		hypervisor.Shutoff: true} {
		has := vm("n2", 2)
		has.Stopped = true
		r := recovery.Plan(recovery.Input{VMs: []*store.VM{vm("n1", 1)}, Hosts: []*store.Host{
			{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{}},
			{Host: hypervisor.Host{Name: "n2"}, Account: &store.HostInventory{VMs: []store.Holding{in(has, state)}}}}})
		if next := recovery.Next(&r.Findings[0]); next == nil || next.Host != "n2" || next.Ended != ended {
			t.Errorf("%s: its record becomes %+v", state, next)
		}
	}
}

// The store has a migration that had not ended when the backup was made; its record is deleted. The host to
// which it has brought the VM remembers it, and would do nothing for another one of that name.
func TestTheNameOfADeletedMigrationIsNotGivenAgain(t *testing.T) {
	moving := &store.Migration{Version: 7, Spec: migration.Spec{ID: "v#3", VM: "v", Priority: 1}}
	has := runs(vm("n2", 2))
	has.VM, has.Job = "v", "v#3"
	r := recovery.Plan(recovery.Input{VMs: []*store.VM{vm("n1", 1)}, Migrations: []*store.Migration{moving},
		Hosts: []*store.Host{{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{}},
			{Host: hypervisor.Host{Name: "n2"}, Account: &store.HostInventory{VMs: []store.Holding{has}}}}})
	if len(r.Obsolete) != 1 || len(r.Findings) != 1 {
		t.Fatalf("%d records are deleted, of %d VMs there is something to say", len(r.Obsolete), len(r.Findings))
	}
	if next := recovery.Next(&r.Findings[0]); next == nil || next.Numbered != 3 {
		t.Errorf("the record becomes %+v", next)
	}
}

// What is written is later than every life that a host knows of, and what is added afterwards is later
// still.
func TestAReconciledRecordIsOfTheLatestLife(t *testing.T) {
	knows := []store.Holding{left(anew(vm("n1", 3), 9), "n2", "m"), rests(anew(vm("n2", 4), 9))}
	r := recovery.Plan(recovery.Input{Epoch: 3, VMs: []*store.VM{anew(vm("n1", 7), 2)},
		Hosts: []*store.Host{
			{Host: hypervisor.Host{Name: "n1"}, Account: &store.HostInventory{VMs: knows[:1]}},
			{Host: hypervisor.Host{Name: "n2"}, Account: &store.HostInventory{VMs: knows[1:]}}}})
	if len(r.Findings) != 1 || r.Findings[0].Is != "n2" {
		t.Fatalf("the verdicts are %+v", r.Findings)
	}
	next := recovery.Next(&r.Findings[0])
	later := &store.Life{ID: "y", Epoch: 4, After: 1}
	for _, h := range knows {
		if h.Overrules(next) {
			t.Errorf("%+v is overruled", next)
		}
	}
	if !later.Follows(next.Life) {
		t.Errorf("what is added afterwards does not follow %+v", next.Life)
	}
}

func TestWhereAVMIs(t *testing.T) {
	type says map[string][]store.Holding
	for _, c := range []struct {
		name     string
		stored   *store.VM
		says     says // a host with nil has not told
		without  []hypervisor.HostName
		is       hypervisor.HostName
		conflict string
		silent   bool // there is nothing to say about it
	}{
		{name: "the store is right", stored: vm("n1", 3), silent: true,
			says: says{"n1": {runs(vm("n1", 3))}, "n2": {}}},
		{name: "it moved after the backup", stored: vm("n1", 1), is: "n2",
			says: says{"n1": {left(vm("n1", 1), "n2", "m")}, "n2": {runs(vm("n2", 2))}}},
		{name: "it moved and rests there", stored: vm("n1", 1), is: "n2",
			says: says{"n1": {left(vm("n1", 1), "n2", "m")}, "n2": {rests(vm("n2", 2))}}},
		{name: "it went there and came back", stored: vm("n2", 2), is: "n1",
			says: says{"n1": {rests(vm("n1", 3))}, "n2": {left(vm("n2", 2), "n1", "m")}}},
		{name: "it came back, and only its host knows", stored: vm("n1", 1), is: "n1",
			says: says{"n1": {runs(vm("n1", 3))}, "n2": {left(vm("n2", 2), "n1", "m")}}},
		{name: "it is newer than the backup", is: "n1", says: says{"n1": {runs(vm("n1", 1))}}},
		{name: "it was deleted after the backup", stored: vm("n1", 1), is: "",
			says: says{"n1": {left(vm("n1", 1), "", "")}}},
		{name: "it was added and deleted after the backup", silent: true,
			says: says{"n1": {left(vm("n1", 1), "", "")}}},
		{name: "it was rebuilt elsewhere, and its first host is off", stored: vm("n1", 1), is: "n2",
			without: []hypervisor.HostName{"n1"}, says: says{"n1": nil, "n2": {runs(vm("n2", 2))}}},
		{name: "it runs twice", stored: vm("n1", 1), conflict: "it runs on n1 and n2: end the wrong one, or decide",
			says: says{"n1": {runs(vm("n1", 1))}, "n2": {runs(vm("n2", 2))}}},
		{name: "it stands in a hand-over", stored: vm("n1", 1),
			conflict: "it stands in the middle of a migration on n1 and n2",
			says: says{"n1": {in(vm("n1", 1), hypervisor.HandedOver)},
				"n2": {in(vm("n2", 1), hypervisor.Received)}}},
		{name: "it is being sent", stored: vm("n1", 1), is: "n1",
			says: says{"n1": {{VM: "v", State: hypervisor.Running, Record: vm("n1", 1),
				Left: &store.Departure{To: "n2", Move: "m"}}}, "n2": {in(vm("n2", 1), hypervisor.Receiving)}}},
		{name: "it left, and has not come", stored: vm("n1", 1),
			conflict: "it has left for n2, and n2 has nothing of it",
			says:     says{"n1": {left(vm("n1", 1), "n2", "m")}, "n2": {}}},
		{name: "it has vanished", stored: vm("n1", 1),
			conflict: "its record says that it runs on n1, and n1 knows nothing of it", says: says{"n1": {}}},
		{name: "its host is off", stored: vm("n1", 1), silent: true,
			without: []hypervisor.HostName{"n1"}, says: says{"n1": nil, "n2": {}}},
		{name: "it went to a host that is off", stored: vm("n1", 1), is: "n2",
			without: []hypervisor.HostName{"n2"}, says: says{"n1": {left(vm("n1", 1), "n2", "m")}, "n2": nil}},
		{name: "another of its name was added after the backup", stored: anew(vm("n1", 4), 1), is: "n1",
			says: says{"n1": {rests(anew(vm("n1", 1), 2))}}},
		{name: "another of its name was added after the backup, and has moved", stored: anew(vm("n1", 4), 1),
			is:   "n2",
			says: says{"n1": {left(anew(vm("n1", 1), 2), "n2", "m")}, "n2": {rests(anew(vm("n2", 2), 2))}}},
		{name: "another of its name was added and deleted after the backup", stored: anew(vm("n1", 4), 1),
			says: says{"n1": {left(anew(vm("n1", 1), 2), "", "")}}},
		{name: "it was deleted, and another of its name was added", stored: unstarted(anew(vm("n1", 1), 2)),
			silent: true, says: says{"n1": {left(anew(vm("n1", 4), 1), "", "")}, "n2": {}}},
		{name: "it runs, and an earlier one of its name is stored elsewhere", stored: anew(vm("n2", 4), 1),
			is: "n1", says: says{"n1": {runs(anew(vm("n1", 1), 2))}, "n2": {}}},
		{name: "it has no host yet", stored: &store.VM{VM: hypervisor.VM{ID: "v"}}, silent: true,
			says: says{"n1": {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			what := recovery.Input{Without: c.without}
			if c.stored != nil {
				what.VMs = []*store.VM{c.stored}
			}
			for host, vms := range c.says {
				h := &store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(host)}}
				if vms != nil {
					h.Account = &store.HostInventory{VMs: vms}
				}
				what.Hosts = append(what.Hosts, h)
			}
			r := recovery.Plan(what)
			if len(r.Missing) > 0 {
				t.Errorf("hosts are missing: %v", r.Missing)
			}
			if c.silent {
				if len(r.Findings) != 0 {
					t.Fatalf("there is something to say: %+v", r.Findings)
				}
				return
			}
			if len(r.Findings) != 1 {
				t.Fatalf("%d verdicts", len(r.Findings))
			}
			v := r.Findings[0]
			if deleted := c.is == "" && c.conflict == ""; v.Deleted != deleted {
				t.Errorf("deleted: %v", v.Deleted)
			}
			if v.Is != c.is || v.Conflict != c.conflict {
				t.Errorf("it is on %q, conflict %q; want %q, %q", v.Is, v.Conflict, c.is, c.conflict)
			}
		})
	}
}

// TestNothingIsWrittenWhileAHostOrAnOperatorHasToSpeak: a host that has not told, and a conflict,
// keep everything from being written; an operator's words let it through, and then the record is of
// a later life than all that hosts know of, and the store is believed again.
func TestNothingIsWrittenWhileAHostOrAnOperatorHasToSpeak(t *testing.T) {
	ctx := t.Context()
	s, err := boltstore.Open(t.TempDir() + "/d/c.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	put := func(r store.Record) {
		if _, err := s.Put(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	host := func(name string, a *store.HostInventory) {
		put(&store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(name)}, Account: a})
	}
	put(vm("n1", 1))
	put(&store.Migration{Spec: migration.Spec{ID: "old", VM: "v"}})
	host("n1", &store.HostInventory{VMs: []store.Holding{runs(vm("n1", 4))}})
	host("n2", &store.HostInventory{VMs: []store.Holding{runs(vm("n2", 5))}})
	host("n3", nil)
	if err := recovery.Doubt(ctx, s, "operator alice", "it is wrong", time.Now()); err != nil {
		t.Fatal(err)
	}
	write := func(change func(*recovery.Input)) error {
		t.Helper()
		in, err := recovery.Read(ctx, s, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		change(&in)
		return recovery.Plan(in).Write(ctx, s, in, "alice", time.Now())
	}
	for name, change := range map[string]func(*recovery.Input){
		"n3 has not told, and v is in conflict": func(*recovery.Input) {},
		"n3 is off, and v is in conflict": func(in *recovery.Input) {
			in.Without = []hypervisor.HostName{"n3"}
		},
		"v is decided, and n3 has not told": func(in *recovery.Input) {
			in.Decide = map[hypervisor.VMID]hypervisor.HostName{"v": "n2"}
		},
	} {
		err := write(change)
		if _, is := errors.AsType[*recovery.RefusedError](err); !is {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	err = write(func(in *recovery.Input) {
		in.Without = []hypervisor.HostName{"n3"}
		in.Decide = map[hypervisor.VMID]hypervisor.HostName{"v": "n2"}
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := recovery.Read(ctx, s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := vm("n2", 6)
	want.Version = in.VMs[0].Version
	if diff := cmp.Diff(want, in.VMs[0]); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if len(in.Migrations) != 0 {
		t.Error("a migration of the past is left")
	}
	for _, h := range in.Hosts {
		if h.Account != nil {
			t.Errorf("what %s has told is left", h.Host.Name)
		}
	}
	h, instance, err := s.History(ctx)
	if err != nil || h.Epoch != 1 || h.By != "alice" || h.Judge(store.Mark{}, instance, 1) != nil {
		t.Errorf("the store is %+v, %v", h, err)
	}
}

// A host that is confirmed to be off may have come since the backup: it is accepted, and said.
func TestAHostThatNothingKnowsIsSaid(t *testing.T) {
	r := recovery.Plan(recovery.Input{Without: []hypervisor.HostName{"n1", "n33"},
		Hosts: []*store.Host{{Host: hypervisor.Host{Name: "n1"}}}})
	if diff := cmp.Diff([]hypervisor.HostName{"n33"}, r.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}
