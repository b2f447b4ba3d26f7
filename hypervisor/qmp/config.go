//go:build linux

package qmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/go-qemu/qmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// Config configures a Host. A zero field takes the default it names.
type Config struct {
	// Name is the host's name in the cluster. It must be set.
	Name hypervisor.HostName
	// Dir is the host's private directory. It must be set, and so short that the
	// path of a socket in it stays within 107 bytes.
	Dir string
	// Locks is the directory of the locks that the QEMUs of this machine hold while they live:
	// outside of Dir, so that a VM whose QEMU runs is not started again, whatever directory or
	// agent would do it. All hosts on a machine share it, but for
	// installations that are to know nothing of each other. Default: /run/godwit for root, or
	// godwit in the user's own directory for such files.
	Locks string
	// Memory and CPUs are what VMs may use together. Default: all that the machine
	// has.
	Memory hypervisor.Bytes
	CPUs   int
	// Link is the speed of the migration network, each way. It is only reported.
	Link hypervisor.Bandwidth
	// QEMU is the program. Default: "qemu-system-x86_64".
	QEMU string
	// Accelerator is "kvm" or "tcg". Default: kvm where it works.
	Accelerator string
	// Listen is the IP address where other hosts reach this one. Default: none;
	// migrations then go over unix sockets, between hosts on one machine.
	Listen string
	// Port is where sources find this host, with Listen. Default: 49150.
	Port int
	// Timeout is how long a QEMU may take to answer, and to end when it was killed; what
	// is asked of its VM then is Transient. Default: 10s. One that was just started may take 30s,
	// and one second more for each GiB of memory. One that sends its VM
	// and is silent for twice as long, and for the downtime allowed besides, is told that the
	// link is lost.
	Timeout time.Duration
	// TargetTimeout is how long a target's host may be out of reach at the switch-over
	// before the outcome counts as unknown. It is asked again for ever. Default: 5s.
	TargetTimeout time.Duration
	// TLS encrypts the memory and the disks of VMs on their way. Default: none.
	TLS *TLS
	// Dial makes the connections to other hosts, which are then passed to QEMU:
	// through a tunnel, for example. It excludes TransferOptions.Channels.
	// Default: QEMU makes its own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Advertise returns the address at which other hosts reach what listens here:
	// behind a translation of addresses, for example. Addresses are "tcp:HOST:PORT"
	// and "unix:PATH". Default: the address itself.
	Advertise func(address string) string
	// Monitor makes the connection to the monitor of a QEMU at a unix socket.
	// What it cannot do, such as out-of-band commands, the Host cannot do with it.
	// Default: one that dials the socket.
	Monitor func(socket string) (qmp.Monitor, error)
	// Args are added to every QEMU's arguments.
	Args []string
	// Changed is told that a VM or its job has changed. It must not block and may
	// be called by many goroutines. Missing a call costs only time.
	Changed func(hypervisor.VMID)

	// features are what the program can do, if a test knows it. Default: it is asked.
	features *qemu.Features
}

// TLS is how migration traffic is encrypted. Both hosts need it.
type TLS struct {
	// Dir has ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem and
	// client-key.pem, or, with PSK, keys.psk.
	// Source: QEMU 7.2 docs/system/tls.rst.
	Dir string
	// PSK uses pre-shared keys instead of certificates.
	PSK bool
	// Hostname is the name that certificates of targets carry. Default: the one
	// that the source connects to.
	Hostname string
}

// DefaultPort is where sources find a host that listens and names no other port.
const DefaultPort = 49150

const (
	// maxSocket is the length of a path in sockaddr_un, less its end.
	maxSocket = 107
	// belowDir is the length of what follows Dir in the longest path of a socket.
	belowDir = len("/vms/sixteen-letters..0123456789abcdef/console.sock")
)

// complete fills in the defaults, and refuses what cannot work.
func (c Config) complete() (Config, error) {
	var bad []error
	if c.Name == "" {
		bad = append(bad, errors.New("config: Name: it must be set"))
	}
	if c.Dir == "" {
		bad = append(bad, errors.New("config: Dir: it must be set"))
	}
	if c.Listen != "" && net.ParseIP(c.Listen) == nil {
		bad = append(bad, fmt.Errorf("config: Listen: %q is no IP address", c.Listen))
	}
	if c.Accelerator != "" && c.Accelerator != "kvm" && c.Accelerator != "tcg" {
		bad = append(bad, fmt.Errorf(
			"config: Accelerator: %q is neither kvm nor tcg", c.Accelerator))
	}
	if c.Memory < 0 || c.CPUs < 0 || c.Link < 0 || c.Timeout < 0 || c.TargetTimeout < 0 {
		bad = append(bad, errors.New("config: Memory, CPUs, Link, Timeout and TargetTimeout: "+
			"none may be negative"))
	}
	if c.Port < 0 || c.Port > 65535 {
		bad = append(bad, fmt.Errorf("config: Port: %d is no port", c.Port))
	}
	if err := errors.Join(bad...); err != nil {
		return c, err
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, fmt.Errorf("config: Dir: %w", err)
	}
	if longest := len(c.Dir) + belowDir; longest > maxSocket {
		return c, fmt.Errorf(
			"config: Dir: %s: the path of a socket in it would have %d bytes, and %d "+
				"are the most: choose a shorter one", c.Dir, longest, maxSocket)
	}
	c.defaults()
	if c.Locks, err = filepath.Abs(c.Locks); err != nil {
		return c, fmt.Errorf("config: Locks: %w", err)
	}
	if c.QEMU, err = exec.LookPath(c.QEMU); err != nil {
		return c, fmt.Errorf(
			"config: QEMU: %w: install it (Debian: qemu-system-x86) or name it", err)
	}
	if c.QEMU, err = filepath.Abs(c.QEMU); err != nil {
		return c, fmt.Errorf("config: QEMU: %w", err)
	}
	if c.Memory == 0 {
		if c.Memory, err = machineMemory(); err != nil {
			return c, fmt.Errorf("config: Memory: %w", err)
		}
	}
	return c, nil
}

func (c *Config) defaults() {
	if c.QEMU == "" {
		c.QEMU = "qemu-system-x86_64"
	}
	if c.Locks == "" {
		c.Locks = durable.Runtime()
	}
	if c.CPUs == 0 {
		c.CPUs = runtime.NumCPU()
	}
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.TargetTimeout == 0 {
		c.TargetTimeout = 5 * time.Second
	}
	if c.Advertise == nil {
		c.Advertise = func(address string) string { return address }
	}
	if c.Changed == nil {
		c.Changed = func(hypervisor.VMID) {}
	}
}

// machineMemory returns the memory of the machine.
func machineMemory() (hypervisor.Bytes, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return hypervisor.Bytes(n) * hypervisor.KiB, err
		}
	}
	return 0, errors.New("/proc/meminfo names no MemTotal")
}
