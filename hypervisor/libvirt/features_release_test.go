//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// What is left of a source that has moved is removed when its release is asked for again
// after a death in the middle: the VM can come back.
func TestAReleaseThatWasInterruptedGoesOn(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	w.furnish(hosta, vm)
	w.start(hosta, vm)
	w.begin("job", vm.ID, transferOptions{})
	w.Until(hosta, "job", hypervisor.JobSucceeded)
	w.Becomes(hosta, vm.ID, hypervisor.HandedOver)
	file := filepath.Join(w.config(hosta).Dir, "jobs", durable.Name("job"))
	var text []byte
	testutil.Eventually(t, "the host has noted that it moved", func() (err error) { // it says so before
		if text, err = os.ReadFile(file); err == nil && !bytes.Contains(text, []byte(`"moved"`)) {
			err = fmt.Errorf("it has noted %s", text)
		}
		return err
	})
	must(t, w.hosts[hosta].Close())
	delete(w.hosts, hosta)
	text = checksum.ReplaceAll(bytes.Replace(text, []byte(`"moved"`), []byte(`"left"`), 1), nil)
	must(t, os.WriteFile(file, text, 0o600))
	w.virsh(hosta, "undefine", domainOf(vm.ID)) // here it died
	if _, err := w.open(hosta); err != nil {
		t.Fatal(err)
	}
	w.Do(hosta, vm.ID, moved("job", vm.ID, hostb))
	if left := w.images(hosta); len(left) > 0 {
		t.Errorf("after Release the source still has %v", left)
	}
}
