package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
)

const doctorHelp = `Check on a host what will hurt when it runs VMs and migrates them: KVM, what runs the VMs,
userfaultfd for post-copy, huge pages, the clock, disk space; with libvirt what is started when the host
boots; with --address the port and the MTU;
with --tls-dir the certificates and when they end; with --store whether it answers; with --peer
whether a daemon of another host answers, and whether its clock agrees. It changes nothing.

With --answer it waits at --address and --port for hosts that measure, until it is interrupted; with
--measure it sends to such a host for two seconds, and says what one connection carries, the largest
packet that passes, and whether the clocks agree. Do both before the agents have the port.

Give it the flags of the agent. Each check that is not ok says what to do.

Exit status: 0 no check failed, 2 bad input, 3 a check failed, 130 interrupted, as --answer always is.`

// DoctorCommand returns the command that checks a host.
func DoctorCommand() *cobra.Command {
	var f StoreFlags
	var h daemon.HostConfig
	var peers, links []string
	var answer bool
	var asJSON bool
	var limit time.Duration
	c := &cobra.Command{Use: "doctor", Short: "Check a host before it runs VMs", Long: doctorHelp,
		Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkable(&h, limit); err != nil {
			return err
		}
		if answer {
			return answerLinks(c, h.Address, h.Port)
		}
		ctx, cancel := context.WithTimeout(c.Context(), limit)
		defer cancel()
		h.TLS = f.dir
		config := HostCheck{TLS: h.TLS, PSK: h.TLSPSK, Address: h.Address, Port: h.Port, Peers: peers,
			Links:      withPort(links, h.Port),
			Dirs:       []string{"/"},
			Software:   h.Accelerator == "tcg",
			Hypervisor: func(ctx context.Context) (string, error) { return software(ctx, h) }}
		if h.Dir != "" {
			config.Dirs = []string{h.Dir}
		}
		if h.Backend == daemon.Libvirt {
			config.Autostarted = func(ctx context.Context) ([]string, error) { return autostarted(ctx, h) }
		}
		if f.url != "" {
			u, err := f.Parse()
			if err != nil {
				return err
			}
			config.Store = func(ctx context.Context) error { return answering(ctx, u, f.TLS) }
		}
		all := CheckHost(ctx, config)
		if err := printResults(c, all, asJSON); err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(r HostResult) bool { return r.Status == Failed }) {
			return ErrNotDone
		}
		return nil
	}
	f.Add(c)
	flags := c.Flags()
	flags.StringVar(&h.Backend, "backend", daemon.QMP, "hypervisor backend: `qmp` or libvirt")
	flags.StringVar(&h.Dir, "dir", "", "private `DIR` of the host's agent; default: the disk of /")
	flags.StringVar(&h.URI, "uri", "", "libvirt's `URI` of the host; default: qemu:///system")
	flags.StringVar(&h.QEMU, "qemu", "", "the `PROGRAM`; default: qemu-system-x86_64")
	flags.StringVar(&h.Accelerator, "accelerator", "", "`kvm` or tcg; default: kvm where it works")
	flags.StringVar(&h.Address, "address", "", "`IP` where other hosts reach this one")
	flags.IntVar(&h.Port, "port", 49150, "`PORT` at that address")
	c.PersistentFlags().Lookup("tls-dir").Usage = "`DIR` with the certificates that encrypt migrations, and\n" +
		"that are shown to controllers with --store tls:"
	flags.BoolVar(&h.TLSPSK, "tls-psk", false, "--tls-dir has a shared key instead: keys.psk")
	flags.StringSliceVar(&peers, "peer", nil, "`HOST:PORT` of the health of a daemon on another host;\n"+
		"may be repeated")
	flags.BoolVar(&answer, "answer", false, "wait at --address for hosts that measure, and check nothing")
	flags.StringSliceVar(&links, "measure", nil, "`HOST[:PORT]` that runs doctor --answer; may be repeated;\n"+
		"default of PORT: that of --port")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	flags.DurationVar(&limit, "timeout", time.Minute, "`TIME` that all checks may take together")
	return c
}

// checkable refuses flags with which nothing can be checked.
func checkable(h *daemon.HostConfig, limit time.Duration) error {
	switch {
	case h.Backend != daemon.QMP && h.Backend != daemon.Libvirt:
		return fmt.Errorf("--backend: %q is none: use qmp or libvirt", h.Backend)
	case h.Port < 0 || h.Port > 65535:
		return fmt.Errorf("--port: %d is no port: use 0 to 65535", h.Port)
	case limit <= 0:
		return fmt.Errorf("--timeout: %v is not a time above zero: write 1m", limit)
	}
	return nil
}

// answerLinks waits for hosts that measure, until it is interrupted.
func answerLinks(c *cobra.Command, address string, port int) error {
	if net.ParseIP(address) == nil {
		return fmt.Errorf("--answer needs the IP of this host where others reach it: give --address")
	}
	l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("wait for hosts that measure: %w; an agent that runs has its port: give another --port", err)
	}
	fmt.Fprintf(c.OutOrStdout(), "waits at %v: run godwit doctor --measure %[1]v on another host; ^C ends it\n", l.Addr())
	return ServeLink(c.Context(), l, time.Now)
}

// withPort adds the port to those hosts that have none.
func withPort(hosts []string, port int) (all []string) {
	for _, h := range hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), strconv.Itoa(port))
		}
		all = append(all, h)
	}
	return all
}

// software asks what runs VMs, as an agent would begin, in a directory that is removed again.
func software(ctx context.Context, h daemon.HostConfig) (string, error) {
	var is hypervisor.Host
	err := opened(ctx, h, func(host daemon.Host) (err error) {
		is, err = host.Host(ctx)
		return err
	})
	return is.Software, err
}

// autostarted asks which domains libvirtd starts when the host boots.
func autostarted(ctx context.Context, h daemon.HostConfig) (names []string, err error) {
	err = opened(ctx, h, func(host daemon.Host) (err error) {
		names, err = daemon.Autostarted(ctx, host)
		return err
	})
	return names, err
}

// opened opens a host for a while.
func opened(ctx context.Context, h daemon.HostConfig, ask func(daemon.Host) error) error {
	dir, err := os.MkdirTemp("/tmp", "godwit-doctor-") // the paths of sockets must be short
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host, err := daemon.OpenHost(ctx, daemon.HostConfig{Name: "doctor", Backend: h.Backend, URI: h.URI,
		QEMU: h.QEMU, Accelerator: h.Accelerator, Dir: filepath.Join(dir, "d"),
		Locks: filepath.Join(dir, "locks")})
	if err != nil {
		return err
	}
	defer host.Close()
	return ask(host)
}

// answering asks a store for anything.
func answering(ctx context.Context, u daemon.URL, tls daemon.TLS) error {
	s, err := daemon.OpenStore(ctx, u, tls)
	if err != nil {
		return err
	}
	return s.Close()
}

func printResults(c *cobra.Command, all []HostResult, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(all)
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "CHECK\tSTATUS\tFOUND")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Check, r.Status, client.Plain(r.Found))
		if r.Do != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", client.Plain(r.Do))
		}
	}
	return t.Flush()
}
