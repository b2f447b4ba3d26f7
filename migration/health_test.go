package migration_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// ends lets migrations end; each line is one.
type end struct {
	vm, source, target string
	at                 time.Duration
	fault              migration.Fault // NoFault has succeeded
}

func ledger(ends ...end) *migration.TargetHealth {
	l := &migration.TargetHealth{}
	for i, e := range ends {
		o := outcome(i, e)
		l.Add(&o)
	}
	return l
}

func outcome(i int, e end) migration.TransferOutcome {
	return migration.TransferOutcome{ID: hypervisor.JobID(fmt.Sprint(i)), VM: hypervisor.VMID(e.vm),
		Source: hypervisor.HostName(e.source), Target: hypervisor.HostName(e.target),
		At: at(e.at), Succeeded: e.fault == migration.NoFault, Fault: e.fault, Why: "receive hangs"}
}

const s, m = time.Second, time.Minute

func TestTargetThatFailedOneVMIsLeftAloneByAll(t *testing.T) {
	l := ledger(end{"v1", "n1", "n2", 5 * m, migration.Preparing})
	for _, from := range []hypervisor.HostName{"n1", "n7", ""} {
		trouble, is := l.Receiving("n2", from, at(5*m))
		if !is || !trouble.Again.Equal(at(5*m+20*s)) || trouble.Failures != 1 {
			t.Errorf("from %q: %v %+v", from, is, trouble)
		}
	}
	if _, is := l.Receiving("n3", "n1", at(5*m)); is {
		t.Error("n3 has done nothing")
	}
	if _, is := l.Sending("n1", at(5*m)); is {
		t.Error("n1 has done nothing")
	}
}

func TestBackoffDoublesWithEveryProbeAndIsAnHourAtMost(t *testing.T) {
	now, l := time.Duration(0), ledger()
	for i, want := range []time.Duration{20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 640 * s,
		1280 * s, 2560 * s, time.Hour, time.Hour} {
		o := outcome(i, end{fmt.Sprint("v", i), "n1", "n2", now, migration.Preparing})
		l.Add(&o)
		trouble, _ := l.Receiving("n2", "n1", at(now))
		if got := trouble.Again.Sub(at(now)); got != want || trouble.Failures != i+1 {
			t.Errorf("after %d failures: %v, want %v", i+1, got, want)
		}
		now += want + 30*s
	}
}

func TestMigrationsThatFailTogetherAreOneRound(t *testing.T) {
	var ends []end
	for i := range 5 {
		ends = append(ends, end{fmt.Sprint("v", i), "n1", "n2", time.Duration(i) * s,
			migration.Preparing})
	}
	trouble, _ := ledger(ends...).Receiving("n2", "n1", at(4*s))
	if got := trouble.Again.Sub(at(4 * s)); got != 20*s || trouble.Failures != 5 {
		t.Errorf("%d failures, %v", trouble.Failures, got)
	}
}

func TestWhichHostAFailureSpeaksAgainst(t *testing.T) {
	broke, refused, begins := migration.Sending, migration.Refusing, migration.Beginning
	way := func(s, d string) end { return end{"v", s, d, 0, broke} }
	for _, test := range []struct {
		name         string
		ends         []end
		target, from hypervisor.HostName
		in           bool // the target is in trouble for VMs from there
		out          bool // from is in trouble as source
	}{
		{"a broken transfer is the way's", []end{way("n1", "n2")}, "n2", "n1", true, false},
		{"and no other host's", []end{way("n1", "n2")}, "n2", "n3", false, false},
		{"from two sources it is the target's", []end{way("n1", "n2"), way("n3", "n2")},
			"n2", "n4", true, false},
		{"to two targets it is the source's", []end{way("n1", "n2"), way("n1", "n3")},
			"n4", "n1", false, true},
		{"then the targets are not to blame", []end{way("n1", "n2"), way("n1", "n3"),
			way("n4", "n2")}, "n2", "n5", false, false},
		{"a success elsewhere excuses the source, not the way", []end{way("n1", "n2"),
			way("n1", "n3"), {"w", "n1", "n4", s, 0}}, "n2", "n1", true, false},
		{"a success from elsewhere excuses the target", []end{way("n1", "n2"), way("n3", "n2"),
			{"w", "n4", "n2", s, 0}}, "n2", "n5", false, false},
		{"one VM is refused", []end{{"v", "n1", "n2", 0, refused}, {"v", "n1", "n2", s, refused},
			{"v", "n1", "n2", 2 * s, refused}}, "n2", "n1", false, false},
		{"three VMs are refused", []end{{"v", "n1", "n2", 0, refused},
			{"w", "n1", "n2", 0, refused}, {"x", "n1", "n2", 0, refused}}, "n2", "n1", true, false},
		{"a source does not begin", []end{{"v", "n1", "n2", 0, begins}}, "n2", "n1", false, true},
		{"a success clears the target", []end{{"v", "n1", "n2", 0, migration.Preparing},
			{"w", "n3", "n2", s, 0}}, "n2", "n1", false, false},
		{"an older success does not", []end{{"w", "n3", "n2", 0, 0},
			{"v", "n1", "n2", s, migration.Preparing}}, "n2", "n1", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := ledger(test.ends...)
			if _, in := l.Receiving(test.target, test.from, at(3*s)); in != test.in {
				t.Errorf("%s as target for %s: %v", test.target, test.from, in)
			}
			if _, out := l.Sending(test.from, at(3*s)); out != test.out {
				t.Errorf("%s as source: %v", test.from, out)
			}
		})
	}
}

