package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/inventory"
)

const locksVariable = "GODWIT_LOCKS" // The directory of the locks of agents, where --locks is not given.

const agentHelp = `Run the agent of one host: it starts, stops and migrates its VMs and sends heartbeats.
The host is added when its agent first starts, and its name then belongs to that agent's directory
on that machine: an agent with another directory, or on another machine, is refused the name before
it starts anything (exit status 4). If the old agent is gone for good, use godwit host adopt.

The leading controller must admit the agent before it acts: until then it starts, stops and removes
nothing, VMs keep running, and godwit host list prints the reason.

With --store tls://HOST:PORT,… it reaches the store through controllers that serve it (--store-listen),
with the certificates in --tls-dir, which must be those of its host, and needs no rights in etcd.

On SIGTERM or SIGINT it finishes current work and exits; a second signal exits immediately. It may
be killed at any time: the VMs keep running. On SIGHUP it reopens its audit log.`

func agentCommand() *cobra.Command {
	var f daemonFlags
	var d daemon.Agent
	var h daemon.HostConfig
	var memory, link, host string
	c := &cobra.Command{Use: "agent --host NAME --store URL --backend qmp|libvirt --dir DIR",
		Short: "Run the agent of a host", Long: agentHelp, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		d.Host = hypervisor.HostName(host)
		h.Name = d.Host
		if err := errors.Join(named("--host", host), sizes(&h, memory, link)); err != nil {
			return err
		}
		if err := intervals(&d.Config); err != nil {
			return err
		}
		u, err := f.Parse()
		if err != nil {
			return err
		}
		if u.Kind != daemon.Served || h.Backend == daemon.QMP { // libvirt has files of its own
			h.TLS = f.Dir()
		}
		if h.CPUs < 0 {
			return fmt.Errorf("--cpus: %d is negative: leave it out for all CPUs", h.CPUs)
		}
		if err := h.Check(); err != nil {
			return err
		}
		var done func() error
		if d.Dependencies, done, err = f.surroundings(c.Context(), c.ErrOrStderr()); err != nil {
			return err
		}
		return errors.Join(act(c.Context(), &d, h, u, &f), done())
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&host, "host", "", "the host's unique `NAME`")
	flags.StringVar(&h.Backend, "backend", daemon.QMP, "hypervisor backend: `qmp` or libvirt")
	flags.StringVar(&h.Dir, "dir", "", "private `DIR` for the host's state")
	flags.StringVar(&h.Locks, "locks", os.Getenv(locksVariable), "`DIR` of the locks that keep two "+
		"agents, or two\nQEMUs of a VM, apart on this machine; default: $"+locksVariable+
		",\nor /run/godwit")
	flags.StringVar(&h.URI, "uri", "", "libvirt's `URI` of the host; default: qemu:///system")
	flags.StringVar(&h.Peer, "peer", "", "libvirt's `URI` of the host for other hosts;\n"+
		"default: qemu+tls://NAME/system")
	flags.StringVar(&h.DebugDir, "debug-dir", "", "`DIR` on the host where libvirt's QEMUs make a socket\n"+
		"for each VM with a debug port, for tests; default: none")
	flags.StringVar(&h.Address, "address", "", "`IP` where other hosts reach this one;\n"+
		"default: all hosts are on this machine")
	flags.IntVar(&h.Port, "port", 0, "`PORT` at that address; default: 49150")
	c.PersistentFlags().Lookup("tls-dir").Usage = "`DIR` with ca-cert.pem, server-cert.pem, server-key.pem,\n" +
		"client-cert.pem and client-key.pem, as QEMU needs them to\nencrypt migrations, with which " +
		"each host checks the other;\nhosts without it get migrations in the clear, unless the " +
		"controller's\nconfiguration says encryption: Required; with --store tls: also\nto show to " +
		"controllers; default: no encryption"
	flags.BoolVar(&h.LibvirtTLS, "libvirt-tls", false, "encrypt migrations with the certificates that "+
		"libvirt's\nqemu.conf names (migrate_tls_x509_cert_dir)")
	flags.BoolVar(&h.TLSPSK, "tls-psk", false, "--tls-dir has a shared key instead: keys.psk")
	flags.StringVar(&h.TLSHostname, "tls-hostname", "", "`NAME` that the certificates of other hosts "+
		"carry; default:\nthe address that they are reached at")
	flags.StringVar(&memory, "memory", "", "`SIZE` of memory for all VMs together; default: all")
	flags.IntVar(&h.CPUs, "cpus", 0, "`N` CPUs for all VMs together; default: all")
	flags.StringVar(&link, "link", "", "`SPEED` of the migration network: 10Gbit/s")
	flags.StringVar(&h.QEMU, "qemu", "", "the `PROGRAM`; default: qemu-system-x86_64")
	flags.StringVar(&h.Accelerator, "accelerator", "", "`kvm` or tcg; default: kvm where it works")
	flags.DurationVar(&d.Config.Poll, "poll", time.Second, "`TIME` between samples of a transfer")
	flags.DurationVar(&d.Config.MeasureEvery, "measure-dirty-rate", 0, "measure how fast each guest writes "+
		"memory,\nfor a second each `TIME`, one guest after the other; default: never")
	return c
}

