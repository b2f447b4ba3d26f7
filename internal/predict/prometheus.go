package predict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// The metrics of KubeVirt that say how a migration went.
// Source: KubeVirt v1.5 docs/observability/metrics.md.
const (
	kubevirtPrefix   = "kubevirt_vmi_migration_"
	metricStart      = kubevirtPrefix + "start_time_seconds"
	metricEnd        = kubevirtPrefix + "end_time_seconds"
	metricTotal      = kubevirtPrefix + "data_total_bytes"
	metricTotalNewer = kubevirtPrefix + "data_bytes_total"
	metricProcessed  = kubevirtPrefix + "data_processed_bytes"
	metricRate       = kubevirtPrefix + "memory_transfer_rate_bytes"
	metricFailed     = kubevirtPrefix + "failed"
	metricSucceeded  = kubevirtPrefix + "succeeded"
)

// mostAnswer is how many bytes the answer of a Prometheus may have.
const mostAnswer = 256 << 20

// shortest is the shortest migration that is taken: start and end are whole seconds.
const shortest = 10 * time.Second

// IsPrometheus reports whether a file begins as an answer of Prometheus does.
func IsPrometheus(head string) bool {
	return strings.HasPrefix(strings.Join(strings.Fields(head), ""), `{"status":"`)
}

