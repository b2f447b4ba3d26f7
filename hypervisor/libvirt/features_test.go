//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// calm is a guest that writes a little, and whose memory no compression makes
// smaller; swift writes faster than a narrow wire carries, also where every first write
// to a page is slow because the machine is itself virtual. restless writes all of its memory faster than a slow
// transfer sends it: it does not arrive, however long the machine takes to look at it.
var (
	calm  = guest.Params{Fill: 8 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true}
	swift = guest.Params{Fill: 1 << 20, WorkingSet: 1 << 20, Rate: guest.MaxRate, Random: true}

	restless = guest.Params{Fill: 8 << 20, WorkingSet: 8 << 20, Rate: 32 << 20, Random: true}
)

// traveller is the VM of most tests.
const traveller vmid = "suite/traveller"

// slow keeps a job under way long enough to look at it.
const slow = 2 * hypervisor.Bandwidth(mib)

type (
	transferOptions = hypervisor.TransferOptions
	jobID           = hypervisor.JobID
)

// A trial is a world in which one feature is tried.
type trial struct{ *world }

// newTrial opens two clean hosts. Change may be nil.
func newTrial(t testing.TB, change func(*libvirt.Config)) *trial {
	t.Helper()
	return &trial{newWorld(t, accelerator(), change)}
}

// accelerator is the fastest one that works here.
func accelerator() string {
	if testutil.HasKVM() {
		return domxml.KVM
	}
	return domxml.QEMU
}

// virsh asks libvirt itself; it must answer.
func (w *trial) virsh(n name, args ...string) string {
	w.T.Helper()
	out, err := w.Virsh(testutil.Context(w.T, testutil.DefaultLimit), string(n), args...)
	if err != nil {
		w.T.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// qmp asks the QEMU of a VM.
func (w *trial) qmp(n name, id vmid, command string) map[string]any {
	w.T.Helper()
	var reply struct{ Return map[string]any }
	text := w.virsh(n, "qemu-monitor-command", domainOf(id), `{"execute":"`+command+`"}`)
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		w.T.Fatalf("%s answers %s: %v", command, text, err)
	}
	return reply.Return
}

// capabilities are the switched on capabilities of a migration.
func (w *trial) capabilities(n name, id vmid) []string {
	w.T.Helper()
	var reply struct {
		Return []struct {
			Capability string
			State      bool
		}
	}
	text := w.virsh(n, "qemu-monitor-command", domainOf(id),
		`{"execute":"query-migrate-capabilities"}`)
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		w.T.Fatal(err)
	}
	var on []string
	for _, c := range reply.Return {
		if c.State {
			on = append(on, c.Capability)
		}
	}
	return on
}

func (w *trial) start(n name, vm hypervisor.VM) {
	w.T.Helper()
	w.Do(n, vm.ID, hypervisor.Start{VM: vm})
}

// wantReasons wants a refusal with exactly these checks, in any order.
func wantReasons(t testing.TB, err error, k hypervisor.Kind, checks ...string) {
	t.Helper()
	backendtest.Refused(t, err, k)
	r, ok := errors.AsType[*hypervisor.Refusal](err)
	if !ok {
		t.Errorf("got %v; want a *Refusal", err)
		return
	}
	var got []string
	for _, why := range r.Reasons {
		got = append(got, why.Check)
		if why.Need == "" || why.Have == "" {
			t.Errorf("a reason does not say what it needs and what there is: %+v", why)
		}
	}
	slices.Sort(got)
	slices.Sort(checks)
	if !slices.Equal(got, checks) {
		t.Errorf("it was refused for %q, want %q: %v", got, checks, err)
	}
}

// receive opens a target at hostb.
func (w *trial) receive(j jobID, vm hypervisor.VM) hypervisor.Address {
	w.T.Helper()
	a, err := w.Host(hostb).Receive(w.T.Context(), hypervisor.Incoming{Job: j, VM: vm})
	if err != nil {
		w.T.Fatal(err)
	}
	return a
}

