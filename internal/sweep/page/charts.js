// The charts. Each is made once, told its option again when theme or filter change, and
// says in words, for those who do not see it, what it shows.

// Bars are many rectangles of one colour in one path: x, y, width, height, and so on.
echarts.graphic.registerShape("bars", echarts.graphic.extendShape({
  shape: { rects: [] },
  buildPath(path, { rects }) {
    for (let i = 0; i < rects.length; i += 4) {
      path.rect(rects[i], rects[i + 1], rects[i + 2], rects[i + 3]);
    }
  },
}));

const bars = (rects, fill, opacity = 1) => ({ type: "bars", shape: { rects },
  style: { fill, opacity }, silent: true });

// whole is a series of one item, which draws all that there is.
const whole = (renderItem) => ({ type: "custom", renderItem, clip: true, silent: true,
  data: [[0]], dimensions: ["all"], encode: { x: [], y: [] } });
const seen = (shape) => shape.shape.rects.length > 0;

const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const narrow = () => innerWidth < 640;
const charts = new Map();
const hovers = new Map(); // what the tooltip of each chart says of a pixel, as drawn last
const clicks = {}; // what a click does
const timed = ["timeline", "concurrency", "links", "headroom"]; // they share the zoom

// chart returns the chart in an element.
function chart(id) {
  if (charts.has(id)) return charts.get(id);
  const box = $(id);
  box.tabIndex = 0;
  box.setAttribute("role", "img");
  const c = echarts.init(box, null, { renderer: "canvas" });
  charts.set(id, c);
  const zr = c.getZr();
  zr.on("mousemove", (e) => {
    const content = hovers.get(id)(c, [e.offsetX, e.offsetY]);
    zr.setCursorStyle(content && clicks[id] ? "pointer" : "default");
    tip(content, { x: e.event.clientX, y: e.event.clientY });
  });
  zr.on("globalout", () => tip(null));
  zr.on("click", (e) => clicks[id]?.(c, [e.offsetX, e.offsetY]));
  if (timed.includes(id)) {
    c.on("datazoom", (e) => share(c, e));
    box.addEventListener("keydown", keys);
  }
  return c;
}

// show draws a chart and says what it shows. hover gets the pointer, in pixels, and answers
// what the tooltip says, or nothing.
function show(id, height, label, option, hover) {
  $(id).style.height = `${height}px`;
  $(id).setAttribute("aria-label", label);
  const c = chart(id);
  hovers.set(id, hover);
  if (c.getWidth() !== $(id).clientWidth || c.getHeight() !== height) c.resize();
  c.setOption({ animation: false, textStyle: { fontFamily: getComputedStyle(document.body)
    .fontFamily, color: colour("muted") }, ...option },
  { replaceMerge: ["series", "yAxis"] });
}

const axisText = () => ({ color: colour("muted"), fontSize: 11, hideOverlap: true });
const lines = () => ({ lineStyle: { color: colour("line") } });

// left is the room for the names of hosts, the same for all that shares the time.
const longest = Math.max(3, ...hostNames.map((n) => n.length),
  ...(doc.activity ?? []).map((a) => a.name.length));
const left = () => Math.min(narrow() ? 72 : 150, 22 + 7 * longest);
const right = () => (narrow() ? 30 : 44);

const timeAxis = (more) => ({ type: "time", min: doc.from, max: doc.to,
  axisLabel: { ...axisText(), formatter: (t) => clock(t) }, axisTick: { show: false },
  axisLine: lines(), splitLine: { show: true, ...lines() }, splitNumber: narrow() ? 3 : 8,
  axisPointer: { show: true, label: { show: false }, triggerTooltip: false,
    lineStyle: { color: colour("muted"), type: "solid", width: 1 } }, ...more });

// labelled names as many rows as there is room for: perPixel is how many there are in one,
// part is which share of them is shown.
const labelled = (perPixel, part) => ({ interval: Math.ceil(14 * perPixel * part) - 1 });

