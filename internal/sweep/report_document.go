package sweep

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// The bounds of a page. What is beyond them is counted and said.
const (
	MaxListed = 20_000 // migrations that are listed one by one
	maxLeft   = 1_000  // VMs that stayed, and violations
	// reportMaxCombinations is how many settings of a sweep are compared.
	reportMaxCombinations = 1_000
	maxLinks              = 200 // links of each kind, the busiest
	maxGroups             = 200 // rows of hosts in an Activity
	maxWhy                = 400 // characters of one reason
)

// A ReportDocument is what a page shows, as JSON in the page. Times are virtual, in milliseconds
// since the beginning of the world, unless their names say otherwise; -1 is never.
type ReportDocument struct {
	Format   int    `json:"format"` // 1
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	Ending   string `json:"ending,omitempty"` // why the simulation ended
	// Result is the world's own. Its lists of VMs that stayed, of VMs that are down and of violations are
	// cut at maxLeft; Stayed, Down and Violated count them all.
	Result   *sim.Result `json:"result,omitempty"`
	Stayed   int         `json:"stayed"`
	Down     int         `json:"down"` // VMs that should run and do not, all of them
	Violated int         `json:"violated"`
	// From and To are the time that the charts show.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Hosts are the names that columns of hosts point to.
	Hosts       []hypervisor.HostName `json:"hosts"`
	Migrations  *Migrations           `json:"migrations,omitempty"`
	Activity    []Activity            `json:"activity,omitempty"` // when not all are listed
	Concurrency *Concurrency          `json:"concurrency,omitempty"`
	Links       []Link                `json:"links,omitempty"`
	Downtimes   *Distribution         `json:"downtimes,omitempty"` // milliseconds
	Durations   *Distribution         `json:"durations,omitempty"` // seconds, of what succeeded
	// Sweep is a sweep without its samples and cut at reportMaxCombinations; Combinations counts
	// them all.
	Sweep        *Document `json:"sweep,omitempty"`
	Combinations int       `json:"combinations,omitempty"`
	// Headroom is of the hosts with the least memory left, the least first.
	Headroom []Headroom `json:"headroom,omitempty"`
	// Fans are when the samples of combinations were complete.
	Fans []Fan `json:"fans,omitempty"`
	// Compared is this result beside another; nil is that there is none.
	Compared *SideBySide `json:"compared,omitempty"`
}

// Migrations are columns, one place for each migration that is listed, by the time when it
// was asked for.
type Migrations struct {
	Total    int      `json:"total"`    // as many there were
	Outcomes []string `json:"outcomes"` // the words that Outcome points to
	Modes    []string `json:"modes"`    // those that Mode points to
	Reasons  []string `json:"reasons"`  // those that Why points to; the first is ""

	VM         []string           `json:"vm"`
	Source     []int              `json:"source"` // in ReportDocument.Hosts; -1 is not known
	Target     []int              `json:"target"`
	Outcome    []MigrationOutcome `json:"outcome"`
	Mode       []int              `json:"mode"`
	Why        []int              `json:"why"`
	Bytes      []int64            `json:"bytes"`    // -1 is unknown: the source did not live to tell
	Downtime   []float64          `json:"downtime"` // milliseconds
	Created    []int64            `json:"created"`
	Pending    []int64            `json:"pending"`
	Scheduling []int64            `json:"scheduling"`
	Scheduled  []int64            `json:"scheduled"`
	Preparing  []int64            `json:"preparing"`
	Ready      []int64            `json:"ready"`
	Running    []int64            `json:"running"`
	Ended      []int64            `json:"ended"`
	reasons    map[string]int
	hosts      map[hypervisor.HostName]int
}

