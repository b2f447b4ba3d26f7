package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

var epoch = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// defaults are those of a cluster that sets nothing.
var defaults = evacuation.Params{DrainKey: evacuation.DefaultDrainKey,
	Strategy: evacuation.LiveMigrate}

// at is a moment of the test's day.
func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func put(t testing.TB, s store.Store, records ...store.Record) {
	t.Helper()
	for _, r := range records {
		if _, err := s.Put(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func draining(name hypervisor.HostName) *store.Host {
	return &store.Host{Host: hypervisor.Host{Name: name, Memory: 16 * hypervisor.GiB, CPUs: 8,
		Link: 100 << 20}, Taints: []placement.Taint{{Key: evacuation.DefaultDrainKey,
		Effect: placement.NoSchedule}}}
}

func overviewVM(name string, host hypervisor.HostName) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID("default/" + name), Memory: hypervisor.GiB,
		CPUs: 1}, Host: host, Migratable: true, Boots: 1}
}

// moved is a migration that has succeeded.
func moved(n int, vm string, source, target hypervisor.HostName, end int, sent hypervisor.Bytes,
) *store.Migration {
	id := hypervisor.VMID("default/" + vm)
	return &store.Migration{Spec: migration.Spec{ID: migration.ID(fmt.Sprintf("%s#%d", id, n)), VM: id,
		Created: at(end - 10), By: migration.Evacuation},
		State: migration.State{Phase: migration.Succeeded, Source: source, Target: target,
			Entered: at(end)},
		Source: store.SourceReport{Began: true, Measured: true, Sent: sent,
			Downtime: 42 * time.Millisecond}}
}

// halfway is a drain of n1: one VM has left, one moves, one waits, one stays.
func halfway(t testing.TB) store.Store {
	s := store.NewMemory()
	moving, stuck := overviewVM("moving", "n1"), overviewVM("gpu", "n1")
	moving.ActiveMigration = "default/moving#1"
	stuck.Migratable, stuck.NotMigratableReason = false, "a GPU is passed through"
	lost := overviewVM("lost", "n3")
	put(t, s, draining("n1"), &store.Host{Host: hypervisor.Host{Name: "n2", CPUs: 8,
		Memory: 16 * hypervisor.GiB}}, &store.Host{Host: hypervisor.Host{Name: "n3",
		Memory: 16 * hypervisor.GiB}, NotReady: true}, moving, stuck, lost, overviewVM("waiting", "n1"),
		overviewVM("gone", "n2"), overviewVM("before", "n2"),
		&store.Leader{Name: "cluster", Holder: "controller/a", Term: 3},
		// before left n1 in an earlier drain; gpu came later: so that one has ended.
		moved(1, "before", "n1", "n2", -500, hypervisor.GiB),
		moved(1, "gpu", "n2", "n1", -400, hypervisor.GiB),
		moved(1, "gone", "n1", "n2", 50, hypervisor.GiB),
		&store.Migration{Spec: migration.Spec{ID: "default/moving#1", VM: "default/moving",
			Created: at(60), By: migration.Evacuation},
			State: migration.State{Phase: migration.Running, Source: "n1", Target: "n2",
				Entered: at(70)},
			Source: store.SourceReport{Began: true, Started: true, Looked: at(80),
				Sent: 768 << 20, Monitor: &convergence.State{Iteration: 1, Bandwidth: 100 << 20,
					Watermark: convergence.WatermarkState{PassLow: 256 << 20}}}})
	return s
}

