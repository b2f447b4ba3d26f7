package whatif_test

import (
	"context"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/whatif"
)

// asked plans a drain of n1 in a fleet whose only VM is v.
func asked(t *testing.T, text string) whatif.Step {
	t.Helper()
	s, err := config.Parse("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := whatif.Ask(context.Background(), s, whatif.Question{
		Hosts: []hypervisor.HostName{"n1"}})
	if err != nil || len(f.Waves) != 1 || f.EmptyRange == nil {
		t.Fatalf("%v %+v", err, f)
	}
	if r := f.EmptyRange; r.P10 > r.P50 || r.P50 > r.P90 || r.P90 <= 0 {
		t.Errorf("empty within %+v", r)
	}
	return f.Waves[0][0]
}

// No time is below what the bytes need at the speed of the wire, and what no measurement tells of
// has a range that says so.
func TestPredictionsKnowTheirBounds(t *testing.T) {
	fleet := func(link, memory, more string) string {
		return "hosts: [{name: \"n[1-2]\", memory: 64GiB, cpus: 32, link: " + link + "}]\n" +
			"vms: [{name: v, host: n1, memory: " + memory + "}]\n" + more
	}
	p := asked(t, fleet("1Gbit/s", "8GiB", "")).Predicted
	wire := (8 * hypervisor.GiB).At(hypervisor.Gbit).Seconds() * 0.7 // 30 % of it are zero
	if p.Class != "capped kvm" || p.Seconds.P10 < wire*0.999 || p.Seconds.P90 > wire*1.2 {
		t.Errorf("%+v, the wire needs %v", p, wire)
	}
	p = asked(t, fleet("100Gbit/s", "32GiB", "")).Predicted
	if p.Measured != 0 || p.Note == "" || p.Seconds.P90 < 5*p.Seconds.P50 {
		t.Errorf("faster than anything that was measured: %+v", p)
	}
	p = asked(t, fleet("1Gbit/s", "8GiB", "model: {perChannel: 3GB/s}")).Predicted
	if p.Measured != 0 || p.Note == "" {
		t.Errorf("a model of one's own: %+v", p)
	}
	p = asked(t, fleet("10Gbit/s", "8GiB", "transport: {encryption: tls-x509, connections: 1}")).Predicted
	encrypted := float64(8*hypervisor.GiB) * 0.7 / 300e6
	if p.Class != "tls" || p.Measured == 0 || p.Seconds.P10 > encrypted*1.1 || p.Seconds.P90 < encrypted*0.9 {
		t.Errorf("one encrypted connection: %+v, its speed needs %v", p, encrypted)
	}
	p = asked(t, fleet("10Gbit/s", "8GiB", "transport: {encryption: tls-x509}")).Predicted
	if p.Measured != 0 || p.Note == "" || p.Seconds.P90 < 5*p.Seconds.P50 {
		t.Errorf("eight encrypted connections were never measured: %+v", p)
	}
	p = asked(t, fleet("10Gbit/s", "8GiB", "transport: {connections: 1}")).Predicted
	if p.Class != "uncapped kvm" {
		t.Errorf("one connection: %+v", p)
	}
	p = asked(t, fleet("1Gbit/s", "8GiB", "model: {bootTime: 3s}")).Predicted
	if p.Class != "capped kvm" {
		t.Errorf("the same model: %+v", p)
	}
}
