package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/bench"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
)

const gib = hypervisor.GiB

// named returns a candidate.
func named(t *testing.T, name string) bench.Candidate {
	t.Helper()
	all := bench.Candidates()
	i := slices.IndexFunc(all, func(c bench.Candidate) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no candidate %q", name)
	}
	return all[i]
}

// empty lets a candidate empty a cluster, and checks what holds in every run.
func empty(t *testing.T, c *bench.Cluster, who bench.Candidate) bench.Outcome {
	t.Helper()
	o, err := bench.Run(c, who, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range o.Violations {
		t.Errorf("%s, %s: violated %s: %s", c.Name, who.Name, v.Invariant, v.Detail)
	}
	if o.Left == 0 && o.Ratio < 1 {
		t.Errorf("%s, %s: took %v s, less than the lower bound %v s", c.Name, who.Name,
			o.TookSeconds, o.BoundSeconds)
	}
	return o
}

// The goals: at most 1.15 of the lower bound, and half of what KubeVirt's defaults take, in
// the median; nowhere slower, and nowhere with a longer downtime.
func TestAdaptiveEmptiesHostsInLittleMoreThanTheLowerBound(t *testing.T) {
	testutil.Unraced(t) // 24 evacuations, each in one goroutine
	set := bench.Set()
	kubevirt, adaptive := named(t, "KubeVirt QueueAll"), named(t, "adaptive")
	var outcomes []bench.Outcome
	var gains []float64
	for i := range set {
		theirs, ours := empty(t, &set[i], kubevirt), empty(t, &set[i], adaptive)
		if ours.Left > 0 || ours.Ratio > theirs.Ratio+0.005 {
			t.Errorf("%s: %v times the bound (%d left), KubeVirt %v", set[i].Name, ours.Ratio,
				ours.Left, theirs.Ratio)
		}
		if ours.Downtime.P99 > theirs.Downtime.P99 {
			t.Errorf("%s: p99 of the downtimes %v ms, KubeVirt %v ms", set[i].Name,
				ours.Downtime.P99, theirs.Downtime.P99)
		}
		outcomes = append(outcomes, ours)
		gains = append(gains, theirs.TookSeconds/ours.TookSeconds)
	}
	if m := bench.Medians(outcomes)["adaptive"]; m > 1.15 {
		t.Errorf("the median is %v times the lower bound, want at most 1.15", m)
	}
	slices.Sort(gains)
	if m := gains[(len(gains)-1)/2]; m < 2 {
		t.Errorf("KubeVirt takes %v times as long in the median, want at least 2: %v", m, gains)
	}
}

func TestPeersKeepTheInvariants(t *testing.T) {
	set := bench.Set()
	for _, who := range bench.Candidates() {
		empty(t, &set[0], who)
		t.Run("larger/"+who.Name, func(t *testing.T) {
			testutil.Unraced(t)
			empty(t, &set[11], who)
		})
	}
}

// A cluster of three hosts, the first of which is drained.
func three(sizes ...hypervisor.Bytes) *bench.Cluster {
	free := migration.Limits{PerCluster: migration.Unlimited, PerSource: migration.Unlimited,
		PerTarget: migration.Unlimited}
	c := &bench.Cluster{Name: "three", Drained: 1, Limits: free}
	for _, name := range []hypervisor.HostName{"a", "b", "c"} {
		c.Hosts = append(c.Hosts, hypervisor.Host{Name: name, Memory: 256 * gib, CPUs: 64,
			Link: 10 * hypervisor.Gbit})
	}
	for i, size := range sizes {
		c.Guests = append(c.Guests, bench.VM{VM: hypervisor.VM{
			ID: hypervisor.VMID([]string{"x/a", "x/b", "x/c"}[i]), Memory: size}})
	}
	return c
}

func TestTheLowerBoundIsTheNarrowestOfAll(t *testing.T) {
	ten := 10 * hypervisor.Gbit
	for _, row := range []struct {
		name   string
		change func(*bench.Cluster)
		want   time.Duration
	}{
		{"the source's link", func(*bench.Cluster) {}, (24 * gib).At(ten)},
		{"zeros cost nothing", func(c *bench.Cluster) { c.Guests[0].Load.Zero = 500 },
			(16 * gib).At(ten)},
		{"what stays where it is costs nothing", func(c *bench.Cluster) { c.Guests[0].Host = 1 },
			(8 * gib).At(ten)},
		{"all targets together", func(c *bench.Cluster) {
			c.Hosts[1].Link, c.Hosts[2].Link = ten/8, ten/8
			c.Guests[0].VM.Memory = 8 * gib
			c.Guests = append(c.Guests, c.Guests[1])
		}, (24 * gib).At(ten / 4)},
		{"one VM", func(c *bench.Cluster) {
			c.Hosts[1].Link, c.Hosts[2].Link = ten/2, ten
			c.Cap = ten / 4
		}, (16 * gib).At(ten / 4)},
		{"one VM with a local disk", func(c *bench.Cluster) {
			c.Guests[0].VM = c.Guests[0].VM.WithDisks([]hypervisor.Disk{{Name: "d", Size: 48 * gib},
				{Name: "e", Path: "/shared", Size: 500 * gib}})
			c.Cap = ten / 4
		}, (64 * gib).At(ten / 4)},
		{"the up-link of a rack", func(c *bench.Cluster) {
			c.RackSize, c.Uplink = 1, ten/8
		}, (24 * gib).At(ten / 8)},
		{"the limit of the cluster", func(c *bench.Cluster) {
			c.Cap, c.Limits.PerCluster = ten/8, 1
		}, (24 * gib).At(ten / 8)},
		{"the limit of the source", func(c *bench.Cluster) {
			c.Cap, c.Limits.PerSource = ten/8, 1
		}, (24 * gib).At(ten / 8)},
	} {
		c := three(16*gib, 8*gib)
		row.change(c)
		if got := c.Bound(); got.Round(time.Millisecond) != row.want.Round(time.Millisecond) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// Without costs beside the wire an idle guest takes little more than the bound.
func TestTheBoundIsTight(t *testing.T) {
	c := three(64 * gib)
	c.Guests[0].Load = fake.Workload{}
	if o := empty(t, c, named(t, "adaptive")); o.Ratio == 0 || o.Ratio > 1.02 {
		t.Errorf("one idle VM took %v times the bound", o.Ratio)
	}
}

func TestTheSetIsTheSameEveryTime(t *testing.T) {
	a, b := bench.Set(), bench.Set()
	if diff := cmp.Diff(a, b); diff != "" || len(a) != 12 {
		t.Errorf("%d clusters, or two sets differ:\n%s", len(a), diff)
	}
	found, err := bench.Find("limits", "rack")
	if err != nil || len(found) != 2 || found[0].Name != "limits" {
		t.Errorf("found %d clusters, %v", len(found), err)
	}
	if _, err := bench.Find("nowhere"); err == nil {
		t.Error("a cluster that does not exist was found")
	}
}

func TestMediansCountWhoNeverEnds(t *testing.T) {
	all := []bench.Outcome{{Candidate: "a", Ratio: 1}, {Candidate: "a", Ratio: 2},
		{Candidate: "a", Left: 1}, {Candidate: "b", Left: 1}, {Candidate: "c", Ratio: 3}}
	want := map[string]float64{"a": 2, "c": 3}
	if diff := cmp.Diff(want, bench.Medians(all)); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
}

func BenchmarkRack(b *testing.B) {
	c := bench.Set()[1]
	for _, who := range bench.Candidates() {
		b.Run(who.Name, func(b *testing.B) {
			for b.Loop() {
				o, err := bench.Run(&c, who, 1)
				if err != nil || o.Left > 0 {
					b.Fatal(o, err)
				}
				b.ReportMetric(o.Ratio, "×bound")
			}
		})
	}
}
