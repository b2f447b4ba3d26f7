package operator_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// BenchmarkScaleBesideKubeVirt measures this controller and KubeVirt's in one cluster: how long it is from the mark
// of a VM until its migration exists, for VMs that each of them moves, in turn, and the memory of both processes.
// There are 6 nodes with 20 VMs each, or as many nodes as GODWIT_NODES says.
func BenchmarkScaleBesideKubeVirt(b *testing.B) {
	nodes, waits := 6, 5*time.Minute
	if n, err := strconv.Atoi(os.Getenv("GODWIT_NODES")); err == nil {
		nodes, waits = n, 30*time.Minute
	}
	theirs, ours := virtv1.EvictionStrategyLiveMigrate, virtv1.EvictionStrategyExternal
	c := newCrowd(b, nodes, 20, trouble{}, theirs, ours)
	program := filepath.Join(b.TempDir(), "godwit-kubevirt")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/godwit-kubevirt").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	pid := c.Run(b, nil, program, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	c.leads(waits)
	var took [2][]time.Duration
	c.move("vm-0-0")
	c.move("vm-0-1") // both lead, and their caches are full
	for b.Loop() {
		for i := range 20 {
			for side := range took {
				took[side] = append(took[side], c.move(fmt.Sprintf("vm-%d-%d", i%nodes, 2+i/nodes*2+side)))
			}
		}
	}
	for side, who := range []string{"KubeVirt", "godwit"} {
		slices.Sort(took[side])
		b.ReportMetric(float64(took[side][len(took[side])/2].Milliseconds()), who+"-ms-p50")
		b.ReportMetric(float64(took[side][len(took[side])-1].Milliseconds()), who+"-ms-max")
		b.ReportMetric(resident(b, []int{c.virtController, pid}[side]), who+"-MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// move marks a VM, waits until it has moved, and returns how long it was until its migration existed.
func (c *comparison) move(name string) time.Duration {
	c.t.Helper()
	ctx, key := c.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}
	v := &virtv1.VirtualMachineInstance{}
	if err := c.c.Get(ctx, key, v); err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	if err := c.mark(v); err != nil {
		c.t.Fatal(err)
	}
	took := time.Duration(0)
	for took == 0 {
		switch m, err := c.migrationOf(name); {
		case err != nil || time.Since(began) > testutil.Limit(2*time.Minute):
			c.t.Fatalf("%s has no migration after %v: %v; nodes: %v", name, time.Since(began), err, c.nodes.Err())
		case m != nil:
			took = time.Since(began)
		default:
			time.Sleep(2 * time.Millisecond)
		}
	}
	testutil.Eventually(c.t, name+" has moved", func() error {
		m, err := c.migrationOf(name)
		if err == nil && m.Status.Phase != virtv1.MigrationSucceeded {
			err = fmt.Errorf("its migration is %s", m.Status.Phase)
		}
		return err
	})
	return took
}

// migrationOf returns the migration of a VM; nil is none.
func (c *comparison) migrationOf(name string) (*virtv1.VirtualMachineInstanceMigration, error) {
	var all virtv1.VirtualMachineInstanceMigrationList
	if err := c.c.List(c.t.Context(), &all); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Items, func(m virtv1.VirtualMachineInstanceMigration) bool { return m.Spec.VMIName == name })
	if i < 0 {
		return nil, nil
	}
	return &all.Items[i], nil
}

// resident returns the memory of a process in MiB.
func resident(t testing.TB, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmRSS:"); is {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatalf("no VmRSS of process %d", pid)
	return 0
}
