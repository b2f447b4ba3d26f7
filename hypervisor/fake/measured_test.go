package fake_test

import (
	"cmp"
	"encoding/csv"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
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

func (m measurement) size(t testing.TB, column string) hypervisor.Bytes {
	t.Helper()
	return hypervisor.Bytes(m.number(t, column)) * mib
}

func (m measurement) time(t testing.TB, column string) time.Duration {
	t.Helper()
	return time.Duration(m.number(t, column)) * ms
}

// has reports whether the row's options name a word.
func (m measurement) has(option string) bool {
	return slices.Contains(strings.Split(m["options"], "+"), option)
}

// measurements reads the rows of internal/predict/qemu-7.2.csv, or of the
// file that GODWIT_MEASUREMENTS names, which has the same columns.
func measurements(t testing.TB) []measurement {
	t.Helper()
	path := cmp.Or(os.Getenv("GODWIT_MEASUREMENTS"), "../../internal/predict/qemu-7.2.csv")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []measurement
	for i, row := range rows[1:] {
		m := measurement{"row": strconv.Itoa(i)}
		for i, column := range rows[0] {
			m[column] = row[i]
		}
		list = append(list, m)
	}
	return list
}

// completed reads the rows that completed.
func completed(t testing.TB) []measurement {
	t.Helper()
	return slices.DeleteFunc(measurements(t), func(m measurement) bool {
		return m["status"] != "completed"
	})
}

// model is QEMU's on the machine of the measurements: two processors for source,
// target and guest, so that more channels are no faster than one. The speeds here
// and in [fake.QEMU] were fitted on the even rows, but for two: PerChannel is one
// for both accelerators because that also suited the odd rows better, and zlib is
// one run of another day (others took three times as long). Compression was read
// off transferred_bytes.
func (m measurement) model() fake.Model {
	q := fake.QEMU()
	q.AllChannels = q.PerChannel
	if m["accel"] == "tcg" { // the emulated guest leaves less of the processors
		q.FirstTouch = 1_240_000_000
	}
	for word, speed := range map[string]hypervisor.Bandwidth{
		"mfcomp:zlib": 780_000_000, "mfcomp:zstd": 840_000_000,
		"tls-psk": 100_000_000, "tls-x509": 100_000_000,
	} { // QEMU 7.2 counts what multifd compresses as if it were not
		if m.has(word) {
			q.AllChannels = speed
		}
	}
	q.Compression = 23 // what remains of a page of the measured guest
	return q
}

// transfer is what a row asked for.
func (m measurement) transfer(t testing.TB) hypervisor.TransferOptions {
	t.Helper()
	return hypervisor.TransferOptions{
		Bandwidth:    hypervisor.Bandwidth(m.size(t, "cap_mib_s")),
		Downtime:     m.time(t, "downtime_limit_ms"),
		AutoConverge: m["autoconverge"] != "0",
		PostCopy:     m["postcopy"] != "0",
		Channels:     int(m.number(t, "multifd")),
		Compression:  m.has("compress"),
		XBZRLE:       m.has("xbzrle"),
	}
}

// predict replays a measurement for at most a time. The guest writes its working
// set cyclically, so that distinct pages grow linearly until it wraps, and makes up
// for a stop of up to 16 ms. Its first MiB is zero, and scanned before anything is
// sent: it is left away. The model has the other zeros last, as the guest does.
func predict(t testing.TB, m measurement, most time.Duration) (time.Duration, hypervisor.Progress) {
	t.Helper()
	memory := m.size(t, "ram_mib") - mib
	vm := hypervisor.VM{ID: "vm", Memory: memory, CPUs: 1}
	load := fake.Workload{
		ColdRate: hypervisor.Bandwidth(m.size(t, "rate_nominal_mib_s")),
		Cold:     m.size(t, "ws_mib"),
		Zero:     int(1000 - m.size(t, "fill_mib")*1000/memory),
		CatchUp:  16 * ms,
	}
	w := &world{fake.NewNetwork(epoch, m.model()), t}
	for _, n := range []name{"n1", "n2"} {
		w.host(hypervisor.Host{Name: n, Memory: 1 << 40, CPUs: 4, Link: 1000 * hypervisor.Gbit})
	}
	w.ok(w.Host("n1").Boot(vm, load))
	job := w.begin(move{vm: vm, from: "n1", to: "n2", options: m.transfer(t)})
	if m["postcopy"] != "0" && m.number(t, "switch_after_ms") >= 0 {
		w.pass(m.time(t, "switch_after_ms"))
		w.ok(w.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
	}
	for {
		next, some := w.Next()
		if !some || next.Sub(epoch) > most {
			return w.Now().Sub(epoch), w.progress("n1", job)
		}
		w.AdvanceTo(next)
	}
}

// family says which mechanism governs a row.
func (m measurement) family(t testing.TB) string {
	t.Helper()
	limit := m.number(t, "cap_mib_s")
	switch {
	case m["autoconverge"] != "0":
		return "auto-converge"
	case m["postcopy"] != "0":
		return "post-copy"
	case m.has("compress"):
		return "compression"
	case m.has("xbzrle"):
		return "xbzrle"
	case strings.Contains(m["options"], "tls"):
		return "tls"
	case m["multifd"] != "0":
		return "multifd"
	case limit > 0 && limit <= 300:
		return "capped " + m["accel"]
	}
	return "uncapped " + m["accel"] // or with a cap that hardly binds
}

// misses are how far predictions are off, per thousand. Small downtimes compare as
// if they were the floor, below which the machine's own jitter rules: 10 ms for
// what QEMU reports, 20 ms for the gap in the guest's heartbeat, which is 3 to 20
// ms when nothing moves.
type misses struct{ total, downtime, heartbeat []int64 }

func (e *misses) add(t testing.TB, m measurement, total, downtime time.Duration) {
	t.Helper()
	e.total = append(e.total, permille(total, m.time(t, "total_ms"), 0))
	e.downtime = append(e.downtime, permille(downtime, m.time(t, "downtime_ms"), 10*ms))
	e.heartbeat = append(e.heartbeat, permille(downtime, m.time(t, "downtime_hb_ms"), 20*ms))
}

// permille returns how far got is from want, or from floor if that is more.
func permille(got, want, floor time.Duration) int64 {
	return int64((got - want).Abs() * 1000 / max(want, floor, ms))
}

// quantile returns the value below which so many of a hundred are.
func quantile(list []int64, percent int) int64 {
	slices.Sort(list)
	return list[len(list)*percent/100]
}

func (e *misses) log(t testing.TB, what string) {
	t.Helper()
	t.Logf("%-36s n %3d, total median %3d p90 %4d, downtime %3d %4d, heartbeat %3d %4d", what,
		len(e.total), quantile(e.total, 50), quantile(e.total, 90), quantile(e.downtime, 50),
		quantile(e.downtime, 90), quantile(e.heartbeat, 50), quantile(e.heartbeat, 90))
}

// noise is how well the other runs of an experiment predict each of them: their
// median is the prediction.
func noise(t testing.TB, rows []measurement) misses {
	t.Helper()
	runs := map[string][]measurement{}
	for _, m := range rows {
		runs[m.experiment()] = append(runs[m.experiment()], m)
	}
	var e misses
	for _, m := range rows {
		var total, downtime []int64
		for _, other := range runs[m.experiment()] {
			if other["row"] != m["row"] {
				total = append(total, other.number(t, "total_ms"))
				downtime = append(downtime, other.number(t, "downtime_ms"))
			}
		}
		if len(total) > 0 {
			e.add(t, m, middle(total), middle(downtime))
		}
	}
	return e
}

// middle returns the median of milliseconds.
func middle(list []int64) time.Duration {
	slices.Sort(list)
	return time.Duration(list[(len(list)-1)/2]+list[len(list)/2]) * ms / 2
}

// experiment names what the runs of an experiment have in common.
func (m measurement) experiment() string {
	var b strings.Builder
	for _, column := range []string{"label", "accel", "ram_mib", "ws_mib", "fill_mib",
		"rate_nominal_mib_s", "cap_mib_s", "downtime_limit_ms", "autoconverge", "postcopy",
		"multifd"} {
		b.WriteString(m[column] + " ")
	}
	return b.String() + strings.ReplaceAll(m["options"], "+stats-race", "")
}

// sorted predicts every row that completed, and sorts its misses by family and by
// whether speeds were fitted on it. To be validated says less than it seems to: the
// odd rows repeat the experiments of the even ones, and the pass logs of all rows
// showed which mechanisms to model.
func sorted(t *testing.T, rows []measurement) map[string]*misses {
	t.Helper()
	found := map[string]*misses{}
	for i, m := range rows {
		if m.has("xbzrle") && !canXBZRLE(t) {
			t.Logf("row %s is left out: the hosts do not offer XBZRLE", m["row"])
			continue
		}
		total, p := predict(t, m, time.Minute)
		for _, in := range []string{m.family(t), "all", []string{"fitted", "validated"}[i%2]} {
			if found[in] == nil {
				found[in] = &misses{}
			}
			found[in].add(t, m, total, p.Downtime)
		}
		t.Logf("%s %s ram %s ws %s rate %s cap %s limit %s %s: total %d of %s ms, downtime %d of "+
			"%s (heartbeat %s) ms", m["label"], m["accel"], m["ram_mib"], m["ws_mib"],
			m["rate_nominal_mib_s"], m["cap_mib_s"], m["downtime_limit_ms"], m["options"],
			total.Milliseconds(), m["total_ms"], p.Downtime.Milliseconds(), m["downtime_ms"],
			m["downtime_hb_ms"])
	}
	return found
}

// canXBZRLE reports whether hosts offer what the model of a transfer has.
func canXBZRLE(t *testing.T) bool {
	t.Helper()
	h, err := newWorld(t, fake.QEMU()).Host("n1").Host(ctx)
	return err == nil && h.Abilities&hypervisor.CanXBZRLE != 0
}

// A bound is how far the predictions of a family may be off, per thousand.
type bound struct{ total, total90, downtime int64 }

// The goal, a median of 50 and a 90th percentile of 120 for the total time and a
// median of 250 for the downtime, is reached where a cap governs, and over all rows
// but for the percentile. Nothing can reach that here: without a cap it is the
// processors that govern, and on that machine the same experiment took 218 to 367
// ms, or 1.7 to 5.3 s. The runs of an experiment predict each other worse than the
// model does. So the bounds are a little above what is reached; they catch a
// model that gets worse.
var bounds = map[string]bound{
	"all":           {50, 350, 200},
	"fitted":        {50, 350, 200},
	"validated":     {60, 390, 200},
	"capped kvm":    {25, 60, 150},
	"capped tcg":    {10, 60, 170},
	"uncapped kvm":  {110, 350, 200},
	"uncapped tcg":  {190, 550, 320},
	"post-copy":     {70, 350, 130},
	"xbzrle":        {20, 70, 300},
	"compression":   {180, 400, 330}, // one run took 4.0 s, another 7.4 s
	"multifd":       {250, 750, 420}, // two more threads on two processors
	"tls":           {150, 500, 600}, // hardly faster than the guest writes: chaotic
	"auto-converge": {50, 120, 250},
}

func TestPredictionsAreCloseToQEMU(t *testing.T) {
	rows := completed(t)
	found, others := sorted(t, rows), noise(t, rows)
	for _, family := range slices.Sorted(maps.Keys(found)) {
		m, most := found[family], bounds[family]
		m.log(t, family)
		if quantile(m.total, 50) > most.total || quantile(m.total, 90) > most.total90 ||
			quantile(m.downtime, 50) > most.downtime {
			t.Errorf("%s: want at most a median of %d and a p90 of %d of total time, and a "+
				"median of %d of downtime, per thousand", family, most.total, most.total90,
				most.downtime)
		}
	}
	others.log(t, "other runs of the same experiment")
	all := found["all"]
	if len(all.total) < 120 || quantile(all.total, 50) > quantile(others.total, 50) ||
		quantile(all.total, 90) > quantile(others.total, 90) {
		t.Errorf("%d predictions, no better than other runs of the same experiments",
			len(all.total))
	}
}

// A guest that outran the wire until it was cancelled does so in the model. One of
// twelve such runs completed all the same, when the machine was busy elsewhere.
func TestWhatDoesNotConvergeInQEMUDoesNotConvergeHere(t *testing.T) {
	for _, m := range measurements(t) {
		if m["label"] != "nonconv" || m["status"] != "timeout-cancelled" {
			continue
		}
		total := m.time(t, "total_ms")
		after, p := predict(t, m, total)
		if p.Status != hypervisor.JobActive {
			t.Errorf("rate %s cap %s: %v after %v, in QEMU not after %v",
				m["rate_nominal_mib_s"], m["cap_mib_s"], p.Status, after, total)
		}
		passes := m.number(t, "passes")
		if off := int64(p.Iteration) - passes; off < -passes/5 || off > passes/5 {
			t.Errorf("rate %s cap %s: %d passes after %v, in QEMU %d", m["rate_nominal_mib_s"],
				m["cap_mib_s"], p.Iteration, after, passes)
		}
	}
}
