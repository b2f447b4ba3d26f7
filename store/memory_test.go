package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

var (
	ctx   = context.Background()
	words = cmpopts.EquateComparable(migration.Conditions{})
)

type host = hypervisor.HostName

func vmOn(name string, h host) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

func wantKind(t *testing.T, err error, want store.StoreKind) {
	t.Helper()
	var e *store.StoreError
	if !errors.As(err, &e) || e.Kind != want || !errors.Is(err, want) {
		t.Errorf("error %v, want kind %v", err, want)
	}
}

func TestAWriteNeedsTheVersionThatIsStored(t *testing.T) {
	s := store.NewMemory()
	first, err := s.Put(ctx, vmOn("a", "n1"))
	if err != nil || first.RecordVersion() == 0 {
		t.Fatalf("Put = %v, %v", first, err)
	}
	_, err = s.Put(ctx, vmOn("a", "n2"))
	wantKind(t, err, store.Stale) // it exists
	second, err := s.Put(ctx, first)
	if err != nil || second.RecordVersion() <= first.RecordVersion() {
		t.Fatalf("Put = %v, %v", second, err)
	}
	_, err = s.Put(ctx, first)
	wantKind(t, err, store.Stale)
	wantKind(t, s.Delete(ctx, first), store.Stale)
	if err := s.Delete(ctx, second); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, second); err != nil {
		t.Errorf("what is gone may be deleted again: %v", err)
	}
	_, err = s.Put(ctx, second)
	wantKind(t, err, store.Stale) // a deleted record does not come back
	if r, err := s.Get(ctx, second.Key()); r != nil || err != nil {
		t.Errorf("Get = %v, %v", r, err)
	}
}

func TestAWriteHoldsOnlyWhileOthersAreAsTheyWereRead(t *testing.T) {
	s := store.NewMemory()
	leader, _ := s.Put(ctx, &store.Leader{Name: "cluster", Holder: "a"})
	vm, err := s.Put(ctx, vmOn("v", "n1"), leader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, leader); err != nil { // another has taken over
		t.Fatal(err)
	}
	_, err = s.Put(ctx, vm, leader)
	wantKind(t, err, store.Stale)
	wantKind(t, s.Delete(ctx, vm, leader), store.Stale)
	if _, err := s.Put(ctx, vm, &store.Lease{Owner: "unknown"}); err != nil {
		t.Errorf("what was not there still is not: %v", err)
	}
}

func TestSignsOfLifeReachNoOtherReader(t *testing.T) {
	s := store.NewMemory()
	lease := &store.Lease{Owner: store.HostLease("n1")}
	if _, err := s.Put(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]store.Feed{store.Leases}, s.Changed()); diff != "" {
		t.Errorf("feeds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]store.Feed{store.Leases}, store.Feeds(lease)); diff != "" {
		t.Errorf("feeds (-want +got):\n%s", diff)
	}
	moving := &store.Migration{State: migration.State{Source: "n1", Target: "n2"}}
	want := []store.Feed{store.Everything, {Host: "n1"}, {Host: "n2"}}
	for _, phase := range []migration.Phase{migration.TargetReady, migration.Failed} {
		moving.State.Phase = phase
		if diff := cmp.Diff(want, store.Feeds(moving)); diff != "" {
			t.Errorf("feeds when it is %v (-want +got):\n%s", phase, diff)
		}
	}
	moving.State.Phase = migration.PreparingTarget // the source has nothing to do yet
	if got := store.Feeds(moving); slices.Contains(got, store.Feed{Host: "n1"}) {
		t.Errorf("feeds while the target prepares: %v", got)
	}
	moving.Source.Began = true
	if diff := cmp.Diff(want, store.Feeds(moving)); diff != "" {
		t.Errorf("feeds once the source has begun (-want +got):\n%s", diff)
	}
}

func TestAStoredRecordIsACopy(t *testing.T) {
	s := store.NewMemory()
	v := vmOn("a", "n1")
	stored, _ := s.Put(ctx, v)
	v.Host = "n2"
	if got := stored.(*store.VM).Host; got != "n1" {
		t.Errorf("the store's record changed to %s", got)
	}
}

func TestWhoWatchesSeesEveryWriting(t *testing.T) {
	s := store.NewMemory()
	var seen [][2]store.Record
	s.Watch(func(old, now store.Record) { seen = append(seen, [2]store.Record{old, now}) })
	first, _ := s.Put(ctx, vmOn("a", "n1"))
	second, _ := s.Put(ctx, first)
	_, err := s.Put(ctx, first)
	wantKind(t, err, store.Stale)
	if err := s.Delete(ctx, second); err != nil {
		t.Fatal(err)
	}
	want := [][2]store.Record{{nil, first}, {first, second}, {second, nil}}
	if !slices.Equal(seen, want) {
		t.Errorf("seen: %v, want %v", seen, want)
	}
}

