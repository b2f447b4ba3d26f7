package sweep_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestChartsAreAsPublished compares the library in the page with the pinned sum.
func TestChartsAreAsPublished(t *testing.T) {
	testutil.Unraced(t)
	pinned, err := os.ReadFile("echarts/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(pinned)) {
		if f := strings.Fields(line); len(f) > 1 {
			fields[f[0]] = f[1]
		}
	}
	d, _ := example(t, "drain-host.yaml")
	pattern := regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	scripts := pattern.FindAllStringSubmatch(html(t, d), -1)
	if len(scripts) != 2 {
		t.Fatalf("the page has %d scripts, want 2", len(scripts))
	}
	sum := sha256.Sum256([]byte(scripts[0][1]))
	if got := hex.EncodeToString(sum[:]); got != fields["sha256"] {
		t.Errorf("the charts have the sum %s, pinned is %s", got, fields["sha256"])
	}
	for _, want := range []string{`="` + fields["version"] + `"`,
		"Licensed to the Apache Software Foundation"} {
		if !strings.Contains(scripts[0][1], want) {
			t.Errorf("the charts do not say %q", want)
		}
	}
	if !strings.Contains(html(t, d), "ECharts "+fields["version"]) {
		t.Errorf("the page does not name version %s of the charts", fields["version"])
	}
	for _, name := range []string{"LICENSE", "NOTICE", "LICENSE-d3", "LICENSE-zrender"} {
		if text, err := os.ReadFile("echarts/" + name); err != nil || len(text) < 100 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

// TestDocumentIsInThePage reads it back.
func TestDocumentIsInThePage(t *testing.T) {
	for name, d := range documents(t) {
		pattern := regexp.MustCompile(`(?s)id="document">(.*?)</script>`)
		text := pattern.FindStringSubmatch(html(t, d))
		var got, want any
		if err := json.Unmarshal([]byte(text[1]), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plain, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the document in the page is another", name)
		}
	}
}

// TestPage shows pages in a real browser.
func TestPage(t *testing.T) {
	b := testutil.StartBrowser(t)
	for i, test := range []struct {
		name string
		do   func(*testing.T, func(*sweep.ReportDocument, screen) *tab)
	}{
		{"its figures are those of the result", figuresAgree},
		{"every chart is painted, in every light, on every screen", chartsArePainted},
		{"the filter works by keyboard", filterByKeyboard},
		{"the timeline works by keyboard and by mouse", timelineAnswers},
		{"every chart tells what is under the mouse", chartsAnswer},
		{"a world without migrations has no charts", quietWorld},
		{"names are text", namesAreText},
		{"a sweep has its own page", sweepIsShown},
		{"headroom, outages and two results are shown", worldsAreCompared},
		{"samples are a fan, by keyboard and printed", samplesAreAFan},
		{"ten thousand migrations are few shapes", manyAreFluid},
		{"what is too large says so", largeSaysSo},
	} {
		t.Run(test.name, func(t *testing.T) {
			if i > 0 {
				testutil.Sample(t, 3)
			}
			test.do(t, func(d *sweep.ReportDocument, s screen) *tab { return open(t, b, d, s) })
		})
	}
}

type opener = func(*sweep.ReportDocument, screen) *tab

func figuresAgree(t *testing.T, open opener) {
	for _, name := range []string{"drain-host.yaml", "faults.yaml"} {
		d, w := example(t, name)
		p, want := open(d, testutil.Desktop), w.Result()
		stayed := 0
		for _, e := range want.Evacuations {
			stayed += len(e.Left)
		}
		exact := map[string]string{
			"succeeded": fmt.Sprint(want.Migrations.Succeeded),
			"failed":    fmt.Sprint(want.Migrations.Failed),
			"p50":       fmt.Sprint(want.Downtime.P50), "p99": fmt.Sprint(want.Downtime.P99),
			"bytes":  fmt.Sprint(int64(want.BytesTransferred)),
			"stayed": fmt.Sprint(stayed),
		}
		if total := want.Outages.TotalSeconds; total >= 1 {
			exact["outages"] = fmt.Sprint(total)
		}
		got := testutil.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll(
			"[data-exact]")].map(e => [e.id.slice(7), e.dataset.exact]))`)
		delete(got, "took")
		if !maps.Equal(got, exact) {
			t.Errorf("%s: the page says %v, want %v", name, got, exact)
		}
		shown := testutil.Eval[string](p, `document.querySelector("#figure-succeeded dd").textContent`)
		if shown != exact["succeeded"] {
			t.Errorf("%s: %q succeeded, want %q", name, shown, exact["succeeded"])
		}
		rows := testutil.Eval[int](p, `document.querySelectorAll("#list tbody tr").length`)
		if rows != want.Migrations.Total {
			t.Errorf("%s: the table has %d rows, want %d", name, rows, want.Migrations.Total)
		}
		if name == "drain-host.yaml" {
			why := testutil.Eval[string](p, `document.querySelector("#left").textContent`)
			if !strings.Contains(why, "a GPU is passed through") {
				t.Errorf("what stayed is explained as %q", why)
			}
		}
		quiet(p)
	}
}

// painted counts the colours in every chart that is shown: an empty one has one.
const painted = `[...document.querySelectorAll(".chart canvas")].filter(c => c.offsetParent)
	.map(c => { const copy = new OffscreenCanvas(c.width, c.height)
			.getContext("2d", { willReadFrequently: true });
		copy.drawImage(c, 0, 0);
		const { data } = copy.getImageData(0, 0, c.width, c.height);
		return new Set(new Uint32Array(data.buffer)).size; })`

func chartsArePainted(t *testing.T, open opener) {
	d, _ := example(t, "rack-maintenance.yaml")
	for _, s := range []screen{testutil.Desktop, testutil.Phone} {
		p := open(d, s)
		for range 3 { // automatic, light and dark
			p.Settle()
			counts := testutil.Eval[[]int](p, painted)
			if len(counts) != 6 || slices.Min(counts) < 4 {
				t.Errorf("%v: the charts have %v colours, want 6 charts with some", s, counts)
			}
			p.Click("#theme")
		}
		wide := testutil.Eval[[2]int](p, `[document.documentElement.scrollWidth, innerWidth]`)
		if wide[0] > wide[1] {
			t.Errorf("%v: the page is %d pixels wide", s, wide[0])
		}
		quiet(p)
	}
}

// focused says what has the focus.
const focused = `document.activeElement.id || document.activeElement.dataset.tone ||
	document.activeElement.tagName`

func filterByKeyboard(t *testing.T, open opener) {
	d, _ := example(t, "faults.yaml")
	p := open(d, testutil.Desktop)
	press := func(key string) { p.Helper(); p.Press(key) }
	rows := func(want int) {
		p.Helper()
		p.Until(`document.querySelectorAll("#list tbody tr").length`, want)
	}
	var way []string
	for range 8 {
		press(testutil.KeyTab)
		way = append(way, testutil.Eval[string](p, focused))
	}
	if want := []string{"A", "theme", "text", "host", "0", "4", "reset", "rows"}; !slices.Equal(
		way, want) {
		t.Fatalf("tab goes through %v, want %v", way, want)
	}
	for range 5 {
		p.PressShift(testutil.KeyTab)
	}
	p.Press("WEB-4")
	rows(2)
	if got := testutil.Eval[string](p, `document.querySelector("#count").textContent`); got != "2 of 9" {
		t.Errorf("the page counts %q", got)
	}
	press(testutil.KeyTab)
	press(testutil.KeyTab)
	press(" ") // what succeeded goes
	rows(1)
	press(testutil.KeyTab)
	press(testutil.KeyTab)
	press(testutil.KeyEnter) // everything comes back
	rows(9)
	if got := testutil.Eval[[]bool](p, `[...document.querySelectorAll(".chip input")].map(
		c => c.checked)`); slices.Contains(got, false) {
		t.Error("what was filtered is not shown again")
	}
	quiet(p)
}

// pointAt moves the mouse over a chart, at a share of its width and some pixels below its top, until
// the chart tells something: where nothing is painted yet, a chart does not hear the mouse.
func pointAt(p *tab, chart string, share float64, down int) (at [2]float64, told string) {
	p.Helper()
	testutil.Eventually(p, "the tooltip of "+chart, func() error {
		at = testutil.Eval[[2]float64](p, fmt.Sprintf(`(() => { const box = document.getElementById(%q);
			box.scrollIntoView({ block: "center", behavior: "instant" });
			const { left, top, width } = box.getBoundingClientRect();
			return [left + width * %v, top + %d]; })()`, chart, share, down))
		p.PointAt(1, 1)
		p.PointAt(at[0], at[1])
		p.Settle()
		told = testutil.Eval[string](p, `document.querySelector("#tip")?.checkVisibility({ visibilityProperty: true }) ?
			document.querySelector("#tip").innerText : ""`)
		if told == "" {
			return errors.New("it says nothing")
		}
		return nil
	})
	return at, told
}

func timelineAnswers(t *testing.T, open opener) {
	d, _ := example(t, "drain-host.yaml")
	p := open(d, testutil.Desktop)
	zoom := func() []float64 {
		return testutil.Eval[[]float64](p, `["timeline", "concurrency"].flatMap(id => { const z =
			echarts.getInstanceByDom(document.getElementById(id)).getOption().dataZoom[0];
			return [z.start, z.end]; })`)
	}
	p.Focus("#timeline")
	p.Press("+")
	p.Press(testutil.KeyRight)
	if got := zoom(); !slices.Equal(got, []float64{35, 85, 35, 85}) {
		t.Errorf("the zoom is %v, want 35 to 85 %% in both charts", got)
	}
	testutil.Eval[any](p, `echarts.getInstanceByDom(document.getElementById("timeline"))
		.dispatchAction({ type: "dataZoom", dataZoomId: "time-slider", start: 20, end: 60 })`)
	if got := zoom(); !slices.Equal(got, []float64{20, 60, 20, 60}) {
		t.Errorf("the slider zooms to %v, want 20 to 60 %% in both charts", got)
	}
	p.Press("0")
	if got := zoom(); got[0] != 0 || got[1] != 100 {
		t.Errorf("the zoom is %v, want everything", got)
	}
	at, told := pointAt(p, "timeline", 0.5, 25)
	for _, want := range []string{"db", "From", "n1", "n5", "Downtime", "pre-copy", "running"} {
		if !strings.Contains(told, want) {
			t.Errorf("the tooltip does not say %q: %q", want, told)
		}
	}
	p.ClickAt(at[0], at[1])
	p.WaitVisible("dialog[open]")
	if got := testutil.Eval[string](p, `document.querySelector("dialog h2").textContent`); got != "db" {
		t.Errorf("a click opens %q", got)
	}
	p.Press(testutil.KeyEscape)
	p.WaitAbsent("dialog[open]")
	p.Click("#list td button")
	p.WaitVisible("dialog[open]")
	p.Click("dialog button")
	p.WaitAbsent("dialog[open]")
	tables := testutil.Eval[[]int](p, `[...document.querySelectorAll("section:not([hidden]) details")].map(d => { d.open = true;
		d.dispatchEvent(new Event("toggle")); return d.querySelectorAll("tbody tr").length; })`)
	if len(tables) != 5 || slices.Min(tables) == 0 {
		t.Errorf("the tables of the charts have %v rows", tables)
	}
	quiet(p)
}

func chartsAnswer(t *testing.T, open opener) {
	d, _ := example(t, "rack-maintenance.yaml")
	p := open(d, testutil.Desktop)
	for chart, want := range map[string]string{"concurrency": "Moving\n4\nWaiting",
		"links": "99.8 %", "downtimes": "Migrations\n", "durations": "Migrations\n"} {
		if _, told := pointAt(p, chart, 0.15, 40); !strings.Contains(told, want) {
			t.Errorf("%s: the tooltip says %q, want %q in it", chart, told, want)
		}
	}
	for chart, d := range map[string]*sweep.Distribution{"downtimes": d.Downtimes,
		"durations": d.Durations} {
		most := slices.Max(d.Counts)
		if top := testutil.Eval[int](p, fmt.Sprintf(`echarts.getInstanceByDom(document.getElementById(
			%q)).getOption().yAxis[0].max`, chart)); top < most || top > 2*most {
			t.Errorf("%s: the axis ends at %d, the highest bar at %d", chart, top, most)
		}
	}
	p.Type("#text", "a3")
	p.Until(`document.querySelectorAll("#list tbody tr").length`, 7)
	if _, told := pointAt(p, "links", 0.15, 40); !strings.HasPrefix(told, "a3\n") {
		t.Errorf("filtered, the tooltip of the links says %q", told)
	}
	quiet(p)
}

func quietWorld(t *testing.T, open opener) {
	d, _ := run(t, parse(t, "name: nothing\nhosts:\n- {name: n1, memory: 1GiB, cpus: 1, "+
		"link: 1Gbit/s}\n"))
	p := open(d, testutil.Phone)
	if charts := testutil.Eval[int](p, `document.querySelectorAll("canvas").length`); charts != 0 {
		t.Errorf("a world without migrations has %d charts", charts)
	}
	quiet(p)
}

func namesAreText(t *testing.T, open opener) {
	const evil = `</script><img src=x onerror="window.hit=1"><script>window.hit=1</script>` +
		`<!--"'&{{script}}\` + "\u2028"
	d, _ := example(t, "faults.yaml")
	m := d.Migrations
	d.Scenario = evil
	for i := range m.VM {
		m.VM[i] = evil + m.VM[i]
	}
	for i := range d.Hosts {
		d.Hosts[i] = evil + d.Hosts[i]
	}
	for i := range d.Links {
		d.Links[i].Name = evil + d.Links[i].Name
	}
	for i := range d.Result.Evacuations {
		d.Result.Evacuations[i].Host = evil
	}
	for i := range m.Reasons[1:] {
		m.Reasons[i+1] = evil
	}
	p := open(d, testutil.Desktop)
	p.Click("#list td button")
	if testutil.Eval[bool](p, `"hit" in window || document.images.length > 0 ||
		document.scripts.length !== 3`) {
		t.Error("a name has become markup")
	}
	if got := testutil.Eval[string](p, `document.querySelector("h1").textContent`); got != evil {
		t.Errorf("the title is %q", got)
	}
	if got := testutil.Eval[string](p, `document.querySelector("dialog h2").textContent`); !strings.
		HasPrefix(got, evil) {
		t.Errorf("the VM is %q", got)
	}
	quiet(p)
}

func sweepIsShown(t *testing.T, open opener) {
	for without, want := range []int{5, 4} {
		p := open(sweep.SweepReport(sweptIn(t, without, without)), testutil.Desktop)
		rows := testutil.Eval[[][]string](p, `[...document.querySelectorAll("#combinations tbody tr")].map(
			r => [r.cells[0].textContent, r.cells[1].textContent])`)
		var best []string
		for _, r := range rows {
			if r[1] == "yes" {
				best = append(best, r[0])
			}
		}
		if len(rows) != 6 || len(best) != want || slices.Contains(best,
			"limits.perCluster=5 limits.perSource=2") {
			t.Errorf("with %d combinations without samples: of %d combinations %q are unbeaten", without, len(rows), best)
		}
		quiet(p)
	}
	p := open(sweep.SweepReport(swept(t)), testutil.Desktop)
	p.Settle()
	if counts := testutil.Eval[[]int](p, painted); len(counts) != 1 || counts[0] < 5 {
		t.Errorf("the charts have %v colours", counts)
	}
	quiet(p)
}

// shapes counts what a chart draws in one frame.
const shapes = `echarts.getInstanceByDom(document.getElementById("timeline")).getZr().storage
	.getDisplayList(true).length`

func manyAreFluid(t *testing.T, open opener) {
	p := open(sweep.Many(10_000), testutil.Desktop)
	// Two for each of four tones, and the axes: not 10,000 bars.
	if n := testutil.Eval[int](p, shapes); n > 300 {
		t.Errorf("the timeline of 10,000 migrations is drawn as %d shapes", n)
	}
	if n := testutil.Eval[int](p, `document.querySelectorAll("tbody tr").length`); n > 100 {
		t.Errorf("the page has %d rows of tables at once", n)
	}
	p.Type("#text", "vm-00012")
	p.Until(`document.querySelectorAll("#list tbody tr").length`, 10)
	quiet(p)
}

func largeSaysSo(t *testing.T, open opener) {
	p := open(sweep.Many(3*sweep.MaxListed), testutil.Desktop)
	note := testutil.Eval[string](p, `document.querySelector("#bounded").innerText`)
	if !strings.Contains(note, "20\u202f000 of 60\u202f000 migrations") {
		t.Errorf("the page says %q", note)
	}
	p.Settle()
	if counts := testutil.Eval[[]int](p, painted); slices.Min(counts) < 5 {
		t.Errorf("the charts have %v colours", counts)
	}
	quiet(p)
}

// BenchmarkFrames measures how long a page of 10,000 migrations takes to show another part
// of the time, and to filter.
func BenchmarkFrames(b *testing.B) {
	p := open(b, testutil.StartBrowser(b), sweep.Many(10_000), testutil.Desktop)
	frame := func(change string) float64 {
		return testutil.Eval[float64](p, `new Promise(done => {
			const from = performance.now();`+change+`;
			requestAnimationFrame(() => setTimeout(() => done(performance.now() - from))); })`)
	}
	var zooming, filtering, n float64
	for b.Loop() {
		n++
		zooming += frame(fmt.Sprintf(`echarts.getInstanceByDom(document.getElementById(
			"timeline")).dispatchAction({ type: "dataZoom", start: %d, end: 60 })`, int(n)%40))
		filtering += frame(`document.querySelector(".chip input").click()`)
	}
	b.ReportMetric(zooming/n, "ms/zoom")
	b.ReportMetric(filtering/n, "ms/filter")
}
