package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// desk returns a desk over a store with two hosts and a VM on the first.
func desk(t testing.TB) (*client.Client, *rivals) {
	t.Helper()
	records := &rivals{Memory: store.NewMemory()}
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1"}},
		&store.Host{Host: hypervisor.Host{Name: "n2"}},
		&store.VM{VM: hypervisor.VM{ID: "default/web", Memory: 1 << 30, CPUs: 1}, Host: "n1",
			Migratable: true}} {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return &client.Client{Store: records, Now: func() time.Time { return time.Unix(1, 0) }}, records
}

// rivals is a store in which others write a record between reading and writing, and in which
// an answer may be lost.
type rivals struct {
	*store.Memory
	writes int  // of others that come first
	lost   int  // answers
	late   bool // lost answers had no effect
}

func (s *rivals) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record,
	error) {
	if old, _ := s.Get(ctx, r.Key()); old != nil && s.writes > 0 {
		s.writes--
		if h, is := old.(*store.Host); is {
			next := *h
			next.Host.Memory++
			if _, err := s.Memory.Put(ctx, &next); err != nil {
				return nil, err
			}
		}
	}
	if s.lost > 0 {
		s.lost--
		if !s.late {
			_, _ = s.Memory.Put(ctx, r, while...)
		}
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unanswered}
	}
	return s.Memory.Put(ctx, r, while...)
}

func (s *rivals) vm(t testing.TB) *store.VM {
	t.Helper()
	r, err := s.Get(t.Context(), store.Key{Kind: store.VMKind, Name: "default/web"})
	if err != nil || r == nil {
		t.Fatal("no VM", err)
	}
	return r.(*store.VM)
}

