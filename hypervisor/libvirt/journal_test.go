//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// libvirt tells of domains as soon as there is a connection, which is before the journal
// was read.
func TestEventsMayComeWhileTheJournalIsRead(t *testing.T) {
	j, err := libvirt.Open(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range 100 {
		name := fmt.Sprintf("vm%d", i)
		d := &libvirt.DomainRecord{Domain: backend.Domain{VM: hypervisor.VM{ID: hypervisor.VMID("godwit/" + name)}}, Name: name}
		if err := j.Put(d, false); err != nil {
			t.Fatal(err)
		}
	}
	n := &libvirt.Node{Namespace: "godwit", Journal: j}
	n.Changed = func(hypervisor.VMID) {}
	var over context.CancelFunc
	n.Life, over = context.WithCancel(t.Context())
	over() // libvirt is not looked at
	opened, closed := context.WithCancel(t.Context())
	var ear sync.WaitGroup
	ear.Go(func() {
		for opened.Err() == nil {
			n.HandleEvent(conn.Event{Domain: "vm7", What: conn.Iterated})
			n.Reborn()
		}
	})
	if err := n.Open(); err != nil {
		t.Error(err)
	}
	closed()
	ear.Wait()
	if n.Find("godwit/vm7") == nil {
		t.Error("what is in the journal was not read")
	}
}
