package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// TestEveryDecisionIsMadeAgain: whatever happens to a cluster, to its controller and to the
// controller's store, a replay of the log decides and says the same at every look; so does
// one of a log that was cut off anywhere; one error differs once; and the log's scenario is
// simulated without a violation.
func TestEveryDecisionIsMadeAgain(t *testing.T) {
	testutil.Unraced(t)
	dir := folder(t)
	looks, writes, terms := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, dir(), rapid.SampledFrom([]string{"{}\n", "keep: 1\n",
			"evacuation: {mode: FreeSpots, order: SmallestFirst}\nbackoff: {base: 1s}\n",
			"config: {parallelMigrationsPerCluster: 1}\ncompatible: true\n"}).Draw(t, "config"))
		drawWorld(t, c)
		c.close()
		r := replay(t, c.log())
		wantSame(t, r)
		looks, writes, terms = looks+r.Looks, writes+r.Writes, terms+r.Terms
		wantOneSlip(t, c.log(), r)
		lines := bytes.SplitAfter(c.log(), []byte("\n"))
		cut := rapid.IntRange(1, len(lines)).Draw(t, "lines that are left")
		wantSame(t, replay(t, bytes.Join(lines[:cut], nil)))
		text, err := audit.Scenario(bytes.NewReader(c.log()))
		if err != nil {
			t.Fatalf("%v", err)
		}
		simulate(t, text)
	})
	t.Logf("%d controllers, %d looks, %d writings", terms, looks, writes)
	if writes < 20 && !testing.Short() {
		t.Error("hardly anything was decided: the worlds are too small")
	}
}

// drained is the log of a drain of four VMs of 1 to 4 GiB.
func drained(t *testing.T, config string) []byte {
	t.Helper()
	c := newCluster(t, t.TempDir(), config)
	for i, id := range []hypervisor.VMID{"default/a", "default/b", "default/c", "default/d"} {
		c.vm(id, "n1", i+1, fake.Workload{})
	}
	c.run(time.Second)
	c.drain("n1", true)
	c.run(10 * time.Minute)
	c.close()
	return c.log()
}

// drainMany drains a host with so many VMs.
func drainMany(c *cluster, n int) {
	for i := range n {
		c.vm(hypervisor.VMID(fmt.Sprintf("default/v%d", i)), "n1", 1, fake.Workload{})
	}
	c.run(time.Second)
	c.drain("n1", true)
	c.run(time.Hour)
	c.close()
}

// TestADrainOfMany: a controller that has more to write than a store remembers does so in
// several looks, each of which is replayed.
func TestADrainOfMany(t *testing.T) {
	testutil.Unraced(t)
	c := newCluster(t, t.TempDir(), "{}\n")
	c.addHost("big", 640)
	c.addHost("empty", 640)
	for i := range 300 {
		c.vm(hypervisor.VMID(fmt.Sprintf("default/v%d", i)), "big", 1, fake.Workload{})
	}
	c.run(time.Second)
	c.drain("big", true)
	c.run(2 * time.Second)
	c.close()
	r := replay(t, c.log())
	if wantSame(t, r); r.Writes < 300 {
		t.Errorf("%d writings", r.Writes)
	}
}

// TestAnotherConfigurationDecidesDifferently, first where it matters, and says why.
func TestAnotherConfigurationDecidesDifferently(t *testing.T) {
	log := drained(t, "{}\n")
	for _, r := range []struct {
		name, config  string
		recorded, now string
		saw, because  string
	}{
		{"fewer at once", "config: {parallelOutboundMigrationsPerNode: 1}",
			"migration default/c#1: Scheduling n1→n3", "nothing",
			"; 1 migration from here, ",
			"why now   default/c: limit needs a free slot has source limit reached"},
		{"more at once", "config: {parallelOutboundMigrationsPerNode: 3}",
			"nothing", "migration default/b#1: Scheduling n1→n4",
			"; 2 migrations from here, ", "State.Target: nothing → \"n4\""},
		{"the smallest first", "evacuation: {order: SmallestFirst}",
			"migration default/d#1: Pending", "migration default/a#1: Pending",
			"VM default/a on n1", ""},
		{"no VM leaves", "evictionStrategy: None",
			"migration default/d#1: Pending", "nothing", "VM default/d on n1", ""},
		{"another deadline", "timeouts: {target: 3h}", "migration default/d#1: Scheduling",
			"migration default/d#1: Scheduling", "VM default/d on n1",
			"differs   State.Deadline: " +
				"recorded \"2026-01-01T00:15:01.005Z\", now \"2026-01-01T03:00:01.005Z\""},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := replay(t, log, r.config+"\n")
			var b strings.Builder
			if err := got.WriteText(&b, true); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"recorded  " + r.recorded, "now       " + r.now, r.saw,
				r.because} {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%q is not told:\n%s", want, &b)
				}
			}
		})
	}
}