// hostAxis is of rows in a height, in pixels.
const hostAxis = (names, height) => ({ type: "category", inverse: true, data: names,
  axisLabel: { ...axisText(), width: left() - 14, overflow: "truncate",
    ...labelled(names.length / height, 1) },
  axisTick: { show: false }, axisLine: { show: false },
  splitLine: { show: names.length <= 60, interval: 0, ...lines() } });

const countAxis = (more) => ({ type: "value", min: 0, axisLabel: axisText(),
  axisLine: { show: false }, splitLine: { show: true, ...lines() }, ...more });

// zooms: dragging moves, the wheel zooms with ctrl only, so that the page scrolls; on a
// small screen there is the slider alone.
function zooms(slider, rows = 0) {
  const inside = { id: "time", type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl",
    moveOnMouseMove: true, moveOnMouseWheel: false, disabled: narrow(), throttle: 16 };
  if (!slider) return [inside];
  const look = { type: "slider", filterMode: "none", showDetail: false, brushSelect: false,
    throttle: 16, borderColor: colour("line"), backgroundColor: colour("faint"),
    fillerColor: colour("accent") + "22", handleStyle: { color: colour("card"),
      borderColor: colour("accent") }, moveHandleStyle: { color: colour("accent") },
    showDataShadow: false };
  return [inside, { ...look, id: "time-slider", bottom: 4, height: 18, left: left(),
    right: right() }, { ...look, id: "rows", show: rows > 40, orient: "vertical", yAxisIndex: 0,
    right: 6, width: 14, top: 8, bottom: 52 }];
}

// share lets the other charts over time follow when one shows another part of it.
function share(from, { batch: [change] = [], ...single }) {
  const { dataZoomId = "time", start, end } = change ?? single;
  if (!dataZoomId.startsWith("time")) {
    from.setOption({ yAxis: { axisLabel: labelled(from.named, (end - start) / 100) } });
    return;
  }
  for (const c of timed.map((id) => charts.get(id))) {
    if (c && c !== from) c.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start, end },
      { silent: true });
  }
}

// zoom shows a share of the time: begin and end are percents.
function zoom(begin, end) {
  const width = Math.min(100, Math.max(0.05, end - begin));
  const start = Math.min(100 - width, Math.max(0, begin));
  const first = timed.map((id) => charts.get(id)).find(Boolean);
  first?.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start, end: start + width });
}

function zoomed() {
  const first = timed.map((id) => charts.get(id)).find(Boolean);
  const { start, end } = first.getOption().dataZoom[0];
  return [start, end];
}

function zoomBy(how) {
  const [start, end] = zoomed();
  const middle = (start + end) / 2, half = (end - start) / 2;
  const factor = { in: 0.5, out: 2 }[how];
  if (factor) zoom(middle - half * factor, middle + half * factor);
  else zoom(0, 100);
}

