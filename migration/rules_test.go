package migration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/migration"
)

// ruleCase is a situation, the rule that decides it, and the phase after it.
type ruleCase struct {
	name, facts, rule string
	want              migration.Phase
}

const (
	moving  = "phase=Running claim=self named address began started target=ready "
	handed  = "phase=PreparingTarget claim=self named target=ready "
	placed  = "phase=Scheduled target=ready "
	failed  = migration.Failed
	goingOn = migration.Running
)

func runRules(t *testing.T, asKubeVirt bool, cases []ruleCase) {
	t.Helper()
	fired := map[string]bool{"done": true, "arrived": true} // they decide without a name
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSituation(asKubeVirt)
			if err := s.learn(c.facts); err != nil {
				t.Fatal(err)
			}
			d := s.step()
			want := [2]string{c.rule, c.want.String()}
			if diff := cmp.Diff(want, [2]string{d.Rule, d.State.Phase.String()}); diff != "" {
				t.Errorf("rule and phase (-want +got):\n%s", diff)
			}
			if broken := breach(&s, &d); broken != "" {
				t.Errorf("broken: %s", broken)
			}
		})
		fired[c.rule] = true
	}
	for _, r := range migration.RuleTable(asKubeVirt) {
		if !fired[r.Name] {
			t.Errorf("no row for the rule %s", r.Name)
		}
	}
}

// Of each pair of rows the first shows the rule alone, the second together with
// one that comes before it.
func TestDefaultRules(t *testing.T) {
	runRules(t, false, []ruleCase{
		{"what has failed stays so", "phase=Failed target=ready", "", failed},
		{"even if the VM is gone and a cancel comes", "phase=Succeeded !vm-exists canceled", "",
			migration.Succeeded},
		{"an arrived VM makes the migration succeed", moving + "completed arrived", "",
			migration.Succeeded},
		{"even if the source says that it kept it", moving + "completed arrived kept", "",
			migration.Succeeded},
		{"a source that kept the VM fails it", moving + "kept", "source-kept-vm", failed},
		{"whether or not it was canceled, too", moving + "kept canceled", "source-kept-vm", failed},
		{"a missing VM fails it", "!vm-exists", "vm-missing", failed},
		{"missing says more than ended", "!vm-exists vm-ended", "vm-missing", failed},
		{"a VM that has ended fails it", "vm-ended", "vm-ended", failed},
		{"ended says more than canceled", "vm-ended canceled", "vm-ended", failed},
		{"a cancel fails it", handed + "canceled", "canceled", failed},
		{"canceled says more than a target that is down", handed + "canceled target=down",
			"canceled", failed},
		{"a VM that is to stop fails it", "vm-stopping", "vm-stopping", failed},
		{"canceled says more than to stop", "vm-stopping canceled", "canceled", failed},
		{"under a transfer a stop asks to abort", moving + "vm-stopping", "vm-stopping", goingOn},
		{"but not under post-copy", moving + "vm-stopping post-copy", "", goingOn},
		{"nor where it is not known which host has the VM", moving + "vm-stopping unresolved",
			"outcome-unknown", goingOn},
		{"to stop says more than impossible", "vm-stopping impossible", "vm-stopping", failed},
		{"an operator's own request fails it while it has no target",
			"replaced", "replaced", failed},
		{"to stop says more than replaced", "vm-stopping replaced",
			"vm-stopping", failed},
		{"a host that can never take it fails it", "impossible", "target-impossible", failed},
		{"canceled says more than impossible", "canceled impossible", "canceled", failed},
		{"a request that makes no sense fails it", "refusal=bad-request", "bad-request", failed},
		{"impossible says more than that it makes no sense", "impossible refusal=bad-request",
			"target-impossible", failed},
		{"a host that refuses a request fails it", "refusal=conflict", "conflict", failed},
		{"canceled says more than a conflict", "canceled refusal=conflict", "canceled", failed},
		{"a target that was given away twice fails it", placed + "refusal=outdated",
			"target-outdated", failed},
		{"outdated says more than down", "phase=Scheduled target=down refusal=outdated",
			"target-outdated", failed},
		{"a target that is down fails it", handed + "target=down", "target-down", failed},
		{"down says more than a cleared state", handed + "target=down claim=none", "target-down",
			failed},
		{"a vanished target fails it", placed + "target=absent", "target-vanished", failed},
		{"vanished says more than taken over", handed + "target=absent claim=other",
			"target-vanished", failed},
		{"a cleared state fails it", handed + "claim=none", "state-cleared", failed},
		{"cleared says more than an attachment that is down",
			handed + "claim=none attachment=down", "state-cleared", failed},
		{"a state that names another fails it", handed + "claim=ended", "state-taken-over", failed},
		{"taken over says more than an attachment that is down",
			handed + "claim=other attachment=down", "state-taken-over", failed},
		{"an attachment that is down fails it", placed + "attachment=down", "attachment-down",
			failed},
		{"down says more than late", placed + "attachment=down late", "attachment-down", failed},
		{"a phase that takes too long fails it", placed + "late", "overdue", failed},
		{"under a transfer it asks to abort", moving + "late", "overdue", goingOn},
		{"but not under post-copy", moving + "late post-copy", "", goingOn},
		{"no host answers the request to abort", moving + "late unanswered", "outcome-unknown",
			goingOn},
		{"a late arrival is an answer", moving + "late unanswered completed arrived", "",
			migration.Succeeded},
		{"another migration keeps it from being accepted", "phase= claim=other",
			"other-in-progress", failed},
		{"canceled says more than another in progress", "phase= claim=other canceled", "canceled",
			failed},
		{"nothing is wrong", moving, "", goingOn},
	})
}

