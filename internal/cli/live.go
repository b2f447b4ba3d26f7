package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/words"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// isStore reports whether the name of a fleet is the URL of a store.
func isStore(name string) bool {
	return strings.HasPrefix(name, string(daemon.Bolt)+":") ||
		strings.HasPrefix(name, string(daemon.Unix)+":") || strings.HasPrefix(name, string(daemon.Etcd)+"://")
}

// readStore reads the fleet of a store as it is now.
func readStore(url string) (*config.Scenario, error) {
	u, err := daemon.ParseURL(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := daemon.OpenStore(ctx, u, daemon.TLS{})
	if err != nil {
		return nil, err
	}
	var c client.Cluster
	if err := errors.Join(c.Pull(ctx, daemon.Judged(opened)), opened.Close()); err != nil {
		return nil, err
	}
	settings, err := config.ReadSettings("") // the defaults of controllers
	if err != nil {
		return nil, err
	}
	f := fleetOf(&c)
	f.EvictionStrategy = settings.Controller.Complete().Evacuation.Strategy
	return config.Of(filepath.Base(u.Path), f, config.VarySpec{})
}

// guess is the class of workload that guests are taken for: a store does not say what they write.
const guess = "web"

// fleetOf returns hosts and VMs as a store has them. VMs that are off take no part.
func fleetOf(c *client.Cluster) *inventory.Fleet {
	f := &inventory.Fleet{Config: migration.DefaultCluster(), Namespaces: map[string]placement.Labels{}}
	unknown := 0
	for _, h := range c.Hosts() {
		if h.Host.Link <= 0 {
			known := *h
			known.Host.Link, h = inventory.DefaultLink, &known
			unknown++
		}
		down := h.NotReady || h.Fenced
		f.Hosts = append(f.Hosts, inventory.Host{Host: h.Host, Labels: h.Labels, Taints: h.Taints,
			Cordoned: h.Cordoned || down, Down: down, Facts: h.Facts})
	}
	for _, v := range c.VMs() {
		if v.Host == "" || v.Off() && v.Ended {
			continue
		}
		f.VMs = append(f.VMs, vmOf(v))
	}
	slices.SortFunc(f.VMs, func(a, b inventory.VM) int { return cmp.Compare(a.ID, b.ID) })
	f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: "what guests write is not in a " +
		"store: they are taken for " + guess + " servers; --workloads FILE says what was measured"})
	if unknown > 0 {
		f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: fmt.Sprintf(
			"the agents of %s do not say how fast their links are: they are taken for %v",
			words.Count(unknown, "host"), inventory.DefaultLink)})
	}
	return f
}

func vmOf(v *store.VM) inventory.VM {
	load, _ := inventory.Class(guess, v.Now().Memory)
	vm := inventory.VM{VM: v.Now(), Host: v.Host, Namespace: v.Namespace, Labels: placement.Labels(v.Labels),
		Strategy: v.Strategy, Migratable: v.Migratable, NotMigratableReason: v.NotMigratableReason,
		EvacuateFrom: v.EvacuateFrom, Overhead: v.Overhead, Balloon: v.Balloon, Disk: v.Disk,
		CPURequest: v.CPURequest, Workload: load}
	if v.Placement != nil {
		vm.Placement = *v.Placement
	}
	return vm
}
