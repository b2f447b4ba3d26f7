package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// small is a scenario in which events find their hosts and VMs.
const small = `
name: small
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 16, link: 10Gbit/s}
vms:
- {name: "web-[1-2]", host: n1, memory: 4GiB, cpus: 2, class: idle}
- {name: db, namespace: prod, host: n2, memory: 8GiB, cpus: 4, class: web}
`

func parse(t testing.TB, text string) *config.Scenario {
	t.Helper()
	s, err := config.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// good is an event as it is written, and what it means.
type good struct {
	text string
	want sim.Event
}

const web, db = hypervisor.VMID("default/web-1"), hypervisor.VMID("prod/db")

// operators are the events of operators and other controllers, one of each at
// least.
var operators = []good{
	{"drain n1", sim.Drain{Host: "n1"}},
	{"drain n1 unmovable=ShutDown grace=5m", sim.Drain{Host: "n1", Terms: evacuation.Terms{
		OnUnmovable: evacuation.ShutDown, Grace: 5 * time.Minute}}},
	{"undrain n1", sim.Undrain{Host: "n1"}},
	{"cordon n2", sim.Close{Host: "n2"}},
	{"uncordon n2", sim.Open{Host: "n2"}},
	{"mark web-1", sim.Mark{VM: web}},
	{"mark default/web-1", sim.Mark{VM: web}},
	{"unmark prod/db", sim.Unmark{VM: db}},
	{"pause web-1", sim.Pause{VM: web}},
	{"resume prod/db", sim.Resume{VM: db}},
	{"migrate web-1", sim.Migrate{VM: web}},
	{"migrate web-1 to=n3", sim.Migrate{VM: web, Target: "n3"}},
	{"migrate web-1 to=n3 force=yes", sim.Migrate{VM: web, Target: "n3", Force: placement.Yes}},
	{"migrate web-1 to=n3 force=no", sim.Migrate{VM: web, Target: "n3", Force: placement.No}},
	{"migrate web-1 to=n3 compat=yes", sim.Migrate{VM: web, Target: "n3", Compat: true}},
	{"migrate web-1 priority=system-critical to=n3",
		sim.Migrate{VM: web, Target: "n3", Priority: migration.SystemCritical}},
	{"migrate to=n3 web-1", sim.Migrate{VM: web, Target: "n3"}},
	{"cancel web-1", sim.Cancel{VM: web}},
	{"delete web-1", sim.Delete{VM: web}},
	{"stop web-1", sim.Stop{VM: web}},
	{"start web-1", sim.Change{VM: web, What: "start"}},
	{"reboot web-1", sim.Change{VM: web, What: "reboot"}},
	{"resize web-1 memory=8GiB", sim.Change{VM: web, What: "resize to 8GiB"}},
	{"resize web-1 cpus=4 memory=8GiB",
		sim.Change{VM: web, What: "resize to 8GiB with 4 CPUs"}},
	{"attach-disk web-1 data path=/nfs/data", sim.Change{VM: web, What: "attach disk data"}},
	{"detach-disk web-1 data", sim.Change{VM: web, What: "detach disk data"}},
	{"move-disk web-1 data path=/nfs/data", sim.Change{VM: web, What: "move disk data"}},
	{"hold web-1 backup", sim.Change{VM: web, What: "held by backup"}},
	{"unhold web-1 memory", sim.Change{VM: web, What: "no longer held by memory"}},
	{"detach web-1",
		sim.Tamper{VM: web, What: "what attaches its volumes at the target ends"}},
	{"claim web-1 by=default/web-1#u1",
		sim.Change{VM: web, What: `its claim is overwritten with "default/web-1#u1"`}},
	{"release web-1 by=alice", sim.Release{VM: web, By: "alice"}},
	{"claim web-1 by=none", sim.Change{VM: web, What: `its claim is overwritten with ""`}},
	{"load web-1 rate=200MiB/s hot=1GiB", sim.Load{VM: web,
		Load: fake.Workload{Rate: 200 << 20, Hot: hypervisor.GiB}}},
}

// faults are the events of fate.
var faults = []good{
	{"configure bandwidth=800MiB/s", sim.Configure{Bandwidth: hypervisor.Bandwidth(800 << 20)}},
	{"crash-controller for=10s", sim.CrashController{For: 10 * time.Second}},
	{"crash-controller for=10s after=0",
		sim.CrashController{For: 10 * time.Second, After: new(0)}},
	{"crash-agent n1 for=1m after=3",
		sim.CrashAgent{Host: "n1", For: time.Minute, After: new(3)}},
	{"second-agent n1", sim.SecondAgent{Host: "n1"}},
	{"second-agent n1 directory=new for=1m", sim.SecondAgent{Host: "n1", For: time.Minute}},
	{"second-agent n1 directory=copied", sim.SecondAgent{Host: "n1", Copied: true}},
	{"backup", sim.Backup{}},
	{"set-back", sim.SetBack{}},
	{"set-back forgotten=yes", sim.SetBack{Forgotten: true}},
	{"reconcile", sim.Reconcile{}},
	{"empty-directory n2", sim.EmptyDirectory{Host: "n2"}},
	{"empty-directory n2 for=5s", sim.EmptyDirectory{Host: "n2", For: 5 * time.Second}},
	{"adopt n2", sim.Adopt{Host: "n2"}},
	{"confirm-down n3", sim.Dead{Host: "n3"}},
	{"drop-notifications n1 for=5s", sim.DropNotifications{Host: "n1", For: 5 * time.Second}},
	{"drop-notifications controller for=5s", sim.DropNotifications{For: 5 * time.Second}},
	{"repeat controller", sim.Repeat{}},
	{"repeat n3", sim.Repeat{Host: "n3"}},
	{"stale-reads n2 for=1m30s", sim.StaleReads{Host: "n2", For: 90 * time.Second}},
	{"conflict prod/db", sim.Conflict{VM: db}},
	{"mute n1", sim.DropAnswers{Host: "n1", Times: 1}},
	{"mute controller times=4", sim.DropAnswers{Times: 4}},
	{"full-store for=200ms", sim.FullStore{For: 200 * time.Millisecond}},
	{"crash-hypervisor n1 for=1h", sim.CrashHypervisor{Host: "n1", For: time.Hour}},
	{"break n1 how=FailBefore",
		sim.Break{Fault: fake.Fault{Host: "n1", How: fake.FailBefore}}},
	{"break n1 how=LateEffect op=Migrate times=2 delay=3s",
		sim.Break{Fault: fake.Fault{Host: "n1", How: fake.LateEffect, Op: "Migrate", Times: 2,
			Delay: 3 * time.Second}}},
	{"break n1 how=Hang op=StartPostCopy delay=1s",
		sim.Break{Fault: fake.Fault{Host: "n1", How: fake.Hang, Op: "StartPostCopy",
			Delay: time.Second}}},
	{"cut n1 n2", sim.CutLink{A: "n1", B: "n2"}},
	{"cut n1 n2 for=1m", sim.CutLink{A: "n1", B: "n2", For: time.Minute}},
	{"reset n3 n1", sim.ResetLink{A: "n3", B: "n1"}},
	{"kill web-1 n1", sim.KillVM{VM: web, Host: "n1"}},
	{"crash n1", sim.CrashHost{Host: "n1"}},
	{"crash n1 for=5m", sim.CrashHost{Host: "n1", For: 5 * time.Minute}},
	{"fence n1", sim.Fence{Host: "n1"}},
	{"return n1", sim.Return{Host: "n1"}},
	{"skew n1 by=40s", sim.Skew{Host: "n1", By: 40 * time.Second}},
	{"skew controller by=-2m", sim.Skew{By: -2 * time.Minute}},
}

// alike compares events; what functions do has a test of its own.
var alike = cmpopts.IgnoreTypes(func(*store.VM) {}, func(*store.Migration) {})

func TestEventsMeanWhatTheySay(t *testing.T) {
	s := parse(t, small)
	for _, tt := range slices.Concat(operators, faults) {
		t.Run(tt.text, func(t *testing.T) {
			got, err := s.Event(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			want := config.Scheduled{Text: tt.text, What: tt.want}
			if diff := cmp.Diff(want, got, alike); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func word(text string) string { return strings.Fields(text)[0] }

// TestEveryVerbIsTested keeps the tables complete: every verb has a good row and
// a bad one.
func TestEveryVerbIsTested(t *testing.T) {
	var asked, done, refused []string
	for _, usage := range config.Verbs() {
		asked = append(asked, word(usage))
	}
	for _, row := range slices.Concat(operators, faults) {
		done = append(done, word(row.text))
	}
	for _, row := range badVerbs {
		refused = append(refused, word(row.text))
	}
	slices.Sort(asked)
	for _, tt := range []struct {
		table string
		words []string
	}{{"good", done}, {"bad", refused}} {
		slices.Sort(tt.words)
		if diff := cmp.Diff(asked, slices.Compact(tt.words)); diff != "" {
			t.Errorf("verbs of the %s rows (-Verbs() +rows):\n%s", tt.table, diff)
		}
	}
}

// Scenarios of earlier versions are read, and every event says what it does.
func TestOldWordsOfEventsAreRead(t *testing.T) {
	s := parse(t, small)
	for old, now := range map[string]string{"close n2": "cordon n2", "open n2": "uncordon n2", "dead n3": "confirm-down n3",
		"deafen n1 for=5s": "drop-notifications n1 for=5s", "freeze n2 for=5s": "stale-reads n2 for=5s"} {
		a, err := s.Event(old)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := s.Event(now); err != nil || !cmp.Equal(a.What, b.What) {
			t.Errorf("%s is %+v, and %s is %+v, %v", old, a.What, now, b.What, err)
		}
	}
	for _, help := range config.EventHelp() {
		if help[1] == "" {
			t.Errorf("%s says not what it does", help[0])
		}
	}
}

func TestWhenEventsHappen(t *testing.T) {
	s := parse(t, small)
	drain := sim.Drain{Host: "n1"}
	tests := []struct {
		name, text string
		want       config.Scheduled
	}{
		{"without a time at once", "drain n1", config.Scheduled{What: drain}},
		{"at zero at once", "0s drain n1", config.Scheduled{What: drain}},
		{"after a time", "10s drain n1",
			config.Scheduled{At: 10 * time.Second, What: drain}},
		{"times have several units", "1h2m3.5s drain n1",
			config.Scheduled{At: time.Hour + 2*time.Minute + 3500*time.Millisecond,
				What: drain}},
		{"more space does not matter", "  10s   drain\tn1 ",
			config.Scheduled{At: 10 * time.Second, What: drain}},
		{"when a migration comes to a phase", "when web-1=Running drain n1",
			config.Scheduled{
				What: sim.When{VM: web, Phase: migration.Running, Do: drain}}},
		{"with a namespace", "when prod/db=TargetReady cancel prod/db",
			config.Scheduled{What: sim.When{VM: db, Phase: migration.TargetReady,
				Do: sim.Cancel{VM: db}}}},
		{"when it has failed", "when web-1=Failed migrate web-1 to=n2",
			config.Scheduled{What: sim.When{VM: web, Phase: migration.Failed,
				Do: sim.Migrate{VM: web, Target: "n2"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Event(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Text = tt.text
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldsAreSetAndTakenBack(t *testing.T) {
	s := parse(t, small)
	tests := []struct {
		what string
		want store.Blockers
	}{
		{"backup", store.Blockers{Backup: true}},
		{"utility", store.Blockers{UtilityVolumes: true}},
		{"hotplug", store.Blockers{Hotplug: true}},
		{"cpu", store.Blockers{CPUChange: true}},
		{"memory", store.Blockers{MemoryChange: true}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			v := store.VM{VM: hypervisor.VM{ID: web}}
			for _, step := range []struct {
				verb string
				want store.Blockers
			}{{"hold", tt.want}, {"hold", tt.want}, {"unhold", store.Blockers{}}} {
				e, err := s.Event(step.verb + " web-1 " + tt.what)
				if err != nil {
					t.Fatal(err)
				}
				e.What.(sim.Change).How(&v)
				if diff := cmp.Diff(step.want, v.Blockers); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", step.verb, diff)
				}
			}
		})
	}
}

func TestClaimsAndDetachingChangeRecords(t *testing.T) {
	s := parse(t, small)
	v, m := store.VM{ActiveMigration: "before"}, store.Migration{}
	for text, want := range map[string]migration.ID{"claim web-1 by=m7": "m7",
		"claim web-1 by=none": ""} {
		e, err := s.Event(text)
		if err != nil {
			t.Fatal(err)
		}
		if e.What.(sim.Change).How(&v); v.ActiveMigration != want {
			t.Errorf("after %q the claim is %q, want %q", text, v.ActiveMigration, want)
		}
	}
	e, err := s.Event("detach web-1")
	if err != nil {
		t.Fatal(err)
	}
	if e.What.(sim.Tamper).How(&m); !m.Target.Detached {
		t.Error("detach does not say that the volumes are detached")
	}
}

func TestOrdersChangeRecords(t *testing.T) {
	s := parse(t, small)
	v := store.VM{VM: hypervisor.VM{ID: web, Memory: 4 << 30, CPUs: 2}, Stopped: true}
	for _, text := range []string{"start web-1", "reboot web-1", "reboot web-1",
		"resize web-1 memory=8GiB", "resize web-1 cpus=3"} {
		e, err := s.Event(text)
		if err != nil {
			t.Fatal(err)
		}
		e.What.(sim.Change).How(&v)
	}
	want := store.VM{VM: hypervisor.VM{ID: web, Memory: 8 << 30, CPUs: 3}, Reboots: 2}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
