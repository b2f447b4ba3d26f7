package migration_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// causes are rules that end migrations; the first four speak against the target.
var causes = []string{"target-down", "overdue", "source-kept-vm", "target-expired", "canceled",
	"vm-missing"}

// drawAttempts draws a VM's history: distinct names, times in whole seconds.
func drawAttempts(t *rapid.T) []migration.Attempt {
	list := make([]migration.Attempt, rapid.IntRange(0, 9).Draw(t, "attempts"))
	for i := range list {
		created := rapid.IntRange(0, 2000).Draw(t, "age")
		list[i] = migration.Attempt{ID: migration.ID(fmt.Sprint("m", i)), Created: ago(created),
			By:     pick(t, migration.User, migration.Evacuation, migration.WorkloadUpdate),
			Phase:  pick(t, migration.Failed, migration.Succeeded, migration.Running),
			Target: pick(t, "", hypervisor.HostName("n1"), "n2", "n3"), Because: pick(t, causes...),
			Deleted:           rapid.IntRange(0, 5).Draw(t, "deleted") == 0,
			ReportedFailed:    rapid.Bool().Draw(t, "reported failed"),
			ReportedCompleted: rapid.Bool().Draw(t, "reported completed")}
		if list[i].Phase == migration.Failed && rapid.IntRange(0, 5).Draw(t, "dated") > 0 {
			list[i].FailedAt = ago(rapid.IntRange(0, created).Draw(t, "failed"))
		}
	}
	return list
}

// kubevirtBackoff is KubeVirt's handleMigrationBackoff, line by line; zero is
// "not in backoff". Only the cap is godwit's.
// Source: KubeVirt v1.9.0 migration.go:1049.
func kubevirtBackoff(self migration.ID, all []migration.Attempt, most time.Duration) time.Time {
	var migrations []migration.Attempt
	for _, m := range all {
		if m.By == migration.Evacuation || m.By == migration.WorkloadUpdate {
			migrations = append(migrations, m)
		}
	}
	if len(migrations) < 2 {
		return time.Time{}
	}
	slices.SortStableFunc(migrations, func(a, b migration.Attempt) int {
		return -a.Created.Compare(b.Created)
	})
	if migrations[0].ID != self {
		return time.Time{}
	}
	backoff := time.Second * 0
	for _, m := range migrations[1:] {
		if m.Phase == migration.Succeeded {
			break
		}
		if m.Deleted {
			continue
		}
		if m.Phase == migration.Failed {
			if backoff == 0 {
				backoff = time.Second * 20
			} else {
				backoff = min(backoff*2, most)
			}
		}
	}
	if backoff == 0 {
		return time.Time{}
	}
	return migrations[1].FailedAt.Add(backoff)
}

func TestBackoffEqualsTheOracle(t *testing.T) {
	lasts := 0
	rapid.Check(t, func(t *rapid.T) {
		all := drawAttempts(t)
		self := newest(all)
		want, got := kubevirtBackoff(self, all, 1<<62), compatible.Backoff(self, all)
		if got != want {
			t.Fatalf("compatible: %s, want %s", got, want)
		}
		want = kubevirtBackoff(self, all, byDefault.BackoffCap)
		if got := byDefault.Backoff(self, all); got != want {
			t.Fatalf("default: %s, want %s", got, want)
		}
		if !want.IsZero() {
			lasts++
		}
	})
	if lasts == 0 {
		t.Error("no history drawn backs off")
	}
}

// newest returns the newest repeated attempt: only that one can back off.
func newest(all []migration.Attempt) migration.ID {
	var best migration.Attempt
	for _, a := range all {
		if a.By != migration.User && (best.ID == "" || a.Created.After(best.Created)) {
			best = a
		}
	}
	return best.ID
}

// row is n failures in a row, one minute apart, the last just now, and a retry.
func row(n int) []migration.Attempt {
	all := []migration.Attempt{{ID: "self", By: migration.Evacuation, Created: now}}
	for i := range n {
		all = append(all, migration.Attempt{ID: migration.ID(fmt.Sprint("m", i)),
			By: migration.Evacuation, Phase: migration.Failed, Created: ago(60 * (i + 1)),
			FailedAt: ago(60 * i)})
	}
	return all
}

func TestBackoffGrowsAndIsCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := migration.Config{Compatible: rapid.Bool().Draw(t, "compatible"),
			BackoffBase: time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "base")),
			BackoffCap:  time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "cap"))}.Complete()
		n := rapid.IntRange(1, 70).Draw(t, "failures")
		shorter := config.Backoff("self", row(n)).Sub(now)
		longer := config.Backoff("self", row(n+1)).Sub(now)
		if shorter <= 0 || longer < shorter {
			t.Fatalf("after %d failures %s, then %s", n, shorter, longer)
		}
		if !config.Compatible && longer > config.BackoffCap {
			t.Fatalf("%s is more than %s", longer, config.BackoffCap)
		}
	})
}

func TestBackoff(t *testing.T) {
	user := func(all []migration.Attempt) []migration.Attempt {
		all[0].By = migration.User
		return all
	}
	succeeded := func(at int) []migration.Attempt {
		all := row(4)
		all[at].Phase = migration.Succeeded
		return all
	}
	for _, c := range []struct {
		name     string
		attempts []migration.Attempt
		want     time.Duration // from now on; 0 is none
	}{
		{"a first attempt starts at once", row(0), 0},
		{"after one failure it waits the base", row(1), 20 * time.Second},
		{"after three in a row four times as long", row(3), 80 * time.Second},
		{"after six it has reached the cap", row(6), 320 * time.Second},
		{"after sixty it still waits as long", row(60), 320 * time.Second},
		{"a user's request does not wait", user(row(3)), 0},
		{"a success ends the row", succeeded(3), 40 * time.Second},
		{"a success just before starts anew", succeeded(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := byDefault.Backoff("self", c.attempts)
			if c.want == 0 && !got.IsZero() || c.want != 0 && !got.Equal(now.Add(c.want)) {
				t.Errorf("until %s, want %s from now", got, c.want)
			}
		})
	}
}

func TestAvoidListsHostsThatFailedLately(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawAttempts(t)
		want := map[hypervisor.HostName]bool{}
		for _, a := range all {
			if a.Phase == migration.Failed && slices.Contains(causes[:4], a.Because) &&
				a.FailedAt.After(now.Add(-byDefault.AvoidFor)) {
				want[a.Target] = a.Target != ""
			}
		}
		got := byDefault.Avoid(all, now)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("%v is not sorted, or has doubles", got)
		}
		for _, host := range []hypervisor.HostName{"", "n1", "n2", "n3"} {
			if slices.Contains(got, host) != want[host] {
				t.Fatalf("%v: %q is wrong\n%+v", got, host, all)
			}
		}
		if left := byDefault.Avoid(all, now.Add(byDefault.AvoidFor)); len(left) > 0 {
			t.Fatalf("%v is remembered for too long", left)
		}
	})
}

func TestCollectKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawAttempts(t)
		config := migration.Config{Keep: rapid.IntRange(-2, 6).Draw(t, "keep")}.Complete()
		var ended []migration.Attempt
		for _, a := range all {
			if a.Phase.Final() && !a.Deleted {
				ended = append(ended, a)
			}
		}
		slices.SortFunc(ended, func(a, b migration.Attempt) int { // newest first
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
		})
		var want []migration.Collection
		for i, a := range ended {
			if i >= config.Keep {
				want = append(want, migration.Collection{ID: a.ID, DeleteTarget: a.ReportedFailed,
					DeleteSource: a.ReportedCompleted && !a.ReportedFailed})
			}
		}
		slices.Reverse(want)
		before := slices.Clone(all)
		if diff := gocmp.Diff(want, config.Collect(all)); diff != "" {
			t.Fatalf("collections (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(before, all); diff != "" {
			t.Fatalf("Collect changed its argument (-want +got):\n%s", diff)
		}
	})
}

func TestFailuresCountsTheLastRow(t *testing.T) {
	const f, s, r = migration.Failed, migration.Succeeded, migration.Running
	for _, row := range []struct {
		phases []migration.Phase
		want   int
	}{
		{nil, 0}, {[]migration.Phase{r}, 0}, {[]migration.Phase{f, f}, 2},
		{[]migration.Phase{f, f, s}, 0}, {[]migration.Phase{f, s, f, r}, 1},
	} {
		phase := func(i int) migration.Phase { return row.phases[i] }
		if got := migration.Failures(len(row.phases), phase); got != row.want {
			t.Errorf("%v: %d failures, want %d", row.phases, got, row.want)
		}
	}
}