func TestTroubleFadesWithTime(t *testing.T) {
	l := ledger(end{"v1", "n1", "n2", 0, migration.Preparing}, end{"v2", "n1", "n2", m,
		migration.Preparing})
	for _, test := range []struct {
		at   time.Duration
		want bool
	}{{m, true}, {100*s + time.Hour, true}, {100*s + 2*time.Hour, false}} {
		if _, is := l.Receiving("n2", "n1", at(test.at)); is != test.want {
			t.Errorf("after %v: %v", test.at, is)
		}
	}
	late := outcome(9, end{"v3", "n1", "n2", 48 * time.Hour, migration.Preparing})
	l.Add(&late)
	if trouble, _ := l.Receiving("n2", "n1", late.At); trouble.Again.Sub(late.At) != 20*s {
		t.Errorf("what is two days old still counts: %v", trouble.Again.Sub(late.At))
	}
}

func TestTroubleInWords(t *testing.T) {
	for _, test := range []struct {
		trouble migration.HealthProblem
		want    string
	}{
		{migration.HealthProblem{Failures: 3, Why: "receive hangs", Again: at(4 * m)},
			"3 migrations failed in a row (receive hangs); tried again in 4m"},
		{migration.HealthProblem{Failures: 1, Again: at(19500 * time.Millisecond)},
			"1 migration failed; tried again in 20s"},
		{migration.HealthProblem{Failures: 2, Again: at(61 * m)},
			"2 migrations failed in a row; tried again in 1h01m"},
		{migration.HealthProblem{Failures: 2, Again: at(0)},
			"2 migrations failed in a row; one migration tries it again"},
	} {
		if got := test.trouble.String(start); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A ledger from which everything is forgotten is one to which nothing was ever added.
func TestForgottenMigrationsSpeakAgainstNoHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, all := &migration.TargetHealth{}, []migration.TransferOutcome(nil)
		host := func(what string) string {
			return rapid.SampledFrom([]string{"n1", "n2", "n3", ""}).Draw(t, what)
		}
		for i := range rapid.IntRange(0, 20).Draw(t, "ends") {
			o := outcome(i, end{rapid.SampledFrom([]string{"v", "w", "x", "y"}).Draw(t, "vm"),
				host("source"), host("target"),
				time.Duration(i) * time.Duration(rapid.IntRange(0, 100).Draw(t, "s")) * s,
				migration.Fault(rapid.IntRange(0, int(migration.Sending)).Draw(t, "fault"))})
			l.Add(&o)
			all = append(all, o)
			for _, name := range l.Hosts() { // it is total, and waits within its bounds
				for _, from := range []hypervisor.HostName{"n1", "n2", ""} {
					trouble, is := l.Receiving(name, from, o.At)
					if wait := trouble.Again.Sub(trouble.Last); is &&
						(wait < 20*s || wait > time.Hour || trouble.Failures < 1) {
						t.Fatalf("%+v", trouble)
					}
				}
				l.Sending(name, o.At)
			}
		}
		for i := range all {
			l.Forget(&all[i])
		}
		if left := l.Hosts(); len(left) > 0 {
			t.Fatalf("%v", left)
		}
	})
}

// Until Next nothing that is said of a host changes, and then something does.
func TestWhatSpeaksAgainstAHostChangesAtNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, last := &migration.TargetHealth{}, time.Duration(0)
		host := func(what string) string { return rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, what) }
		for i := range rapid.IntRange(0, 12).Draw(t, "ends") {
			last += time.Duration(rapid.IntRange(0, 3000).Draw(t, "s")) * s
			o := outcome(i, end{rapid.SampledFrom([]string{"v", "w", "x", "y"}).Draw(t, "vm"), host("source"),
				host("target"), last, migration.Fault(rapid.IntRange(0, int(migration.Sending)).Draw(t, "fault"))})
			l.Add(&o)
		}
		name, now := hypervisor.HostName(host("host")), at(last+time.Duration(rapid.IntRange(0, 20000).Draw(t, "later"))*s)
		said := func(now time.Time) (all string) {
			for _, from := range []hypervisor.HostName{"n1", "n2", "n3", ""} {
				p, is := l.Receiving(name, from, now)
				all += fmt.Sprint(is, p.Again.After(now), " ")
			}
			p, is := l.Sending(name, now)
			return all + fmt.Sprint(is, p.Again.After(now))
		}
		next := l.Next(name, now)
		if !next.IsZero() && (!next.After(now) || said(next) == said(now)) {
			t.Fatalf("at %v: %s, and at %v: %s", now, said(now), next, said(next))
		}
		within := 100 * time.Hour
		if !next.IsZero() {
			within = next.Sub(now) - 1
		}
		for i := range time.Duration(50) {
			if between := now.Add(within / 50 * (i + 1)); said(between) != said(now) {
				t.Fatalf("at %v: %s, and at %v, before %v: %s", now, said(now), between, next, said(between))
			}
		}
	})
}
