//go:build linux

package libvirttest

import (
	"fmt"
	"path/filepath"
)

// The switch is a bridge in a network namespace of its own. A link that is cut is
// a switch that forwards nothing: the hosts' cards stay up, with carrier, and the
// hosts know each other's hardware address for good, so that no ARP fails and
// no host is told anything, as with a peer behind a router. The usual means are
// worse: a card that is down tells its own host at once, and netem needs a
// kernel that has it.

// Port states of a bridge, as the kernel numbers them.
const (
	portOff        = 0
	portForwarding = 3
)

func (l *Lab) openSwitch() error {
	if err := l.wire.Launch(switchNamespaces, filepath.Join(l.dir, "switch.log")); err != nil {
		return fmt.Errorf("start the switch: %w", err)
	}
	_, err := l.wire.Run("link add br0 type bridge mcast_snooping 0\nlink set br0 up\n",
		"ip", "-batch", "-")
	return err
}

func (h *host) port() string { return fmt.Sprintf("port%d", h.number) }

func hardwareAddress(number int) string { return fmt.Sprintf("02:00:00:00:00:%02x", number) }

// plug gives a host that has just booted a card that is connected to the switch.
func (l *Lab) plug(h *host) error {
	if err := l.unplug(h); err != nil { // a dead host's link goes only after a while
		return err
	}
	_, err := l.wire.Run(fmt.Sprintf("link add %s type veth peer name veth0 address %s netns %d\n"+
		"link set %[1]s master br0\nlink set %[1]s up\n", h.port(), hardwareAddress(h.number),
		h.PID()), "ip", "-batch", "-")
	if err != nil {
		return fmt.Errorf("plug %s into the switch: %w", h.name, err)
	}
	peer := 3 - h.number
	_, err = h.Run(fmt.Sprintf("link set lo up\nlink set veth0 up\n"+
		"addr add 10.99.0.%d/24 dev veth0\n"+
		"neigh replace 10.99.0.%d lladdr %s dev veth0 nud permanent\n",
		h.number, peer, hardwareAddress(peer)), "ip", "-batch", "-")
	if err != nil {
		return fmt.Errorf("set up the network of %s: %w", h.name, err)
	}
	if l.cut {
		return l.setPort(h, portOff)
	}
	return nil
}

// unplug removes a host's end of the switch, if there is one.
func (l *Lab) unplug(h *host) error {
	_, err := l.wire.Run(fmt.Sprintf("link del %s\n", h.port()), "ip", "-force", "-batch", "-")
	if _, gone := l.wire.Run("", "ip", "link", "show", "dev", h.port()); gone != nil {
		return nil
	}
	return err
}

func (l *Lab) setPort(h *host, state int) error {
	// The command ip takes a state, too, and does not set it.
	_, err := l.wire.Run("", "bridge", "link", "set", "dev", h.port(), "state",
		fmt.Sprint(state))
	return err
}

func (l *Lab) setLink(cut bool) error {
	state := portForwarding
	if cut {
		state = portOff
	}
	l.cut = cut
	for _, h := range l.hosts {
		if h.PID() == 0 {
			continue // it has no port; plug knows
		}
		if err := l.setPort(h, state); err != nil {
			return err
		}
	}
	return nil
}

// CutLink loses every packet between the hosts from now on, in both directions. No
// host is told: connections stay open, new ones are tried until they time out. It
// may be repeated.
func (l *Lab) CutLink() {
	l.t.Helper()
	l.must(l.setLink(true))
}

// MendLink ends CutLink. Connections that are still open go on when TCP
// tries again, which takes longer the longer the link was cut. It may be repeated.
func (l *Lab) MendLink() {
	l.t.Helper()
	l.must(l.setLink(false))
}

// ResetLink breaks all connections between the hosts that are established, at both
// ends: each end finds its connection reset or aborted at once (ECONNRESET or
// ECONNABORTED), also while the link is cut. New ones are possible, and what
// listens goes on doing so.
func (l *Lab) ResetLink() {
	l.t.Helper()
	l.must(l.each(func(h *host) error {
		if h.PID() == 0 {
			return nil
		}
		_, err := h.Run("", "ss", "--kill", "--no-header", "--numeric", "--tcp", "state",
			"connected", "dst", "10.99.0.0/24")
		return err
	}))
}