func look(t testing.TB, s store.Store, now time.Time) *client.Overview {
	t.Helper()
	var c client.Cluster
	if err := c.Pull(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	return client.MakeOverview(&c, defaults, now)
}

// TestAFrame compares what a terminal shows of a drain with a file.
func TestAFrame(t *testing.T) {
	o := look(t, halfway(t), at(90))
	var out bytes.Buffer
	if err := (client.Frame{}).Print(&out, o); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/halfway.txt"
	if os.Getenv("GODWIT_UPDATE") != "" {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestADrainIsAddedUp: what has left since a VM last arrived, what moves and what waits.
func TestADrainIsAddedUp(t *testing.T) {
	o := look(t, halfway(t), at(90))
	if len(o.Drains) != 1 {
		t.Fatalf("%d drains", len(o.Drains))
	}
	d := &o.Drains[0]
	if len(d.Gone) != 1 || d.Gone[0] != "default/gone" {
		t.Errorf("%v are gone", d.Gone)
	}
	if d.Total != 3*hypervisor.GiB || d.Moved != hypervisor.GiB+768<<20 {
		t.Errorf("%v of %v has moved", d.Moved, d.Total)
	}
	// 256 MiB and 1 GiB are left, at 100 MiB/s.
	if e := d.ETA; e.Least == nil || *e.Least != 12800*time.Millisecond || e.P50 != nil || e.P95 != nil {
		t.Errorf("it takes %v", e)
	}
	if len(d.Stay) != 1 || d.Stay[0].Why != "it cannot migrate: a GPU is passed through" {
		t.Errorf("%v stay", d.Stay)
	}
	if len(o.Attention) != 1 || o.Attention[0].Name != "default/lost" {
		t.Errorf("%v need attention", o.Attention)
	}
}

// TestQuantilesAreToldWhenThereIsEnough: five for the median, twenty for the 95th percentile.
func TestQuantilesAreToldWhenThereIsEnough(t *testing.T) {
	var grown []float64
	for n := range 21 {
		e := client.EstimateETA(1000, 100, grown)
		if *e.Least != 10*time.Second || (e.P50 != nil) != (n >= 5) || (e.P95 != nil) != (n >= 20) {
			t.Errorf("after %d migrations: %v", n, e)
		}
		grown = append(grown, 1+float64(n)/10)
	}
	e := client.EstimateETA(1000, 100, grown) // 1.0 to 3.0
	if *e.P50 != 20*time.Second || *e.P95 != 29*time.Second {
		t.Errorf("p50 %v, p95 %v", *e.P50, *e.P95)
	}
	for _, e := range []client.ETA{client.EstimateETA(0, 100, grown),
		client.EstimateETA(1000, 0, grown), client.EstimateETA(1<<62, 1, grown)} {
		if e != (client.ETA{}) {
			t.Errorf("it is known: %v", e)
		}
	}
}

// TestSharesAreShares: of any drain the share is between 0 and 1, and complete only when no
// VM is left that leaves.
func TestSharesAreShares(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := store.NewMemory()
		put(t, s, draining("n1"), &store.Host{Host: hypervisor.Host{Name: "n2"}})
		left := 0
		for i := range rapid.IntRange(0, 8).Draw(r, "VMs") {
			v := overviewVM(fmt.Sprint("v", i), "n1")
			v.VM.Memory = hypervisor.Bytes(rapid.Int64Range(0, 1<<40).Draw(r, "memory"))
			if rapid.Bool().Draw(r, "gone") {
				v.Host = "n2"
				put(t, s, moved(1, fmt.Sprint("v", i), "n1", "n2", i, 1))
			} else {
				left++
			}
			put(t, s, v)
		}
		o := look(t, s, at(100))
		d := &o.Drains[0]
		if share := d.Share(); share < 0 || share > 1 {
			r.Fatalf("a share of %v", share)
		}
		if d.Empty() != (left == 0) || len(d.Gone)+len(d.Waiting) != len(o.Moves)+left {
			r.Fatalf("%d are left: %+v", left, d)
		}
	})
}

// TestAFrameFits: no line is wider, and there are not more lines, than the terminal has; control
// characters are not printed.
func TestAFrameFits(t *testing.T) {
	s := halfway(t)
	evil := overviewVM("x\x1b[2Jß漢", "n9")
	evil.Trouble = "\x1b]0;title\x07 " + strings.Repeat("long ", 50)
	put(t, s, evil)
	o := look(t, s, at(90))
	for _, f := range []client.Frame{{}, {Width: 40, Height: 10}, {Width: 1, Height: 1}, {Width: 200, Height: 3}} {
		var out bytes.Buffer
		if err := f.Print(&out, o); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if strings.ContainsAny(text, "\x1b\x07") || !utf8.ValidString(text) {
			t.Errorf("%v: it prints %q", f, text)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if f.Height > 2 && len(lines) >= f.Height {
			t.Errorf("%v: %d lines", f, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); f.Width > 1 && n > f.Width && !strings.HasPrefix(line, "…") {
				t.Errorf("%v: %d columns: %q", f, n, line)
			}
		}
	}
}

// flaky is a store that can be out of reach; writes fail the test.
type flaky struct {
	store.Store
	t   testing.TB
	err error
}

func (f *flaky) Changes(ctx context.Context, feed store.Feed, since store.Revision) (store.Changes,
	error) {
	if f.err != nil {
		return store.Changes{}, f.err
	}
	return f.Store.Changes(ctx, feed, since)
}

// TestAFollowerKeepsWhatItHasRead while the store does not answer, and says since when.
func TestAFollowerKeepsWhatItHasRead(t *testing.T) {
	s := &flaky{Store: halfway(t), t: t, err: errors.New("gone")}
	now := at(90)
	f := client.Follow(s, defaults, 0,
		func() time.Time { return now })
	if o := f.Look(t.Context()); o.Trouble != "gone" || len(o.Hosts) != 0 {
		t.Errorf("it has read %+v", o)
	}
	s.err = nil
	if o := f.Look(t.Context()); o.Trouble != "" || len(o.Hosts) != 3 {
		t.Errorf("it has read %+v", o)
	}
	s.err, now = errors.New("gone again"), at(95)
	if o := f.Look(t.Context()); o.Trouble != "gone again" || len(o.Hosts) != 3 || !o.At.Equal(at(90)) {
		t.Errorf("it has kept %+v", o)
	}
}

// TestASilentLeaderIsAnAlarm by the reader's clock, until it is heard again.
func TestASilentLeaderIsAnAlarm(t *testing.T) {
	s, now := halfway(t), at(90)
	lease := &store.Lease{Owner: "controller/a", Beats: 1}
	put(t, s, lease)
	f := client.Follow(s, defaults, 0, func() time.Time { return now })
	patient := client.Follow(s, defaults, time.Hour, func() time.Time { return now })
	for _, row := range []struct {
		at    int
		beats bool
		want  int
	}{{90, false, 0}, {115, false, 0}, {121, false, 1}, {122, true, 0}, {150, false, 0}, {153, false, 1}} {
		now = at(row.at)
		if row.beats {
			next := *lease
			next.Beats++
			r, _ := s.Get(t.Context(), lease.Key())
			put(t, s, next.WithVersion(r.RecordVersion()))
		}
		o := f.Look(t.Context())
		if len(o.Alarms) != row.want {
			t.Errorf("at %d s: %v", row.at, o.Alarms)
		}
		if o := patient.Look(t.Context()); len(o.Alarms) != 0 {
			t.Errorf("at %d s, where controllers wait for an hour: %v", row.at, o.Alarms)
		}
	}
}

// TestAFollowerWritesNothing: what it reads from refuses every write.
func TestAFollowerWritesNothing(t *testing.T) {
	s := client.ReadOnly(halfway(t))
	h, err := store.HostNamed(t.Context(), s, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), h); !errors.Is(err, store.Unavailable) {
		t.Errorf("it is written: %v", err)
	}
	if err := s.Delete(t.Context(), h); !errors.Is(err, store.Unavailable) {
		t.Errorf("it is deleted: %v", err)
	}
}
