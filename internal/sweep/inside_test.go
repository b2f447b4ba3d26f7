package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// TestSeriesIsTheMean compares with what sums up millisecond by millisecond.
func TestSeriesIsTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 7).Draw(t, "width")
		from := time.Duration(rapid.IntRange(0, 50).Draw(t, "from")) * time.Millisecond
		c := buckets{from, time.Duration(width) * time.Millisecond}
		var s series
		naive := make([]float64, intervals)
		for range rapid.IntRange(0, 8).Draw(t, "intervals") {
			a := rapid.IntRange(-10, intervals*width+60).Draw(t, "a")
			b := rapid.IntRange(a-3, intervals*width+80).Draw(t, "b")
			level := float64(rapid.IntRange(1, 9).Draw(t, "level"))
			s.add(c, time.Duration(a)*time.Millisecond, time.Duration(b)*time.Millisecond, level)
			for ms := a; ms < b; ms++ {
				if k := ms - int(from.Milliseconds()); k >= 0 && k < intervals*width {
					naive[k/width] += level / float64(width)
				}
			}
		}
		for i, got := range s.means() {
			if math.Abs(got-naive[i]) > 0.0006 {
				t.Fatalf("bucket %d has %v, want %v", i, got, naive[i])
			}
		}
	})
}

// TestDistributionCountsEverything compares with a count of each bin, and naive percentiles.
func TestDistributionCountsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 200).Draw(t, "values")
		d := distribution(slices.Clone(values))
		for i, got := range d.Counts {
			want := 0
			for _, v := range values {
				low, high := d.Edges[i]*(1-1e-8), d.Edges[i+1]*(1-1e-8)
				if v = max(v, least); v >= low && v < high {
					want++
				}
			}
			if got != want {
				t.Fatalf("bin %v to %v has %d, want %d", d.Edges[i], d.Edges[i+1], got, want)
			}
		}
		for q, got := range map[float64]float64{0.5: d.P50, 0.9: d.P90, 0.99: d.P99, 1: d.Max} {
			below := 0
			for _, v := range values {
				if v <= got {
					below++
				}
			}
			if float64(below) < q*float64(len(values)) || !slices.Contains(values, got) {
				t.Fatalf("p%v is %v of %v", 100*q, got, values)
			}
		}
	})
}

// TestNaturalOrder is an order, and people's.
func TestNaturalOrder(t *testing.T) {
	want := []hypervisor.HostName{"1", "2", "10", "a", "a1", "a2", "a10", "b1-2", "b1-10"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural)
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// many returns the rows and the result of a run with n migrations, 20 from each host, two at
// a time, of which every 50th fails.
func many(n int) ([]row, sim.Result) {
	rows := make([]row, n)
	result := sim.Result{Migrations: sim.Totals{Total: n}, Evacuations: []sim.Evacuation{},
		Violations: []sim.Violation{}}
	var stood []float64
	for i := range rows {
		host, turn := i/20, i%20
		begun := time.Second + time.Duration(turn/2)*12*time.Second +
			time.Duration(host%97)*50*time.Millisecond
		took := 8*time.Second + time.Duration(i*7919%4000)*time.Millisecond
		r := &rows[i]
		r.vm = hypervisor.VMID(fmt.Sprintf("default/vm-%06d", i))
		r.source = hypervisor.HostName(fmt.Sprintf("n%d", host+1))
		r.target = hypervisor.HostName(fmt.Sprintf("m%d", host+1))
		r.at = [migration.Failed]time.Duration{time.Second, time.Second}
		for p := migration.Scheduling; p < migration.Running; p++ {
			r.at[p] = begun
		}
		r.at[migration.Running], r.at[ended] = begun+50*time.Millisecond, begun+took
		r.bytes = 4 * hypervisor.GiB
		r.downtime = time.Duration(20+i*104729%300) * time.Millisecond
		r.mode = hypervisor.Mode(i % 3)
		if i%50 == 49 {
			r.outcome, r.downtime, r.why = Failed, never, "target-down"
			result.Migrations.Failed++
		} else {
			stood = append(stood, milliseconds(r.downtime))
			result.Migrations.Succeeded++
		}
		result.BytesTransferred += r.bytes
		result.VirtualSeconds = max(result.VirtualSeconds, r.at[ended].Seconds())
	}
	slices.Sort(stood)
	at := func(q float64) float64 { return Quantile(stood, q) }
	result.Downtime = sim.Downtime{P50: at(0.5), P99: at(0.99), Max: at(1)}
	return rows, result
}

// flat is a plant of hosts alone.
var flat = plant{site: func(hypervisor.HostName) site { return site{link: 10 * hypervisor.Gbit} }}

// Many is the document of such a run.
func Many(n int) *ReportDocument {
	rows, result := many(n)
	d := reportSummarize(rows, result, flat)
	d.Scenario = fmt.Sprintf("%d migrations", n)
	return d
}

// TestLargeRunsAreBounded looks at what is listed of more than can be.
func TestLargeRunsAreBounded(t *testing.T) {
	testutil.Unraced(t)
	const n = 3 * MaxListed
	rows, result := many(n)
	rows[n-1].outcome, rows[12_345].downtime = Succeeded, 9*time.Second
	d := reportSummarize(rows, result, flat)
	if m := d.Migrations; m.Total != n || len(m.VM) != MaxListed || !slices.IsSorted(m.Created) {
		t.Fatalf("%d of %d are listed", len(m.VM), m.Total)
	}
	if got := distinct(d.Migrations.VM); got != MaxListed {
		t.Errorf("%d of those listed are different", got)
	}
	failed := 0
	for _, o := range d.Migrations.Outcome {
		if o == Failed {
			failed++
		}
	}
	if failed != n/50-1 {
		t.Errorf("%d that failed are listed, want %d", failed, n/50-1)
	}
	if !slices.Contains(d.Migrations.VM, "vm-012345") {
		t.Error("the longest downtime is not listed")
	}
	if d.Durations.Count != result.Migrations.Succeeded+1 {
		t.Errorf("%d durations are counted, not all", d.Durations.Count)
	}
	if len(d.Activity) != maxGroups || len(d.Links) != 2*maxLinks {
		t.Errorf("there are %d groups and %d links", len(d.Activity), len(d.Links))
	}
	for i := range d.Concurrency.Moving {
		sum := 0.0
		for _, a := range d.Activity {
			sum += a.Moving[i]
		}
		if math.Abs(sum-d.Concurrency.Moving[i]) > 0.001*maxGroups {
			t.Fatalf("the groups add up to %v, want %v", sum, d.Concurrency.Moving[i])
		}
	}
}

func distinct(names []string) int {
	names = slices.Clone(names)
	slices.Sort(names)
	return len(slices.Compact(names))
}

// TestPeak counts what begins when something else ends as after it.
func TestPeak(t *testing.T) {
	move := func(from, to time.Duration) row {
		r := row{}
		r.at[migration.Running], r.at[ended] = from*time.Second, to*time.Second
		return r
	}
	rows := []row{move(1, 3), move(3, 5), move(2, 4), move(4, 9)}
	if got := concurrency(rows, newBuckets(0, 10*time.Second)).Peak; got != 2 {
		t.Errorf("the peak is %d, want 2", got)
	}
}

// BenchmarkMillion makes the page of a million migrations.
func BenchmarkMillion(b *testing.B) {
	rows, result := many(1_000_000)
	for b.Loop() {
		d := reportSummarize(rows, result, flat)
		var page strings.Builder
		if err := d.WriteHTML(&page); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(page.Len())/1e6, "MB")
	}
}
