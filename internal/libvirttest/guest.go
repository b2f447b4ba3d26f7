//go:build linux

package libvirttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
)

// Guest writes the firmware of a guest that does what p says, and answers its path,
// which is the same outside and in both hosts. A domain takes it as
// <loader type='rom'>, and needs at least [Memory] of p.
func (l *Lab) Guest(t testing.TB, p guest.Params) string {
	t.Helper()
	image, err := p.Firmware()
	if err != nil {
		t.Fatalf("libvirttest: %v", err)
	}
	l.roms++
	rom := filepath.Join(l.SharedDir(), fmt.Sprintf("rom%d", l.roms))
	if err := os.WriteFile(rom, image, 0o600); err != nil {
		t.Fatalf("libvirttest: %v", err)
	}
	return rom
}

// Memory is how much memory the domain of a guest needs, in whole MiB.
func Memory(p guest.Params) int64 {
	return (guest.Base+max(p.Fill, p.WorkingSet, 1<<20))>>20 + 2
}

// PulsePath is where a domain offers its heartbeats, as seen inside both hosts. Each
// host has a file of its own there, in /run. Its device is
//
//	<serial type='unix'>
//	  <source mode='bind' path='PATH'/>
//	  <target type='isa-debug' port='0'><model name='isa-debugcon'/></target>
//	  <address type='isa' iobase='0xe9'/>
//	</serial>
//
// With mode='bind' every QEMU makes its own socket: the source of a migration and
// its target do not meet, and nothing has to listen for the domain to start.
func PulsePath(domain string) string { return filepath.Join(pulseDir, domain) }

// lookPause is the time between two looks for a new socket. A target has its
// socket 100 ms before its guest runs.
const lookPause = 3 * time.Millisecond

// Listen hears a domain's heartbeats at [PulsePath]; see [Lab.ListenAt].
func (l *Lab) Listen(t testing.TB, domain string) *guest.HeartbeatListener {
	t.Helper()
	return l.ListenAt(t, PulsePath(domain))
}

// ListenAt hears the heartbeats that come from a Unix socket, with the same path inside
// both hosts, until the test ends: from every QEMU that makes it, whenever and
// wherever. It must be below a directory that each host has for itself (see
// [Lab.Outside]), and be listened to before the guest starts. The
// processes' names in the heartbeat log are "hosta#1", "hostb#1", "hosta#2" and so on: another
// for each QEMU; [HostOf] takes them apart.
func (l *Lab) ListenAt(t testing.TB, path string) *guest.HeartbeatListener {
	t.Helper()
	pulse, stop, err := l.ListenUntil(path)
	if err != nil {
		t.Fatalf("libvirttest: %v", err)
	}
	t.Cleanup(stop)
	return pulse
}

// ListenUntil is [Lab.ListenAt] until stop is called, which waits for its end: a guest that is
// started anew counts its heartbeats from the beginning and wants another pulse.
func (l *Lab) ListenUntil(path string) (pulse *guest.HeartbeatListener, stop func(), err error) {
	if pulse, err = guest.NewHeartbeatListener(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, h := range l.hosts {
		all.Go(func() { follow(ctx, pulse, h.name, l.Outside(h.name, path)) })
	}
	return pulse, func() {
		cancel()
		all.Wait()
		pulse.Close()
	}, nil
}

// follow connects a pulse to every socket that appears at a path.
func follow(ctx context.Context, p *guest.HeartbeatListener, host, path string) {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	var known socketID
	for n := 1; ; {
		if id, ok := socketAt(path); ok && id != known {
			// It tries once: what nothing listens at is looked at again.
			once, cancel := context.WithCancel(ctx)
			cancel()
			if p.Connect(once, fmt.Sprintf("%s#%d", host, n), path) == nil {
				known, n = id, n+1
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// A socketID tells a socket from one that had the same path before.
type socketID struct {
	inode uint64
	made  syscall.Timespec
}

func socketAt(path string) (socketID, bool) {
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil || s.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return socketID{}, false
	}
	return socketID{s.Ino, s.Mtim}, true
}

// HostOf is the host of a process that a pulse names: "hosta" of "hosta#2".
func HostOf(process string) string {
	host, _, _ := strings.Cut(process, "#")
	return host
}

// QEMU is the process of a domain on a host, as seen from outside. It fails when
// there is none.
func (l *Lab) QEMU(host, domain string) (pid int, err error) {
	h := l.host(host)
	text, err := os.ReadFile(l.Outside(host, "/run/libvirt/qemu/"+domain+".pid"))
	if err != nil {
		return 0, fmt.Errorf("libvirttest: find the QEMU of %s on %s: %w", domain, host, err)
	}
	inside, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("libvirttest: find the QEMU of %s on %s: %w", domain, host, err)
	}
	return h.Outer(inside)
}

// Verify stops a guest for a moment, unless it is paused, and compares every byte of
// its memory with what it must be.
func (l *Lab) Verify(t testing.TB, host, domain string, p guest.Params) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state, err := l.Virsh(ctx, host, "domstate", domain)
	if err != nil {
		return err
	}
	if strings.TrimSpace(state) == "paused" {
		return l.dump(ctx, host, domain, p)
	}
	virsh := func(command string) func() error {
		return func() error {
			_, err := l.Virsh(ctx, host, command, domain)
			return err
		}
	}
	return guest.Stopped(ctx, virsh("suspend"),
		func() error { return l.dump(ctx, host, domain, p) }, virsh("resume"))
}

// dump checks every byte of the memory of a guest that stands.
func (l *Lab) dump(ctx context.Context, host, domain string, p guest.Params) error {
	size := guest.Base + max(p.Fill, p.WorkingSet, 1<<20)
	inside := imagesDir + "/" + domain + ".memory"
	path := l.Outside(host, inside)
	defer os.Remove(path)
	_, err := l.Virsh(ctx, host, "qemu-monitor-command", domain, fmt.Sprintf(
		`{"execute":"pmemsave","arguments":{"val":0,"size":%d,"filename":%q}}`, size, inside))
	if err != nil {
		return err
	}
	return p.VerifyDump(path, size)
}
