//go:build !linux || !libvirt_dlopen

package libvirt_test

import (
	"errors"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

// TestWithoutLibvirt: in a build without libvirt every call answers the same, and
// says who was asked for what.
func TestWithoutLibvirt(t *testing.T) {
	ctx := t.Context()
	var h libvirt.Host
	_, errNew := libvirt.New(ctx, libvirt.Config{Name: "n1", Dir: t.TempDir()})
	_, errHost := h.Host(ctx)
	_, errDomains := h.Domains(ctx)
	_, errDomain := h.Domain(ctx, "default/web")
	_, errReceive := h.Receive(ctx, hypervisor.Incoming{Job: "j",
		VM: hypervisor.VM{ID: "default/web"}})
	_, errProgress := h.Progress(ctx, "j")
	const what = "unsupported: this program was built without libvirt: rebuild it for Linux " +
		"with -tags libvirt_dlopen, and install libvirt.so.0 where it runs " +
		"(apt-get install libvirt0)"
	for want, err := range map[string]error{
		"New on n1":           errNew,
		"Host":                errHost,
		"Domains":             errDomains,
		"Domain default/web":  errDomain,
		"Receive default/web": errReceive,
		"Progress":            errProgress,
		"Migrate default/web": h.Migrate(ctx, hypervisor.Outgoing{Job: "j", VM: "default/web"}),
		"Cancel":              h.Adjust(ctx, "j", hypervisor.Cancel{}),
		"Kill default/web":    h.Do(ctx, "default/web", hypervisor.Kill{}),
	} {
		if err == nil || err.Error() != want+": "+what {
			t.Errorf("%s: got %v", want, err)
		}
		if e, ok := errors.AsType[*hypervisor.Error](err); !ok || e.Kind != hypervisor.Unsupported {
			t.Errorf("%s: got %#v, want *hypervisor.Error with Unsupported", want, err)
		}
	}
	if socket := h.DebugSocket("default/web"); socket != "" {
		t.Errorf("there is a debug socket %q", socket)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
