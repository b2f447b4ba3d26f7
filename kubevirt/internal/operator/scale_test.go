package operator_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-vm/godwit/kubevirt/internal/operator"
)

// BenchmarkScale measures the controller in a cluster of 1,000 nodes and 20,000 VMIs, or of as many nodes as
// GODWIT_NODES says, with 20 VMIs each: the memory of the process, in which the controller runs, and how long it is
// from the mark of a VM until its migration exists.
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
