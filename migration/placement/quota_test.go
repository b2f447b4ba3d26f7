package placement_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

const quotaGib = int64(hypervisor.GiB)

// 17 of 20 GiB are used and a second copy needs 8: what kubevirt#9238 reports.
func TestASecondCopyThatExceedsTheQuotaIsRefusedWithAllReasons(t *testing.T) {
	u := placement.NewQuotaUsage([]placement.QuotaLimit{
		{Quota: "ns1/q", Resource: "limits.memory", Hard: 20 * quotaGib, Others: quotaGib},
		{Quota: "ns1/q", Resource: "limits.cpu", Hard: 10_000},
		{Quota: "ns1/q", Resource: "pods", Hard: 5, Others: 2}})
	charges := []placement.QuotaCharge{{"ns1/q", "limits.memory", 8 * quotaGib}, {"ns1/q", "limits.cpu", 4000},
		{"ns1/q", "pods", 1}}
	u.Set("ns1/a", charges, 1)
	u.Set("ns1/b", charges, 1)
	want := "[quota needs 8GiB more of limits.memory for a second copy has 17GiB used of 20GiB in " +
		"quota ns1/q quota needs 4 CPUs more of limits.cpu for a second copy has 8 CPUs used of " +
		"10 CPUs in quota ns1/q]"
	if got := fmt.Sprint(u.Lacks(charges)); got != want {
		t.Errorf("lacks %s,\nwant  %s", got, want)
	}
	u.Set("ns1/b", nil, 0) // it was deleted
	if why := u.Lacks(charges); len(why) > 0 {
		t.Errorf("with room: %v", why)
	}
	u.Set("ns1/a", charges, 2) // it migrates
	if why := u.Lacks(charges); len(why) != 2 {
		t.Errorf("while it migrates: %v", why)
	}
}

func TestAmountsAreWrittenInTheUnitOfTheirResource(t *testing.T) {
	for resource, want := range map[string]string{"requests.cpu": "1536m CPUs",
		"requests.memory": "1.5KiB", "hugepages-2Mi": "1.5KiB", "requests.hugepages-1Gi": "1.5KiB",
		"requests.ephemeral-storage": "1.5KiB", "pods": "1536", "requests.nvidia.com/gpu": "1536"} {
		if got := placement.QuotaText(resource, 1536); got != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
}

// What is used is what a sum over all VMs says, in whatever order copies come and go.
func TestUsageEqualsTheSumOverAllVMs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hard := rapid.Int64Range(0, 40).Draw(t, "hard")
		u := placement.NewQuotaUsage([]placement.QuotaLimit{{Quota: "q", Resource: "pods", Hard: hard}})
		sum := map[hypervisor.VMID]int64{}
		for i := range rapid.IntRange(0, 30).Draw(t, "changes") {
			vm := hypervisor.VMID(rapid.StringMatching("[a-d]").Draw(t, fmt.Sprint("vm", i)))
			amount := rapid.Int64Range(0, 9).Draw(t, "amount")
			copies := rapid.IntRange(0, 2).Draw(t, "copies")
			u.Set(vm, []placement.QuotaCharge{{"q", "pods", amount}}, copies)
			sum[vm] = amount * int64(copies)
		}
		used := int64(0)
		for _, n := range sum {
			used += n
		}
		ask := rapid.Int64Range(1, 9).Draw(t, "ask")
		if refused := len(u.Lacks([]placement.QuotaCharge{{"q", "pods", ask}})) > 0; refused !=
			(used+ask > hard) {
			t.Fatalf("%d used, %d asked of %d: refused %v", used, ask, hard, refused)
		}
	})
}