// TestOtherTimesAreNoDecisions: a controller that wants to look more often decides the same.
func TestOtherTimesAreNoDecisions(t *testing.T) {
	r, err := audit.Replay(bytes.NewReader(drained(t, "{}\n")), audit.Options{
		Configure: func(text string) (controller.Config, error) {
			c, err := configure(text)
			c.Resync = time.Second
			return c, err
		}})
	if err != nil || !r.Same() || r.Wakes == 0 || r.Words > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAnotherVersionDecidesDifferently: one that packs hosts instead of spreading VMs.
func TestAnotherVersionDecidesDifferently(t *testing.T) {
	log := drained(t, "{}\n")
	pack := audit.Options{Configure: configure, Begin: func(c controller.Config,
		s store.Store, n store.EventRecorder) store.Participant {
		c.Placement.Weighers = placement.Pack()
		return controller.New(c, s, n)
	}}
	r, err := audit.Replay(bytes.NewReader(log), pack)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Difference
	if d == nil || d.Recorded == nil || d.Now == nil || len(d.Fields) == 0 {
		t.Fatalf("%+v", r)
	}
	if f := d.Fields[0]; f.Path != "State.Target" || f.From == f.To {
		t.Errorf("the first field that differs is %+v", f)
	}
	if d.Build != r.Now || d.By != "controller/a" || d.Term != 1 {
		t.Errorf("it is told of %+v", d)
	}
}

// hasty is a store to which everything is written on another condition.
type hasty struct{ store.Store }

// Put implements store.Store.
func (h hasty) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	return h.Store.Put(ctx, r.WithVersion(r.RecordVersion()+1), while...)
}

