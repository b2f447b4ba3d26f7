package policy_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/policy"
)

func ExampleResolve() {
	policies := []policy.Policy{{
		Name:      "databases",
		Selectors: &policy.Selectors{VM: policy.Labels{"app": "db"}},
		Overrides: policy.Overrides{
			AllowPostCopy:         new(true),
			BandwidthPerMigration: new(64 * hypervisor.Bandwidth(hypervisor.MiB)),
		},
	}}
	options, name := policy.Resolve(policy.Default(), policies, policy.Labels{"app": "db"}, nil)
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

func ExampleExplain() {
	fmt.Println(policy.Explain([]policy.Policy{
		{Name: "everyone", Selectors: &policy.Selectors{}},
		{Name: "gold", Selectors: &policy.Selectors{VM: policy.Labels{"tier": "gold"}}},
		{Name: "prod", Selectors: &policy.Selectors{Namespace: policy.Labels{"env": "prod"}}},
		{Name: "silver", Selectors: &policy.Selectors{VM: policy.Labels{"tier": "silver"}}},
	}, policy.Labels{"tier": "gold"}, policy.Labels{"env": "prod"}))
	// Output:
	// gold wins over prod, by labels on the VM: matches 1 on the VM and 0 on the namespace
	// prod loses to gold, by labels on the VM: matches 0 on the VM and 1 on the namespace
	// everyone loses to gold, by labels in all: matches 0 on the VM and 0 on the namespace
	// silver does not match: VM label tier: needs "silver", has "gold"
}

func ExamplePolicy_Validate() {
	p := policy.Policy{Name: "hasty", Overrides: policy.Overrides{
		MaxDowntime: new(time.Hour),
		Experimental: &policy.Experimental{
			StallDetector: &policy.StallDetectorOverrides{EWMAAlpha: new(1.5)},
		},
	}}
	for _, problem := range p.Validate() {
		fmt.Println(problem)
	}
	// Output:
	// maxDowntimeMs: needs 1ms to 2000s, has 1h0m0s
	// experimental.stallDetector.ewmaAlpha: needs above 0, up to 1, has 1.5
}

func ExampleOverlaps() {
	for _, problem := range policy.Overlaps([]policy.Policy{
		{Name: "b", Selectors: &policy.Selectors{VM: policy.Labels{"app": "db"}}},
		{Name: "a", Selectors: &policy.Selectors{VM: policy.Labels{"app": "db"}}},
	}) {
		fmt.Println(problem)
	}
	// Output:
	// selectors of b: needs labels that no other policy selects, has those of a, which always wins
}

func ExampleClusterOverrides_Complete() {
	c := policy.ClusterOverrides{AllowPostCopy: new(true)}.Complete()
	fmt.Println(c.ParallelMigrationsPerCluster, c.AllowWorkloadDisruption, c.MaxDowntime)
	// Output:
	// 5 true 900ms
}

func ExampleMatcher() {
	policies := []policy.Policy{{
		Name:      "gold",
		Selectors: &policy.Selectors{VM: policy.Labels{"tier": "gold"}},
	}}
	// This VM has no labels at all, not even an empty set of them.
	_, ours := policy.Resolve(policy.Default(), policies, nil, nil)
	_, theirs := policy.Matcher{Compatible: true}.Resolve(policy.Default(), policies, nil, nil)
	fmt.Printf("godwit: %q, KubeVirt: %q\n", ours, theirs)
	// Output:
	// godwit: "", KubeVirt: "gold"
}
