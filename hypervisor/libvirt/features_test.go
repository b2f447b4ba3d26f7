//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
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
	if _, err := os.Stat("/dev/kvm"); err == nil {
		return domxml.KVM
	}
	return domxml.QEMU
}

// virsh asks libvirt itself; it must answer.
func (w *trial) virsh(n name, args ...string) string {
	w.t.Helper()
	out, err := w.Virsh(testutil.Context(w.t, testutil.DefaultLimit), string(n), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// qmp asks the QEMU of a VM.
func (w *trial) qmp(n name, id vmid, command string) map[string]any {
	w.t.Helper()
	var reply struct{ Return map[string]any }
	text := w.virsh(n, "qemu-monitor-command", domainOf(id), `{"execute":"`+command+`"}`)
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		w.t.Fatalf("%s answers %s: %v", command, text, err)
	}
	return reply.Return
}

// capabilities are the switched on capabilities of a migration.
func (w *trial) capabilities(n name, id vmid) []string {
	w.t.Helper()
	var reply struct {
		Return []struct {
			Capability string
			State      bool
		}
	}
	text := w.virsh(n, "qemu-monitor-command", domainOf(id),
		`{"execute":"query-migrate-capabilities"}`)
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		w.t.Fatal(err)
	}
	var on []string
	for _, c := range reply.Return {
		if c.State {
			on = append(on, c.Capability)
		}
	}
	return on
}

// do gives a host commands that must succeed.
func (w *trial) do(n name, id vmid, commands ...hypervisor.Command) {
	w.t.Helper()
	for _, c := range commands {
		if err := w.host(n).Do(w.t.Context(), id, c); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *trial) start(n name, vm hypervisor.VM) {
	w.t.Helper()
	w.do(n, vm.ID, hypervisor.Start{VM: vm})
}

// refuses gives a host a command that must fail with a kind, and with words.
func (w *trial) refuses(n name, id vmid, c hypervisor.Command, k hypervisor.Kind,
	words ...string) {
	w.t.Helper()
	wantRefused(w.t, w.host(n).Do(w.t.Context(), id, c), k, words...)
}

// wantRefused wants an error of a kind whose text contains words.
func wantRefused(t testing.TB, err error, k hypervisor.Kind, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*hypervisor.Error](err)
	if !ok || e.Kind != k {
		t.Errorf("got %v; want an *Error that is %v", err, k)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

// wantReasons wants a refusal with exactly these checks, in any order.
func wantReasons(t testing.TB, err error, k hypervisor.Kind, checks ...string) {
	t.Helper()
	wantRefused(t, err, k)
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
	w.t.Helper()
	a, err := w.host(hostb).Receive(w.t.Context(), hypervisor.Incoming{Job: j, VM: vm})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// send opens a target at hostb for what is at hosta, and answers what Migrate does.
func (w *trial) send(j jobID, id vmid, o transferOptions) error {
	w.t.Helper()
	a := w.receive(j, w.domain(hosta, id).VM)
	return w.migrate(j, id, a, o)
}

func (w *trial) migrate(j jobID, id vmid, a hypervisor.Address, o transferOptions) error {
	return w.host(hosta).Migrate(w.t.Context(), hypervisor.Outgoing{Job: j, VM: id,
		Target: hostb, Address: a, Options: o})
}

// begin is send that must succeed.
func (w *trial) begin(j jobID, id vmid, o transferOptions) {
	w.t.Helper()
	if err := w.send(j, id, o); err != nil {
		w.t.Fatal(err)
	}
}

// moving begins to send, and returns when memory moves.
func (w *trial) moving(j jobID, id vmid, o transferOptions) {
	w.t.Helper()
	w.begin(j, id, o)
	w.until(j, hypervisor.JobActive)
}

func (w *trial) adjust(j jobID, a hypervisor.Adjustment) {
	w.t.Helper()
	if err := w.host(hosta).Adjust(w.t.Context(), j, a); err != nil {
		w.t.Fatal(err)
	}
}

func (w *trial) domain(n name, id vmid) hypervisor.Domain {
	w.t.Helper()
	d, err := w.hosts[n].Domain(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *trial) progress(n name, j jobID) hypervisor.Progress {
	w.t.Helper()
	p, err := w.hosts[n].Progress(w.t.Context(), j)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// eventually waits until a condition holds.
func (w *trial) eventually(what string, so func() bool) {
	w.t.Helper()
	testutil.Eventually(w.t, what, testutil.Holds(so))
}

// becomes waits until a VM is in a state.
func (w *trial) becomes(n name, id vmid, s hypervisor.DomainState) {
	w.t.Helper()
	testutil.Eventually(w.t, string(id)+" on "+string(n)+" is "+s.String(), func() error {
		if got := w.domain(n, id).State; got != s {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// until waits until a job that hosta sends has a status, and answers its progress.
func (w *trial) until(j jobID, s hypervisor.JobStatus) (p hypervisor.Progress) {
	w.t.Helper()
	w.eventually(string(j)+" is "+s.String(), func() bool {
		p = w.progress(hosta, j)
		if p.Status.Final() && p.Status != s {
			w.t.Fatalf("%s is %v: %s", j, p.Status, p.Error)
		}
		return p.Status == s
	})
	return p
}

// sound wants a VM to run on a host and nowhere else, with all of its memory, and
// without ever having run twice.
func (w *trial) sound(n name, id vmid) {
	w.t.Helper()
	w.becomes(n, id, hypervisor.Running)
	if err := w.verify(n, id); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the guest beats on "+string(n), func() bool {
		on, err := w.alive(id) // an error says that it has run twice, or was lost
		if err != nil {
			w.t.Fatal(err)
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
	w.t.Helper()
	p := w.until(j, hypervisor.JobSucceeded)
	w.sound(hostb, id)
	w.do(hosta, id, moved(j, id, hostb))
	return p
}

// stays wants a VM to be sound at hosta after its job has ended. libvirt lets a VM run
// again at the very end of a migration that failed, also one that was paused meanwhile.
func (w *trial) stays(j jobID, id vmid) {
	w.t.Helper()
	w.eventually("libvirt has finished", func() bool {
		return strings.Contains(w.virsh(hosta, "domjobinfo", domainOf(id)), "None")
	})
	w.sound(hosta, id)
	w.eventually("the target gives up", func() bool {
		err := w.host(hostb).Do(w.t.Context(), id, hypervisor.Discard{Job: j})
		return err == nil || !errors.Is(err, hypervisor.Conflict)
	})
}

// cancelled cancels a job, and wants the VM to stay.
func (w *trial) cancelled(j jobID, id vmid) {
	w.t.Helper()
	w.adjust(j, hypervisor.Cancel{})
	w.until(j, hypervisor.JobCancelled)
	w.stays(j, id)
}

// ends kills and forgets a VM, and wants no domain to be left anywhere.
func (w *trial) ends(n name, id vmid) {
	w.t.Helper()
	w.do(n, id, hypervisor.Kill{}, hypervisor.Forget{})
	for n, h := range w.hosts {
		if all, err := h.Domains(w.t.Context()); err != nil || len(all) > 0 {
			w.t.Errorf("%s still has %v: %v", n, all, err)
		}
	}
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
	whole := w.t.(*testing.T)
	whole.Run(name, func(t *testing.T) {
		w.t = t
		defer func() { w.t = whole }()
		part()
	})
}
