//go:build linux

package qmp_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// QEMU says that a migration has failed before it has cleaned up after it. One that began
// then was refused, and QEMU 7.2 took it for begun ever after, or died.
func TestAMigrationAfterOneThatFailedBegins(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/again", calm)
	l.start("n1", vm)
	m, err := l.hosts["n1"].Monitor(vm.ID)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "deaf")
	deaf, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := deaf.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			c.Close()
		}
	}()
	defer func() { deaf.Close(); <-done }()
	q := qemu.QEMU{Conn: m}
	for n := range 100 {
		for busy := true; busy; {
			if busy, err = q.Migrating(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Migrate(t.Context(), "unix:"+path, false); err != nil {
			t.Fatalf("migration %d: %v", n, err)
		}
		for now := (qemu.Migration{}); now.Status != qemu.Failed; {
			if now, err = q.QueryMigrate(t.Context()); err != nil {
				t.Fatalf("migration %d: %v", n, err)
			}
		}
	}
	l.sound("n1", vm.ID)
}
