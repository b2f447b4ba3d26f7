package dirty_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
)

var now = time.Unix(1767225600, 0)

func client(t *testing.T, address string) promv1.API {
	t.Helper()
	c, err := dirty.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The answers have the form that Prometheus 2.42 gives to these questions.
func TestPrometheusIsAsked(t *testing.T) {
	answers := map[string]string{
		"kubevirt_vmi_dirty_rate_bytes_per_second[10m]": `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"__name__":"kubevirt_vmi_dirty_rate_bytes_per_second","namespace":"shop","name":"web","node":"n1"},"values":[[1767225480,"100"],[1767225540,"300"]]},
			{"metric":{"__name__":"kubevirt_vmi_dirty_rate_bytes_per_second","namespace":"shop","name":"web","node":"n0"},"values":[[1767225400,"7"]]},
			{"metric":{"__name__":"kubevirt_vmi_dirty_rate_bytes_per_second","namespace":"shop","name":"odd","node":"n1"},"values":[[1767225540,"NaN"]]}]}}`,
		"kubevirt_vmi_migration_dirty_memory_rate_bytes[7d]": `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"namespace":"shop","name":"web","node":"n0"},"values":[[1767000000,"9"]]},
			{"metric":{"namespace":"shop","name":"db","node":"n0"},"values":[[1766900000,"1"],[1767000000,"5000"],[1767000030,"7000"]]}]}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[r.FormValue("query")])
	}))
	defer s.Close()
	got, err := dirty.Prometheus(t.Context(), client(t, s.URL), now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[hypervisor.VMID]string{
		"shop/web": "200 kubevirt_vmi_dirty_rate_bytes_per_second 1767225540",
		"shop/db":  "6000 kubevirt_vmi_migration_dirty_memory_rate_bytes 1767000030",
	}
	for id, r := range got {
		if text := fmt.Sprintf("%d %s %d", int64(r.BytesPerSecond), r.Source, r.At.Unix()); text != want[id] {
			t.Errorf("%s: %s, want %s", id, text, want[id])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

func TestAPrometheusThatFailsIsSaid(t *testing.T) {
	for _, address := range []string{"", "prometheus:9090", "ftp://x"} {
		if _, err := dirty.Open(address); err == nil || !strings.Contains(err.Error(), "http://HOST:PORT") {
			t.Errorf("%q: %v", address, err)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := dirty.Prometheus(t.Context(), client(t, s.URL), now); err == nil || !strings.Contains(err.Error(), "ask Prometheus for kubevirt_vmi_dirty_rate") {
		t.Error(err)
	}
}

// migration returns one that began so many seconds from now.
func migration(name, vmi string, began, took int, change func(*virtv1.VirtualMachineInstanceMigration)) virtv1.VirtualMachineInstanceMigration {
	from, to := metav1.NewTime(now.Add(time.Duration(began)*time.Second)), metav1.NewTime(now.Add(time.Duration(began+took)*time.Second))
	m := virtv1.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: virtv1.VirtualMachineInstanceMigrationSpec{VMIName: vmi}}
	m.Status.Phase = virtv1.MigrationSucceeded
	m.Status.MigrationState = &virtv1.VirtualMachineInstanceMigrationState{StartTimestamp: &from, EndTimestamp: &to, Mode: virtv1.MigrationPreCopy,
		SourceNode: "from-" + name, TargetNode: "to-" + name}
	if change != nil {
		change(&m)
	}
	return m
}

// A VM of 1000 bytes over a link of 100 B/s: 20 s are 50 B/s, so that the guest has written 50 B/s.
func TestPastMigrationsSayHowFastGuestsWrite(t *testing.T) {
	all := []virtv1.VirtualMachineInstanceMigration{
		migration("old", "web", -500, 100, nil), migration("new", "web", -100, 20, nil), migration("older", "web", -900, 50, nil),
		migration("short", "db", -100, 0, nil), migration("fast", "cache", -100, 5, nil),
		migration("failed", "a", -100, 20, func(m *virtv1.VirtualMachineInstanceMigration) { m.Status.Phase = virtv1.MigrationFailed }),
		migration("post-copy", "b", -100, 20, func(m *virtv1.VirtualMachineInstanceMigration) {
			m.Status.MigrationState.Mode = virtv1.MigrationPostCopy
		}),
		migration("gone", "unknown", -100, 20, nil),
	}
	memory := map[hypervisor.VMID]hypervisor.Bytes{}
	for _, name := range []string{"web", "db", "cache", "a", "b"} {
		memory[hypervisor.VMID("shop/"+name)] = 1000
	}
	got := dirty.Migrations(all, memory, 100, 0)
	if len(got) != 1 || got["shop/web"] != (dirty.Rate{BytesPerSecond: 50, Source: "migration shop/new", At: now.Add(-80 * time.Second)}) {
		t.Errorf("%+v", got)
	}
}

// By hand, for a VM of 1000 bytes that took 20 s, 50 B/s: what is left of the bandwidth that it had was written.
func TestPastMigrationsHadABandwidth(t *testing.T) {
	type vmim = virtv1.VirtualMachineInstanceMigration
	limited := func(text string) func(*vmim) {
		limit := resource.MustParse(text)
		return func(m *vmim) {
			m.Status.MigrationState.MigrationConfiguration = &virtv1.MigrationConfiguration{BandwidthPerMigration: &limit}
		}
	}
	from := func(node, to string, changes ...func(*vmim)) func(*vmim) {
		return func(m *vmim) {
			m.Status.MigrationState.SourceNode, m.Status.MigrationState.TargetNode = node, to
			for _, change := range changes {
				change(m)
			}
		}
	}
	policy := "p"
	for _, c := range []struct {
		name  string
		cap   hypervisor.Bandwidth
		own   func(*vmim)
		other *vmim
		want  hypervisor.Bandwidth // 0: nothing is known
	}{
		{"the link", 0, nil, nil, 50},
		{"the cluster's cap", 60, nil, nil, 10},
		{"a cap above the link", 200, nil, nil, 50},
		{"its own cap", 60, limited("80"), nil, 30},
		{"it had no cap, the cluster has one now", 60, limited("0"), nil, 50},
		{"a cap that was not kept to", 40, nil, nil, 0},
		{"a policy of which the cap is not known", 60, func(m *vmim) { m.Status.MigrationState.MigrationPolicyName = &policy }, nil, 0},
		{"from a node that is not known", 0, from("", "n2"), nil, 0},
		{"another out of the node", 0, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n1", "n3"))), 0},
		{"another into its target", 0, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n4", "n2"))), 0},
		{"another between other nodes", 0, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n3", "n4"))), 50},
		{"another one before", 0, from("n1", "n2"), new(migration("other", "db", -200, 100, from("n1", "n3"))), 50},
		{"another one with room for both", 60, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n1", "n3", limited("40")))), 10},
		{"another one without room for both", 60, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n1", "n3"))), 0},
		{"another one that failed", 0, from("n1", "n2"), new(migration("other", "db", -90, 5, from("n1", "n3", func(m *vmim) {
			m.Status.Phase = virtv1.MigrationFailed
		}))), 0},
		{"another one that runs, between nodes that are not known", 0, from("n1", "n2"), new(migration("other", "db", 0, 0, func(m *vmim) {
			m.Status = virtv1.VirtualMachineInstanceMigrationStatus{Phase: virtv1.MigrationRunning,
				PhaseTransitionTimestamps: []virtv1.VirtualMachineInstanceMigrationPhaseTransitionTimestamp{{
					Phase: virtv1.MigrationRunning, PhaseTransitionTimestamp: metav1.NewTime(now.Add(-90 * time.Second))}}}
		})), 0},
	} {
		all := []vmim{migration("m", "web", -100, 20, c.own)}
		if c.other != nil {
			all = append(all, *c.other)
		}
		got := dirty.Migrations(all, map[hypervisor.VMID]hypervisor.Bytes{"shop/web": 1000}, 100, c.cap)
		if r, known := got["shop/web"]; r.BytesPerSecond != c.want || known != (c.want > 0) {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}

func TestRatesAreLaidOverAFleet(t *testing.T) {
	f := &inventory.Fleet{VMs: make([]inventory.VM, 2)}
	f.VMs[0].ID, f.VMs[0].Memory, f.VMs[1].ID, f.VMs[1].Memory = "shop/web", 1000, "shop/db", 1000
	dirty.Lay(f, map[hypervisor.VMID]dirty.Rate{"shop/web": {BytesPerSecond: 50}})
	if w := f.VMs[0].Workload; w.Rate != 50 || w.Hot != 1000 || f.VMs[1].Workload.Rate != 0 {
		t.Errorf("%+v, %+v", w, f.VMs[1].Workload)
	}
}

// A real Prometheus scrapes what KubeVirt's virt-handler shows.
func TestARealPrometheusIsAsked(t *testing.T) {
	if os.Getenv("GODWIT_LONG") == "" {
		t.Skip("in the long tier (GODWIT_LONG=1): it needs a Prometheus")
	}
	program := testutil.Installed(t, "prometheus", "prometheus")
	var scraped atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scraped.Add(1)
		fmt.Fprint(w, "kubevirt_vmi_dirty_rate_bytes_per_second{namespace=\"shop\",name=\"web\",node=\"n1\"} 4096\n",
			"kubevirt_vmi_migration_dirty_memory_rate_bytes{namespace=\"shop\",name=\"db\",node=\"n1\"} 8192\n")
	}))
	defer s.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: virt-handler, honor_labels: true, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(s.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := exec.Command(program, "--config.file="+filepath.Join(dir, "p.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	testutil.Eventually(t, "both rates", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got, err := dirty.Prometheus(ctx, client(t, "http://"+address), time.Now())
		if err != nil {
			return err
		}
		if got["shop/web"].BytesPerSecond != 4096 || got["shop/db"].BytesPerSecond != 8192 || time.Since(got["shop/web"].At) > time.Minute {
			return fmt.Errorf("after %d scrapes: %+v", scraped.Load(), got)
		}
		return nil
	})
}
