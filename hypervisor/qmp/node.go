//go:build linux

package qmp

import (
	"context"
	"net"
	"net/url"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A node is what the domains of one host share.
type node struct {
	backend.Node[*domain, *jobRecord]
	Here          url.URL       // where other hosts find this one
	Listen        string        // the IP address of this host; "" is unix sockets only
	Timeout       time.Duration // how long a QEMU or another host may take to answer
	TargetTimeout time.Duration // how long a target's host may be out of reach
	// Dial makes connections to other hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Advertise returns the address at which other hosts reach one of ours.
	Advertise func(address string) string
	QEMU      *qemu.Launcher
	Journal   *journal
	Boot      string // names the present start of the machine
}

// Close waits until every goroutine of the host has ended and every domain is unlocked, and then
// closes the connections to every QEMU and to every target's host.
func (n *node) Close() {
	n.Node.Close()
	for _, d := range n.All() {
		d.HangUp()
		if vm := d.Process(); vm != nil {
			vm.LetGo()
		}
	}
}

// Check refuses a VM that QEMU will not take.
func (n *node) Check(vm hypervisor.VM) error {
	if vm.ID == "" || vm.Memory <= 0 || vm.CPUs < 1 {
		return qemu.Refuse(hypervisor.Invalid,
			"VM %q with %v and %d CPUs", vm.ID, vm.Memory, vm.CPUs)
	}
	if err := qemu.Check(vm, n.QEMU.Settings(vm.ID)); err != nil {
		return qemu.Refuse(hypervisor.Invalid, "%w", err)
	}
	if hw := n.QEMU.Resolved(vm).Hardware; hw.Machine != "" {
		if _, known := n.QEMU.Features.Machine(hw.Machine); !known {
			return qemu.Refuse(hypervisor.Unsupported, "%s has no machine type %q",
				n.QEMU.Features.Software(), hw.Machine)
		}
	}
	return nil
}

// parsePeer returns where the host of a target listens, and the token by which it knows the job.
func parsePeer(address hypervisor.Address) (network, where, token string, err error) {
	u, err := url.Parse(string(address))
	if err == nil {
		token = u.Query().Get("token")
	}
	if err != nil || token == "" || u.Scheme != "qmp" && u.Scheme != "qmp+unix" {
		return "", "", "", qemu.Refuse(hypervisor.Invalid,
			"%q is no address that Receive answered", address)
	}
	if u.Scheme == "qmp+unix" {
		return "unix", u.Path, token, nil
	}
	return "tcp", u.Host, token, nil
}

// Reach connects to a target's host.
func (n *node) Reach(ctx context.Context, address hypervisor.Address) (*peerConn, error) {
	network, where, token, err := parsePeer(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	conn, err := n.Dial(ctx, network, where)
	if err != nil {
		return nil, qemu.Refuse(hypervisor.Transient, "reach the target's host: %v", err)
	}
	return newConn(conn, token), nil
}
