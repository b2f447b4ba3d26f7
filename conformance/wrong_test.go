package conformance_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A careless host panics at, does not return from, or is wrong about what it is asked.
type careless struct {
	hypervisor.Hypervisor
	panics bool // at Pause
	sleeps bool // at Pause
	vague  bool // it answers StartPostCopy as if it could
	shy    bool // targets are refused
	slow   bool // nothing ever starts
}

func (c careless) Do(ctx context.Context, id hypervisor.VMID, command hypervisor.Command) error {
	if _, is := command.(hypervisor.Pause); is {
		if c.panics {
			panic("assignment to entry in nil map")
		}
		if c.sleeps {
			select {}
		}
	}
	return c.Hypervisor.Do(ctx, id, command)
}

func (c careless) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := c.Hypervisor.Domain(ctx, id)
	if c.slow && d.State == hypervisor.Running {
		d.State = hypervisor.Starting
	}
	return d, err
}

func (c careless) Host(ctx context.Context) (hypervisor.Host, error) {
	h, err := c.Hypervisor.Host(ctx)
	if c.vague {
		h.Abilities &^= hypervisor.CanPostCopy
	}
	return h, err
}

func (c careless) Adjust(ctx context.Context, id hypervisor.JobID,
	a hypervisor.Adjustment) error {
	err := c.Hypervisor.Adjust(ctx, id, a)
	if _, is := a.(hypervisor.StartPostCopy); is && c.vague && err != nil {
		return &hypervisor.Error{Op: "Adjust", Kind: hypervisor.Invalid}
	}
	return err
}

func (c careless) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	if c.shy {
		return "", &hypervisor.Error{Op: "Receive", Kind: hypervisor.Unsupported}
	}
	return c.Hypervisor.Receive(ctx, in)
}

// carelessness says in the environment of a process which hosts are tested.
const carelessness = "GODWIT_CARELESS_BACKEND"

// hosts are the careless ones, and what the suite says of them.
var carelessHosts = map[string]struct {
	careless
	within time.Duration
	run    string // the cases to play
	says   []string
}{
	"panics": {careless{panics: true}, time.Hour, "^lifecycle$", []string{
		`the backend panicked in Do("suite/vm", Pause{}) on n1: assignment to entry in nil map`,
		"conformance_test.careless.Do", // where
		"the port says: ",
		"--- PASS: TestCarelessHosts/lifecycle/domains_are_listed", // a case behind it
		"cases ran, 4 of them failed"}},
	"does not return": {careless{sleeps: true}, time.Hour,
		"^lifecycle$/(^a_paused_VM_keeps|^domains_are_listed)", []string{
			`Do("suite/vm", Pause{}) on n1 has not returned. No method of the port waits`,
			"--- PASS: TestCarelessHosts/lifecycle/domains_are_listed",
			"2 cases ran, 1 of them failed"}},
	"cannot do post-copy, and says Invalid": {careless{vague: true}, time.Hour,
		"^adjust$/^post-copy_that_was_not_allowed", []string{
			"want a *hypervisor.Error of kind unsupported",
			`asked last: Adjust("job-1", StartPostCopy{}) on n1`,
			"the port says: It answers Unsupported on a host without [CanPostCopy]"}},
	"receives nothing": {careless{shy: true}, time.Hour, "^migrate$/^two_VMs_move_at_once$",
		[]string{`asked last: Receive(Incoming{Job:job-1 VM:{ID:suite/a Memory:1GiB CPUs:1 ` +
			`Hardware:<nil>} Hold:false}) on n2, which answered the error "Receive: unsupported"`}},
	"never says that a VM runs": {careless{slow: true}, time.Second,
		"^lifecycle$/^a_kill_shuts", []string{
			"in vain until suite/vm is [Running] on n1", "looked last: Domain(\"suite/vm\") on n1",
			"State:Starting", `asked last: Do("suite/vm", Start{VM:`}},
}

// TestCarelessHosts is run in a process of its own by the test below.
func TestCarelessHosts(t *testing.T) {
	wrong, has := carelessHosts[os.Getenv(carelessness)]
	if !has {
		t.Skip("it is run by TestAFailureSaysWhatWasAskedAndCostsOneCase")
	}
	conformance.Hypervisor(t, func(*testing.T) *conformance.Lab {
		lab := twoHosts()
		lab.Within, lab.Slow = wrong.within, 1e6
		for _, h := range []*hypervisor.Hypervisor{&lab.Source, &lab.Target} {
			host := wrong.careless
			host.Hypervisor = *h
			*h = host
		}
		return lab
	})
}

func TestAFailureSaysWhatWasAskedAndCostsOneCase(t *testing.T) {
	for name, wrong := range carelessHosts {
		t.Run(name, func(t *testing.T) {
			limit := testutil.Limit(testutil.DefaultLimit)
			if wrong.sleeps { // the suite waits for it until shortly before the limit
				limit = testutil.Limit(10 * time.Second)
			}
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout="+limit.String(),
				"-test.run=^TestCarelessHosts$/"+wrong.run)
			c.Env = append(os.Environ(), carelessness+"="+name)
			out, err := c.CombinedOutput()
			if err == nil {
				t.Error("the suite passes")
			}
			for _, text := range append(wrong.says, "n1: ") { // the summary is printed, too
				if !strings.Contains(string(out), text) {
					t.Errorf("it does not say %q", text)
				}
			}
			if t.Failed() {
				t.Logf("it says:\n%s", out)
			}
		})
	}
}