// reader keeps what it learns from one feed, as participants do.
type reader struct {
	feed  store.Feed
	since store.Revision
	known map[store.Key]store.Record
}

func (r *reader) pull(t *rapid.T, s *store.Memory) {
	c, err := s.Changes(ctx, r.feed, r.since)
	if err != nil {
		t.Fatal(err)
	}
	if c.Reset {
		r.known = map[store.Key]store.Record{}
	}
	for _, rec := range c.Records {
		if r.feed != store.Everything && !slices.Contains(rec.RelatedHosts(), r.feed.Host) {
			delete(r.known, rec.Key())
			continue
		}
		r.known[rec.Key()] = rec
	}
	for _, key := range c.Gone {
		delete(r.known, key)
	}
	r.since = c.Next
}

// naive is the store as a map, and what a feed must come to.
type naive map[store.Key]store.Record

func (n naive) feed(f store.Feed) map[store.Key]store.Record {
	in := map[store.Key]store.Record{}
	for k, r := range n {
		if f == store.Everything || slices.Contains(r.RelatedHosts(), f.Host) {
			in[k] = r
		}
	}
	return in
}

// change puts, moves or deletes a drawn record.
func (n naive) change(t *rapid.T, s *store.Memory) {
	hosts := rapid.SampledFrom([]host{"", "n1", "n2", "n3"})
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	var r store.Record = vmOn(name, hosts.Draw(t, "host"))
	if rapid.Bool().Draw(t, "migration") {
		r = &store.Migration{Spec: migration.Spec{ID: migration.ID(name)}, State: migration.State{
			Source: hosts.Draw(t, "source"), Target: hosts.Draw(t, "target"),
			Phase: rapid.SampledFrom([]migration.Phase{migration.Pending,
				migration.Running}).Draw(t, "phase")}}
	}
	key := r.Key()
	if old := n[key]; old != nil {
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			if err := s.Delete(ctx, old); err != nil {
				t.Fatal(err)
			}
			delete(n, key)
			return
		}
		r = r.WithVersion(old.RecordVersion())
	}
	stored, err := s.Put(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	n[key] = stored
}

func TestReadersOfAFeedMissNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := store.NewMemory(), naive{}
		readers := []*reader{}
		for _, h := range []host{"", "n1", "n2", "n9"} { // "" is everything
			f := store.Feed{Host: h}
			readers = append(readers, &reader{feed: f, known: map[store.Key]store.Record{}})
		}
		t.Repeat(map[string]func(*rapid.T){
			"something changes": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "changes") {
					model.change(t, s)
				}
			},
			"a reader catches up": func(t *rapid.T) {
				r := rapid.SampledFrom(readers).Draw(t, "reader")
				r.pull(t, s)
				if diff := cmp.Diff(model.feed(r.feed), r.known, words); diff != "" {
					t.Fatalf("feed %q (-want +got):\n%s", r.feed.Host, diff)
				}
			},
			"a reader starts anew": func(t *rapid.T) {
				r := rapid.SampledFrom(readers).Draw(t, "reader")
				r.since, r.known = 0, map[store.Key]store.Record{}
			},
			"": func(t *rapid.T) {
				if s.Len() != len(model) {
					t.Fatalf("%d records, want %d", s.Len(), len(model))
				}
			},
		})
	})
}

