package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

// BenchmarkScale measures the controller in a cluster of 1,000 nodes and 20,000 VMIs, or of as many nodes as
// GODWIT_NODES says, with 20 VMIs each: the memory of the process, in which the controller runs, and how long it is
// from the mark of a VM until its migration exists, and what it writes while other things change: nothing.
func BenchmarkScale(b *testing.B) {
	nodes := 1000
	if n, err := strconv.Atoi(os.Getenv("GODWIT_NODES")); err == nil {
		nodes = n
	}
	c := newCluster(b)
	config := rest.CopyConfig(c.Admin)
	config.QPS, config.Burst = 1e6, 1e6
	scheme, err := operator.Scheme()
	if err != nil {
		b.Fatal(err)
	}
	if c.c, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	c.fill(nodes)
	before := memory()
	c.start()
	c.react("vm-0-1") // it leads, and its caches are full
	var took []time.Duration
	for b.Loop() {
		for i := range 50 {
			took = append(took, c.react(fmt.Sprintf("vm-%d-0", i)))
		}
	}
	b.ReportMetric(float64(c.steady()), "writes")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "ms-p99")
	b.ReportMetric(float64(memory()-before)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}

// memory returns what is in use after a collection.
func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// fill creates nodes with 20 VMIs each.
func (c *cluster) fill(nodes int) {
	c.t.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	for range 16 {
		all.Go(func() {
			for n := range next {
				name := fmt.Sprintf("n%d", n)
				c.create(c.node(name))
				for i := range 20 {
					c.create(c.vmi(fmt.Sprintf("vm-%d-%d", n, i), name, virtv1.EvictionStrategyExternal, 4))
				}
			}
		})
	}
	for n := range nodes {
		next <- n
	}
	close(next)
	all.Wait()
}

// react marks a VM and returns how long it is until its migration exists. The migration then ends.
func (c *cluster) react(name string) time.Duration {
	c.t.Helper()
	v := &virtv1.VirtualMachineInstance{}
	if err := c.c.Get(c.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, v); err != nil {
		c.t.Fatal(err)
	}
	v.Status.EvacuationNodeName = v.Status.NodeName
	began := time.Now()
	if err := c.c.Update(c.t.Context(), v); err != nil {
		c.t.Fatal(err)
	}
	for {
		all, err := c.all(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range all {
			if all[i].Spec.VMIName == name && !all[i].IsFinal() {
				took := time.Since(began)
				c.phase(&all[i], virtv1.MigrationSucceeded)
				return took
			}
		}
		if time.Since(began) > time.Minute {
			c.t.Fatalf("no migration of %s after a minute", name)
		}
	}
}

// steady lets a node be blocked, and changes VMIs on other nodes and this one. It returns how often the controller
// has written meanwhile.
func (c *cluster) steady() int {
	c.t.Helper()
	stuck := c.vmi("stuck", "n0", virtv1.EvictionStrategyExternal, 4)
	stuck.Status.Conditions[0].Status = corev1.ConditionFalse
	e := c.evacuation("steady", "n-stuck")
	e.UID, e.CreationTimestamp = "", metav1.Time{}
	stuck.Status.NodeName = "n-stuck"
	c.create(c.node("n-stuck"), stuck, e)
	c.until("a forecast", func(ctx context.Context) error {
		if err := c.c.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if e.Status.Phase != v1alpha1.Blocked || e.Status.Estimate == nil {
			return fmt.Errorf("status %+v", e.Status)
		}
		return nil
	})
	c.settled("once")
	before := c.writes()
	for i := range 100 {
		name := fmt.Sprintf("vm-%d-1", i%20)
		if i%2 == 0 {
			name = "stuck"
		}
		change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"seen":"%d"}}}`, i))
		v := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if err := c.c.Patch(c.t.Context(), v, change); err != nil {
			c.t.Fatal(err)
		}
	}
	c.settled("twice")
	return c.writes() - before
}

// writes counts what the controller has written, but for its lease, events, and what settled makes.
func (c *cluster) writes() (n int) {
	c.t.Helper()
	text, err := os.ReadFile(c.AuditLog)
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e struct {
			Verb             string
			ImpersonatedUser struct{ Username string }
			ObjectRef        struct{ Resource, Name string }
		}
		if json.Unmarshal(line, &e) != nil || e.ImpersonatedUser.Username != "system:serviceaccount:godwit-kubevirt:godwit-kubevirt" {
			continue
		}
		switch e.Verb {
		case "create", "update", "patch", "delete":
			if r := e.ObjectRef; r.Resource != "leases" && r.Resource != "events" && !strings.HasPrefix(r.Name, "settled") {
				n++
			}
		}
	}
	return n
}