// keys: plus and minus zoom, arrows move, 0 shows everything.
function keys(e) {
  const [start, end] = zoomed();
  const step = (end - start) / 5;
  const act = { "+": () => zoomBy("in"), "=": () => zoomBy("in"), "-": () => zoomBy("out"),
    0: () => zoom(0, 100), ArrowLeft: () => zoom(start - step, end - step),
    ArrowRight: () => zoom(start + step, end + step) }[e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  act();
}

// at answers where a pixel is in time, and in which bucket.
function at(c, pixel) {
  if (!c.containPixel("grid", pixel)) return null;
  const [time, row] = c.convertFromPixel({ gridIndex: 0 }, pixel);
  const bucket = Math.floor((time - doc.from) / doc.concurrency.step);
  const last = doc.concurrency.moving.length - 1;
  return { time, row, bucket: Math.min(last, Math.max(0, bucket)) };
}

function drawConcurrency() {
  const { step, waiting, moving, peak } = doc.concurrency;
  const points = (list) => [...list.map((v, i) => [doc.from + i * step, v]),
    [doc.from + list.length * step, list.at(-1)]];
  const most = Math.max(...waiting);
  const label = `At most ${plural(peak, "migration")} moved at once; up to ${
    count(most)} waited.`;
  $("concurrency-caption").replaceChildren("Migrations at a time", el("span", {},
    el("span", { class: "key" }, swatch("ok"), `moving, at most ${count(peak)} (left)`),
    el("span", { class: "key" }, swatch("waiting"), `waiting, up to ${count(most)} (right)`)));
  const series = (list, tint, more) => ({ type: "line", step: "end", data: points(list),
    symbol: "none", silent: true, lineStyle: { width: 1.5, color: tint }, ...more });
  show("concurrency", 210, label, {
    grid: { left: left(), right: right(), top: 12, bottom: 24 }, xAxis: timeAxis(),
    yAxis: [countAxis({ minInterval: 1 }), countAxis({ minInterval: 1, show: most > 0,
      splitLine: { show: false } })],
    dataZoom: zooms(false),
    series: [series(moving, colour("ok"), { areaStyle: { color: colour("ok"), opacity: 0.3 } }),
      series(waiting, colour("aborted"), { yAxisIndex: 1 })],
  }, (c, pixel) => {
    const p = at(c, pixel);
    return p && titled(clock(doc.from + p.bucket * step),
      [["Moving", digits(moving[p.bucket])], ["Waiting", digits(waiting[p.bucket])]]);
  });
}

const kinds = { out: "leaving hosts", in: "arriving at hosts", up: "leaving racks",
  down: "arriving at racks", network: "migration network" };
const linksShown = () => {
  const text = filter.text.trim().toLowerCase();
  const named = doc.links.filter((l) => l.kind === $("kind").value);
  const host = filter.host >= 0 ? hostNames[filter.host] : "";
  const fits = named.filter((l) => (host ? l.name === host
    : l.name.toLowerCase().includes(text)));
  return (fits.length ? fits : named).sort((a, b) => natural(a.name, b.name));
};

const levels = 10;

// mixed returns a colour between two, both "#rrggbb".
function mixed(a, b, share) {
  const part = (c, k) => parseInt(c.slice(1 + 2 * k, 3 + 2 * k), 16);
  const channel = (k) => Math.round(part(a, k) + (part(b, k) - part(a, k)) * share);
  return `rgb(${channel(0)}, ${channel(1)}, ${channel(2)})`;
}

// ramp returns the colour of each level: cool when idle, warm, and hot when full.
const ramp = () => Array.from({ length: levels }, (_, k) => {
  const share = (2 * k) / (levels - 1);
  return share < 1 ? mixed(colour("cool"), colour("warm"), share)
    : mixed(colour("warm"), colour("hot"), share - 1);
});

// cells draws the buckets of each row in the colour of their level; nothing is no colour.
function cells(levelsOf, tints, { coordSys: area }, api) {
  const { step } = doc.concurrency, rects = tints.map(() => []);
  const band = api.size([0, 1])[1], height = Math.max(1, band - (band > 6 ? 2 : 0));
  levelsOf.forEach((list, row) => {
    const [x0, y] = api.coord([doc.from, row]);
    const width = api.coord([doc.from + step, row])[0] - x0;
    const last = Math.min(list.length - 1, Math.ceil((area.x + area.width - x0) / width));
    for (let i = Math.max(0, Math.floor((area.x - x0) / width)); i <= last; i++) {
      const level = Math.min(levels - 1, Math.floor(list[i]));
      if (list[i] > 0) rects[level].push(x0 + i * width, y - height / 2, width + 0.3, height);
    }
  });
  return { type: "group", children: rects.map((r, k) => bars(r, tints[k])).filter(seen) };
}

function drawLinks() {
  const rows = linksShown();
  const { step } = doc.concurrency;
  const most = rows.reduce((m, l) => Math.max(m, ...l.use), 0) / 10;
  const label = `${rows.length < 200 ? "" : "the "}${plural(rows.length, rows.length < 200
    ? "link" : "busiest link")}, at most ${digits(most)} % busy.`;
  $("links-caption").replaceChildren(`Link use: ${label}`);
  const tints = ramp();
  const renderItem = (params, api) => cells(rows.map((l) => l.use.map((u) =>
    (levels * u) / 1000)), tints, params, api);
  const height = Math.min(460, Math.max(110, rows.length * 16 + 40));
  show("links", height, label, {
    grid: { left: left(), right: right(), top: 8, bottom: 24 }, xAxis: timeAxis(),
    yAxis: hostAxis(rows.map((l) => l.name), height - 32), dataZoom: zooms(false),
    series: [whole(renderItem)],
  }, (c, pixel) => {
    const p = at(c, pixel), link = p && rows[Math.round(p.row)];
    if (!link) return null;
    return titled(link.name, [["At", clock(doc.from + p.bucket * step)],
      ["Busy", `${digits(link.use[p.bucket] / 10)} %`],
      ["Link", `${digits((link.capacity * 8) / 1e9)} Gbit/s, ${kinds[link.kind]}`],
      ["Carried", `${bytes(link.bytes)} in all`]]);
  });
}

// free formats what is left of a host's memory, which may be less than nothing.
const free = (n) => (n < 0 ? `−${bytes(-n)}` : bytes(n));

function drawHeadroom() {
  const rows = doc.headroom, { step } = doc.concurrency, least = rows[0];
  const label = `${plural(rows.length, "host")}; the least headroom is ${free(least.least)} of ${
    bytes(least.memory)}, on ${least.name} at ${clock(least.at)}.`;
  $("headroom-caption").textContent = label;
  const tints = ramp();
  const renderItem = (params, api) => cells(rows.map((h) => h.used.map((u) =>
    (levels * u) / 1000)), tints, params, api);
  const height = Math.min(460, Math.max(110, rows.length * 16 + 40));
  show("headroom", height, label, {
    grid: { left: left(), right: right(), top: 8, bottom: 24 }, xAxis: timeAxis(),
    yAxis: hostAxis(rows.map((h) => h.name), height - 32), dataZoom: zooms(false),
    series: [whole(renderItem)],
  }, (c, pixel) => {
    const p = at(c, pixel), host = p && rows[Math.round(p.row)];
    if (!host) return null;
    return titled(host.name, [["At", clock(doc.from + p.bucket * step)],
      ["Taken", `${digits(host.used[p.bucket] / 10)} %`],
      ["Least headroom", `${free(host.least)} of ${bytes(host.memory)} at ${clock(host.at)}`]]);
  });
}

// percentiles says in words what a distribution is.
const percentiles = (d, unit) => `p50 ${span(d.p50 * unit)} · p90 ${span(d.p90 * unit)
} · p99 ${span(d.p99 * unit)} · max ${span(d.max * unit)}`;

// upTo returns an axis that ends at a number or little above, in round steps.
function upTo(most) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, most / 3)));
  const interval = [1, 2, 5, 10].map((k) => k * ten).find((k) => most / k <= 4);
  return { interval, max: Math.max(interval, Math.ceil(most / interval) * interval) };
}

