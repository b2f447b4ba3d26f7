package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// early loses a link around the switch-over before the target has everything.
func early() fake.Model {
	return fake.Model{SetUp: 10 * time.Millisecond, SwitchOver: 10 * time.Millisecond,
		Acknowledge: 10 * time.Millisecond, DeviceState: 64 * hypervisor.MiB,
		BootTime: 100 * time.Millisecond, ShutdownTime: 50 * time.Millisecond}
}

// late loses it afterwards.
func late() fake.Model {
	m := early()
	m.DeviceState, m.SwitchOver = hypervisor.KiB, 100*time.Millisecond
	return m
}

// lab is a world of the suite on a pair.
func (p *pair) lab() *conformance.Lab {
	vm := func(id hypervisor.VMID) hypervisor.VM {
		return hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}
	}
	link := func(cut bool, act func(a, b hypervisor.HostName) error) func() error {
		return func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.cut = cut
			return act("n1", "n2")
		}
	}
	mend := link(false, p.fabric.HealLink)
	return &conformance.Lab{
		Source: p.hosts["n1"], Target: p.hosts["n2"], VM: vm,
		Within: 16 * time.Minute, // longer than a connection over a cut link takes to time out
		Pass:   p.pass, Slow: 1e6,
		BusyVM: func(id hypervisor.VMID) hypervisor.VM {
			// The workload belongs to the VM, and is there when the suite starts it.
			busy := fake.Workload{ColdRate: 2e9, Cold: hypervisor.GiB}
			if err := p.fabric.Host("n1").Boot(vm(id), busy); err != nil {
				panic(err)
			}
			if err := p.hosts["n1"].tell(id, hypervisor.Kill{}); err != nil {
				panic(err)
			}
			return vm(id)
		},
		Alive: func(id hypervisor.VMID) (on []hypervisor.HostName, err error) {
			for _, c := range p.fabric.Copies(id) {
				if c.State.Executes() {
					on = append(on, c.Host)
				}
			}
			return on, nil
		},
		Reopen: func(n hypervisor.HostName) (hypervisor.Hypervisor, error) {
			return p.hosts[n], nil
		},
		KillVM: p.kill, CutLink: link(true, p.fabric.CutLink), MendLink: mend,
		ResetLink: link(false, p.fabric.ResetLink),
		// A process that hangs and one that is not reached are one to its peer.
		Hang: func(hypervisor.HostName, hypervisor.VMID) (func() error, error) {
			return mend, link(true, p.fabric.CutLink)()
		},
		Restart: p.restart,
	}
}

// A backend whose hypervisor has a hand-over of its own can pass, whatever the
// suite does to it.
func TestTheSuitePassesOnHostsThatLackTakeBack(t *testing.T) {
	for name, model := range map[string]func() fake.Model{"early": early, "late": late} {
		t.Run(name, func(t *testing.T) {
			conformance.Hypervisor(t, func(*testing.T) *conformance.Lab {
				return newPair(model(), fault{}).lab()
			})
		})
	}
}

// attempt returns why a case fails; "" is that it does not, or does not apply.
func attempt(c conformance.Trial, lab *conformance.Lab) (why verdict) {
	defer func() {
		v := recover()
		if failed, ok := v.(verdict); ok {
			why = failed
		} else if _, skipped := v.(skip); v != nil && !skipped {
			panic(v)
		}
	}()
	w := conformance.New(judge{}, lab)
	w.Skip = func(reason string) { panic(skip(reason)) }
	for _, h := range w.Hosts {
		if c.Able&^h.Abilities != 0 || c.Unable&h.Abilities != 0 || w.Lacks(c.Needs) != "" {
			return ""
		}
	}
	c.Run(w)
	w.Once()
	return ""
}

// A skip is why a case was not played to its end.
type skip string

// failures are the cases that hosts with a fault fail, and why: of all, or of the
// one that is named.
func failures(m fake.Model, wrong fault, only string) map[string]verdict {
	found := map[string]verdict{}
	for _, g := range slices.Concat(conformance.LifecycleGroups(), conformance.MigrationGroups(), conformance.FailureGroups()) {
		for _, c := range g.Trials {
			if only != "" && only != c.Name {
				continue
			}
			if why := attempt(c, newPair(m, wrong).lab()); why != "" {
				found[c.Name] = why
			}
		}
	}
	return found
}