// A drain that an operator asks for while a run of maintenance drains the host is the operator's: it outlasts the run.
func TestADrainOfAnOperatorTakesOverThatOfARun(t *testing.T) {
	d, records := desk(t)
	own := placement.Taint{Key: "other", Effect: placement.NoSchedule}
	change := func(taints ...placement.Taint) {
		r, err := records.Get(t.Context(), (&store.Host{Host: hypervisor.Host{Name: "n1"}}).Key())
		if err == nil {
			h := *r.(*store.Host)
			h.Taints = taints
			_, err = records.Put(t.Context(), &h)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	drain := placement.Taint{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}
	runs := drain
	runs.Value = store.MaintenanceDrain + "patch"
	for _, before := range [][]placement.Taint{{own}, {own, runs}, {own, drain}, {own, drain, runs}} {
		change(before...)
		h, err := d.Drain(t.Context(), "n1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]placement.Taint{own, drain}, h.Taints); diff != "" {
			t.Errorf("of %v it makes (-want +got):\n%s", before, diff)
		}
	}
}

// A run that is asked for again with windows is another one than a run without.
func TestARunWithWindowsIsAnotherThanOneWithout(t *testing.T) {
	d, _ := desk(t)
	m := store.Maintenance{Name: "patch", Batches: []store.MaintenanceBatch{{Hosts: []hypervisor.HostName{"n1"}}}}
	for _, again := range []bool{false, true} {
		if _, err := d.Maintain(t.Context(), &m); err != nil {
			t.Fatalf("again %v: %v", again, err)
		}
	}
	m.Windows = []store.Window{{Begin: time.Unix(1000, 0), End: time.Unix(2000, 0)}}
	if _, err := d.Maintain(t.Context(), &m); err == nil {
		t.Error("its windows are ignored")
	}
}

func TestRivalsDoNotLoseTheirWriting(t *testing.T) {
	d, records := desk(t)
	records.writes = 5
	h, err := d.Drain(t.Context(), "n1")
	if err != nil || !d.Draining(h) || h.Host.Memory != 5 {
		t.Fatalf("%+v, %v", h, err)
	}
	records.writes = 100
	if _, err := d.Undrain(t.Context(), "n1"); !errors.Is(err, store.Stale) {
		t.Errorf("against a process that writes without end: %v", err)
	}
}

func TestALostAnswerIsLookedUp(t *testing.T) {
	d, records := desk(t)
	records.lost = 1
	if h, err := d.Cordon(t.Context(), "n1"); err != nil || !h.Cordoned {
		t.Errorf("it took effect: %v", err)
	}
	records.lost, records.late = 1, true
	if _, err := d.Uncordon(t.Context(), "n1"); !errors.Is(err, store.Unanswered) {
		t.Errorf("it did not: %v", err)
	}
	records.lost, records.late = 1, false
	m, err := d.Migrate(t.Context(), client.Move{VM: "default/web"})
	if err != nil || m.Version == 0 {
		t.Errorf("a migration whose answer is lost: %v", err)
	}
}

func TestWhatIsDoneTwiceIsDoneOnce(t *testing.T) {
	d, _ := desk(t)
	first, err1 := d.Drain(t.Context(), "n1")
	second, err2 := d.Drain(t.Context(), "n1")
	if err := errors.Join(err1, err2); err != nil || first.Version != second.Version ||
		len(second.Taints) != 1 {
		t.Errorf("%v: %+v", err, second)
	}
}

func TestADrainHasTermsUntilItIsTakenBack(t *testing.T) {
	d, _ := desk(t)
	h, err := d.DrainOn(t.Context(), "n1", evacuation.Terms{OnUnmovable: evacuation.ShutDown})
	if err != nil || h.Drain.OnUnmovable != evacuation.ShutDown {
		t.Fatalf("%+v, %v", h, err)
	}
	if h, err = d.DrainOn(t.Context(), "n1", evacuation.Terms{Grace: time.Hour}); err != nil ||
		h.Drain != (evacuation.Terms{OnUnmovable: evacuation.ShutDown, Grace: time.Hour}) {
		t.Errorf("what was not said again has changed: %+v, %v", h, err)
	}
	if h, err = d.Undrain(t.Context(), "n1"); err != nil || h.Drain != (evacuation.Terms{}) {
		t.Errorf("the next drain has the terms of this one: %+v, %v", h, err)
	}
	var refused *client.RefusedError
	_, err = d.DrainOn(t.Context(), "n1", evacuation.Terms{Grace: -time.Hour})
	if !errors.As(err, &refused) {
		t.Errorf("a grace period of -1h: %v", err)
	}
}

// An operator who starts a VM that a drain has shut down wants it to run, but not where it was.
func TestAVMThatADrainHasShutDownStartsElsewhereWhenAskedTo(t *testing.T) {
	d, records := desk(t)
	v := *records.vm(t)
	v.Ended, v.Evicted = true, &store.Eviction{}
	if _, err := records.Put(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	got, err := d.StartVM(t.Context(), "default/web")
	if err != nil || got.Evicted == nil || !got.Evicted.Restart || !got.Startable() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := d.Migrate(t.Context(), client.Move{VM: "default/web"}); err == nil {
		t.Error("a VM that is shut down is migrated")
	}
}

// A claim is released only while its migration is not known, and its host can say where the VM is.
func TestAClaimIsNotReleasedWhileItsMigrationMayBeAlive(t *testing.T) {
	for _, tt := range []struct {
		name  string
		phase migration.Phase // of the migration; Unset is that there is none
		host  func(*store.Host)
		want  string
	}{
		{"it is not known", migration.Unset, nil, ""},
		{"it runs", migration.Running, nil, "migration default/web#1 is Running"},
		{"it has ended", migration.Failed, nil, "has ended and is still known"},
		{"the host is lost", migration.Unset, func(h *store.Host) { h.NotReady = true }, "n1 is lost"},
		{"the host is being cut off", migration.Unset,
			func(h *store.Host) { h.Fencing = &store.Fencing{} }, "n1 is lost"},
	} {
		d, records := desk(t)
		v := *records.vm(t)
		v.ActiveMigration = "default/web#1"
		r, err := records.Get(t.Context(), store.Key{Kind: store.HostKind, Name: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		h := *r.(*store.Host)
		if tt.host != nil {
			tt.host(&h)
		}
		all := []store.Record{&v, &h}
		if tt.phase != migration.Unset {
			all = append(all, &store.Migration{Spec: migration.Spec{ID: v.ActiveMigration, VM: v.VM.ID},
				State: migration.State{Phase: tt.phase}})
		}
		for _, r := range all {
			if _, err := records.Put(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		got, err := d.ReleaseVM(t.Context(), "default/web", "alice")
		var refused *client.RefusedError
		switch {
		case tt.want == "" && (err != nil || got.Release.By != "alice" || !got.Releasing()):
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Why, tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestUndrainTakesMarksBack(t *testing.T) {
	d, store := desk(t)
	if _, err := d.Evict(t.Context(), "default/web"); err != nil || store.vm(t).EvacuateFrom != "n1" {
		t.Fatal(err)
	}
	if _, err := d.Undrain(t.Context(), "n1"); err != nil || store.vm(t).EvacuateFrom != "" {
		t.Errorf("the mark is %q, %v", store.vm(t).EvacuateFrom, err)
	}
}

// Who asked for what is stored with it, and not when nothing was changed.
func TestWhoAskedIsStored(t *testing.T) {
	d, records := desk(t)
	d.By = "ann"
	if _, err := d.PauseVM(t.Context(), "default/web"); err != nil {
		t.Fatal(err)
	}
	if got := records.vm(t).Asked.Words(); got != "pause asked for by ann" {
		t.Errorf("its record says %q", got)
	}
	d.By = "bob"
	if v, err := d.PauseVM(t.Context(), "default/web"); err != nil || v.Asked.By != "ann" {
		t.Errorf("a pause that changes nothing: %+v, %v", v.Asked, err)
	}
	if v, err := d.ResumeVM(t.Context(), "default/web"); err != nil || v.Asked.By != "bob" || v.Pause {
		t.Errorf("a resume: %+v, %v", v, err)
	}
}

// refusal is a request that makes no sense, to a VM that was changed before.
type refusal struct {
	name string
	with func(*store.VM)
	do   func(context.Context, *client.Client) error
	want string
}

func move(m client.Move) func(context.Context, *client.Client) error {
	return func(ctx context.Context, d *client.Client) error {
		m.VM = "default/web"
		_, err := d.Migrate(ctx, m)
		return err
	}
}

func remove(ctx context.Context, d *client.Client) error { return d.DeleteVM(ctx, "default/web") }

func release(by string) func(context.Context, *client.Client) error {
	return func(ctx context.Context, d *client.Client) error {
		_, err := d.ReleaseVM(ctx, "default/web", by)
		return err
	}
}

func attachDisk(disk hypervisor.Disk) func(context.Context, *client.Client) error {
	return func(ctx context.Context, d *client.Client) error {
		_, err := d.AttachDisk(ctx, "default/web", disk)
		return err
	}
}

// withDisk gives a VM the disk "data".
func withDisk(v *store.VM) {
	v.VM = v.VM.WithDisks([]hypervisor.Disk{{Name: "data", Path: "/old"}})
}

func relocate(disk, to string) func(context.Context, *client.Client) error {
	return func(ctx context.Context, d *client.Client) error {
		_, err := d.MoveDisk(ctx, "default/web", store.DiskMove{Disk: disk, To: to})
		return err
	}
}

// refusals are what makes no sense.
var refusals = []refusal{
	{"to where it is", nil, move(client.Move{Target: "n1"}), "it is on n1 already"},
	{"to nowhere by force", nil, move(client.Move{Force: placement.Yes}), "--force needs --to HOST"},
	{"to a host that is none", nil, move(client.Move{Target: "n3"}), `no host "n3"`},
	{"one that is stopped", func(v *store.VM) { v.Stopped = true }, move(client.Move{}),
		"it is stopped"},
	{"one that cannot", func(v *store.VM) { v.Migratable, v.NotMigratableReason = false, "a GPU" },
		move(client.Move{}), "it cannot migrate: a GPU"},
	{"one without a host", func(v *store.VM) { v.Host = "" }, move(client.Move{}),
		"it has no host yet"},
	{"delete what runs", nil, remove, "it runs, or may run, on n1"},
	{"delete what stops", func(v *store.VM) { v.Stopped = true },
		remove,
		"wait until it has stopped"},
	{"delete what moves", func(v *store.VM) { v.ActiveMigration, v.Stopped, v.Ended = "m", true, true },
		remove,
		"migration m moves it"},
	{"reboot what is stopped", func(v *store.VM) { v.Stopped = true },
		func(ctx context.Context, d *client.Client) error {
			_, err := d.RebootVM(ctx, "default/web")
			return err
		}, "godwit vm start it instead"},
	{"pause what is stopped", func(v *store.VM) { v.Stopped = true },
		func(ctx context.Context, d *client.Client) error {
			_, err := d.PauseVM(ctx, "default/web")
			return err
		}, "it is stopped"},
	{"rename what runs", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.RenameVM(ctx, "default/web", "shop")
		return err
	}, "it is not stopped: godwit vm stop it first, and wait until it has stopped"},
	{"rename to another namespace", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.RenameVM(ctx, "default/web", "other/web")
		return err
	}, "a VM stays in its namespace"},
	{"start what is being renamed", func(v *store.VM) { v.Stopped, v.Rename = true, &store.Rename{To: "default/shop"} },
		func(ctx context.Context, d *client.Client) error {
			_, err := d.StartVM(ctx, "default/web")
			return err
		}, "it is being renamed to default/shop"},
	{"resume what is not paused", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.ResumeVM(ctx, "default/web")
		return err
	}, "godwit has not paused it"},
	{"attach a disk that is nowhere", nil, attachDisk(hypervisor.Disk{Name: "data"}),
		"give the path of a shared disk with --path, or the size of a local one"},
	{"attach a disk with a bad name", nil, attachDisk(hypervisor.Disk{Name: "../x", Size: 512}),
		"is not a disk's name"},
	{"attach a disk of no format", nil, attachDisk(hypervisor.Disk{Name: "data", Size: 512, Format: "vdi"}),
		"write raw or qcow2"},
	{"attach a second disk of a name", func(v *store.VM) {
		v.DiskChanges = []store.DiskChange{{Attach: &hypervisor.Disk{Name: "data", Size: 512}}}
	}, attachDisk(hypervisor.Disk{Name: "data", Size: 1024}), "it has another disk of this name"},
	{"detach a disk that it does not have", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.DetachDisk(ctx, "default/web", "data")
		return err
	}, `there is no disk "data"`},
	{"move a disk that it does not have", nil, relocate("data", "/new"), `there is no disk "data"`},
	{"move a disk to no path", withDisk, relocate("data", "new"), "is not the absolute path of a file"},
	{"move a disk to another one", withDisk, relocate("data", "/old"), "disk data is there already"},
	{"move a disk twice", func(v *store.VM) {
		withDisk(v)
		v.DiskChanges = []store.DiskChange{{Move: &store.DiskMove{Disk: "data", To: "/first"}}}
	}, relocate("data", "/new"), "it is to move disk data to /first already"},
	{"move a disk with a snapshot", func(v *store.VM) {
		withDisk(v)
		v.Snapshots = []store.Snapshot{{Disk: "data", Name: "a"}}
	}, relocate("data", "/new"), "its snapshot a would not move with it"},
	{"cancel the move of a disk that stays", withDisk, func(ctx context.Context, d *client.Client) error {
		_, err := d.CancelDiskMove(ctx, "default/web", "data")
		return err
	}, "it does not move"},
	{"cancel the move of a disk that has moved", func(v *store.VM) {
		withDisk(v)
		v.DiskChanges = []store.DiskChange{{Move: &store.DiskMove{Disk: "data", To: "/new", Begun: true, Switched: true}}}
	}, func(ctx context.Context, d *client.Client) error {
		_, err := d.CancelDiskMove(ctx, "default/web", "data")
		return err
	}, "the VM is on its new image already"},
	{"reboot what is paused", func(v *store.VM) { v.Pause = true },
		func(ctx context.Context, d *client.Client) error {
			_, err := d.RebootVM(ctx, "default/web")
			return err
		}, "godwit vm resume it first"},
	{"shut down what is paused", func(v *store.VM) { v.Pause = true },
		func(ctx context.Context, d *client.Client) error {
			_, err := d.StopVM(ctx, "default/web", false)
			return err
		}, "power it off with --kill"},
	{"a host that is heard is dead", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.ConfirmDown(ctx, "n1", "alice")
		return err
	}, "its agent still sends heartbeats"},
	{"no operator's name", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.ConfirmDown(ctx, "n1", " ")
		return err
	}, "the operator's name is missing"},
	{"release what nothing has claimed", nil, release("alice"), "no migration has claimed it"},
	{"release without a name", func(v *store.VM) { v.ActiveMigration = "ghost" }, release(" "), "the operator's name is missing"},
	{"migrate what a ghost has claimed", func(v *store.VM) { v.ActiveMigration = "ghost" },
		move(client.Move{}), "godwit vm release default/web removes the claim"},
	{"a size of nothing", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.ResizeVM(ctx, "default/web", client.Size{Memory: -1})
		return err
	}, "give its memory"},
	{"a name for terminals", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.AddVM(ctx, &store.VM{VM: hypervisor.VM{ID: "default/\x1b[31m"}})
		return err
	}, "is not a name"},
	{"a VM of no size", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.AddVM(ctx, &store.VM{VM: hypervisor.VM{ID: "default/x"}})
		return err
	}, "needs memory"},
	{"a VM that is there", nil, func(ctx context.Context, d *client.Client) error {
		_, err := d.AddVM(ctx, &store.VM{VM: hypervisor.VM{ID: "default/web", Memory: 1,
			CPUs: 1}})
		return err
	}, "of this name exists already"},
}

// TestRefusals: what makes no sense is refused, says why, and writes nothing.
func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			d, records := desk(t)
			if tt.with != nil {
				next := *records.vm(t)
				tt.with(&next)
				if _, err := records.Put(t.Context(), &next); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := records.Changes(t.Context(), store.Everything, 0)
			err := tt.do(t.Context(), d)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want in it %q", err, tt.want)
			}
			after, _ := records.Changes(t.Context(), store.Everything, before.Next)
			if len(after.Records) > 0 {
				t.Errorf("it was written: %+v", after.Records)
			}
		})
	}
}