func TestAReaderThatIsFarBehindStartsAnew(t *testing.T) {
	s := store.NewMemory()
	stays, _ := s.Put(ctx, vmOn("stays", "n1"))
	gone, _ := s.Put(ctx, vmOn("gone", "n1"))
	left, _ := s.Put(ctx, vmOn("left", "n1"))
	c, _ := s.Changes(ctx, store.Feed{Host: "n1"}, 0)
	if err := s.Delete(ctx, gone); err != nil {
		t.Fatal(err)
	}
	moved := *left.(*store.VM)
	moved.Host = "n2"
	if _, err := s.Put(ctx, &moved); err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // more than is remembered
		stays, _ = s.Put(ctx, stays)
	}
	c, err := s.Changes(ctx, store.Feed{Host: "n1"}, c.Next)
	if err != nil || !c.Reset {
		t.Fatalf("Changes = %+v, %v", c, err)
	}
	if diff := cmp.Diff([]store.Record{stays}, c.Records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Who missed less than an eighth of everything need not read everything: not even when all
// hosts of a large cluster have written at once. What is stored then is what he learns.
func TestManyMayWriteAtOnce(t *testing.T) {
	const all, many = 16_000, 1_900
	s, stored := store.NewMemory(), make([]store.Record, all)
	for i := range stored {
		stored[i], _ = s.Put(ctx, vmOn(fmt.Sprint("v", i), "n1"))
	}
	for round := range 3 {
		before, err := s.Changes(ctx, store.Everything, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want []store.Record
		for i := range many {
			i = (round*many + i) % all
			stored[i], _ = s.Put(ctx, stored[i])
			want = append(want, stored[i])
		}
		c, err := s.Changes(ctx, store.Everything, before.Next)
		if err != nil || c.Reset || !slices.Equal(c.Records, want) {
			t.Fatalf("reset %t, %d of %d records, %v", c.Reset, len(c.Records), many, err)
		}
	}
}

// A record that was deleted and is stored again elsewhere is not gone.
func TestAReaderLearnsWhereADeletedRecordIsNow(t *testing.T) {
	s := store.NewMemory()
	first, _ := s.Put(ctx, vmOn("a", "n1"))
	c, _ := s.Changes(ctx, store.Feed{Host: "n1"}, 0)
	if err := s.Delete(ctx, first); err != nil {
		t.Fatal(err)
	}
	second, _ := s.Put(ctx, vmOn("a", "n2"))
	c, _ = s.Changes(ctx, store.Feed{Host: "n1"}, c.Next)
	if diff := cmp.Diff([]store.Record{second}, c.Records); diff != "" || len(c.Gone) > 0 {
		t.Errorf("gone: %v, records (-want +got):\n%s", c.Gone, diff)
	}
}

// What a reader was answered stays as it was, however much others ask.
func TestAnswersBelongToTheirReaders(t *testing.T) {
	s := store.NewMemory()
	r, _ := s.Put(ctx, vmOn("a", "n1"))
	c, _ := s.Changes(ctx, store.Everything, 0)
	var want, got [][]store.Record
	for i := range 500 {
		r, _ = s.Put(ctx, r)
		wrote := []store.Record{r}
		if i%3 == 0 {
			b, _ := s.Put(ctx, vmOn(fmt.Sprint("b", i), "n1"))
			wrote = append(wrote, b)
		}
		c, _ = s.Changes(ctx, store.Everything, c.Next)
		want, got = append(want, wrote), append(got, append(c.Records, nil)[:len(c.Records)])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestChangesComeInOrder(t *testing.T) {
	s := store.NewMemory()
	r := map[string]store.Record{}
	for _, name := range []string{"a", "b", "c"} {
		r[name], _ = s.Put(ctx, vmOn(name, "n1"))
	}
	c, _ := s.Changes(ctx, store.Everything, 0)
	for _, name := range []string{"c", "a", "c"} {
		r[name], _ = s.Put(ctx, r[name])
	}
	c, _ = s.Changes(ctx, store.Everything, c.Next)
	if diff := cmp.Diff([]store.Record{r["a"], r["c"]}, c.Records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	again, _ := s.Changes(ctx, store.Everything, c.Next)
	if diff := cmp.Diff(store.Changes{Next: c.Next}, again); diff != "" {
		t.Errorf("nothing has changed since (-want +got):\n%s", diff)
	}
}

func TestChangedNamesTheFeedsOnce(t *testing.T) {
	s := store.NewMemory()
	v, _ := s.Put(ctx, vmOn("a", "n1"))
	next := *v.(*store.VM)
	next.Host = "n2"
	if _, err := s.Put(ctx, &next); err != nil {
		t.Fatal(err)
	}
	want := []store.Feed{store.Everything, {Host: "n1"}, {Host: "n2"}}
	if diff := cmp.Diff(want, s.Changed()); diff != "" {
		t.Errorf("feeds (-want +got):\n%s", diff)
	}
	if more := s.Changed(); len(more) > 0 {
		t.Errorf("feeds %v changed again", more)
	}
}

func ExampleMemory() {
	records := store.NewMemory()
	first, _ := records.Put(ctx, vmOn("default/web", "n1"))

	claimed := *first.(*store.VM)
	claimed.ActiveMigration = "default/web#1"
	_, err := records.Put(ctx, &claimed)
	fmt.Println("the first writer:", err)

	other := *first.(*store.VM)
	other.ActiveMigration = "default/web#2"
	_, err = records.Put(ctx, &other)
	fmt.Println("the second:", err, errors.Is(err, store.Stale))
	// Output:
	// the first writer: <nil>
	// the second: store: Put default/web: written by another process true
}
