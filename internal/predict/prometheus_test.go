package predict_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
)

// scraped writes what a Prometheus answers that asked every 15 s about migrations as KubeVirt tells of
// them: while one runs virt-handler tells its bytes, afterwards virt-controller its start and end.
type scraped struct{ series []string }

func (s *scraped) add(name, labels string, points ...[2]float64) {
	var list []string
	for _, p := range points {
		list = append(list, fmt.Sprintf(`[%.3f,"%v"]`, p[0], p[1]))
	}
	s.series = append(s.series, fmt.Sprintf(`{"metric":{"__name__":"kubevirt_vmi_migration_%s",%s},"values":[%s]}`,
		name, labels, strings.Join(list, ",")))
}

// migration adds one that sent at an even speed.
func (s *scraped) migration(vm, host string, start, took, total, sent float64) {
	labels := fmt.Sprintf(`"namespace":"prod","name":%q,"node":%q`, vm, host)
	var processed, totals, rates [][2]float64
	for at := start + 7; at < start+took; at += 15 {
		processed = append(processed, [2]float64{at, math.Round(sent * (at - start) / took)})
		totals = append(totals, [2]float64{at, total})
		rates = append(rates, [2]float64{at, math.Round(sent / took)})
	}
	s.add("data_processed_bytes", labels, processed...)
	s.add("data_total_bytes", labels, totals...)
	s.add("memory_transfer_rate_bytes", labels, rates...)
	after := start + took + 4
	s.add("start_time_seconds", labels, [2]float64{after, start})
	s.add("end_time_seconds", labels, [2]float64{after, start + took}, [2]float64{after + 15, start + took})
}

func (s *scraped) String() string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(s.series, ",\n") + "]}}\n"
}

