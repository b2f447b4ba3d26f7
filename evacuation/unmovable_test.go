package evacuation_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/evacuation"
)

// What a drain does with VMs that it does not migrate, by their strategy and by its terms. The
// column of the default is what KubeVirt's eviction webhook answers, but that it lets a VM with None
// be killed, too: its evacuation controller leaves that alone.
func TestADrainShutsDownWhatItCannotMigrateAndMay(t *testing.T) {
	keep, off, restart := evacuation.Keep, evacuation.ShutDown, evacuation.Restart
	for _, tt := range []struct {
		strategy       evacuation.Strategy
		movable, stuck [4]evacuation.Unmovable // by default, Keep, ShutDown, Restart
		webhookKills   bool                    // when it cannot migrate
	}{
		{evacuation.LiveMigrate, [4]evacuation.Unmovable{keep, keep, keep, keep},
			[4]evacuation.Unmovable{keep, keep, keep, keep}, false},
		{evacuation.External, [4]evacuation.Unmovable{keep, keep, keep, keep},
			[4]evacuation.Unmovable{keep, keep, keep, keep}, false},
		{evacuation.LiveMigrateIfPossible, [4]evacuation.Unmovable{keep, keep, keep, keep},
			[4]evacuation.Unmovable{restart, keep, off, restart}, true},
		{evacuation.None, [4]evacuation.Unmovable{keep, keep, off, restart},
			[4]evacuation.Unmovable{keep, keep, off, restart}, true},
		{evacuation.Unset, [4]evacuation.Unmovable{keep, keep, off, restart},
			[4]evacuation.Unmovable{keep, keep, off, restart}, true},
	} {
		for choice := evacuation.ByStrategy; choice <= evacuation.Restart; choice++ {
			for _, migratable := range []bool{true, false} {
				want := tt.stuck[choice]
				if migratable {
					want = tt.movable[choice]
				}
				g := movable("a")
				g.Strategy, g.Migratable = tt.strategy, migratable
				h := drained("n1")
				h.Terms = evacuation.Terms{OnUnmovable: choice, Grace: time.Minute}
				d := evacuation.Plan(evacuation.Params{}, h, []evacuation.VM{g}, evacuation.Load{})
				got := evacuation.Keep
				if len(d.Stop) > 0 {
					if got = off; d.Stop[0].Restart {
						got = restart
					}
					if d.Stop[0].Grace != time.Minute || d.Stop[0].VM != g.ID {
						t.Errorf("%+v", d.Stop[0])
					}
				}
				if got != want {
					t.Errorf("%v, %v, migratable %v: %v, want %v", tt.strategy, choice, migratable, got,
						want)
				}
			}
			v := evacuation.Evict(evacuation.Params{}, evacuation.Eviction{
				Instance: evacuation.Compute, On: "n1", Home: "n1", Strategy: tt.strategy})
			if v.Allow != tt.webhookKills {
				t.Errorf("%v: the webhook answers %v", tt.strategy, v)
			}
		}
	}
}

func TestADrainsTermsGoBeforeTheClusters(t *testing.T) {
	g := movable("a")
	g.Strategy, g.Migratable, g.NotMigratableReason = evacuation.LiveMigrateIfPossible, false, "a GPU"
	p := evacuation.Params{Terms: evacuation.Terms{OnUnmovable: evacuation.Keep, Grace: 5 * time.Minute}}
	h := drained("n1")
	if d := evacuation.Plan(p, h, []evacuation.VM{g}, evacuation.Load{}); len(d.Stop) > 0 {
		t.Errorf("it is not kept: %+v", d.Stop)
	}
	h.Terms.OnUnmovable = evacuation.ShutDown
	want := []evacuation.Stop{{VM: g.ID, Grace: 5 * time.Minute,
		Why: "will be shut down: it cannot be migrated (a GPU); grace 5m00s"}}
	d := evacuation.Plan(p, h, []evacuation.VM{g}, evacuation.Load{})
	if diff := cmp.Diff(want, d.Stop); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A VM that is on its way, or of which an old copy is left, is not shut down under that.
func TestWhatElseKeepsAVMKeepsItFromBeingShutDown(t *testing.T) {
	for name, how := range map[string]func(*evacuation.VM){
		"it moves":               func(g *evacuation.VM) { g.Moving = true },
		"an old copy is left":    func(g *evacuation.VM) { g.Instances = 2 },
		"it has ended":           func(g *evacuation.VM) { g.Final = true },
		"it is being stopped":    func(g *evacuation.VM) { g.Stopping = true },
		"it starts":              func(g *evacuation.VM) { g.Between = true },
		"its deletion was asked": func(g *evacuation.VM) { g.Deleting = true },
	} {
		g := movable("a")
		g.Strategy, g.Migratable = evacuation.LiveMigrateIfPossible, false
		how(&g)
		d := evacuation.Plan(evacuation.Params{}, drained("n1"), []evacuation.VM{g},
			evacuation.Load{})
		if len(d.Stop) > 0 || len(d.Stay) != 1 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestChoicesAreStoredAsWords(t *testing.T) {
	for u := evacuation.ByStrategy; u <= evacuation.Restart; u++ {
		text, err := u.MarshalText()
		var back evacuation.Unmovable
		if err != nil || back.UnmarshalText(text) != nil || back != u {
			t.Errorf("%v is stored as %q, %v", u, text, err)
		}
	}
	if _, err := evacuation.Unmovable(99).MarshalText(); err == nil {
		t.Error("99 is stored")
	}
	if _, err := evacuation.ParseUnmovable("Kill"); err == nil {
		t.Error("Kill is a choice")
	}
}

// A VM that is given twice stays if either copy says so, in whatever order. The test changes every field of a VM, new
// ones too.
func TestOfTwoCopiesThatDifferTheOneThatStaysCounts(t *testing.T) {
	p, h := evacuation.Params{}, drained("n1")
	kept := 0
	for f := range reflect.VisibleFields(reflect.TypeFor[evacuation.VM]()) {
		for _, change := range []func(reflect.Value){
			func(v reflect.Value) { v.SetBool(!v.Bool()) },
			func(v reflect.Value) { v.SetInt(v.Int() + 1) },
			func(v reflect.Value) { v.SetUint(v.Uint() + 1) },
			func(v reflect.Value) { v.SetString(v.String() + "x") },
		} {
			goes, other := movable("a"), movable("a")
			v := reflect.ValueOf(&other).Elem().Field(f)
			name := reflect.TypeFor[evacuation.VM]().Field(f).Name
			if name == "ID" || !fits(v, change) || len(evacuation.Keeps(p, other)) == 0 {
				continue
			}
			kept++
			want := evacuation.Plan(p, h, []evacuation.VM{other}, evacuation.Load{})
			for _, copies := range [][]evacuation.VM{{goes, other}, {other, goes}} {
				if diff := cmp.Diff(want, evacuation.Plan(p, h, copies, evacuation.Load{})); diff != "" {
					t.Errorf("%s (-alone +twice):\n%s", name, diff)
				}
			}
		}
	}
	if kept < 8 {
		t.Errorf("%d fields keep a VM on its host; there are more", kept)
	}
}

// fits changes a value, if it is of the kind that the change is for.
func fits(v reflect.Value, change func(reflect.Value)) (ok bool) {
	defer func() { _ = recover() }()
	change(v)
	return true
}
