package agent_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// options returns what a policy for all VMs comes to, as a scenario writes it.
func options(t *testing.T, written string) *migration.Options {
	t.Helper()
	s, err := config.Parse("scenario", []byte(`
hosts: [{name: n1, memory: 4GiB, cpus: 4, link: 1Gbit/s}]
policies:
- {name: all, selectors: {namespaceSelector: {}}, `+written+`}
`))
	if err != nil {
		t.Fatal(err)
	}
	o := s.Fleet.Policies[0].Apply(s.Fleet.Config.Options())
	return &o
}

// ends lets a transfer be watched of which 0.5 % less is left with each sample, and returns what
// ends it, and when; nothing in a minute is nothing.
func ends(o *migration.Options) (time.Duration, convergence.Decision) {
	begun := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	var s convergence.State
	for n := range 30 {
		at := time.Duration(2*n) * time.Second
		p := hypervisor.Progress{Status: hypervisor.JobActive, Started: begun, Total: 4 << 30,
			Iteration: 1 + n/2, Sent: hypervisor.Bytes(n) * 200 * hypervisor.MiB,
			Remaining: hypervisor.Bytes(1000-n) * hypervisor.MiB,
			Bandwidth: hypervisor.Bandwidth(100 * hypervisor.MiB)}
		next, v := convergence.Converge(agent.MonitorOptions(o, p), s, p, begun.Add(at))
		if v.Action != convergence.Continue && v.Why != convergence.Tuning {
			return at, v
		}
		s = next.Accepted(v, begun.Add(at))
	}
	return 0, convergence.Decision{}
}

// A margin of 0 is 0, all the way from the file to the running migration: what progresses, if
// slowly, is no stall.
func TestAStallMarginOf0IsNotTheDefault(t *testing.T) {
	const detector = `allowPostCopy: true, experimental: {stallDetector: {stallProgressTimeout: 10s,
  searchLocalMinima: false`
	for _, row := range []struct {
		written string
		at      time.Duration
		want    convergence.Decision
	}{
		{"", 16 * time.Second, convergence.Decision{Action: convergence.StartPostCopy,
			Why: convergence.Stalled}},
		{", stallMargin: 4", 16 * time.Second, convergence.Decision{
			Action: convergence.StartPostCopy, Why: convergence.Stalled}},
		{", stallMargin: 0", 0, convergence.Decision{}},
	} {
		at, v := ends(options(t, detector+row.written+"}}"))
		if at != row.at || v != row.want {
			t.Errorf("with %q: %v at %v, want %v at %v", row.written, v, at, row.want, row.at)
		}
	}
}

// Every zero that a policy may write arrives as one.
func TestAWrittenZeroArrivesAsZero(t *testing.T) {
	c := agent.MonitorOptions(options(t, `completionTimeoutPerGiB: 0s, experimental: {stallDetector: {
  stallMargin: 0, stallProgressTimeout: 0s, switchoverTimeout: 0s, patienceWindowDecayFactor: 0,
  searchLocalMinima: false}}`), hypervisor.Progress{})
	want := convergence.DefaultStallDetector()
	want.StallMargin, want.StallProgressTimeout, want.SwitchoverTimeout = 0, 0, 0
	want.PatienceWindowDecayFactor, want.SearchLocalMinima = 0, false
	if c.StallDetector == nil || *c.StallDetector != want {
		t.Errorf("the detector is %+v, want %+v", c.StallDetector, want)
	}
	if c.CompletionTimeoutPerGiB != 0 || c.Method != convergence.Stall {
		t.Errorf("%v for each GiB by %v, want none by Stall", c.CompletionTimeoutPerGiB, c.Method)
	}
}

// There is no option that gets lost between the controller and those who carry a migration
// out: a change of any changes what one of them is told, but for those that nothing goes by.
func TestEveryOptionReachesItsUser(t *testing.T) {
	// These are read and resolved as KubeVirt does, and nothing of godwit's goes by them yet.
	others := []string{"UtilityVolumesTimeout", "Network", "MatchSELinuxLevelOnMigration",
		"UnsafeMigrationOverride", "DisableTLS",
		"Encryption"} // what follows from these two is Traffic, which arrives
	kind := reflect.TypeFor[migration.Options]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		var o migration.Options
		before := told(&o)
		switch f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.String:
			f.SetString("zstd")
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			t.Fatalf("%s is a %v: extend this test", name, f.Kind())
		}
		arrives := !reflect.DeepEqual(before, told(&o))
		if arrives == slices.Contains(others, name) {
			t.Errorf("%s arrives: %v", name, arrives)
		}
	}
}

// told is what the backend and convergence are told.
func told(o *migration.Options) [2]any {
	return [2]any{agent.TransferOptions(o, 0), agent.MonitorOptions(o, hypervisor.Progress{})}
}

// What is written reaches the hypervisor's options: the policy overrides the cluster.
func TestEncryptionReachesTheTransfer(t *testing.T) {
	for written, want := range map[string][2]hypervisor.Encryption{ // both have certificates, the source only
		"":                        {hypervisor.EncryptRequired, hypervisor.EncryptOff},
		"encryption: Auto":        {hypervisor.EncryptRequired, hypervisor.EncryptOff},
		"encryption: Off":         {hypervisor.EncryptOff, hypervisor.EncryptOff},
		"encryption: Required":    {hypervisor.EncryptRequired, hypervisor.EncryptRequired},
		"allowAutoConverge: true": {hypervisor.EncryptRequired, hypervisor.EncryptOff},
	} {
		o := options(t, written)
		for i, target := range []bool{true, false} {
			o.Traffic = o.Encryption.Resolve(true, target)
			if got := agent.TransferOptions(o, 0).Encryption; got != want[i] {
				t.Errorf("%q, target %v: %q, want %q", written, target, got, want[i])
			}
		}
		o.Traffic = migration.TrafficAsConfigured
		if got := agent.TransferOptions(o, 0).Encryption; got != hypervisor.AsConfigured {
			t.Errorf("%q, undecided: %q", written, got)
		}
	}
}