func TestTheSuiteNoticesWhatIsWrongWithoutTakeBack(t *testing.T) {
	testutil.Unraced(t)
	tests := []struct {
		name  string
		model fake.Model
		wrong fault
		fails string // a case that must
	}{
		{"nothing, and the link is lost early", early(), fault{}, ""},
		{"nothing, and the link is lost late", late(), fault{}, ""},
		{"nothing, and it is the caller who takes a stopped source back", early(),
			fault{stuck: true}, ""},
		{"a source that is handed over resumes", early(), fault{resumes: true},
			"a source that is handed over has nothing to resume, whatever is said of its target"},
		{"the only copy is discarded", early(), fault{discards: true},
			"a held target is the only copy: it is not discarded, and starts when it is activated"},
		{"the only copy is discarded after a reopening", early(), fault{discards: true},
			"a held target is still the only copy after a reopening"},
		{"a source that is handed over is abandoned", early(), fault{abandons: true},
			"a source that is handed over is abandoned when its target is dead, not by a denial"},
		{"a held target that dies is not visible", early(), fault{vanishes: true},
			"a held target that dies has crashed, stays visible and starts anew there"},
		{"a target is never discarded", early(), fault{never: true},
			"a migration over a lost link is cancelled, and the source runs on"},
		{"a target is never discarded after a reset", early(), fault{never: true},
			"a connection that is closed on the way fails the job, and the source runs on"},
		{"a target is never discarded that its source never reached", early(), fault{never: true},
			"a migration is cancelled at once"},
		{"a held target is not visible after its host had no power", early(),
			fault{vanishes: true},
			"a held target whose host had no power stays visible, and starts anew there"},
		{"a discard is refused and done", early(), fault{refusesDone: true},
			"a target that is discarded while it receives fails the job, and the source runs on"},
		{"a pause is refused and done", early(), fault{pausesDone: true},
			"a guest that its operator pauses on the way rests at its target"},
		{"an unpause is refused and done", early(), fault{pausesDone: true},
			"an operator may let a guest run that was paused to let it go"},
		{"a discard is refused for no reason of a kind", early(), fault{vague: true},
			"a target that is discarded while it receives fails the job, and the source runs on"},
		{"a pause is refused for no reason of a kind", early(), fault{vague: true},
			"a guest that its operator pauses on the way rests at its target"},
		{"both sides run after the link was lost", late(), fault{forks: true},
			"a link that is lost around the switch-over leaves one VM, or one that is resolved"},
		{"no host resolves, and none may", early(), fault{stuck: true, never: true},
			"a link that is lost around the switch-over leaves one VM, or one that is resolved"},
		{"take-back is claimed: a discard may not be refused", early(), fault{claims: true},
			"a target that is discarded while it receives fails the job, and the source runs on"},
		{"take-back is claimed: a pause may not be refused", early(), fault{claims: true},
			"a guest that its operator pauses on the way rests at its target"},
		{"take-back is claimed: the source has to resume", early(), fault{claims: true},
			"when the target is discarded the source resumes with its word, once and again"},
		{"take-back is claimed: its caller resolves a lost hand-over", early(), fault{claims: true},
			"a link that is lost around the switch-over leaves one VM, or one that is resolved"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := failures(test.model, test.wrong, test.fails)
			t.Logf("%d cases fail: %q", len(got), got)
			if len(got) > 0 != (test.fails != "") {
				t.Errorf("want the failure of %q", test.fails)
			}
		})
	}
}

// Random walks over such hosts find nothing, either.
func TestWalksOverHostsThatLackTakeBack(t *testing.T) {
	testutil.Unraced(t)
	for seed := range uint64(40) {
		lab := newPair(early(), fault{}).lab()
		lab.Steps = 200
		random := rand.New(rand.NewPCG(seed, 2))
		conformance.Walk(fatal{t, seed}, lab, func(_ string, n int) int {
			return random.IntN(n)
		})
	}
}

// A fatal is a T that says the seed of a walk that fails.
type fatal struct {
	*testing.T
	seed uint64
}

func (f fatal) Logf(string, ...any) {}

func (f fatal) Fatalf(format string, args ...any) {
	f.Helper()
	f.T.Fatalf("seed %d: %s", f.seed, fmt.Sprintf(format, args...))
}
