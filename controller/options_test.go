package controller_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A policy is asked about the VM's labels, its namespace's, and both hosts.
func TestThePolicyThatSelectsTheMoveWins(t *testing.T) {
	cluster := migration.DefaultCluster()
	cluster.CompletionTimeoutPerGiB = 10 * time.Second
	limit := hypervisor.Bandwidth(7)
	policies := []migration.Policy{{Name: "uphill",
		OptionsOverrides: migration.OptionsOverrides{BandwidthPerMigration: &limit},
		Selectors: &migration.Selectors{VM: migration.Labels{"app": "db", "kubevirt.io/nodeName": "n1",
			"kubevirt.io/migrationTargetNodeName": "n2"}, Namespace: migration.Labels{"team": "a"}}}}
	spaces := map[string]migration.Labels{"shop": {"team": "a"}}
	with := controller.NewResolver(&cluster, migration.PolicyMatcher{}, policies, spaces)
	without := controller.NewResolver(&cluster, migration.PolicyMatcher{}, nil, spaces)
	for _, r := range []struct {
		name       string
		resolver   *controller.Resolver
		app, space string
		target     hypervisor.HostName
		policy     string
		bandwidth  hypervisor.Bandwidth
	}{
		{name: "it selects the move", resolver: with, app: "db", space: "shop", target: "n2",
			policy: "uphill", bandwidth: 7},
		{name: "another VM", resolver: with, app: "web", space: "shop", target: "n2"},
		{name: "another namespace", resolver: with, app: "db", space: "lab", target: "n2"},
		{name: "another target", resolver: with, app: "db", space: "shop", target: "n3"},
		{name: "no policies", resolver: without, app: "db", space: "shop", target: "n2"},
	} {
		t.Run(r.name, func(t *testing.T) {
			vm := &store.VM{VM: hypervisor.VM{ID: "v", Memory: 3 * hypervisor.GiB}, Host: "n1",
				Namespace: r.space, Labels: migration.Labels{"app": r.app}}
			m := &store.Migration{State: migration.State{Source: "n1", Target: r.target}}
			r.resolver.Resolve(m, vm, nil, nil)
			if m.Policy != r.policy || m.Options.Bandwidth != r.bandwidth ||
				m.State.Budget != 80*time.Second {
				t.Errorf("policy %q, bandwidth %v, budget %v", m.Policy, m.Options.Bandwidth,
					m.State.Budget)
			}
			again := &store.Migration{State: m.State}
			if r.resolver.Resolve(again, vm, nil, nil); again.Options != m.Options {
				t.Error("the same options are stored twice")
			}
			if len(vm.Labels) != 1 {
				t.Errorf("the VM's labels were changed: %v", vm.Labels)
			}
		})
	}
}

// The time that a transfer may take is doubled, for a pause: 5 s for each of 4, of 46 or of
// 104 GB.
func TestLocalDisksCountForTheTime(t *testing.T) {
	cluster := migration.DefaultCluster()
	cluster.CompletionTimeoutPerGiB = 5 * time.Second
	for _, r := range []struct {
		name   string
		stated hypervisor.Bytes
		disks  []hypervisor.Disk
		size   map[string]hypervisor.Bytes
		gb     time.Duration
	}{
		{"none", 0, nil, nil, 4},
		{"a shared one", 0, []hypervisor.Disk{{Name: "d", Path: "/d", Size: 1e12}}, nil, 4},
		{"local ones", 0, []hypervisor.Disk{{Name: "d", Size: 40e9}, {Name: "e", Size: 2e9}},
			nil, 46},
		{"one that has grown", 0, []hypervisor.Disk{{Name: "d", Size: 40e9}},
			map[string]hypervisor.Bytes{"d": 42e9}, 46},
		{"what its owner states goes first", 100e9, []hypervisor.Disk{{Name: "d", Size: 42e9}},
			nil, 104},
	} {
		vm := &store.VM{VM: hypervisor.VM{ID: "v", Memory: 4e9,
			Hardware: &hypervisor.Hardware{Disks: r.disks}}, Disk: r.stated}
		if r.size != nil {
			vm.Size = &store.Size{Memory: 4e9, Disks: r.size}
		}
		var m store.Migration
		controller.NewResolver(&cluster, migration.PolicyMatcher{}, nil, nil).Resolve(&m, vm, nil, nil)
		if want := 2 * r.gb * 5 * time.Second; m.State.Budget != want {
			t.Errorf("%s: %v, want %v", r.name, m.State.Budget, want)
		}
	}
	cluster.CompletionTimeoutPerGiB = hypervisor.Forever
	var m store.Migration
	controller.NewResolver(&cluster, migration.PolicyMatcher{}, nil, nil).Resolve(&m,
		&store.VM{VM: hypervisor.VM{ID: "v", Memory: 4e9}}, nil, nil)
	if m.State.Budget < hypervisor.Forever/2 {
		t.Errorf("for ever is %v", m.State.Budget)
	}
}

// TestAHostThatSaidNothingIsNoReasonToSendInTheClear: it may have certificates.
func TestAHostThatSaidNothingIsNoReasonToSendInTheClear(t *testing.T) {
	host := func(a hypervisor.Abilities) *store.Host {
		return &store.Host{Host: hypervisor.Host{Abilities: a}}
	}
	const able, unable = hypervisor.CanEncrypt | hypervisor.CanPostCopy, hypervisor.CanPostCopy
	cluster := migration.DefaultCluster()
	for _, r := range []struct {
		source, target *store.Host
		want           migration.Traffic
	}{
		{host(able), host(able), migration.TrafficEncrypted},
		{host(able), host(unable), migration.TrafficPlainTarget},
		{host(unable), host(able), migration.TrafficPlainSource},
		{host(able), host(0), migration.TrafficAsConfigured},
		{host(able), nil, migration.TrafficAsConfigured},
	} {
		var m store.Migration
		controller.NewResolver(&cluster, migration.PolicyMatcher{}, nil, nil).Resolve(&m,
			&store.VM{VM: hypervisor.VM{ID: "v", Memory: 4e9}}, r.source, r.target)
		if m.Options.Traffic != r.want {
			t.Errorf("%+v to %+v: %q, want %q", r.source, r.target, m.Options.Traffic, r.want)
		}
	}
}
