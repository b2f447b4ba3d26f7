//go:build linux

package qemu

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// sleeper starts a process, and ends it with the test. A killed one stays visible until it is waited for, as a
// QEMU does whose memory the kernel has not taken away yet.
func sleeper(t *testing.T, killed bool) Found {
	cmd := exec.Command("sleep", "389")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if killed {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	return Found{Identity: id, Args: []string{"sleep", "389"}}
}

// A QEMU that runs the VM refuses at once. One that was killed is waited for, and refuses for now when it stays.
func TestAQEMUThatWasKilledIsWaitedFor(t *testing.T) {
	lives, dead, broken := sleeper(t, false), sleeper(t, true), errors.New("no /proc")
	for _, row := range []struct {
		name   string
		others []Found
		clears int // at which look nothing is in the way; 0 is never
		err    error
		want   hypervisor.Kind
		looks  int // at least
	}{
		{"nothing is in the way", nil, 1, nil, 0, 1},
		{"a QEMU runs the VM", []Found{lives}, 0, nil, hypervisor.Conflict, 1},
		{"one runs it beside one that was killed", []Found{dead, lives}, 0, nil, hypervisor.Conflict, 1},
		{"one that was killed goes", []Found{dead}, 3, nil, 0, 3},
		{"one that was killed stays", []Found{dead}, 0, nil, hypervisor.Transient, 2},
		{"what holds the lock cannot be seen", nil, 0, nil, hypervisor.Invalid, 2},
		{"what cannot be seen goes", nil, 3, nil, 0, 3},
		{"nothing can be looked at", nil, 0, broken, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			within, looks := 100*time.Millisecond, 0
			if row.clears > 0 {
				within = time.Minute
			}
			err := cleared(t.Context(), within, hypervisor.Invalid, func() (bool, []Found, error) {
				looks++
				return looks == row.clears, row.others, row.err
			})
			switch {
			case row.err != nil && err != row.err,
				row.err == nil && row.want == 0 && err != nil,
				row.want != 0 && backend.KindOf(err) != row.want:
				t.Errorf("it answers %v, want %v", err, row.want)
			}
			if looks < row.looks || row.looks == 1 && looks != 1 {
				t.Errorf("it looked %d times, want %d", looks, row.looks)
			}
		})
	}
}