// drawSpread draws a histogram; unit is what its values are in, in milliseconds.
function drawSpread(which, unit, tint, shown) {
  const d = distributionOf(which, shown);
  const words = d && d.count ? percentiles(d, unit) : "Nothing that the filter shows has one.";
  $(`${which}-caption`).textContent = words;
  const edges = d.edges.map(Math.log10);
  const ticks = [];
  for (let k = Math.floor(edges[0]); k <= edges.at(-1); k++) {
    ticks.push(k, k + Math.log10(2), k + Math.log10(5));
  }
  const renderItem = (_, api) => bars(d.counts.flatMap((n, i) => {
    const [x, y] = api.coord([edges[i], n]), [end, zero] = api.coord([edges[i + 1], 0]);
    return [x + 1, y, Math.max(1, end - x - 2), zero - y];
  }), tint);
  const mark = (name, v) => ({ name, xAxis: Math.log10(Math.max(v, 0.1)) });
  show(which, 220, words, {
    grid: { left: 44, right: 20, top: 26, bottom: 28 },
    xAxis: { type: "value", min: edges[0], max: edges.at(-1), axisTick: { show: false },
      axisLine: lines(), splitLine: { show: false }, axisLabel: { ...axisText(),
        customValues: ticks.filter((t) => t >= edges[0] && t <= edges.at(-1)),
        formatter: (v) => span(Number((10 ** v).toPrecision(2)) * unit) } },
    yAxis: countAxis({ ...upTo(Math.max(...d.counts)), axisTick: { show: false } }),
    series: [{ ...whole(renderItem), markLine: { silent: true, symbol: "none",
      lineStyle: { color: colour("ink"), type: [3, 3], width: 1 }, label: { fontSize: 11,
        color: colour("muted"), formatter: (p) => p.name },
      data: d.count ? [mark("p50", d.p50), mark("p99", d.p99)] : [] } }],
  }, (c, pixel) => {
    if (!c.containPixel("grid", pixel)) return null;
    const [x] = c.convertFromPixel({ gridIndex: 0 }, pixel);
    const i = edges.findLastIndex((e) => e <= x);
    return i in d.counts ? titled(`${span(d.edges[i] * unit)} to ${
      span(d.edges[i + 1] * unit)}`, [["Migrations", count(d.counts[i])],
      ["Share", `${digits((100 * d.counts[i]) / Math.max(1, d.count))} %`]]) : null;
  });
}

