package whatif_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/whatif"
)

// asked plans a drain of n1 in a fleet whose only VM is v.
func asked(t *testing.T, text string) whatif.Step {
	t.Helper()
	return askedOf(t, parsed(t, text))
}

func parsed(t *testing.T, text string) *config.Scenario {
	t.Helper()
	s, err := config.Parse("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func askedOf(t *testing.T, s *config.Scenario) whatif.Step {
	t.Helper()
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

// calibrated plans a drain in a fleet whose links have a speed, with the errors of twelve migrations that
// were measured with options over such links, two at a time.
func calibrated(t *testing.T, link hypervisor.Bandwidth, o hypervisor.TransferOptions) *predict.Prediction {
	t.Helper()
	encryption := map[hypervisor.Encryption]string{hypervisor.EncryptRequired: "tls-x509"}[o.Encryption]
	s := parsed(t, fmt.Sprintf("hosts: [{name: \"n[1-2]\", memory: 64GiB, cpus: 32, link: %dB/s}]\n"+
		"vms: [{name: v, host: n1, memory: 32GiB}]\ntransport: {connections: %d, encryption: %q}\n", link, o.Channels,
		encryption))
	var all []predict.Observation
	for i := range 12 {
		all = append(all, predict.Observation{Host: "a", Target: "b", Memory: hypervisor.GiB, Sent: hypervisor.GiB,
			Link: link, Options: o, Began: time.Unix(int64(i/2)*1000, 0), Total: 20 * time.Second})
	}
	samples, err := predict.Samples(predict.Infer(all), fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	s.Errors = predict.Learn(samples)
	return askedOf(t, s).Predicted
}

// A plan finds what was measured on such links, however slow or fast they are, although migrations shared
// them, and encrypted over as many connections.
func TestAPlanFindsWhatItsModelWasMeasuredWith(t *testing.T) {
	const encrypted = hypervisor.EncryptRequired
	for _, tt := range []struct {
		gbit        hypervisor.Bandwidth
		connections int
		encryption  hypervisor.Encryption
		class       string
	}{
		{1, 8, hypervisor.AsConfigured, "capped kvm"}, {10, 8, hypervisor.AsConfigured, "multifd"},
		{100, 8, hypervisor.AsConfigured, "multifd"}, {10, 2, encrypted, "tls"},
		{10, 8, encrypted, "tls over more than 2 connections"},
	} {
		p := calibrated(t, tt.gbit*hypervisor.Gbit, hypervisor.TransferOptions{Channels: tt.connections, Encryption: tt.encryption})
		if p.Class != tt.class || p.Measured != 12 || p.Note != "" {
			t.Errorf("%d Gbit/s, %d connections, %q: %+v, want 12 of %s", tt.gbit, tt.connections, tt.encryption, p, tt.class)
		}
	}
}

// A source uses several connections only where it can.
func TestAMoveTakesTheConnectionsOfItsSource(t *testing.T) {
	const fleet = "hosts: [{name: \"n[1-2]\", memory: 64GiB, cpus: 32, link: 10Gbit/s}]\n" +
		"vms: [{name: v, host: n1, memory: 8GiB}]\n"
	for i, want := range []string{"uncapped kvm", "multifd"} {
		s := parsed(t, fleet)
		s.Fleet.Hosts[i].Abilities = fake.Abilities &^ hypervisor.CanLoseChannels
		if p := askedOf(t, s).Predicted; p.Class != want {
			t.Errorf("%s cannot lose connections: %+v, want %s", s.Fleet.Hosts[i].Name, p, want)
		}
	}
}

// What a controller has encrypted is encrypted, whether the scenario says it or not.
func TestAMoveThatIsEncryptedIsSaidToBe(t *testing.T) {
	s := parsed(t, "hosts: [{name: \"n[1-2]\", memory: 64GiB, cpus: 32, link: 10Gbit/s}]\n"+
		"vms: [{name: v, host: n1, memory: 8GiB}]\ntransport: {connections: 1}\n")
	for i := range s.Fleet.Hosts {
		s.Fleet.Hosts[i].Abilities = fake.Abilities | hypervisor.CanEncrypt
	}
	if p := askedOf(t, s).Predicted; p.Class != "tls" {
		t.Errorf("%+v, want tls", p)
	}
}

// Where migrations must be encrypted, the hosts of a file have certificates, and migrations are as slow as those of QEMU with
// TLS. A host that is said to have none cannot take part.
func TestMigrationsThatMustBeEncryptedAre(t *testing.T) {
	const fleet = `
hosts:
- {name: a, memory: 64GiB, cpus: 16, link: 10Gbit/s%[2]s}
- {name: b, memory: 64GiB, cpus: 16, link: 10Gbit/s%[2]s}
vms:
- {name: v, host: a, memory: 16GiB, class: idle}
config: {encryption: %[1]s}
transport: {connections: 1}
`
	took := func(encryption, more string) whatif.MoveResult {
		run, err := planned(parse(t, fmt.Sprintf(fleet, encryption, more)), "a").Nominal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return run.Results["default/v"]
	}
	plain, encrypted := took("Auto", ""), took("Required", "")
	if !encrypted.Done || encrypted.Options.Encryption != hypervisor.EncryptRequired || encrypted.Took <= plain.Took {
		t.Errorf("encrypted %+v, plain %+v", encrypted, plain)
	}
	if stated := took("Auto", ", abilities: [copy-storage]"); !stated.Done || stated.Options.Encryption != "" {
		t.Errorf("what a file says of other abilities changes how VMs move: %+v", stated)
	}
	if without := took("Required", ", abilities: [post-copy, auto-converge]"); without.Done {
		t.Errorf("without certificates: %+v", without)
	}
}