func TestAHostThatIsLostMayBeDead(t *testing.T) {
	d, records := desk(t)
	r, _ := records.Get(t.Context(), store.Key{Kind: store.HostKind, Name: "n1"})
	next := *r.(*store.Host)
	next.NotReady = true
	if _, err := records.Put(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	if h, err := d.ConfirmDown(t.Context(), "n1", "alice"); err != nil || h.ConfirmedDownBy != "alice" || h.Fenced {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, err := d.ConfirmDown(t.Context(), "n1", "bob"); err == nil {
		t.Error("bob takes alice's word over")
	}
	if h, err := d.ClearDown(t.Context(), "n1"); err != nil || h.ConfirmedDownBy != "" {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestOneMigrationAtATime, by a name that is never given twice, and cancelled by its VM's.
func TestOneMigrationAtATime(t *testing.T) {
	d, store := desk(t)
	m, err := d.Migrate(t.Context(), client.Move{VM: "default/web", Target: "n2"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Migrate(t.Context(), client.Move{VM: "default/web"})
	if refused, is := errors.AsType[*client.RefusedError](err); !is ||
		!strings.Contains(refused.Why, string(m.Spec.ID)) {
		t.Errorf("a second one: %v", err)
	}
	asked, err := d.Cancel(t.Context(), "web")
	if err != nil || len(asked) != 1 || !asked[0].Cancel {
		t.Fatalf("%v, %v", asked, err)
	}
	ended := *asked[0]
	ended.State.Phase = migration.Failed
	if _, err := store.Put(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Cancel(t.Context(), string(m.Spec.ID)); err == nil {
		t.Error("what has ended is cancelled")
	}
	if vm, err := d.VMOf(t.Context(), string(m.Spec.ID)); err != nil || vm != "default/web" {
		t.Errorf("the VM of the migration is %q, %v", vm, err)
	}
}

func TestNearNames(t *testing.T) {
	known := []string{"default/web-1", "default/web-2", "default/db", "prod/web-1", "default/cache"}
	for name, want := range map[string][]string{
		"default/wbe-1":              {"default/web-1"},
		"default/Web-1":              {"default/web-1", "default/web-2", "prod/web-1"},
		"test/db":                    {"default/db"},
		"default/chache":             {"default/cache"},
		"default/x":                  nil,
		"":                           nil,
		strings.Repeat("web-1", 100): nil,
	} {
		got := client.Near(name, known)
		if name == "default/wbe-1" {
			got = got[:min(1, len(got))]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("near %q (-want +got):\n%s", name, diff)
		}
	}
}

// TestNearFindsOneMistake: a name that lacks, has too much of, or swaps a letter is
// found, whichever.
func TestNearFindsOneMistake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{4,12}`).Draw(t, "name")
		i := rapid.IntRange(0, len(name)-2).Draw(t, "at")
		b := []byte(name)
		switch rapid.IntRange(0, 2).Draw(t, "mistake") {
		case 0:
			b = slices.Delete(b, i, i+1)
		case 1:
			b = slices.Insert(b, i, 'x')
		case 2:
			b[i], b[i+1] = b[i+1], b[i]
		}
		if got := client.Near("default/"+string(b), []string{"default/" + name}); len(got) != 1 {
			t.Errorf("%q is not found by %q", name, b)
		}
	})
}

func TestReadVMs(t *testing.T) {
	hosts := []*store.Host{{Host: hypervisor.Host{Name: "n1", Memory: 1 << 34, CPUs: 8}}}
	text := "vms:\n- {name: \"web-[1-2]\", memory: 4GiB, host: n1, nodeSelector: {zone: a}}\n" +
		"- {name: db, memory: 1GiB, hardware: {machine: pc, disks: [{name: d, size: 10GiB}]}}\n"
	vms, err := client.ReadVMs("f", []byte(text), hosts)
	if err != nil || len(vms) != 3 {
		t.Fatalf("%v, %v", vms, err)
	}
	db, web := vms[0], vms[1]
	if db.VM.Hardware == nil || db.VM.Hardware.Machine != "pc" || db.Placement != nil ||
		db.Host != "" || db.Place().Disk != 10<<30 {
		t.Errorf("db is %+v", db)
	}
	if want := (placement.Labels{"zone": "a"}); web.Host != "n1" || web.Placement == nil ||
		!cmp.Equal(web.Placement.Selector, want) {
		t.Errorf("web is %+v", web)
	}
	for text, want := range map[string]string{
		"vms: []": "f:1: vms: there are none",
		"hosts: [{name: a, memory: 1GiB, cpus: 1}]": "f:1: hosts: hosts add themselves",
		"vms:\n- {name: a}":                         "f:2: vms[0].memory",
		"vms:\n- {name: a, memory: 1GiB, host: n7}": "n7",
		"{{{": "f:1",
	} {
		if _, err := client.ReadVMs("f", []byte(text), hosts); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A drain's own migration that has no target yet does not keep an operator from naming a host;
// one that has a target does, and the refusal names it.
func TestARequestForAHostTakesThePlaceOfADrainsOwn(t *testing.T) {
	d, records := desk(t)
	m := &store.Migration{Spec: migration.Spec{ID: "web#1", VM: "default/web",
		By: migration.Evacuation, Priority: migration.SystemCritical}}
	stored, err := records.Put(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Migrate(t.Context(), client.Move{VM: "default/web"}); err == nil {
		t.Error("a request that asks for nothing in particular was not refused")
	}
	if _, err := d.Migrate(t.Context(), client.Move{VM: "default/web", Target: "n2"}); err != nil {
		t.Errorf("it was refused: %v", err)
	}
	next := *stored.(*store.Migration)
	next.State.Target = "n2"
	if _, err := records.Put(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	_, err = d.Migrate(t.Context(), client.Move{VM: "default/web", Target: "n2"})
	if err == nil || !strings.Contains(err.Error(), "web#") {
		t.Errorf("it was not refused by name: %v", err)
	}
}
