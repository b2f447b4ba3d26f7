package audit_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// The judge is the hypervisor: each of its migrations is found in the log, with what it measured;
// and what is fitted to them finds the model that its hosts have.
func TestALogTellsWhatItsHypervisorsMeasured(t *testing.T) {
	testutil.Unraced(t)
	c := newCluster(t, t.TempDir(), "{}\n")
	defer c.close()
	truth := fake.QEMU()
	truth.SwitchOver, truth.SetUp = 60*time.Millisecond, 900*time.Millisecond
	c.fabric = fake.NewNetwork(epoch, truth)
	able := map[hypervisor.HostName]hypervisor.Abilities{"n3": fake.Abilities &^ hypervisor.CanLoseChannels}
	for _, h := range []hypervisor.HostName{"n1", "n2", "n3", "n4"} {
		real, err := c.fabric.AddHost(hypervisor.Host{Name: h, Memory: 64 * hypervisor.GiB, CPUs: 64,
			Link: 10 * hypervisor.Gbit, Abilities: able[h]})
		c.must(err)
		told, err := real.Host(t.Context())
		c.must(err)
		change(c, store.HostKind, string(h), func(r *store.Host) store.Record {
			next := *r
			next.Host = told
			return &next
		})
		c.brains[h] = agent.New(h, agent.Config{}, real, c.store, store.DiscardEvents{})
	}
	for i := range 8 {
		c.vm(hypervisor.VMID(fmt.Sprintf("default/v%d", i)), hypervisor.HostName(fmt.Sprintf("n%d", 1+i%2)), 1+i,
			fake.Workload{ColdRate: hypervisor.Bandwidth(i) * 30e6, Cold: hypervisor.GiB, Zero: 100})
	}
	c.run(5 * time.Second)
	for n := range 3 {
		for i := range 8 {
			id := hypervisor.VMID(fmt.Sprintf("default/v%d", i))
			c.migrate(id, n, "")
			c.run(20 * time.Second)
		}
	}
	c.run(time.Minute)
	moves, err := audit.Measure(bytes.NewReader(c.log()))
	if err != nil || len(moves) != 24 {
		t.Fatalf("%v, %d moves", err, len(moves))
	}
	var all []predict.Observation
	for i := range moves {
		m := &moves[i]
		if m.Memory == 0 || m.Sent < m.Memory*85/100 || m.Link != 10*hypervisor.Gbit || m.Source == m.Target ||
			m.Downtime < truth.SwitchOver || !m.Ended.After(m.Began) {
			t.Errorf("%+v", m)
		}
		if old := m.Source == "n3"; m.Abilities.Has(hypervisor.CanLoseChannels) == old ||
			!m.Abilities.Has(hypervisor.CanUseChannels) {
			t.Errorf("%s can %v", m.Source, m.Abilities)
		}
		all = append(all, predict.Observation{Line: i + 1, Host: string(m.Source), Target: string(m.Target),
			Memory: m.Memory, Sent: m.Sent, Link: m.Link, Options: agent.TransferOptions(&m.Options, m.Abilities),
			Began: m.Began, Total: m.Ended.Sub(m.Began), Downtime: m.Downtime})
	}
	r, err := predict.Fit(predict.Infer(all), fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("before %+v, held out %+v, %+v", r.Before.All, r.Validated.All, r.Changes)
	if r.Refused != "" || r.Held != "host" || r.Validated.All.Total.Median > r.Before.All.Total.Median/2 ||
		r.Validated.All.Total.Median > 0.1 {
		t.Errorf("before %+v, held out %+v, refused %q", r.Before.All, r.Validated.All, r.Refused)
	}
}

// What is no log is said, and a log without migrations has none.
func TestALogWithoutMigrationsTellsOfNone(t *testing.T) {
	c := newCluster(t, t.TempDir(), "{}\n")
	defer c.close()
	c.run(time.Minute)
	if moves, err := audit.Measure(bytes.NewReader(c.log())); err != nil || len(moves) != 0 {
		t.Errorf("%v %+v", err, moves)
	}
	if _, err := audit.Measure(bytes.NewReader([]byte("{}\n"))); err == nil {
		t.Error("it is no log")
	}
}
