package predict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// virsh writes a job with the formats of virsh 9.0.
func virsh(ms, downtime int, memory, sent float64, constant int) string {
	var b strings.Builder
	word := func(name, value string) { fmt.Fprintf(&b, "%-17s %-12s\n", name, value) }
	number := func(name string, n int, unit string) { fmt.Fprintf(&b, "%-17s %-12d%s\n", name, n, unit) }
	size := func(name string, x float64) { fmt.Fprintf(&b, "%-17s %-.3f %s\n", name, x, "GiB") }
	word("Job type:", "Completed")
	word("Operation:", "Outgoing migration")
	number("Time elapsed:", ms, " ms")
	number("Time elapsed w/o network:", ms-1, " ms")
	size("Data processed:", sent)
	size("Memory processed:", sent)
	fmt.Fprintf(&b, "%-17s %-.3f %s\n", "Memory remaining:", 0.0, "B")
	size("Memory total:", memory)
	fmt.Fprintf(&b, "%-17s %-.3f %s/s\n", "Memory bandwidth:", 900.5, "MiB")
	number("Dirty rate:", 0, " pages/s")
	number("Page size:", 4096, " bytes")
	number("Iteration:", 4, "")
	number("Postcopy requests:", 0, "")
	number("Constant pages:", constant, "")
	number("Normal pages:", 9, "")
	number("Total downtime:", downtime, " ms")
	number("Setup time:", 2, " ms")
	return b.String() + "\n"
}

