package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// isStore reports whether the name of a fleet is the URL of a store.
func isStore(name string) bool {
	return strings.HasPrefix(name, string(daemon.Bolt)+":") || strings.HasPrefix(name, string(daemon.Unix)+":") ||
		strings.HasPrefix(name, string(daemon.Etcd)+"://") || strings.HasPrefix(name, string(daemon.Served)+"://")
}

// readStore reads the fleet of a store as it is now.
func (f *FleetFlags) readStore(url string) (*config.Scenario, error) {
	settings, err := config.ReadSettings(f.config)
	if err != nil {
		return nil, err
	}
	files := StoreFlags{url: url, dir: f.files.dir, TLS: f.files.TLS}
	u, err := files.Parse()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := daemon.OpenStore(ctx, u, files.TLS)
	if err != nil {
		return nil, err
	}
	var c client.Cluster
	if err := errors.Join(c.Pull(ctx, daemon.Judged(opened)), opened.Close()); err != nil {
		return nil, err
	}
	s, err := scenarioOf(nameOf(u), &c, settings, time.Now(), f.begin)
	if err != nil {
		return nil, err
	}
	if f.config == "" {
		s.Fleet.Warnings = append(s.Fleet.Warnings, inventory.Problem{File: "store", Message: defaults})
	}
	s.Files = append(s.Files, f.config, u.Path)
	return s, nil
}

// defaults is the warning that the controller's configuration is not known.
const defaults = "the controller's configuration is not in a store: its limits, policies, quotas and timeouts are taken " +
	"for the defaults; --config FILE says what they are"

// nameOf returns the name of a store's scenario.
func nameOf(u daemon.URL) string {
	if u.Path == "" {
		return u.String()
	}
	return filepath.Base(u.Path)
}

// scenarioOf returns the scenario of what a store has, under a controller with these settings.
func scenarioOf(name string, c *client.Cluster, settings config.Settings, now, begin time.Time) (*config.Scenario, error) {
	s, err := settings.Scenario(name, fleetOf(c, now, begin))
	if err == nil {
		s.Encryption = encryptionOf(s.Fleet.Hosts, s.Controller.Cluster.Options().Encryption)
	}
	return s, err
}

// encryptionOf says how migrations between hosts are encrypted. It has one answer for all of them: as soon as
// those between two hosts are.
func encryptionOf(hosts []inventory.Host, wanted migration.Encryption) fake.Encryption {
	some := encrypting(hosts) >= 2
	if wanted.Resolve(some, some) == migration.TrafficEncrypted {
		return fake.TLSX509
	}
	return fake.Plain
}

// encrypting counts the hosts that have certificates, as their agents say.
func encrypting(hosts []inventory.Host) (n int) {
	for i := range hosts {
		if hosts[i].Host.Abilities.Has(hypervisor.CanEncrypt) {
			n++
		}
	}
	return n
}

// guess is the class of workload that guests are taken for that were not measured.
const guess = "web"

// fleetOf returns hosts and VMs as a store has them, with guests that write as they do when the plan begins; the zero time is
// now. VMs that are off take no part.
func fleetOf(c *client.Cluster, now, begin time.Time) *inventory.Fleet {
	f := &inventory.Fleet{Config: migration.DefaultCluster(), Namespaces: map[string]placement.Labels{}}
	unknown, measured, oldest := 0, 0, now
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
		if d := v.Dirtied; d != nil {
			measured++
			oldest = earlier(oldest, d.At)
		}
		f.VMs = append(f.VMs, vmOf(v, now, begin))
	}
	slices.SortFunc(f.VMs, func(a, b inventory.VM) int { return cmp.Compare(a.ID, b.ID) })
	f.Migrations = underWay(c)
	f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: writes(len(f.VMs), measured, now.Sub(oldest))})
	if n := len(f.Migrations); n > 0 {
		f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: fmt.Sprintf(
			"%s under way: a plan takes each of them as not begun, its VM on its source", humanize.Count(n, "migration"))})
	}
	if n := encrypting(f.Hosts); n >= 2 && n < len(f.Hosts) {
		f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: fmt.Sprintf(
			"%d of %s have certificates: all migrations are taken for encrypted, as those between them are", n,
			humanize.Count(len(f.Hosts), "host"))})
	}
	if unknown > 0 {
		f.Warnings = append(f.Warnings, inventory.Problem{File: "store", Message: fmt.Sprintf(
			"the agents of %s do not say how fast their links are: they are taken for %v",
			humanize.Count(unknown, "host"), inventory.DefaultLink)})
	}
	return f
}

// underWay lists the migrations that have not ended.
func underWay(c *client.Cluster) (all []inventory.Migration) {
	for _, m := range c.Migrations() {
		if !m.State.Phase.Final() {
			all = append(all, inventory.Migration{Spec: m.Spec, Phase: m.State.Phase, Source: m.State.Source, Chosen: m.State.Target})
		}
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// writes says where it is known from what guests write.
func writes(vms, measured int, oldest time.Duration) string {
	const help = " servers; --workloads FILE says what was measured, or agents measure it (godwit agent --measure-dirty-rate 1h)"
	switch age := humanize.Span(oldest.Seconds()) + " ago or later"; {
	case measured == 0:
		return "what guests write is not in a store: they are taken for " + guess + help
	case measured == vms:
		return "what guests write was measured by their agents, " + age
	default:
		return fmt.Sprintf("what %d of %s write was measured by their agents, %s; the others are taken for %s", measured,
			humanize.Count(vms, "guest"), age, guess+help)
	}
}

// vmOf returns a VM as it is stored. What its guest writes is what was measured, or else a guess.
func vmOf(v *store.VM, now, begin time.Time) inventory.VM {
	load, _ := inventory.Class(guess, v.Now().Memory)
	from := "taken for a " + guess + " server: it was not measured"
	if d := v.Dirtied; d != nil {
		load.Rate = d.Expected(now)
		from = fmt.Sprintf("measured by its agent %s ago", humanize.Span(now.Sub(d.At).Seconds()))
		if mean, known := d.AtHour(begin); known && begin.After(now) {
			load.Rate, from = mean, "measured by its agent at this time of the day"
		}
	}
	can, why := v.CanMigrate()
	vm := inventory.VM{VM: v.Now(), Host: v.Host, Namespace: v.Namespace, Labels: placement.Labels(v.Labels),
		Strategy: v.Strategy, Migratable: can, NotMigratableReason: why, EvacuateFrom: v.EvacuateFrom, Pause: v.Pause,
		Overhead: v.Overhead, Balloon: v.Balloon, Disk: v.LocalSize(),
		CPURequest: v.CPURequest, Workload: load, WorkloadFrom: from, Unmeasured: v.Dirtied == nil}
	if v.Placement != nil {
		vm.Placement = *v.Placement
	}
	return vm
}
