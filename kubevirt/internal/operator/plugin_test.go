package operator_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/kubevirt/internal/kubectl"
)

// godwit runs the plugin as the user of a kubeconfig.
func (c *cluster) godwit(args ...string) (string, error) {
	c.t.Helper()
	var out bytes.Buffer
	cmd := kubectl.Command()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"--kubeconfig", c.Kubeconfig}, args...))
	err := cmd.ExecuteContext(c.t.Context())
	return out.String(), err
}

// plugin plans, explains and drains with the plugin, while the controller runs.
func (c *cluster) plugin(t *testing.T) {
	stuck := c.vmi("stuck", "n6", virtv1.EvictionStrategyLiveMigrate, 1)
	stuck.Status.Conditions[0].Status = corev1.ConditionFalse
	stuck.Status.Conditions[0].Reason = virtv1.VirtualMachineInstanceReasonDisksNotMigratable
	c.create(c.node("n6"), c.vmi("moves", "n6", "", 1), stuck)
	has := func(args []string, want ...string) {
		t.Helper()
		out, err := c.godwit(args...)
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%v does not say %q:\n%s", args, w, out)
			}
		}
	}
	has([]string{"plan", "n6", "--samples", "5"}, "shop/moves", "(p95) in 5 simulations; 1 VMs stay", "shop/stuck")
	has([]string{"forecast", "n6", "--samples", "5", "--by", "2h"}, "p95", "shop/moves", "5 of 5", "1 VMs stay", "in at least", "shop/stuck")
	has([]string{"forecast", "n6", "--samples", "5", "-o", "json"}, `"secondsToEmpty"`, `"vm": "shop/moves"`)
	has([]string{"maintenance", "kubernetes.io/hostname in (n6,n4)", "-o", "wide"}, "BATCH", "n4", "n6 is in no batch", "stuck")
	has([]string{"maintenance", "", "-o", "yaml"}, "batches:", "obstacles:")
	has([]string{"__complete", "plan", "n"}, "n6", "n9")
	has([]string{"drain", "n6", "--dry-run", "-o", "json"}, `"emptySeconds"`, `"left": [`)
	has([]string{"drain", "n6", "--dry-run", "--by", "2h", "--order", "SmallestFirst"}, "1 VMs stay", "in at least 0 % of the simulations")
	has([]string{"explain", "n6"}, "shop/moves", "Moving", "not known: godwit's default", "shop/stuck cannot leave", "ReadWriteMany")
	has([]string{"explain", "shop/moves"}, "its guest writes to memory: not known", "NODE", "n9", "yes", "n6")
	if all := c.unfinished(0); len(all) > 0 {
		t.Error("something was done")
	}
	if out, err := c.godwit("drain", "n6", "--by", "2h", "--wait=false"); err != nil {
		t.Fatal(err, out)
	}
	all := c.unfinished(1)
	c.phase(&all[0], virtv1.MigrationSucceeded)
	if out, err := c.godwit("drain", "n6"); err == nil || !strings.Contains(out, "shop/stuck cannot leave") {
		t.Errorf("%v\n%s", err, out)
	}
	has([]string{"status"}, "n6", "Blocked", "shop/stuck cannot leave")
	has([]string{"status", "-o", "yaml"}, "phase: Blocked", "deadline:")
	if out, err := c.godwit("drain", "n6", "-o", "json"); err == nil || !strings.Contains(out, `"phase": "Blocked"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := c.godwit("forecast", "n6", "--prometheus", "nowhere"); err == nil || !strings.Contains(err.Error(), "http://HOST:PORT") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := c.godwit("maintenance", "no=such"); err == nil || !strings.Contains(err.Error(), "no node has the labels no=such") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := c.godwit("plan", "n6", "--as", "alice"); err == nil ||
		!strings.Contains(err.Error(), "you lack rights in all namespaces: list nodes, list namespaces, list resourcequotas") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := c.godwit("drain", "n6", "--by", time.Now().Add(-time.Hour).Format(time.RFC3339)); err == nil ||
		!strings.Contains(err.Error(), "in the past") {
		t.Error(err)
	}
}
