package options_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller/options"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/policy"
	"github.com/godwit-vm/godwit/record"
)

// A policy is asked about the VM's labels, its namespace's, and both hosts.
func TestThePolicyThatSelectsTheMoveWins(t *testing.T) {
	cluster := policy.Default()
	cluster.CompletionTimeoutPerGiB = 10 * time.Second
	limit := hypervisor.Bandwidth(7)
	policies := []policy.Policy{{Name: "uphill",
		Overrides: policy.Overrides{BandwidthPerMigration: &limit},
		Selectors: &policy.Selectors{VM: policy.Labels{"app": "db", "kubevirt.io/nodeName": "n1",
			"kubevirt.io/migrationTargetNodeName": "n2"}, Namespace: policy.Labels{"team": "a"}}}}
	spaces := map[string]policy.Labels{"shop": {"team": "a"}}
	with := options.New(&cluster, policy.Matcher{}, policies, spaces)
	without := options.New(&cluster, policy.Matcher{}, nil, spaces)
	for _, r := range []struct {
		name       string
		resolver   *options.Resolver
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
			vm := &record.VM{VM: hypervisor.VM{ID: "v", Memory: 3 * hypervisor.GiB}, Host: "n1",
				Namespace: r.space, Labels: policy.Labels{"app": r.app}}
			m := &record.Migration{State: migration.State{Source: "n1", Target: r.target}}
			r.resolver.Resolve(m, vm)
			if m.Policy != r.policy || m.Options.Bandwidth != r.bandwidth ||
				m.State.Budget != 80*time.Second {
				t.Errorf("policy %q, bandwidth %v, budget %v", m.Policy, m.Options.Bandwidth,
					m.State.Budget)
			}
			again := &record.Migration{State: m.State}
			if r.resolver.Resolve(again, vm); again.Options != m.Options {
				t.Error("the same options are stored twice")
			}
			if len(vm.Labels) != 1 {
				t.Errorf("the VM's labels were changed: %v", vm.Labels)
			}
		})
	}
}
