package qmp_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	plain "github.com/digitalocean/go-qemu/qmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// dials counts the connections that hosts made, by where they went.
type dials struct {
	mu sync.Mutex
	to []string
}

func (d *dials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.to = append(d.to, network+":"+filepath.Base(address))
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

// besides returns the connections that did not go to a host, but to a QEMU.
func (d *dials) besides(host string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, to := range d.to {
		if !strings.HasSuffix(to, host) {
			list = append(list, to)
		}
	}
	return list
}

func TestAMigrationGoesOverEveryTransport(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(testing.TB) func(*qmp.Config)
	}{
		{"unix sockets", func(testing.TB) func(*qmp.Config) { return nil }},
		{"TCP, between hosts with ports of their own",
			func(t testing.TB) func(*qmp.Config) { return overTCP(freePorts(t)) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), row.change(t))
			vm := l.vm("suite/traveller", busy)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{})
			l.arrives("job", vm.ID)
		})
	}
}

func TestTCPAddressesSayWhereTheTargetListens(t *testing.T) {
	ports := freePorts(t)
	l := newLab(t, accelerator(t), overTCP(ports))
	vm := l.vm("suite/traveller", calm)
	address := string(l.receive("job", vm))
	if want := net.JoinHostPort("127.0.0.1", portText(ports["n2"])); !strings.HasPrefix(address,
		"qmp://"+want+"/?token=") {
		t.Errorf("the address is %s, want one at %s", address, want)
	}
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "job"})
	l.empty()
}

func TestAConnectionOfTheCallersCarriesTheMemory(t *testing.T) {
	for _, row := range []struct {
		name string
		tcp  bool
		host string // how the address of the target's host ends
	}{
		{"over unix sockets", false, "handover.sock"},
		{"over TCP", true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var made dials
			ports := freePorts(t)
			host := row.host
			if row.tcp {
				host = ":" + portText(ports["n2"])
			}
			l := newLab(t, accelerator(t), func(c *qmp.Config) {
				c.Dial = made.dial
				if row.tcp {
					overTCP(ports)(c)
				}
			})
			vm := l.vm("suite/traveller", busy)
			l.start("n1", vm)
			l.begin("job", vm.ID, options{})
			l.Until("n1", "job", hypervisor.JobSucceeded)
			if memory := made.besides(host); len(memory) != 1 {
				t.Errorf("Dial was used for memory %d times, want once: %v", len(memory), memory)
			}
			l.arrives("job", vm.ID)
		})
	}
}

func TestWhatOneConnectionCannotDoIsUnsupported(t *testing.T) {
	var made dials
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.Dial = made.dial })
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	able, err := l.hosts["n1"].Host(t.Context())
	if err != nil || able.Abilities&(hypervisor.CanUseChannels|hypervisor.CanCompress) != 0 {
		t.Errorf("the host says that it can: %v, %v", able.Abilities.Names(), err)
	}
	backendtest.Refused(t, l.send("channels", vm.ID, options{Channels: 2}), hypervisor.Unsupported,
		"channels")
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "channels"})
	backendtest.Refused(t, l.send("packed", vm.ID, options{Compression: true}),
		hypervisor.Unsupported,
		"compress")
	l.stays("packed", vm.ID)
}

func TestADialThatFailsLeavesTheVMAtItsSource(t *testing.T) {
	l := newLab(t, accelerator(t), func(c *qmp.Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !strings.HasSuffix(address, "handover.sock") {
				return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	})
	vm := l.vm("suite/traveller", calm)
	l.start("n1", vm)
	backendtest.Refused(t, l.send("job", vm.ID, options{}), hypervisor.Transient,
		"connect to the target")
	l.stays("job", vm.ID)
}

// The plain monitor of go-qemu has no out-of-band commands and passes no files.
func TestAMonitorOfTheCallersDoesWhatItCan(t *testing.T) {
	socket := func(path string) (plain.Monitor, error) {
		return plain.NewSocketMonitor("unix", path, 5*time.Second)
	}
	t.Run("it moves a VM", func(t *testing.T) {
		l := newLab(t, accelerator(t), func(c *qmp.Config) { c.Monitor = socket })
		vm := l.vm("suite/traveller", busy)
		l.start("n1", vm)
		l.begin("job", vm.ID, options{})
		l.arrives("job", vm.ID)
	})
	t.Run("it passes no connection, and the VM stays", func(t *testing.T) {
		var made dials
		l := newLab(t, accelerator(t), func(c *qmp.Config) {
			c.Monitor, c.Dial = socket, made.dial
		})
		vm := l.vm("suite/traveller", calm)
		l.start("n1", vm)
		backendtest.Refused(t, l.send("job", vm.ID, options{}), hypervisor.Unsupported)
		l.stays("job", vm.ID)
	})
}