// SweepReport returns the document of a sweep: what was compared, and nothing of its worlds.
func SweepReport(d *Document) *ReportDocument {
	short := *d
	short.Samples = []Sample{}
	short.Combinations = d.Combinations[:min(reportMaxCombinations, len(d.Combinations))]
	short.Comparisons = slices.DeleteFunc(slices.Clone(d.Comparisons),
		func(c Comparison) bool { return c.Combination >= reportMaxCombinations })
	r := &ReportDocument{Format: 1, Scenario: d.Run.Scenario, Seed: d.Run.Seed, Sweep: &short,
		Combinations: len(d.Combinations), Hosts: []hypervisor.HostName{}}
	for from := 0; from < len(d.Samples); {
		c, to := d.Samples[from].Combination, from
		for to < len(d.Samples) && d.Samples[to].Combination == c {
			to++
		}
		if f, known := fan(c, d.Samples[from:to]); known && c < reportMaxCombinations {
			r.Fans = append(r.Fans, f)
		}
		from = to
	}
	return r
}

// Document sums up the world that was recorded, as it is now.
func (r *Recorder) Document(w *sim.World, name string, ending sim.Ending) *ReportDocument {
	r.locate(w)
	r.stood(w)
	d := reportSummarize(r.rows, w.Result(), plant{network: r.Network,
		site: func(host hypervisor.HostName) site { return siteOf(w.HostRecord(host)) }})
	d.Scenario, d.Ending = name, ending.String()
	from, to := time.Duration(d.From)*time.Millisecond, time.Duration(d.To)*time.Millisecond
	d.Headroom = r.headroom(w, newBuckets(from, to))
	return d
}

// reportSummarize makes the document of what was recorded, over the links of a plant.
func reportSummarize(rows []row, result sim.Result, p plant) *ReportDocument {
	d := &ReportDocument{Format: 1, Result: &result, Violated: len(result.Violations), Down: len(result.Down),
		Hosts: []hypervisor.HostName{}}
	d.cut(&result)
	from, to := extent(rows, time.Duration(result.VirtualSeconds*float64(time.Second)))
	d.From, d.To = from.Milliseconds(), to.Milliseconds()
	clock := newBuckets(from, to)
	d.Concurrency = concurrency(rows, clock)
	d.Links = links(rows, clock, p)
	d.Downtimes, d.Durations = distribution(downtimes(rows)), distribution(durations(rows))
	d.list(rows)
	if len(rows) > MaxListed {
		d.Activity = activity(rows, clock)
	}
	return d
}

// cut shortens the lists of a result, evenly from their ends.
func (d *ReportDocument) cut(result *sim.Result) {
	room := maxLeft
	for i := range result.Evacuations {
		e := &result.Evacuations[i]
		d.Stayed += len(e.Left)
		e.Left = e.Left[:min(room, len(e.Left))]
		room -= len(e.Left)
	}
	result.Down = result.Down[:min(maxLeft, len(result.Down))]
	result.Violations = result.Violations[:min(maxLeft, len(result.Violations))]
}

// extent returns the time in which there were migrations, of a world that ended at whole.
func extent(rows []row, whole time.Duration) (from, to time.Duration) {
	from = never
	for i := range rows {
		n := &rows[i]
		if at := n.at[migration.Unset]; from == never || at < from {
			from = at
		}
		to = max(to, n.end(whole))
	}
	if from == never || to <= from {
		return 0, max(whole, time.Second)
	}
	return from, to
}

// end returns when a migration ended; one that has not is under way until now.
func (n *row) end(now time.Duration) time.Duration {
	if n.at[ended] == never {
		return now
	}
	return n.at[ended]
}

// newMigrations returns none. A column without places is an empty list in JSON, not null.
func newMigrations() *Migrations {
	return &Migrations{Outcomes: outcomes(), Modes: []string{"pre-copy", "paused copy",
		"post-copy"}, Reasons: []string{""}, VM: []string{}, Source: []int{}, Target: []int{},
		Outcome: []MigrationOutcome{}, Mode: []int{}, Why: []int{}, Bytes: []int64{},
		Downtime: []float64{}, Created: []int64{}, Pending: []int64{}, Scheduling: []int64{},
		Scheduled: []int64{}, Preparing: []int64{}, Ready: []int64{}, Running: []int64{},
		Ended: []int64{}, reasons: map[string]int{"": 0}, hosts: map[hypervisor.HostName]int{}}
}

