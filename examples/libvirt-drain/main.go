//go:build linux && libvirt_dlopen

// Command libvirt-drain moves what runs under one libvirtd to others, with nothing but
// godwit's own parts: a controller, an agent for each host, and a store.
//
//	libvirt-drain --from hosta=qemu:///system \
//	    --to qemu+ssh://root@hostb/system,qemu+ssh://root@hostc/system \
//	    --parallel 2 --bandwidth 1Gbit/s
//
// It ends with 0 when the host runs nothing any more. It may be interrupted: what is
// under way goes on, and the next drain begins when that has ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "libvirt-drain:", err)
		os.Exit(1)
	}
}

// run reads the flags, opens the hosts, and drains the first.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("libvirt-drain", flag.ContinueOnError)
	flags.SetOutput(out)
	from := flags.String("from", "", "[NAME=]URI of the libvirtd to drain; the name is how\n"+
		"the others reach it, by default the URI's")
	to := flags.String("to", "", "[NAME=]URIs of those that take its VMs, with commas")
	peer := flags.String("peer", "qemu+tls://%s/system", "URI of one libvirtd for the others")
	dir := flags.String("dir", "/var/lib/godwit/drain", "what has to be remembered")
	parallel := flags.Int("parallel", 2, "how many VMs move at once")
	speed := flags.String("bandwidth", "", "cap of each move, as 100MiB/s or 1Gbit/s")
	cpus := flags.Int("cpus", 0, "virtual CPUs that a host takes; 0: as many as it has")
	within := flags.Duration("within", time.Hour, "give up after this")
	if err := flags.Parse(args); err != nil {
		return err
	}
	limits := migration.DefaultCluster()
	limits.ParallelMigrationsPerCluster = *parallel
	limits.ParallelOutboundMigrationsPerNode = *parallel
	if *speed != "" {
		if limits.BandwidthPerMigration, err = inventory.ParseBandwidth(*speed); err != nil {
			return fmt.Errorf("--bandwidth: %w", err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *within, fmt.Errorf("not done within %s", *within))
	defer cancel()
	hosts, done, err := open(ctx, append([]string{*from}, strings.Split(*to, ",")...),
		libvirt.Config{Peer: *peer, Dir: *dir, CPUs: *cpus})
	defer done()
	if err != nil {
		return err
	}
	d := &drain{out: out, began: time.Now(), hosts: hosts, limits: limits}
	return d.run(ctx)
}

// open connects to every libvirtd; done lets go of them. Peer and Dir of the Config are
// for a host of whatever name.
func open(ctx context.Context, uris []string, c libvirt.Config,
) (hosts []*libvirt.Host, done func(), err error) {
	reach := map[string]string{} // how this process gets to a peer
	peer, dir := c.Peer, c.Dir
	done = func() {
		for _, h := range hosts {
			_ = h.Close() // what libvirt leads goes on
		}
	}
	configs := make([]libvirt.Config, len(uris))
	for i, text := range uris {
		name, uri := split(text)
		if name == "" {
			return nil, done, fmt.Errorf("%q: whose libvirtd is it? say NAME=URI", text)
		}
		c.Name, c.URI, c.Dir = name, uri, filepath.Join(dir, string(name))
		c.Peer = strings.ReplaceAll(peer, "%s", string(name))
		c.Reach = func(peer string) string { return reach[peer] }
		reach[c.Peer], configs[i] = uri, c
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, done, err
	}
	for _, c := range configs {
		h, err := libvirt.New(ctx, c)
		if err != nil {
			return hosts, done, err
		}
		hosts = append(hosts, h)
	}
	return hosts, done, nil
}

// split finds the host's name in [NAME=]URI.
func split(text string) (name hypervisor.HostName, uri string) {
	before, after, named := strings.Cut(text, "=")
	if named && !strings.Contains(before, ":") {
		return hypervisor.HostName(before), after
	}
	if u, err := url.Parse(text); err == nil {
		name = hypervisor.HostName(u.Hostname())
	}
	return name, text
}
