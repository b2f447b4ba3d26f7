package backend

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// broken says in the environment which of the wrong backends is to be tested.
const broken = "GODWIT_EXAMPLE_BACKEND"

// wrongs are the wrong backends, and a case that each of them fails.
var wrongs = []struct {
	name  string
	wrap  func(*Backend) hypervisor.Hypervisor
	fails string
}{
	{"strict", func(b *Backend) hypervisor.Hypervisor { return strict{b} },
		"lifecycle/an_unknown_VM_is_absent,_and_no_error"},
	{"credulous", func(b *Backend) hypervisor.Hypervisor { return credulous{b} },
		"migrate/a_release_needs_evidence_that_the_VM_runs_elsewhere,_of_this_job"},
	{"guessing", func(b *Backend) hypervisor.Hypervisor { return guessing{b} },
		"failures/post-copy_over_a_closed_connection_never_lets_the_source_run_again"},
}

// TestConformance is all that a backend's author writes: two hosts, a VM, and what can be done
// to them. What a lab lacks is skipped, and the log says what.
func TestConformance(t *testing.T) {
	wrap := func(b *Backend) hypervisor.Hypervisor { return b }
	for _, w := range wrongs {
		if os.Getenv(broken) == w.name {
			wrap = w.wrap
		}
	}
	conformance.Hypervisor(t, func(t *testing.T) *conformance.Lab {
		fabric := fake.NewNetwork(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fake.QEMU())
		hosts := map[hypervisor.HostName]hypervisor.Hypervisor{}
		for _, name := range []hypervisor.HostName{"n1", "n2"} {
			host, err := fabric.AddHost(hypervisor.Host{Name: name, Memory: 8 * hypervisor.GiB,
				CPUs: 16, Link: 10 * hypervisor.Gbit})
			if err != nil {
				t.Fatal(err)
			}
			hosts[name] = wrap(New(host))
		}
		return &conformance.Lab{
			Source: hosts["n1"], Target: hosts["n2"],
			VM: func(id hypervisor.VMID) hypervisor.VM {
				return hypervisor.VM{ID: id, Memory: hypervisor.GiB, CPUs: 1}
			},
			// The model's time passes when it is told to.
			Pass:   func(d time.Duration) { fabric.AdvanceTo(fabric.Now().Add(d)) },
			Within: 10 * time.Minute, Slow: 1e6,
			KillVM: func(host hypervisor.HostName, id hypervisor.VMID) error {
				return fabric.KillDomain(host, theirs(id))
			},
			CutLink:   func() error { return fabric.CutLink("n1", "n2") },
			MendLink:  func() error { return fabric.HealLink("n1", "n2") },
			ResetLink: func() error { return fabric.ResetLink("n1", "n2") },
		}
	})
}

// What the suite cannot know: that there are other VMs on the host, and which names are whose.
func TestTheCallersNamesAreKept(t *testing.T) {
	fabric := fake.NewNetwork(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fake.QEMU())
	client, err := fabric.AddHost(hypervisor.Host{Name: "n1", Memory: 8 * hypervisor.GiB, CPUs: 16})
	if err != nil {
		t.Fatal(err)
	}
	foreign := hypervisor.VM{ID: "foreign", Memory: hypervisor.GiB, CPUs: 1}
	if err := client.Boot(foreign, fake.Workload{}); err != nil {
		t.Fatal(err)
	}
	b := New(client)
	all, err := b.Domains(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("Domains lists %v, %v: none is ours", all, err)
	}
	err = b.Do(t.Context(), "web", hypervisor.Pause{})
	e, is := errors.AsType[*hypervisor.Error](err)
	if !is || e.VM != "web" || e.Kind != hypervisor.NotFound {
		t.Errorf("error %v, want one that web is not found", err)
	}
}

// The suite finds out about each of the wrong backends. It ends the test that it runs in, so
// that it runs in a process of its own here.
func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			group, _, _ := strings.Cut(w.fails, "/")
			c := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run=^TestConformance$/^"+group+"$")
			c.Env = append(os.Environ(), broken+"="+w.name)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestConformance/"+w.fails) {
				t.Errorf("%v, want the failure of %s:\n%s", err, w.fails, out)
			}
		})
	}
}
