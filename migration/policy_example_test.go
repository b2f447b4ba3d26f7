package migration_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

func ExampleResolveOptions() {
	policies := []migration.Policy{{
		Name:      "databases",
		Selectors: &migration.Selectors{VM: migration.Labels{"app": "db"}},
		OptionsOverrides: migration.OptionsOverrides{
			AllowPostCopy:         new(true),
			BandwidthPerMigration: new(64 * hypervisor.Bandwidth(hypervisor.MiB)),
		},
	}}
	options, name := migration.ResolveOptions(migration.DefaultCluster(), policies, migration.Labels{"app": "db"}, nil)
	fmt.Println("policy:", name)
	fmt.Println("bandwidth:", options.Bandwidth)
	fmt.Println("post-copy:", options.AllowPostCopy, "disruption:", options.AllowWorkloadDisruption)
	fmt.Println("completion:", options.CompletionTimeoutPerGiB, "per GiB")
	// Output:
	// policy: databases
	// bandwidth: 64MiB/s
	// post-copy: true disruption: true
	// completion: 2m30s per GiB
}

func ExampleExplainPolicy() {
	fmt.Println(migration.ExplainPolicy([]migration.Policy{
		{Name: "everyone", Selectors: &migration.Selectors{}},
		{Name: "gold", Selectors: &migration.Selectors{VM: migration.Labels{"tier": "gold"}}},
		{Name: "prod", Selectors: &migration.Selectors{Namespace: migration.Labels{"env": "prod"}}},
		{Name: "silver", Selectors: &migration.Selectors{VM: migration.Labels{"tier": "silver"}}},
	}, migration.Labels{"tier": "gold"}, migration.Labels{"env": "prod"}))
	// Output:
	// gold wins over prod, by labels on the VM: matches 1 on the VM and 0 on the namespace
	// prod loses to gold, by labels on the VM: matches 0 on the VM and 1 on the namespace
	// everyone loses to gold, by labels in all: matches 0 on the VM and 0 on the namespace
	// silver does not match: VM label tier: needs "silver", has "gold"
}

func ExamplePolicy_Validate() {
	p := migration.Policy{Name: "hasty", OptionsOverrides: migration.OptionsOverrides{
		MaxDowntime: new(time.Hour),
		Experimental: &migration.Experimental{
			StallDetector: &migration.StallDetectorOverrides{EWMAAlpha: new(1.5)},
		},
	}}
	for _, problem := range p.Validate() {
		fmt.Println(problem)
	}
	// Output:
	// maxDowntimeMs: needs 1ms to 2000s, has 1h0m0s
	// experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has 1.5
}

func ExampleOverlappingPolicies() {
	for _, problem := range migration.OverlappingPolicies([]migration.Policy{
		{Name: "b", Selectors: &migration.Selectors{VM: migration.Labels{"app": "db"}}},
		{Name: "a", Selectors: &migration.Selectors{VM: migration.Labels{"app": "db"}}},
	}) {
		fmt.Println(problem)
	}
	// Output:
	// selectors of b: needs labels that no other policy selects, has those of a, which always wins
}

func ExampleClusterOverrides_Complete() {
	c := migration.ClusterOverrides{AllowPostCopy: new(true)}.Complete()
	fmt.Println(c.ParallelMigrationsPerCluster, c.AllowWorkloadDisruption, c.MaxDowntime)
	// Output:
	// 5 true 900ms
}

func ExamplePolicyMatcher() {
	policies := []migration.Policy{{
		Name:      "gold",
		Selectors: &migration.Selectors{VM: migration.Labels{"tier": "gold"}},
	}}
	// This VM has no labels at all, not even an empty set of them.
	_, ours := migration.ResolveOptions(migration.DefaultCluster(), policies, nil, nil)
	_, theirs := migration.PolicyMatcher{Compatible: true}.Resolve(migration.DefaultCluster(), policies, nil, nil)
	fmt.Printf("godwit: %q, KubeVirt: %q\n", ours, theirs)
	// Output:
	// godwit: "", KubeVirt: "gold"
}