// list enters the migrations that are listed.
func (d *ReportDocument) list(rows []row) {
	m := newMigrations()
	d.Migrations, m.Total = m, len(rows)
	for _, i := range listed(rows) {
		n := &rows[i]
		m.VM = append(m.VM, sim.Short(n.vm))
		m.Source = append(m.Source, d.host(n.source))
		m.Target = append(m.Target, d.host(n.target))
		m.Outcome = append(m.Outcome, n.outcome)
		m.Mode = append(m.Mode, int(n.mode))
		m.Why = append(m.Why, m.reason(n.why))
		m.Bytes = append(m.Bytes, n.told())
		m.Downtime = append(m.Downtime, milliseconds(n.downtime))
		for phase, column := range []*[]int64{&m.Created, &m.Pending, &m.Scheduling,
			&m.Scheduled, &m.Preparing, &m.Ready, &m.Running, &m.Ended} {
			at := int64(never)
			if n.at[phase] != never {
				at = n.at[phase].Milliseconds()
			}
			*column = append(*column, at)
		}
	}
}

// told returns what a migration has sent; -1 is unknown.
func (n *row) told() int64 {
	if n.untold {
		return -1
	}
	return int64(n.bytes)
}

// host returns the place of a host's name.
func (d *ReportDocument) host(name hypervisor.HostName) int {
	if name == "" {
		return -1
	}
	i, ok := d.Migrations.hosts[name]
	if !ok {
		i = len(d.Hosts)
		d.Migrations.hosts[name] = i
		d.Hosts = append(d.Hosts, name)
	}
	return i
}

// reason returns the place of a reason.
func (m *Migrations) reason(text string) int {
	if short := []rune(text); len(short) > maxWhy {
		text = string(short[:maxWhy]) + "…"
	}
	i, ok := m.reasons[text]
	if !ok {
		i = len(m.Reasons)
		m.reasons[text] = i
		m.Reasons = append(m.Reasons, text)
	}
	return i
}

// listed chooses which migrations are listed, by the time when they were asked for. Of too
// many it takes, up to a quarter of the room each: those that did not succeed, the longest
// downtimes, the longest of all; and fills the rest evenly.
func listed(rows []row) []int {
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	if len(rows) > MaxListed {
		all = telling(rows, all)
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].at[0], rows[b].at[0]), cmp.Compare(a, b))
	})
	return all
}

func telling(rows []row, all []int) []int {
	taken := make([]bool, len(rows))
	var list []int
	take := func(i int) {
		if !taken[i] {
			taken[i] = true
			list = append(list, i)
		}
	}
	for _, i := range all {
		if o := rows[i].outcome; o != Succeeded && len(list) < MaxListed/4 {
			take(i)
		}
	}
	for _, longest := range []func(*row) time.Duration{
		func(n *row) time.Duration { return n.downtime },
		func(n *row) time.Duration { return n.at[ended] - n.at[migration.Running] },
	} {
		ordered := slices.Clone(all)
		slices.SortStableFunc(ordered, func(a, b int) int {
			return cmp.Compare(longest(&rows[b]), longest(&rows[a]))
		})
		for _, i := range ordered[:MaxListed/4] {
			take(i)
		}
	}
	rest := slices.DeleteFunc(all, func(i int) bool { return taken[i] })
	room := MaxListed - len(list)
	for i := range room {
		list = append(list, rest[i*len(rest)/room])
	}
	return list
}

// milliseconds rounds as [sim.Result] does, to microseconds; never stays -1.
func milliseconds(d time.Duration) float64 {
	if d == never {
		return -1
	}
	return float64(d.Microseconds()) / 1000
}