// TestWhatIsWrittenOnAnotherConditionDiffers, even when the same is written.
func TestWhatIsWrittenOnAnotherConditionDiffers(t *testing.T) {
	r, err := audit.Replay(bytes.NewReader(drained(t, "{}\n")), audit.Options{
		Configure: configure, Begin: func(c controller.Config, s store.Store,
			n store.EventRecorder) store.Participant {
			return controller.New(c, hasty{s}, n)
		}})
	if err != nil || r.Same() || len(r.Difference.Fields) != 1 ||
		r.Difference.Fields[0] != (audit.Field{Path: "Version", From: "0", To: "1"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAStoreThatForgets answers everything anew, and the controller begins anew: what was
// deleted meanwhile is gone, and nothing that waited for it waits on.
func TestAStoreThatForgets(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	for _, id := range []hypervisor.VMID{"default/a", "default/b", "default/c"} {
		c.vm(id, "n1", 8, fake.Workload{})
	}
	c.drain("n1", true)
	c.run(time.Second)
	for _, key := range []store.Key{{Kind: store.VMKind, Name: "default/a"},
		{Kind: store.MigrationKind, Name: "default/a#1"}} {
		r, _ := c.store.Get(context.Background(), key)
		c.must(c.store.Delete(context.Background(), r))
	}
	c.memory.forgot = true
	c.run(10 * time.Minute)
	c.close()
	wantSame(t, replay(t, c.log()))
	if n := bytes.Count(c.log(), []byte(`"reset":true`)); n != 2 {
		t.Errorf("it was told everything %d times", n)
	}
}

// panics is a version that cannot stand what it reads.
type panics struct{}

func (panics) Reconcile(_ context.Context, _ time.Time) (time.Time, error) { panic("no") }

// TestAVersionThatPanicsIsSaidTo.
func TestAVersionThatPanicsIsSaidTo(t *testing.T) {
	o := audit.Options{Configure: configure, Begin: func(controller.Config, store.Store,
		store.EventRecorder) store.Participant {
		return panics{}
	}}
	_, err := audit.Replay(bytes.NewReader(drained(t, "{}\n")), o)
	if err == nil || !strings.Contains(err.Error(), "panics in look 1: no") {
		t.Errorf("the error is %v", err)
	}
}

// TestARotatedLogStandsAlone: a new controller begins in the new file, also in the middle of a
// drain; the old file ends where it ends.
func TestARotatedLogStandsAlone(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	for _, id := range []hypervisor.VMID{"default/a", "default/b", "default/c", "default/d"} {
		c.vm(id, "n1", 8, fake.Workload{})
	}
	c.drain("n1", true)
	c.run(3 * time.Second)
	old := c.log()
	c.must(os.Rename(c.path, c.path+".1"))
	c.must(c.file.Reopen())
	c.run(10 * time.Minute)
	c.close()
	first, second := replay(t, old), replay(t, c.log())
	wantSame(t, first)
	wantSame(t, second)
	if first.Writes == 0 || second.Writes == 0 || second.Terms != 1 {
		t.Errorf("before: %+v; after: %+v", first, second)
	}
	both := replay(t, append(old, c.log()...))
	wantSame(t, both)
	if both.Terms != 2 || both.Writes != first.Writes+second.Writes {
		t.Errorf("together: %+v", both)
	}
}

// TestEachFullLogStandsAlone: the controller moves its log away again and again, between two looks,
// and each file is replayed by itself.
func TestEachFullLogStandsAlone(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	c.full = audit.Rotation{MaxSize: 8 << 10, Keep: 1000}
	c.begin()
	for _, id := range []hypervisor.VMID{"default/a", "default/b", "default/c", "default/d"} {
		c.vm(id, "n1", 8, fake.Workload{})
	}
	c.drain("n1", true)
	c.run(10 * time.Minute)
	c.close()
	writes, files, all := 0, 0, []byte(nil)
	for n := 1; ; n++ {
		text, err := os.ReadFile(fmt.Sprintf("%s.%d", c.path, n))
		if err != nil {
			break
		}
		r := replay(t, text)
		wantSame(t, r)
		if r.Skipped != 0 {
			t.Errorf("file %d: %d lines are of a look in another file", n, r.Skipped)
		}
		writes, files, all = writes+r.Writes, files+1, append(text, all...)
	}
	r := replay(t, append(all, c.log()...))
	wantSame(t, r)
	if last := replay(t, c.log()); files < 3 || r.Writes != writes+last.Writes || writes == 0 {
		t.Errorf("%d files, %d writes in them: %+v", files, writes, r)
	}
}

// TestWhoLeadsNextHasALogOfItsOwn: the second controller goes on where the first was killed,
// and each log is replayed by itself.
func TestWhoLeadsNextHasALogOfItsOwn(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	for _, id := range []hypervisor.VMID{"default/a", "default/b", "default/c"} {
		c.vm(id, "n1", 8, fake.Workload{})
	}
	c.drain("n1", true)
	c.line.Dies, c.line.After = true, 7
	c.run(2 * time.Second)
	first := c.log()
	if c.term != 2 {
		t.Fatalf("the first controller lives: term %d", c.term)
	}
	c.path, c.name = c.path+"-b", "controller/b"
	c.begin()
	c.run(10 * time.Minute)
	c.close()
	for _, log := range [][]byte{first, c.log()} {
		r := replay(t, log)
		wantSame(t, r)
		if r.Writes < 3 {
			t.Errorf("hardly anything was decided: %+v", r)
		}
	}
}

// told is a store that tells of every record that was written.
type told struct {
	store.Store
	of func(store.Record)
}

// Put implements store.Store.
func (s told) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	stored, err := s.Store.Put(ctx, r, while...)
	if err == nil {
		s.of(stored)
	}
	return stored, err
}

// TestWhatIsForgottenIsForgottenAgain: that migrations which ended long ago are deleted is a
// decision like others.
func TestWhatIsForgottenIsForgottenAgain(t *testing.T) {
	c := newCluster(t, t.TempDir(), "keep: 1\n")
	c.vm("default/a", "n1", 1, fake.Workload{})
	real := c.line.Real
	for i, to := range []hypervisor.HostName{"n2", "n1", "n2", "n1"} {
		c.migrate("default/a", i, to)
		if i == 1 { // the store is full when it is to delete for the first time
			c.line.Real = told{real, func(r store.Record) {
				v, is := r.(*store.VM)
				c.line.Full = is && v.ActiveMigration == ""
			}}
		}
		c.run(10 * time.Second)
		c.line.Full, c.line.Real = false, real
		c.run(time.Minute)
	}
	c.close()
	log := c.log()
	wantSame(t, replay(t, log))
	const refused = `"kind":"refused","vm":"default/a","migration":"default/a#u0"`
	if !bytes.Contains(log, []byte(refused)) {
		t.Errorf("no deletion was refused:\n%s", log)
	}
	if n := bytes.Count(log, []byte(`"what":"deleted"`)); n == 0 {
		t.Errorf("nothing was deleted:\n%s", log)
	}
	if r := replay(t, log, "keep: 4\n"); r.Same() || r.Difference.Recorded.What != "deleted" ||
		r.Difference.Recorded.Record != "migration default/a#u0" {
		t.Errorf("%+v", r.Difference)
	}
}

// TestALineThatIsLostBeginsANewReplay: while no line can be written the controller goes on as
// it is; when one can, a new one begins, so that what follows can be replayed.
func TestALineThatIsLostBeginsANewReplay(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	boss, begun := c.brains[""].(*audit.Recorder), 0
	begin := boss.Begin
	boss.Begin = func(s store.Store, n store.EventRecorder) store.Participant {
		begun++
		return begin(s, n)
	}
	c.vm("default/a", "n1", 8, fake.Workload{})
	c.run(time.Second)
	c.must(c.file.Close()) // no line can be written
	c.drain("n1", true)
	c.run(time.Second)
	if begun != 1 {
		t.Errorf("%d controllers have begun, although nothing could be written", begun)
	}
	c.must(c.file.Reopen())
	c.run(10 * time.Minute)
	c.close()
	r := replay(t, c.log())
	wantSame(t, r)
	if r.Terms != 2 || begun != 2 || r.Writes == 0 {
		t.Errorf("%d have begun: %+v", begun, r)
	}
}

// TestALogThatMakesNoSense is refused, with its line and what is wrong.
func TestALogThatMakesNoSense(t *testing.T) {
	log := string(drained(t, "{}\n"))
	lines := strings.SplitAfter(strings.TrimSuffix(log, "\n"), "\n")
	unchained := func(lines ...string) string { return rechain(strings.Join(lines, "")) }
	look := func(kind string) int {
		for i, l := range lines[4:] {
			if strings.Contains(l, `"kind":"`+kind+`"`) {
				return i + 4
			}
		}
		t.Fatalf("no line of the kind %s", kind)
		return 0
	}
	without := func(i int) string {
		return unchained(append(append([]string{}, lines[:i]...), lines[i+1:]...)...)
	}
	n := look("look")
	for _, r := range []struct{ name, log, want string }{
		{"nothing", "", "line 1: nothing can be replayed: none of 0 lines"},
		{"no log", "hello\n", "nothing can be replayed"},
		{"an old log", strings.ReplaceAll(strings.ReplaceAll(rechain(log), `"look":`, `"x":`),
			`"journal":`, `"y":`), "line 2: the log was tampered with"},
		{"an old log, well chained", rechain(strings.ReplaceAll(strings.ReplaceAll(log,
			`"look":`, `"x":`), `"journal":`, `"y":`)), "nothing can be replayed"},
		{"tampered with", strings.Replace(log, "n1→n2", "n1→n3", 1), "was tampered with"},
		{"a line is taken out", lines[0] + lines[2], "number 3 follows 1"},
		{"the end of a log only", unchained(lines[1:]...), "no controller begins in this file"},
		{"a look is missing", without(n), "is missing"},
		{"a writing is missing", without(look("write")), "what it was before is missing"},
		{"a note is missing", without(look("note")), " lines, and "},
		{"another format", strings.Replace(lines[0], `"format":1`, `"format":7`, 1),
			"in format 7 with records of format 1; this godwit replays format 1"},
		{"newer records", strings.Replace(lines[0], `"records":1`, `"records":9`, 1),
			"records of format 9"},
		{"a bad configuration", strings.Replace(lines[0], `"config":"{}\n"`,
			`"config":"evacuation: {mode: x}\n"`, 1), "unknown mode"},
		{"what a record was is missing", unchained(lines[0], strings.Replace(lines[1], `"text":`,
			`"nothing":`, 1)), "what it was before is missing"},
		{"a record of no kind", unchained(lines[0], strings.Replace(lines[1], `"host n1"`,
			`"house n1"`, 1)), `"house n1" names no record`},
		{"a record that is another", unchained(lines[0], strings.Replace(lines[1], `"host n1"`,
			`"host n7"`, 1)), "it holds host"},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, err := audit.Replay(strings.NewReader(r.log),
				audit.Options{Configure: configure})
			if err == nil || !strings.Contains(err.Error(), r.want) ||
				!strings.Contains(err.Error(), "line ") {
				t.Errorf("the error is %v, want %q", err, r.want)
			}
		})
	}
	if r := replay(t, []byte(log[:len(log)-20])); !r.Same() { // a crash tore the last line
		t.Errorf("%+v", r)
	}
}