func TestAnswersOfPrometheusAreRead(t *testing.T) {
	const gib = 1 << 30
	var s scraped
	s.migration("db", "n1", 1_800_000_000, 60, 32*gib, 40*gib)
	s.migration("db", "n2", 1_800_001_000, 100, 32*gib, 20*gib)
	s.migration("web", "n1", 1_800_000_000, 4, 2*gib, 1*gib) // shorter than its clock tells
	s.migration("bad", "n3", 1_800_000_000, 60, 2*gib, 1*gib)
	s.add("failed", `"namespace":"prod","vmi":"bad","node":"n3"`, [2]float64{1_800_000_064, 1})
	if !predict.IsPrometheus(s.String()) || predict.IsPrometheus("ram_mib,total_ms\n") {
		t.Error("it is told from CSV wrongly")
	}
	all, skipped, err := predict.ReadPrometheus("range.json", strings.NewReader(s.String()))
	if err != nil || len(all) != 2 || skipped != 2 {
		t.Fatalf("%v %+v, %d skipped", err, all, skipped)
	}
	for i, want := range []predict.Observation{
		{Line: 1, Host: "n1", Memory: 32 * gib, Sent: 40 * gib, Total: time.Minute, NoDowntime: true,
			Began: time.Unix(1_800_000_000, 0).UTC()},
		{Line: 2, Host: "n2", Memory: 32 * gib, Sent: 20 * gib, Total: 100 * time.Second, NoDowntime: true,
			Began: time.Unix(1_800_001_000, 0).UTC()}} {
		off := math.Abs(float64(all[i].Sent)/float64(want.Sent) - 1)
		if all[i].Sent = want.Sent; off > 0.001 || all[i] != want {
			t.Errorf("%+v (sent is %.2g off), want %+v", all[i], off, want)
		}
	}
	for text, want := range map[string]string{
		`{"status":"error","error":"bad_data"}`:                                           "Prometheus has answered an error: bad_data",
		`{"status":"success","data":{"resultType":"vector","result":[]}}`:                 "query_range",
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1]]}]}}`: "is no value",
		`{"status":`: "it is no answer of Prometheus",
	} {
		if _, _, err := predict.ReadPrometheus("range.json", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "range.json:1") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// named adds a migration that lasted a minute, whose end has the labels of KubeVirt 1.5.
func (s *scraped) named(vm, name, status string, start float64) {
	const gib = 1 << 30
	s.migration(vm, "n1", start, 60, 4*gib, 4*gib)
	at := len(s.series) - 1
	s.series[at] = strings.Replace(s.series[at], `"node"`,
		fmt.Sprintf(`"migration_name":%q,"status":%q,"node"`, name, status), 1)
}

// A migration that failed hides no other one of its VM. Its object is there for long, before and after.
func TestAFailedMigrationHidesNoOther(t *testing.T) {
	const at = 1_800_000_000
	failed := func(s *scraped, name string, points ...[2]float64) {
		s.add("failed", fmt.Sprintf(`"namespace":"prod","vmi":"db","vmim":%q`, name), points...)
	}
	for _, c := range []struct {
		what string
		do   func(*scraped)
		want []int64 // when those began that are taken, in seconds
	}{
		{"by status", func(s *scraped) {
			s.named("db", "a", "succeeded", at)
			s.named("db", "b", "failed", at+1000)
			s.named("db", "c", "succeeded", at+2000)
			failed(s, "b", [2]float64{at + 1070, 1}, [2]float64{at + 9000, 1})
		}, []int64{at, at + 2000}},
		{"by name", func(s *scraped) {
			s.named("db", "a", "", at)
			s.named("db", "b", "", at+1000)
			failed(s, "b", [2]float64{at + 1070, 1}, [2]float64{at + 9000, 1})
		}, []int64{at}},
		{"one without a phase that succeeded", func(s *scraped) {
			s.named("db", "a", "", at)
			failed(s, "a", [2]float64{at - 5, 1})
			s.add("succeeded", `"namespace":"prod","vmi":"db","vmim":"a"`, [2]float64{at + 70, 1})
		}, []int64{at}},
		{"failures without names", func(s *scraped) {
			s.named("db", "a", "", at)
			failed(s, "", [2]float64{at + 70, 1})
		}, nil},
		{"without names", func(s *scraped) {
			s.migration("db", "n1", at, 60, 4<<30, 4<<30)
			s.migration("db", "n1", at+1000, 60, 4<<30, 4<<30)
			failed(s, "", [2]float64{at + 70, 0}, [2]float64{at + 1070, 1})
		}, nil},
	} {
		var s scraped
		c.do(&s)
		all, _, err := predict.ReadPrometheus("range.json", strings.NewReader(s.String()))
		var got []int64
		for _, o := range all {
			got = append(got, o.Began.Unix())
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, took those of %v, want %v", c.what, err, got, c.want)
		}
	}
}

// The judge is a speed that the fit is not told: 400 MB/s. A fit to what KubeVirt's metrics say of
// its migrations on two hosts finds that, and predicts the host that was left out.
func TestAFitToKubeVirtsMetricsFindsTheSpeed(t *testing.T) {
	const gib, speed = float64(1 << 30), 400e6
	var s scraped
	for i := range 12 {
		memory := float64(8+4*(i%4)) * gib
		s.migration(fmt.Sprint("vm", i), fmt.Sprint("n", i%2), 1_800_000_000+float64(1000*i),
			math.Round(memory/speed), memory, memory)
	}
	all, _, err := predict.ReadPrometheus("range.json", strings.NewReader(s.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Link = 100 * hypervisor.Gbit
	}
	r, err := predict.Fit(predict.Infer(all), fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	if r.Refused != "" || r.Held != "host" || r.Validated.All.Total.P90 > 0.05 || r.Before.All.Total.Median < 0.5 {
		t.Errorf("refused %q, held %s, before %+v, validated %+v", r.Refused, r.Held, r.Before.All, r.Validated.All)
	}
	if r.After.All.NoDowntime != 12 || r.After.All.Downtime != (predict.Error{}) {
		t.Errorf("downtimes that are not known: %+v", r.After.All)
	}
	p := r.Errors.Of(predict.Class(hypervisor.TransferOptions{}, false, false),
		predict.Times{Total: time.Minute, Downtime: time.Second}, 0)
	if p.Downtime.P90 < 5*p.Downtime.P50 || p.Seconds.P90 > 1.2*p.Seconds.P50 || p.Note == "" {
		t.Errorf("%+v: its downtime was never measured, and its time was", p)
	}
}