// intervals checks how often an agent looks.
func intervals(c *agent.Config) error {
	if c.Poll <= 0 {
		return fmt.Errorf("--poll: %v is not a time above zero: write 1s", c.Poll)
	}
	if every := c.MeasureEvery; every < 0 || every > 0 && every < time.Minute {
		return fmt.Errorf("--measure-dirty-rate: %v is too often: write 1h, at least 1m, or 0 for never", every)
	}
	return nil
}

// sizes reads amounts.
func sizes(h *daemon.HostConfig, memory, link string) (err error) {
	if memory != "" {
		if h.Memory, err = inventory.ParseBytes(memory); err != nil {
			return fmt.Errorf("--memory: %w", err)
		}
	}
	if link != "" {
		if h.Link, err = inventory.ParseBandwidth(link); err != nil {
			return fmt.Errorf("--link: %w", err)
		}
	}
	return nil
}

// act runs an agent over its host and its store.
func act(ctx context.Context, d *daemon.Agent, h daemon.HostConfig, u daemon.URL,
	f *daemonFlags) error {
	d.Notifier, d.Certificates = daemon.NewNotifier(), daemon.CertificatesOf(h, f.TLS)
	lock, name, err := daemon.LockHost(h)
	if err != nil {
		return err
	}
	defer lock.Close()
	d.Lock, d.Console = name, daemon.ConsolePath(h.Locks, d.Host)
	if d.Identity, err = daemon.IdentifyHost(h); err != nil {
		return err
	}
	known, err := daemon.OpenLedger(filepath.Join(h.Dir, "ledger"), time.Now())
	if err != nil {
		return err
	}
	d.Config.Ledger = known
	h.Changed = d.Notifier.Notify
	host, err := daemon.OpenHost(ctx, h)
	if err != nil {
		return err
	}
	d.Hypervisor = host
	store, err := daemon.Await(ctx, u, f.TLS, waits(&d.Dependencies))
	if err != nil {
		return errors.Join(ended(ctx, err), host.Close())
	}
	gate, err := daemon.Gated(ctx, store, filepath.Join(h.Dir, "seen"), "agent/"+string(d.Host))
	if err != nil {
		return errors.Join(ended(ctx, err), store.Close(), host.Close())
	}
	d.Store = gate
	d.Config.Epoch = func() uint64 { return gate.Mark().Epoch }
	d.Supervisor.Ready("waits for its host's name")
	return errors.Join(d.Run(ctx), gate.Close(), store.Close(), host.Close())
}
