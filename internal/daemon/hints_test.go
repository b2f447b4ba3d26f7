package daemon

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// soon is long after anything that comes at once, and less than reread.
const soon = reread / 4

// TestHints: no reader is told before it has read; then of every change that they have not
// read, and not of heartbeats; two that follow are told of what either has not read.
func TestHints(t *testing.T) {
	records, err := boltstore.Open(filepath.Join(t.TempDir(), "d", "c.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	h := newHints()
	one, two := h.follow(records), h.follow(records)
	told := func(within time.Duration) bool {
		ctx, stop := context.WithTimeout(t.Context(), within)
		defer stop()
		if err := h.wait(ctx); err != nil {
			t.Fatal(err)
		}
		return ctx.Err() == nil
	}
	read := func(s store.Store) {
		if _, err := s.Changes(t.Context(), store.Everything, 0); err != nil {
			t.Fatal(err)
		}
	}
	put := func(r store.Record) {
		if _, err := records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	put(&store.Host{Host: hypervisor.Host{Name: "n1"}})
	if told(soon) {
		t.Error("they are told before they have read")
	}
	read(one)
	read(two)
	if told(soon) {
		t.Error("they are told of what they have read")
	}
	put(&store.Lease{Owner: "host/n1"})
	if told(soon) {
		t.Error("they are told of a heartbeat")
	}
	put(&store.Host{Host: hypervisor.Host{Name: "n2"}})
	if !told(time.Minute) {
		t.Error("they are not told of a change")
	}
	if told(soon) {
		t.Error("they are told twice of what they have not had the time to read")
	}
	read(one)
	if !told(time.Minute) {
		t.Error("two has not read it, and is not told")
	}
	read(two)
	read(one)
	if told(soon) {
		t.Error("both have read everything, and are told")
	}
	put(&store.Host{Host: hypervisor.Host{Name: "n3"}})
	read(two)
	if !told(time.Minute) {
		t.Error("one has not read it, and is not told")
	}
	h.forget()
	if told(soon) {
		t.Error("without a follower there is a hint")
	}
}

func TestANotifierRemembersANotification(t *testing.T) {
	b := NewNotifier()
	for _, vm := range []hypervisor.VMID{"a", "b", "a"} {
		b.Notify(vm)
	}
	if len(b.kick) != 1 {
		t.Error("no follower is woken")
	}
	if got := b.take(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("it was notified for %v", got)
	}
	if got := b.take(); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
}