// Of a sweep: what a combination is called, its two measures, and whether another beats it.
const called = (c) => c.settings.map((s) => `${s.path}=${s.value}`).join(" ") ||
  "the scenario";
const measure = (c, name) => c.statistics.find((s) => s.measure === name);
const makespan = (c) => measure(c, "makespanSeconds");
const downtime = (c) => measure(c, "downtimeP99Milliseconds");

// hasTime reports whether it is known of a combination how long it took: VMs left in some sample.
const hasTime = (c) => makespan(c).samples > 0;

// front returns which combinations no other beats in both, of those with a time in which the fewest VMs stayed.
function front(all) {
  let least = Infinity;
  const timed = all.filter(hasTime), stayed = (c) => measure(c, "stayed").mean;
  const fewest = Math.min(...timed.map(stayed)), list = timed.filter((c) => stayed(c) === fewest);
  const compare = (a, b) => makespan(a).p50 - makespan(b).p50 || downtime(a).p50 - downtime(b).p50;
  return list.toSorted(compare).filter((c) => downtime(c).p50 < least &&
    ((least = downtime(c).p50), true));
}

// combinationFacts is what is known of a combination.
const combinationFacts = (c) => [
  ["Took", hasTime(c) ? `${span(makespan(c).p50 * 1000)} (p10 ${span(makespan(c).p10 * 1000)}, p90 ${
    span(makespan(c).p90 * 1000)})` : "–"],
  ["p99 downtime", span(downtime(c).p50)],
  ["Failed", digits(measure(c, "failures").mean)], ["Stayed", digits(measure(c, "stayed").mean)],
  ["Samples", count(c.samples)], ["Violated", c.violated ? `in ${c.violated}` : ""]];

// round returns an axis from 0 in steps that people count times in.
function round(values) {
  const most = Math.max(1, ...values) * 1.08, parts = narrow() ? 3 : 6;
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
    900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((s) => s * 1000)];
  const step = steps.find((s) => most / s <= parts) ?? Math.ceil(most / parts / 864e5) * 864e5;
  return { min: 0, max: Math.ceil(most / step) * step, interval: step };
}

