//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestResolveWithLibvirt: only Resolve ends what libvirt has moved, or has not.
func TestResolveWithLibvirt(t *testing.T) {
	w := newWorld(t, domxml.QEMU, nil)
	for _, tt := range []struct {
		name     string
		id       vmid
		held     bool
		hinder   func(*world, vmid) error // what happens while memory moves
		where    name
		evidence hypervisor.Proof
	}{
		{"it has moved", "default/a", false, nil, hostb, hypervisor.RunsAtTarget},
		{"its target waits for word", "default/b", true, nil, hostb, hypervisor.RunsAtTarget},
		{"it was cancelled", "default/c", false, func(w *world, id vmid) error {
			return w.hosts[hosta].Adjust(t.Context(), hypervisor.JobID(id), hypervisor.Cancel{})
		}, hosta, hypervisor.NoProof},
		{"its target's QEMU has died", "default/d", false, func(w *world, id vmid) error {
			return w.signal(hostb, id, syscall.SIGKILL)
		}, hosta, hypervisor.NoProof},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testutil.Context(t, testutil.DefaultLimit)
			slow := hypervisor.TransferOptions{}
			if tt.hinder != nil {
				slow.Bandwidth = 4 << 20
			}
			w.beginMove(ctx, t, tt.id, tt.held, slow)
			if tt.hinder != nil {
				w.awaitMemory(ctx, t, tt.id)
				if err := tt.hinder(w, tt.id); err != nil {
					t.Fatal(err)
				}
			}
			out := w.resolve(ctx, t, tt.id)
			if out.Host != tt.where || out.Evidence.Proof != tt.evidence ||
				out.Domain.State != hypervisor.Running {
				t.Errorf("got %+v, want it to run on %s by %v", out, tt.where, tt.evidence)
			}
			testutil.Eventually(t, "it beats on "+string(tt.where), func() error {
				runs, err := w.alive(tt.id)
				if err == nil && !slices.Equal(runs, []name{tt.where}) {
					err = fmt.Errorf("it beats on %v", runs)
				}
				return err
			})
			other := w.hosts[map[name]name{hosta: hostb, hostb: hosta}[tt.where]]
			if d, err := other.Domain(ctx, tt.id); err != nil || d.State != hypervisor.Absent {
				t.Errorf("on the other host it is %+v, %v", d, err)
			}
		})
	}
}

// beginMove starts a VM on hosta and begins to move it to hostb.
func (w *world) beginMove(ctx context.Context, t *testing.T, id vmid, held bool,
	o hypervisor.TransferOptions) {
	t.Helper()
	vm := w.vm(id, guest.Params{Fill: 16 << 20, WorkingSet: 1 << 20, Rate: 1 << 20, Random: true})
	if err := w.Host(hosta).Do(ctx, id, hypervisor.Start{VM: vm}); err != nil {
		t.Fatal(err)
	}
	address, err := w.hosts[hostb].Receive(ctx, hypervisor.Incoming{Job: hypervisor.JobID(id),
		VM: vm, Hold: held})
	if err == nil {
		err = w.hosts[hosta].Migrate(ctx, hypervisor.Outgoing{Job: hypervisor.JobID(id), VM: id,
			Target: hostb, Address: address, Options: o})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitMemory waits until memory moves.
func (w *world) awaitMemory(ctx context.Context, t *testing.T, id vmid) {
	t.Helper()
	for ; ; time.Sleep(10 * time.Millisecond) {
		p, err := w.hosts[hosta].Progress(ctx, hypervisor.JobID(id))
		if err != nil || p.Status.Final() {
			t.Fatalf("%+v, %v", p, err)
		}
		if p.Status == hypervisor.JobActive {
			return
		}
	}
}

// resolve resolves, again and again while libvirt is busy.
func (w *world) resolve(ctx context.Context, t *testing.T, id vmid) libvirt.Outcome {
	t.Helper()
	for ; ; time.Sleep(20 * time.Millisecond) {
		out, err := libvirt.Resolve(ctx, w.hosts[hosta], w.hosts[hostb], id, hypervisor.JobID(id))
		if err == nil {
			return out
		}
		if !errors.Is(err, hypervisor.Conflict) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
