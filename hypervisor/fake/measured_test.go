package fake_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// A measurement is one migration of QEMU 7.2, by the names of its columns.
type measurement map[string]string

func (m measurement) number(t testing.TB, column string) int64 {
	t.Helper()
	n, err := strconv.ParseFloat(m[column], 64)
	if err != nil {
		t.Fatalf("column %s: %v", column, err)
	}
	return int64(math.Round(n))
}

// measurements reads the plain pre-copy rows with a speed limit that completed.
func measurements(t testing.TB) []measurement {
	t.Helper()
	file, err := os.Open("../../testdata/measurements/qemu-7.2.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var plain []measurement
	for _, row := range rows[1:] {
		m := measurement{}
		for i, column := range rows[0] {
			m[column] = row[i]
		}
		labels := []string{"grid", "size", "downtime", "smallws"}
		if slices.Contains(labels, m["label"]) && m["status"] == "completed" &&
			m["cap_mib_s"] != "0" && m["multifd"] == "0" && m["postcopy"] == "0" {
			plain = append(plain, m)
		}
	}
	return plain
}

// predict replays a measurement: the guest writes its working set cyclically, so
// that distinct pages grow linearly until it wraps.
func predict(t testing.TB, m measurement) (total, downtime time.Duration) {
	t.Helper()
	column := func(name string) hypervisor.Bytes { return hypervisor.Bytes(m.number(t, name)) }
	vm := hypervisor.VM{ID: "vm", Memory: column("ram_mib") * mib, CPUs: 1}
	load := fake.Workload{
		ColdRate: hypervisor.Bandwidth(column("rate_nominal_mib_s") * mib),
		Cold:     column("ws_mib") * mib,
		Zero:     int(1000 - column("fill_mib")*1000/column("ram_mib")),
	}
	w := &world{fake.NewFabric(epoch, fake.QEMU()), t}
	for _, n := range []name{"n1", "n2"} {
		w.host(hypervisor.Host{Name: n, Memory: 4 * gib, CPUs: 4, Link: 100 * hypervisor.Gbit})
	}
	w.ok(w.Host("n1").Boot(vm, load))
	job := w.begin(move{vm: vm, from: "n1", to: "n2", options: hypervisor.TransferOptions{
		Bandwidth: hypervisor.Bandwidth(column("cap_mib_s") * mib),
		Downtime:  time.Duration(m.number(t, "downtime_limit_ms")) * ms,
	}})
	w.untilStatus("n1", job, hypervisor.JobSucceeded)
	return w.Now().Sub(epoch), w.progress("n1", job).Downtime
}

// permille returns how far got is from want.
func permille(got, want time.Duration) int64 { return int64((got - want).Abs() * 1000 / want) }

func TestPredictionsAreCloseToQEMU(t *testing.T) {
	var errs []int64
	for _, m := range measurements(t) {
		total, downtime := predict(t, m)
		want := time.Duration(m.number(t, "total_ms")) * ms
		errs = append(errs, permille(total, want))
		t.Logf("%-8s %s ram %4s ws %3s rate %3s cap %4s limit %4s: total %5d of %5d ms, "+
			"downtime %3d of %3s ms", m["label"], m["accel"], m["ram_mib"], m["ws_mib"],
			m["rate_nominal_mib_s"], m["cap_mib_s"], m["downtime_limit_ms"],
			total.Milliseconds(), want.Milliseconds(), downtime.Milliseconds(), m["downtime_ms"])
	}
	slices.Sort(errs)
	median, p90 := errs[len(errs)/2], errs[len(errs)*9/10]
	t.Logf("total time of %d migrations: median error %d, p90 %d per thousand",
		len(errs), median, p90)
	if len(errs) < 30 || median > 60 || p90 > 300 {
		t.Errorf("%d migrations: median error %d, p90 %d per thousand; want at least 30, "+
			"at most 60 and 300", len(errs), median, p90)
	}
}