func TestJobsOfVirshAreRead(t *testing.T) {
	text := "# n1\n" + virsh(2000, 62, 4, 3, 262144) + virsh(1000, 30, 1, 1, 0) +
		"Job type:         None\n\n" + strings.Replace(virsh(9, 9, 1, 1, 0), "Outgoing migration", "Save", 1)
	if !predict.IsDomJobInfo(text) || predict.IsDomJobInfo("ram_mib,total_ms\n") {
		t.Error("it is told from CSV wrongly")
	}
	all, skipped, err := predict.ReadDomJobInfo("n1.txt", strings.NewReader(text))
	if err != nil || len(all) != 2 || skipped != 2 {
		t.Fatalf("%v %+v, %d skipped", err, all, skipped)
	}
	want := predict.Observation{Line: 2, Host: "n1.txt", Memory: 4 * hypervisor.GiB,
		Filled: 3 * hypervisor.GiB, Sent: 3 * hypervisor.GiB, Total: 2 * time.Second, Downtime: 62 * ms,
		Told: "4.000 GiB, 3.000 GiB, 262144, 9"}
	if all[0] != want {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	for _, c := range []struct{ what, text, want string }{
		{"a bad size", strings.Replace(virsh(9, 9, 1, 1, 0), "1.000 GiB", "1.000 GB", 2),
			`n1.txt:1: Memory processed: needs a size, as 1.012 GiB, has "1.000 GB"`},
		{"another unit", strings.Replace(virsh(9, 9, 1, 1, 0), " ms", " s", 1),
			`n1.txt:1: Time elapsed: needs a number of ms, has "9            s"`},
		{"no job", "Operation: x\n", "n1.txt:1: Operation: no line with Job type comes before it"},
		{"a cut", "Job type: Completed\nOper\n", "n1.txt:2: it is no line of virsh domjobinfo"},
	} {
		_, _, err := predict.ReadDomJobInfo("n1.txt", strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// Local disks that were copied are bytes like those of memory; a guest that auto-converge has slowed is not
// measured.
func TestJobsOfVirshWithDisks(t *testing.T) {
	const gib = hypervisor.GiB
	disks := "File processed:   10.500 GiB\nFile remaining:   0.000 B\nFile total:       10.000 GiB\n"
	text := strings.TrimSpace(virsh(90000, 62, 4, 3, 262144)) + "\n" + disks +
		strings.TrimSpace(virsh(2000, 62, 4, 3, 0)) + "\nAuto converge throttle: 40\n" +
		strings.TrimSpace(virsh(2000, 62, 4, 3, 0)) + "\nAuto converge throttle: 0\n"
	all, skipped, err := predict.ReadDomJobInfo("n1.txt", strings.NewReader(text))
	if err != nil || len(all) != 2 || skipped != 1 {
		t.Fatalf("%v %+v, %d skipped", err, all, skipped)
	}
	if o := all[0]; o.Memory != 14*gib || o.Filled != 13*gib || o.Sent != 13*gib+gib/2 {
		t.Errorf("with disks: %+v", o)
	}
	if o := all[1]; o.Memory != 4*gib || o.Sent != 3*gib {
		t.Errorf("without: %+v", o)
	}
}

// Source and target tell of the same migration: it counts once. What only its target has told counts.
func TestAMigrationThatBothHostsTellOfCountsOnce(t *testing.T) {
	read := func(name string, text ...string) []predict.Observation {
		t.Helper()
		all, _, err := predict.ReadDomJobInfo(name, strings.NewReader(strings.Join(text, "")))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	incoming := func(text string) string { return strings.Replace(text, "Outgoing", "Incoming", 1) }
	a, b := virsh(2000, 62, 4, 3, 262144), virsh(3000, 30, 8, 8, 7)
	at := virsh(2001, 63, 4, 3, 262144) // its target has waited for the source a little
	all := predict.CountOnce(append(read("n2.txt", incoming(at), incoming(b)), read("n1.txt", a, a)...))
	var got []string
	for _, o := range all {
		got = append(got, fmt.Sprint(o.Host, " ", o.Total))
	}
	if want := []string{"n2.txt 3s", "n1.txt 2s", "n1.txt 2s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	unknown := read("n1.txt", "Job type: Completed\nOperation: Outgoing migration\nTime elapsed: 2000 ms\n"+
		"Memory processed: 4.000 GiB\nMemory total: 4.000 GiB\nTotal downtime: 30 ms\n")
	both := append(slices.Clone(unknown), unknown...)
	both[1].Incoming = true
	if got := predict.CountOnce(both); len(got) != 2 {
		t.Errorf("without numbers of pages nothing is known to be the same: %+v", got)
	}
}

// The judge is the model: how its guest wrote is not told, and yet a prediction from what is
// inferred takes about as long.
func TestHowAGuestWroteIsInferred(t *testing.T) {
	for _, m := range measuredOn(t, fake.QEMU()) {
		again := float64(m.Rate) * m.Total.Seconds() * 0.9 // the last pass is short
		o := predict.Observation{Memory: m.Memory, Filled: m.Filled, Total: m.Total, Downtime: m.Downtime,
			Sent: m.Filled + hypervisor.Bytes(again)}
		p, err := predict.Infer([]predict.Observation{o})[0].Predict(fake.QEMU())
		if err != nil || math.Abs(p.Total.Seconds()-m.Total.Seconds()) > 0.35*m.Total.Seconds() {
			t.Errorf("%v: %v, was %v", err, p.Total, m.Total)
		}
	}
}

// Two that share a link for all of their time have half of it each; one that begins when another is
// half done, three quarters.
func TestMigrationsThatShareALinkHaveTheirShare(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := func(host, target string, begins, lasts int) predict.Observation {
		return predict.Observation{Host: host, Target: target, Memory: hypervisor.GiB, Sent: hypervisor.GiB, Link: 1200,
			Began: at.Add(time.Duration(begins) * time.Second), Total: time.Duration(lasts) * time.Second}
	}
	all := predict.Infer([]predict.Observation{o("a", "x", 0, 10), o("a", "y", 0, 10), o("b", "z", 0, 10),
		o("c", "w", 100, 10), o("d", "w", 105, 10)})
	for i, want := range []hypervisor.Bandwidth{600, 600, 1200, 800, 800} {
		if all[i].Link != want {
			t.Errorf("%d: %d, want %d", i, all[i].Link, want)
		}
	}
}

// Hosts that are not known are not taken for one: of migrations whose target is not told, only those
// from the same source share a link.
func TestUnknownHostsShareNoLink(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := func(host string) predict.Observation {
		return predict.Observation{Host: host, Memory: hypervisor.GiB, Sent: hypervisor.GiB, Link: 1200,
			Began: at, Total: 10 * time.Second}
	}
	all := predict.Infer([]predict.Observation{o("a"), o("a"), o("b"), o(""), o("")})
	for i, want := range []hypervisor.Bandwidth{600, 600, 1200, 1200, 1200} {
		if all[i].Link != want {
			t.Errorf("%d: %d, want %d", i, all[i].Link, want)
		}
	}
}

// Each host is another machine: what is fitted to one makes the others worse, and is refused.
func TestAFitThatMakesItWorseIsRefused(t *testing.T) {
	testutil.Unraced(t)
	random := rand.New(rand.NewPCG(1, 9))
	all := measuredOn(t, fake.QEMU())
	var list []predict.Migration
	for host := range 4 {
		// The first has slow set-ups by chance, the others none: there are few runs of each.
		for _, m := range all[:3] {
			m.Host = fmt.Sprint("h", host)
			off := math.Exp(0.9 * float64(1-2*(host%2)))
			m.Total = time.Duration(float64(m.Total) * off * (0.9 + 0.2*random.Float64()))
			list = append(list, m)
		}
	}
	r, err := predict.Fit(list[:6], fake.QEMU()) // two hosts that contradict one another
	if err != nil {
		t.Fatal(err)
	}
	if r.Held != "host" || r.Refused == "" || r.Model != fake.QEMU() || len(r.Changes) != 0 || r.Errors == nil {
		t.Errorf("held %q, refused %q, changes %+v, before %+v, validated %+v", r.Held, r.Refused, r.Changes,
			r.Before.All, r.Validated.All)
	}
	if r, err = predict.Fit(all, fake.QEMU()); err != nil || r.Refused != "" {
		t.Errorf("%v, %+v", err, r)
	}
}