// send opens a target at hostb for what is at hosta, and answers what Migrate does.
func (w *trial) send(j jobID, id vmid, o transferOptions) error {
	w.T.Helper()
	a := w.receive(j, w.Domain(hosta, id).VM)
	return w.migrate(j, id, a, o)
}

func (w *trial) migrate(j jobID, id vmid, a hypervisor.Address, o transferOptions) error {
	return w.Host(hosta).Migrate(w.T.Context(), hypervisor.Outgoing{Job: j, VM: id,
		Target: hostb, Address: a, Options: o})
}

// begin is send that must succeed.
func (w *trial) begin(j jobID, id vmid, o transferOptions) {
	w.T.Helper()
	if err := w.send(j, id, o); err != nil {
		w.T.Fatal(err)
	}
}

// moving begins to send, and returns when memory moves.
func (w *trial) moving(j jobID, id vmid, o transferOptions) {
	w.T.Helper()
	w.begin(j, id, o)
	w.Until(hosta, j, hypervisor.JobActive)
}

// sound wants a VM to run on a host and nowhere else, with all of its memory, and
// without ever having run twice.
func (w *trial) sound(n name, id vmid) {
	w.T.Helper()
	w.Becomes(n, id, hypervisor.Running)
	if err := w.verify(n, id); err != nil {
		w.T.Fatal(err)
	}
	w.Eventually("the guest beats on "+string(n), func() bool {
		on, err := w.alive(id) // an error says that it has run twice, or was lost
		if err != nil {
			w.T.Fatal(err)
		}
		return slices.Equal(on, []name{n})
	})
}

// moved says that a VM has moved.
func moved(j jobID, id vmid, to name) hypervisor.Release {
	return hypervisor.Release{Job: j, Moved: hypervisor.Evidence{
		Proof: hypervisor.RunsAtTarget, VM: id, Host: to, Job: j, By: "the test"}}
}

// arrives waits until a job has succeeded, wants the VM to be sound at hostb, and
// removes it from hosta.
func (w *trial) arrives(j jobID, id vmid) hypervisor.Progress {
	w.T.Helper()
	p := w.Until(hosta, j, hypervisor.JobSucceeded)
	w.sound(hostb, id)
	w.Do(hosta, id, moved(j, id, hostb))
	return p
}

// stays wants a VM to be sound at hosta after its job has ended. libvirt lets a VM run
// again at the very end of a migration that failed, also one that was paused meanwhile.
func (w *trial) stays(j jobID, id vmid) {
	w.T.Helper()
	w.Eventually("libvirt has finished", func() bool {
		return strings.Contains(w.virsh(hosta, "domjobinfo", domainOf(id)), "None")
	})
	w.sound(hosta, id)
	w.Eventually("the target gives up", func() bool {
		err := w.Host(hostb).Do(w.T.Context(), id, hypervisor.Discard{Job: j})
		return err == nil || !errors.Is(err, hypervisor.Conflict)
	})
}

// cancelled cancels a job, and wants the VM to stay.
func (w *trial) cancelled(j jobID, id vmid) {
	w.T.Helper()
	w.Adjust(j, hypervisor.Cancel{})
	w.Until(hosta, j, hypervisor.JobCancelled)
	w.stays(j, id)
}

// ends kills and forgets a VM, and wants no domain to be left anywhere.
func (w *trial) ends(n name, id vmid) {
	w.T.Helper()
	w.Do(n, id, hypervisor.Kill{}, hypervisor.Forget{})
	backendtest.Bare(w.T, w.hosts)
}

// number finds a number in what QEMU answered; -1 is none.
func number(m map[string]any, path ...string) float64 {
	for _, key := range path[:len(path)-1] {
		m, _ = m[key].(map[string]any)
	}
	if n, ok := m[path[len(path)-1]].(float64); ok {
		return n
	}
	return -1
}

// run is a part of a test in the same world.
func (w *trial) run(name string, part func()) {
	whole := w.T.(*testing.T)
	whole.Run(name, func(t *testing.T) {
		w.T = t
		defer func() { w.T = whole }()
		part()
	})
}