// answer is what Prometheus answers to a range query.
// Source: prometheus.io/docs/prometheus/latest/querying/api (range queries).
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric map[string]string `json:"metric"`
			Values []point           `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// A point is a value at a time, in seconds.
type point struct{ at, value float64 }

// UnmarshalJSON reads [time, "value"].
func (p *point) UnmarshalJSON(data []byte) error {
	var at float64
	var text string
	if err := json.Unmarshal(data, &[]any{&at, &text}); err != nil {
		return fmt.Errorf("%.60s is no [time, \"value\"]: %w", data, err)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is no value", text)
	}
	p.at, p.value = at, value
	return nil
}

// ReadPrometheus reads the answer of a Prometheus to a range query for kubevirt_vmi_migration_.*, and
// returns what it says of migrations that succeeded; it tells how many others there are, those among
// them that took less than ten seconds. Downtimes are not in it, and no caps and links. An error is
// [yamldoc.Problems], unless r fails.
func ReadPrometheus(name string, r io.Reader) (all []Observation, skipped int, err error) {
	data, err := io.ReadAll(io.LimitReader(r, mostAnswer+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	report := yamldoc.Report{File: name}
	var a answer
	switch err := json.NewDecoder(bytes.NewReader(data)).Decode(&a); {
	case len(data) > mostAnswer:
		report.Errorf(1, "", "it has more than %d MiB: ask for less time at once", mostAnswer>>20)
	case err != nil:
		report.Errorf(1, "", "it is no answer of Prometheus: %v", err)
	case a.Status != "success":
		report.Errorf(1, "status", "Prometheus has answered an error: %s", a.Error)
	case a.Data.ResultType != "matrix":
		report.Errorf(1, "data.resultType", "needs the answer to a range query (matrix), has %q: use "+
			"/api/v1/query_range", a.Data.ResultType)
	}
	if err := report.Err(); err != nil {
		return nil, 0, err
	}
	guests := map[string]*kubevirtGuest{}
	for _, s := range a.Data.Result {
		kubevirtGuestOf(guests, s.Metric).add(s.Metric, s.Values)
	}
	for _, g := range guests {
		some, others := g.observations()
		all, skipped = append(all, some...), skipped+others
	}
	slices.SortFunc(all, func(a, b Observation) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Memory, b.Memory))
	})
	for i := range all {
		all[i].Line = i + 1
	}
	return all, skipped, nil
}

// A kubevirtGuest is what is known of the migrations of one VM.
type kubevirtGuest struct {
	series map[string][]point // by metric; those of several hosts in one
	hosts  []hostPoint
	ends   map[float64]*kubevirtEnd // by their times
	// outcomes are, by the names of migrations, the metrics that said of one how it ended: "" of those
	// whose name was not said.
	outcomes map[string]map[string]bool
}

// A kubevirtEnd is what is said of the end of a migration.
type kubevirtEnd struct {
	name   string          // of the migration; "" is not said
	status map[string]bool // that were said: succeeded, failed
}

// A hostPoint is from when a VM's migration was told of by a host.
type hostPoint struct {
	at   float64
	host string
}

func kubevirtGuestOf(all map[string]*kubevirtGuest, metric map[string]string) *kubevirtGuest {
	id := metric["namespace"] + "/" + cmp.Or(metric["name"], metric["vmi"])
	if all[id] == nil {
		all[id] = &kubevirtGuest{series: map[string][]point{}, ends: map[float64]*kubevirtEnd{},
			outcomes: map[string]map[string]bool{}}
	}
	return all[id]
}

func (g *kubevirtGuest) add(metric map[string]string, values []point) {
	name := metric["__name__"]
	if name == metricTotalNewer {
		name = metricTotal
	}
	g.series[name] = append(g.series[name], values...)
	for _, p := range values {
		switch name {
		case metricProcessed: // its source says it
			g.hosts = append(g.hosts, hostPoint{p.at, metric["node"]})
		case metricEnd:
			g.ended(p.value, metric["migration_name"], metric["status"])
		case metricFailed, metricSucceeded:
			g.outcome(metric["vmim"], name, p.value > 0)
		}
	}
}

// ended takes in the end of a migration.
func (g *kubevirtGuest) ended(at float64, name, status string) {
	if at <= 0 {
		return
	}
	if g.ends[at] == nil {
		g.ends[at] = &kubevirtEnd{status: map[string]bool{}}
	}
	e := g.ends[at]
	e.name = cmp.Or(e.name, name)
	e.status[status] = true
}

// outcome takes in how the migration of a name ended.
func (g *kubevirtGuest) outcome(name, metric string, is bool) {
	if !is {
		return
	}
	if g.outcomes[name] == nil {
		g.outcomes[name] = map[string]bool{}
	}
	g.outcomes[name][metric] = true
}

// failed reports whether the migration that ended at a time failed: as its end says, or else what has its
// name. Without either it is taken to have failed if one of the VM's has from then on. A migration without
// a phase counts as failed in KubeVirt's metrics, and may yet succeed.
// Source: KubeVirt v1.5 vmistats_collector.go (calculateMigrationStatus), migrationstats_collector.go
// (reportMigrationStats).
func (g *kubevirtGuest) failed(end float64) bool {
	e := g.ends[end]
	switch {
	case e.status["succeeded"]:
		return false
	case e.status["failed"]:
		return true
	case e.name != "" && !g.outcomes[""][metricFailed]:
		return g.outcomes[e.name][metricFailed] && !g.outcomes[e.name][metricSucceeded]
	}
	last, _ := lastIn(g.series[metricFailed], end, math.Inf(1))
	return last.value > 0
}

// observations returns the migrations of a guest. Each has an end of its own.
func (g *kubevirtGuest) observations() (all []Observation, skipped int) {
	for _, s := range g.series {
		slices.SortFunc(s, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	}
	for end := range g.ends {
		if o, taken := g.observation(end); taken {
			all = append(all, o)
		} else {
			skipped++
		}
	}
	return all, skipped
}

// observation returns the migration that ended at a time.
func (g *kubevirtGuest) observation(end float64) (o Observation, taken bool) {
	start := 0.0
	for _, p := range g.series[metricStart] {
		if p.value <= end {
			start = max(start, p.value)
		}
	}
	span := time.Duration((end - start) * float64(time.Second))
	processed, seen := lastIn(g.series[metricProcessed], start, end)
	total, known := lastIn(g.series[metricTotal], start, end)
	if start == 0 || span < shortest || !seen || !known || g.failed(end) ||
		!(total.value > float64(hypervisor.MiB) && total.value < 1<<50 && processed.value >= 0) {
		return o, false
	}
	sent := processed.value
	if rate, has := lastIn(g.series[metricRate], start, end); has && rate.value > 0 {
		sent += rate.value * (end - processed.at) // since it was asked last
	}
	o = Observation{Memory: hypervisor.Bytes(total.value), Sent: hypervisor.Bytes(min(sent, 1<<60)),
		Began: time.Unix(0, int64(start*1e9)).UTC(), Total: span, NoDowntime: true}
	for _, h := range g.hosts {
		if h.at >= start && h.at <= end {
			o.Host = h.host
		}
	}
	return o, true
}

// lastIn returns the last point of a time.
func lastIn(all []point, from, to float64) (last point, seen bool) {
	for _, p := range all {
		if p.at >= from && p.at <= to {
			last, seen = p, true
		}
	}
	return last, seen
}