func TestKubeVirtRules(t *testing.T) {
	runRules(t, true, []ruleCase{
		{"what has failed stays so", "phase=Failed", "", failed},
		{"even if the VM is gone", "phase=Succeeded !vm-exists", "", migration.Succeeded},
		{"a missing VM fails it, at any time", moving + "!vm-exists", "vm-missing", failed},
		{"missing says more than ended", "!vm-exists vm-ended", "vm-missing", failed},
		{"a VM that has ended fails it", moving + "vm-ended", "vm-ended", failed},
		{"ended says more than canceled", "vm-ended canceled", "vm-ended", failed},
		{"a cancel before the hand-over fails it", placed + "canceled",
			"canceled-before-hand-over", failed},
		{"canceled says more than a target that is down", placed + "canceled target=down",
			"canceled-before-hand-over", failed},
		{"a target that is down fails it", moving + "target=down", "target-down", failed},
		{"down says more than a cleared state", moving + "target=down claim=none", "target-down",
			failed},
		{"a vanished target fails it", moving + "target=absent", "target-vanished", failed},
		{"vanished says more than a cleared state", moving + "target=absent claim=none",
			"target-vanished", failed},
		{"a cleared state fails it", moving + "claim=none", "state-cleared", failed},
		{"cleared says more than an attachment that is down",
			moving + "claim=none attachment=down", "state-cleared", failed},
		{"a state that names another fails it", moving + "claim=ended", "state-taken-over", failed},
		{"whose failure is not this one's", moving + "claim=ended kept",
			"state-taken-over", failed},
		{"a reported failure fails it", moving + "kept", "source-reported-failed", failed},
		{"failed says more than canceled", moving + "kept canceled", "source-reported-failed",
			failed},
		{"a cancel after the hand-over is noted", moving + "canceled",
			"canceled-after-hand-over", goingOn},
		{"the note says more than an attachment that is down",
			moving + "canceled attachment=down", "canceled-after-hand-over", goingOn},
		{"an attachment that is down fails it", moving + "attachment=down", "attachment-down",
			failed},
		{"once the cancel is noted, a canceled one's too",
			moving + "unanswered canceled attachment=down", "attachment-down", failed},
		{"another migration keeps it from being accepted", "phase= claim=other",
			"other-in-progress", failed},
		{"canceled says more than another in progress", "phase= claim=other canceled",
			"canceled-before-hand-over", failed},
		{"nothing is wrong", moving, "", goingOn},
	})
}

// The words of operators do not change: they are stored, shown and counted.
func TestWords(t *testing.T) {
	var words []string
	for _, c := range migration.AllConditions() {
		words = append(words, c.String())
	}
	for g := migration.NotAsked; g <= migration.NoHostFits+1; g++ {
		words = append(words, g.String())
	}
	for a := migration.CreateTarget; a <= migration.AbortBackup+1; a++ {
		words = append(words, a.String())
	}
	words = append(words, migration.Phase(99).String(), migration.Condition(99).String())
	want := []string{"migrationAbortRequested", "migrationRejectedByResourceQuota",
		"migrationBlockedByUtilityVolumes", "migrationBlockedByBackup",
		"decentralizedMigrationBlocked", "migrationOutcomeUnknown",
		"limits not asked", "open", "cluster limit", "source limit", "no host fits", "invalid(5)",
		"createTarget", "createAttachment", "deleteTarget", "handOff", "requestAbort",
		"reportFailed", "tellTarget", "abortBackup", "invalid(8)", "invalid(99)", "Condition(99)"}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}
