package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/config"
)

// labelled writes some of a few labels.
func labelled(random *rand.Rand, names ...string) string {
	var all []string
	for _, name := range names {
		if n := random.IntN(3); n > 0 {
			all = append(all, fmt.Sprintf("%s: v%d", name, n))
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// The judge is the controller: the policy that it writes down for a migration, and the options, are
// the ones that are explained.
func TestTheExplainedPolicyIsTheOneThatAControllerUses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	won := 0
	for range 60 {
		var b strings.Builder
		b.WriteString("hosts: [{name: \"n[1-3]\", memory: 64GiB, cpus: 8}]\nvms:\n")
		for i := range 4 {
			fmt.Fprintf(&b, "- {name: v%d, namespace: s%d, host: n%d, memory: 1GiB, labels: %s}\n", i, i%2, 1+i%2,
				labelled(random, "a", "b", "c"))
		}
		fmt.Fprintf(&b, "namespaces: {s0: %s, s1: %s}\npolicies:\n", labelled(random, "x", "y"),
			labelled(random, "x", "y"))
		for i := range 8 {
			on := labelled(random, "a", "b", "c")
			if random.IntN(4) == 0 {
				on = fmt.Sprintf("{kubevirt.io/migrationTargetNodeName: n%d}", 1+random.IntN(3))
			}
			fmt.Fprintf(&b, "- {name: p%d, selectors: {virtualMachineInstanceSelector: %s, namespaceSelector: %s}, "+
				"bandwidthPerMigration: %dMiB/s, allowPostCopy: %v}\n", i, on, labelled(random, "x", "y"), 100+i,
				random.IntN(2) == 0)
		}
		fmt.Fprintf(&b, "compatible: %v\n", random.IntN(3) == 0)
		b.WriteString("events:\n")
		for i := range 4 {
			fmt.Fprintf(&b, "- 0s migrate s%d/v%d\n", i%2, i)
		}
		s, err := config.Parse("fleet.yaml", []byte(b.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, &b)
		}
		w, err := s.Build(s.Config(1))
		if err != nil {
			t.Fatal(err)
		}
		w.Run(time.Hour)
		for i := range s.Fleet.VMs {
			vm := &s.Fleet.VMs[i]
			all := w.Migrations(vm.ID)
			if len(all) == 0 || all[0].Options == nil {
				continue
			}
			e := explainPolicy(s, vm, all[0].State.Target)
			if e.Policy != all[0].Policy {
				t.Fatalf("%s to %s: explained %q, the controller used %q, in\n%s", vm.ID, all[0].State.Target,
					e.Policy, all[0].Policy, &b)
			}
			for _, o := range e.Options {
				if o.Option == "allowPostCopy" && o.Value != fmt.Sprint(all[0].Options.AllowPostCopy) {
					t.Errorf("%s: allowPostCopy is explained as %s", vm.ID, o.Value)
				}
				if o.Option == "bandwidthPerMigration" && (o.From == "cluster") != (e.Policy == "") {
					t.Errorf("%s: %+v, but the policy is %q", vm.ID, o, e.Policy)
				}
			}
			if e.Policy != "" {
				won++
			}
		}
	}
	if won < 50 {
		t.Errorf("only %d migrations had a policy", won)
	}
}