function drawSweep() {
  const list = doc.sweep.combinations.filter(hasTime), best = front(list);
  const point = (c) => [makespan(c).p50 * 1000, downtime(c).p50];
  const label = `${plural(list.length, "combination")} with a time, of which ${count(best.length)} ${
    best.length === 1 ? "is" : "are"} not beaten in both time and downtime by another in which as few VMs stayed.`;
  const dots = (part, tint, size) => ({ type: "scatter", symbolSize: size, silent: true,
    itemStyle: { color: tint, borderColor: colour("card"), borderWidth: 1.5 },
    data: part.map(point), clip: false });
  const axis = (name, gap, k) => ({ type: "value", name, nameLocation: "middle", nameGap: gap,
    nameTextStyle: { color: colour("muted") }, axisLabel: { ...axisText(), formatter: (v) =>
      (v ? span(v) : "0") }, axisTick: { show: false }, axisLine: { show: false },
    splitLine: { show: true, ...lines() }, ...round(list.map((c) => point(c)[k])) });
  show("sweep", 380, label, {
    grid: { left: 78, right: 28, top: 20, bottom: 52 },
    xAxis: axis("time it took (median of the samples)", 30, 0),
    yAxis: axis("p99 downtime (median of the samples)", 60, 1),
    series: [
      { type: "line", data: best.map(point), symbol: "none", silent: true,
        lineStyle: { color: colour("accent"), width: 1.5, type: [5, 4] } },
      dots(list.filter((c) => !best.includes(c)), colour("aborted"), 9),
      { ...dots(best, colour("accent"), 13), label: { show: !narrow() && best.length <= 12,
        color: colour("ink"), fontSize: 11, formatter: (p) => called(best[p.dataIndex]) },
      labelLayout: (p) => ({ hideOverlap: true, dy: -14, align: p.rect.x > $("sweep")
        .clientWidth / 2 ? "right" : "left" }) },
    ],
  }, (c, pixel) => {
    const near = list.map((one) => [Math.hypot(...c.convertToPixel({ gridIndex: 0 },
      point(one)).map((v, k) => v - pixel[k])), one]).sort((a, b) => a[0] - b[0])[0];
    return near && near[0] < 24 ? titled(called(near[1]), combinationFacts(near[1])) : null;
  });
}

// fanShown is the fan of the combination that is chosen.
const fanShown = () => doc.fans[Number($("fan-of").value)] ?? doc.fans[0];
const percentAt = (i, f) => (100 * i) / (f.p50.length - 1);

// drawFan draws by when which share of the migrations was complete.
function drawFan() {
  const f = fanShown();
  const line = (list) => list.map((s, i) => [s * 1000, percentAt(i, f)]).filter(([t]) => t >= 0);
  const [early, middle, late] = [f.p10, f.p50, f.p90].map(line);
  const after = (list) => (list.at(-1) < 0 ? "never" : `after ${span(list.at(-1) * 1000)}`);
  const label = `${plural(f.samples, "sample")}: complete ${after(f.p50)} in half of them, ${
    after(f.p90)} in nine of ten.`;
  $("fan-caption").textContent = label;
  const most = Math.max(...[early, middle, late].flat().map(([t]) => t));
  const band = (_, api) => {
    const points = [...early, ...late.toReversed()].map((p) => api.coord(p));
    return { type: "polygon", shape: { points }, silent: true,
      style: { fill: colour("accent"), opacity: 0.25 } };
  };
  show("fan", 300, label, {
    grid: { left: 56, right: 28, top: 16, bottom: 48 },
    xAxis: { type: "value", name: "time", nameLocation: "middle", nameGap: 28,
      nameTextStyle: { color: colour("muted") }, axisLine: lines(), axisTick: { show: false },
      axisLabel: { ...axisText(), formatter: (v) => clock(v) }, splitLine: { show: true, ...lines() },
      ...round([most]) },
    yAxis: countAxis({ max: 100, interval: 25, axisLabel: { ...axisText(), formatter: "{value} %" } }),
    series: [whole(band), { type: "line", data: middle, symbol: "none", silent: true,
      lineStyle: { color: colour("accent"), width: 2 } }],
  }, (c, pixel) => {
    if (!c.containPixel("grid", pixel)) return null;
    const [, share] = c.convertFromPixel({ gridIndex: 0 }, pixel);
    const i = Math.min(f.p50.length - 1, Math.max(0, Math.round((share / 100) * (f.p50.length - 1))));
    return titled(`${digits(percentAt(i, f))} % complete`, fanFacts(f, i));
  });
}

const when = (s) => (s < 0 ? "never" : clock(s * 1000));
const fanFacts = (f, i) => [["One sample of ten by", when(f.p10[i])], ["Half by", when(f.p50[i])],
  ["Nine of ten by", when(f.p90[i])]];
