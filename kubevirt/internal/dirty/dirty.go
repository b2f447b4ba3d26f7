// Package dirty says how fast guests write to their memory, and from where that is known.
//
//	Prometheus   what KubeVirt measures of running guests, or else during their migrations
//	migrations   how long a past migration took: what was slower than its bandwidth is taken for writes
package dirty

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// A Rate is how fast a guest changes its memory.
type Rate struct {
	BytesPerSecond hypervisor.Bandwidth `json:"bytesPerSecond"`
	// Source is the metric or the migration that says so, and At when that was.
	Source string    `json:"source"`
	At     time.Time `json:"at"`
}

// The metrics of KubeVirt, in bytes per second, and how far back they are looked for: a guest is measured
// all the time, a migration only while it runs.
// Source: KubeVirt v1.8.0 docs/observability/metrics.md; in v1.7 and before the second one is in pages per second.
var metrics = []struct{ name, over string }{
	{"kubevirt_vmi_dirty_rate_bytes_per_second", "10m"},
	{"kubevirt_vmi_migration_dirty_memory_rate_bytes", "7d"},
}

// last is how far the samples go back that count, from the last one of a VM.
const last = 10 * time.Minute

// Open returns the API of the Prometheus at an address.
func Open(address string) (promv1.API, error) {
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the address of Prometheus is %q: write http://HOST:PORT", address)
	}
	c, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		return nil, fmt.Errorf("the address of Prometheus is %q: %w", address, err)
	}
	return promv1.NewAPI(c), nil
}

// Prometheus asks a Prometheus for the rates at a time. A VM that it knows nothing of has none. The rate is the
// mean of the samples of the last ten minutes in which there were any.
func Prometheus(ctx context.Context, api promv1.API, now time.Time) (map[hypervisor.VMID]Rate, error) {
	all := map[hypervisor.VMID]Rate{}
	for _, m := range metrics {
		answer, _, _, err := api.Query(ctx, m.name+"["+m.over+"]", now)
		if err != nil {
			return nil, fmt.Errorf("ask Prometheus for %s: %w", m.name, err)
		}
		series, is := answer.(model.Matrix)
		if !is {
			return nil, fmt.Errorf("ask Prometheus for %s: it answers %s, not a matrix", m.name, answer.Type())
		}
		found := map[hypervisor.VMID]Rate{}
		for _, s := range series {
			id, r, some := rate(s, m.name)
			if old, known := found[id]; some && (!known || r.At.After(old.At)) {
				found[id] = r // a VM has a series on each node that it was on
			}
		}
		for id, r := range found {
			if _, known := all[id]; !known {
				all[id] = r
			}
		}
	}
	return all, nil
}

// rate returns what a series says.
func rate(s *model.SampleStream, metric string) (id hypervisor.VMID, r Rate, some bool) {
	namespace, name := s.Metric["namespace"], s.Metric["name"]
	if namespace == "" || name == "" || len(s.Values) == 0 {
		return "", Rate{}, false
	}
	at := s.Values[len(s.Values)-1].Timestamp.Time()
	sum, n := 0.0, 0
	for _, v := range s.Values {
		if x := float64(v.Value); at.Sub(v.Timestamp.Time()) <= last && x >= 0 && x < 1e15 {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return "", Rate{}, false
	}
	return hypervisor.VMID(namespace + "/" + name), Rate{hypervisor.Bandwidth(sum / float64(n)), metric, at}, true
}

// Memory returns that of all VMs of a fleet.
func Memory(f *inventory.Fleet) map[hypervisor.VMID]hypervisor.Bytes {
	all := map[hypervisor.VMID]hypervisor.Bytes{}
	for i := range f.VMs {
		all[f.VMs[i].ID] = f.VMs[i].Memory
	}
	return all
}

// Lay gives the VMs of a fleet the rates that are known. The others keep godwit's default class.
func Lay(f *inventory.Fleet, rates map[hypervisor.VMID]Rate) {
	for i := range f.VMs {
		v := &f.VMs[i]
		r, known := rates[v.ID]
		if !known {
			continue
		}
		v.Workload.Rate = r.BytesPerSecond
		if v.Workload.Hot == 0 {
			v.Workload.Hot, v.Workload.Cold = v.Memory, 0
		}
	}
}
