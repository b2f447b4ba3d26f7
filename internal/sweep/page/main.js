// What the page says, in order, and what its controls do.

const result = doc.result;
const dark = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto", shown = [];

function lede() {
  const parts = [];
  const m = result?.migrations;
  if (m) {
    const strong = (text) => el("strong", {}, text);
    if (doc.down) parts.push(strong(doc.down === 1 ? `${result.down[0].vm.replace(/^default\//, "")
      } has been down for ${span(result.down[0].seconds * 1000)}. `
      : `${plural(doc.down, "VM")} are down at the end, the longest for ${span(Math.max(
        ...result.down.map((d) => d.seconds)) * 1000)}. `));
    parts.push(strong(m.succeeded === m.total ? `All ${plural(m.total, "migration")} succeeded`
      : `${count(m.succeeded)} of ${plural(m.total, "migration")} succeeded`));
    if (result.downtimeCount) parts.push(`; the longest downtime was ${span(
      result.downtimeMilliseconds.max)}`);
    parts.push(". ");
    if (doc.stayed) parts.push(strong(`${plural(doc.stayed, "VM")} stayed`),
      " on hosts that were drained. ");
    parts.push(doc.violated ? strong(`${plural(doc.violated, "invariant")} did not hold.`)
      : "Every invariant held.");
  }
  if (doc.sweep) {
    const { combinations, run, complete, worlds } = doc.sweep;
    const broken = combinations.reduce((sum, c) => sum + c.violated, 0);
    parts.push(el("strong", {}, `${plural(complete, "world")} simulated`),
      `: ${plural(doc.combinations, "combination")} of ${plural(run.samples, "sample")}. `,
      complete < worlds ? `${plural(worlds - complete, "world")} are missing. ` : "",
      broken ? el("strong", {}, `An invariant did not hold in ${plural(broken, "world")}.`)
        : "Every invariant held.");
  }
  return parts;
}

// drained returns when hosts were first drained and last left, null if no VM has left one; nothing when
// none was drained.
function drained() {
  const e = result.evacuations;
  if (!e.length) return null;
  const left = e.map((d) => d.lastLeftSeconds).filter((at) => at !== null);
  return [Math.min(...e.map((d) => d.startSeconds)), left.length ? Math.max(...left) : null];
}

// figures are of the result; each is {label, value, unit, note, exact}.
function figures() {
  const m = result.migrations, d = result.downtimeMilliseconds, when = drained();
  const b = result.brownout;
  const rest = m.total - m.succeeded - m.failed - m.aborted;
  const stays = when && when[1] === null; // no VM has left
  const took = stays ? 0 : when ? when[1] - when[0] : result.virtualSeconds;
  const bound = result.lowerBoundSeconds, stood = result.downtimeCount;
  const ratio = when && took >= bound ? `${digits(took / bound)} × the bound, ` : "bound ";
  return [
    { id: "took", label: when ? "Makespan" : "Simulated",
      value: stays ? "–" : span(took * 1000), exact: took, note: bound ? ratio + span(bound * 1000) : "" },
    { id: "succeeded", label: "Succeeded", value: count(m.succeeded), exact: m.succeeded,
      note: `of ${count(m.total)}` + (m.memoryLost ? `, ${m.memoryLost} lost memory` : "") },
    { id: "failed", label: "Failed", value: count(m.failed), exact: m.failed,
      note: [m.aborted && `${count(m.aborted)} aborted`, rest && `${count(rest)} unfinished`]
        .filter(Boolean).join(", ") },
    { id: "p50", label: "Downtime, median", value: stood ? span(d.p50) : "–", exact: d.p50,
      note: "" },
    { id: "p99", label: "Downtime, p99", value: stood ? span(d.p99) : "–", exact: d.p99,
      note: stood ? `max ${span(d.max)}` : "" },
    { id: "brownout", label: "Brownout, longest", value: b && span(b.maxSeconds * 1000),
      exact: b && b.maxSeconds, note: b && `up to ${b.maxPercent} % of CPU time taken, ` +
        plural(b.migrations, "migration") },
    { id: "bytes", label: "Moved", value: bytes(result.bytesTransferred),
      exact: result.bytesTransferred, note: result.bytesUnknown
        ? `and more: ${count(result.bytesUnknown)} unknown` : "" },
    { id: "outages", label: "Outages", value: minutes(result.outages.totalSeconds),
      exact: result.outages.totalSeconds, note: `the longest ${span(
        result.outages.longestSeconds * 1000)}` },
    { id: "stayed", label: "Stayed", value: count(doc.stayed), exact: doc.stayed,
      note: `on ${plural(new Set(result.evacuations.map((d) => d.host)).size, "drained host")}` },
  ].filter((f) => (when || f.id !== "stayed") && (b || f.id !== "brownout")
    && (result.outages.totalSeconds >= 1 || f.id !== "outages"));
}

function intro() {
  $("title").textContent = doc.scenario;
  const about = [doc.seed ? `seed ${doc.seed}` : "", result ? `${span(result.virtualSeconds *
    1000)} of virtual time` : "", doc.ending].filter(Boolean);
  $("kicker").textContent = about.join(" · ");
  $("lede").append(...lede());
  $("figures").hidden = !result;
  if (!result) return;
  $("figures").append(...figures().map((f) => {
    const [, number, unit] = f.value.match(/^([^a-zA-Z]*)(.*)$/);
    const compound = /[a-z].*\d/.test(f.value);
    return el("div", { id: `figure-${f.id}`, "data-exact": String(f.exact) },
      el("dt", {}, f.label), el("dd", {}, ...(compound ? [f.value]
        : [number, el("small", {}, unit)])), f.note ? el("dd", {}, f.note) : null);
  }));
  if (doc.violated) {
    const some = result.invariantViolations.slice(0, 20);
    $("alarms").append(el("div", { class: "alarm" }, el("strong", {}, plural(doc.violated,
      "invariant violation")), el("ul", {}, ...some.map((v) => el("li", {}, `${clock(
      v.atSeconds * 1000, true)} ${v.invariant}: ${v.detail}`)))));
  }
  if (!complete) {
    $("bounded").hidden = false;
    $("bounded").textContent = `This run is too large to be listed: the timeline shows groups ` +
      `of hosts, and ${count(listed)} of ${count(all.total)} migrations are listed: those that ` +
      `did not succeed, the longest, and an even choice of the others. Figures and charts ` +
      `count all of them; a filter counts those that are listed.`;
  }
}

const columns = [
  { label: "VM", sort: (i) => all.vm[i], button: true,
    cell: (i) => el("button", { type: "button", click: () => detail(i) }, all.vm[i]) },
  { label: "From", sort: (i) => nameOf(all.source[i]), cell: (i) => nameOf(all.source[i]) },
  { label: "To", sort: (i) => nameOf(all.target[i]), cell: (i) => nameOf(all.target[i]) },
  { label: "Outcome", sort: (i) => tone[i], cell: (i) => [swatch(tones[tone[i]].key), " ",
    tones[tone[i]].label] },
  { label: "Asked for", number: true, sort: (i) => all.created[i],
    cell: (i) => clock(all.created[i]) },
  { label: "Waited", number: true, sort: waited, cell: (i) => span(waited(i)) },
  { label: "Transfer", number: true, sort: took, cell: (i) => span(took(i)) },
  { label: "Downtime", number: true, sort: (i) => all.downtime[i],
    cell: (i) => span(all.downtime[i]) },
  { label: "Moved", number: true, sort: (i) => all.bytes[i],
    cell: (i) => sentBytes(i) || "–" },
  { label: "Why", wide: true, sort: (i) => all.reasons[all.why[i]],
    cell: (i) => all.reasons[all.why[i]] },
];

const svg = (tag, props) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  return e;
};

// track draws the time of one drain.
function track(e) {
  const end = e.emptySeconds ?? doc.to / 1000;
  const x = (s) => (100 * (s * 1000 - doc.from)) / Math.max(1, doc.to - doc.from);
  const box = svg("svg", { class: "track", viewBox: "0 0 100 6", preserveAspectRatio: "none",
    "aria-hidden": "true" });
  const from = Math.max(0, x(e.startSeconds));
  box.append(svg("rect", { width: 100, height: 6 }), svg("rect", { x: from, height: 6,
    width: Math.max(0.6, x(end) - from), class: e.left.length ? "never" : "run" }));
  return box;
}

function drains() {
  const list = result?.evacuations ?? [];
  $("drains-section").hidden = !list.length;
  const empty = (e) => (e.emptySeconds !== null ? span((e.emptySeconds - e.startSeconds) * 1000)
    : e.left.length ? "never" : "withdrawn");
  const first = list.slice(0, 500);
  $("drains").replaceChildren(table("Drains", [
    { label: "Host", cell: (e) => e.host },
    { label: "Drained at", number: true, cell: (e) => clock(e.startSeconds * 1000) },
    { label: "Empty after", number: true, cell: empty },
    { label: "Left", number: true, cell: (e) => count(e.left.length) },
    { label: "", cell: track }], first),
  list.length > first.length ? el("p", { class: "note" },
    `${count(list.length - first.length)} more are in the JSON.`) : "");
}

function stayed() {
  const left = (result?.evacuations ?? []).flatMap((e) => e.left.map((l) => ({ ...l,
    host: e.host })));
  $("left-section").hidden = !left.length;
  $("left-note").textContent = `${plural(doc.stayed, "VM")} on drained hosts, and every reason ` +
    `why.${left.length < doc.stayed ? ` The first ${count(left.length)} are listed.` : ""}`;
  $("left").replaceChildren(table("What stayed", [
    { label: "VM", cell: (l) => l.vm.replace(/^default\//, "") },
    { label: "On", cell: (l) => l.host },
    { label: "Why", wide: true, cell: (l) => (l.reasons ?? []).map((r) =>
      el("span", { class: "reason" }, `${r.check}: needs ${r.need}, has ${r.have}`)) }], left));
}

// sweep lists the combinations, and what sets them apart from the first.
function sweep() {
  if (!doc.sweep) return;
  const list = doc.sweep.combinations;
  const against = (c) => doc.sweep.comparisons.find((x) => list[x.combination] === c &&
    x.measure === "makespanSeconds");
  const difference = (x) => (!x ? "–" : x.verdict === "undecided" ? "no clear difference"
    : `${x.verdict === "lower" ? "−" : "+"}${span(Math.abs(x.meanDifference) * 1000)}`);
  const best = new Set(front(list));
  $("combinations").replaceChildren(table("Combinations", [
    { label: "Combination", wide: true, cell: called },
    { label: "Unbeaten", cell: (c) => (best.has(c) ? "yes" : "") },
    { label: "Took", number: true, cell: (c) => (makespan(c).samples ? span(makespan(c).p50 * 1000) : "–") },
    { label: "Than the first", number: true, cell: (c) => difference(against(c)) },
    { label: "p99 downtime", number: true, cell: (c) => span(downtime(c).p50) },
    { label: "Failed", number: true, cell: (c) => digits(measure(c, "failures").mean) },
    { label: "Stayed", number: true, cell: (c) => digits(measure(c, "stayed").mean) },
    { label: "Samples", number: true, cell: (c) => count(c.samples) },
    { label: "Violated", number: true, cell: (c) => count(c.violated) }], list),
  list.length < doc.combinations ? el("p", { class: "note" }, `The first ${
    count(list.length)} of ${plural(doc.combinations, "combination")} are shown.`) : "");
}

// minutes formats VM-minutes.
const minutes = (seconds) => `${digits(seconds / 60)} VM-min`;

// outages lists how long each VM that should run did not.
function outages() {
  const name = { label: "VM", cell: (o) => o.vm.replace(/^default\//, "") };
  const time = (label, key) => ({ label, number: true, cell: (o) => span(o[key] * 1000) });
  const out = result?.outagesByVM, swept = (doc.sweep?.combinations ?? []).filter((c) => c.outages);
  $("outages-section").hidden = !out && !swept.length;
  if (out) {
    $("outages-note").textContent = `${minutes(result.outages.totalSeconds)} in all, the longest ${
      span(result.outages.longestSeconds * 1000)}: how long VMs that should run did not.`;
    $("outages").replaceChildren(table("Outages", [name, time("Out for", "seconds"),
      { label: "At the end", cell: (o) => (o.down ? "down" : "runs") }],
    out.toSorted((a, b) => b.seconds - a.seconds).slice(0, 500)));
  }
  if (!swept.length) return;
  $("outages-note").textContent = "How long VMs that should run did not, over the samples.";
  $("outages").replaceChildren(...swept.slice(0, 20).flatMap((c) => {
    const all = measure(c, "outageSeconds");
    return [el("h3", {}, `${called(c)}: p50 ${minutes(all.p50)}, p99 ${minutes(all.p99)} a sample`),
      table(`Outages, ${called(c)}`, [name, { label: "Samples", number: true,
        cell: (o) => `${count(o.samples)} of ${count(c.samples)}` }, time("Mean", "meanSeconds"),
      time("p50", "p50Seconds"), time("p99", "p99Seconds"), time("Longest", "maxSeconds"),
      { label: "Down at the end", number: true, cell: (o) => count(o.down) }],
      c.outages.slice(0, 100))];
  }));
}

// valueOf formats a number of a measure with its unit.
const valueOf = (name, x) => (name.endsWith("Milliseconds") ? span(x) : name.endsWith("Seconds")
  ? span(x * 1000) : name === "bytesTransferred" ? bytes(x) : digits(x));

// ranges draws the ranges of both results in one scale: before above, after below.
function ranges(r) {
  const both = [r.before, r.after].filter(Boolean);
  const most = Math.max(1e-9, ...both.map((s) => s.p90));
  const box = svg("svg", { class: "track", viewBox: "0 0 100 10", preserveAspectRatio: "none",
    "aria-hidden": "true" });
  box.append(svg("rect", { width: 100, height: 10 }));
  [r.before, r.after].forEach((s, k) => s && box.append(svg("rect", { x: Math.max(0,
    (99 * s.p10) / most), y: 5 * k, height: 5, width: Math.max(1, (99 * (s.p90 - s.p10)) / most),
  class: k ? "run" : "was" })));
  return box;
}

// compared sets two results side by side.
function compared() {
  const both = doc.compared;
  $("compared-section").hidden = !both;
  if (!both) return;
  const { before, after, rows } = both, happened = before.samples > 1 && after.samples === 1;
  const said = (o) => `${o.name} (${plural(o.samples, "world")})`;
  $("compared-title").textContent = happened ? "Predicted and happened" : "Side by side";
  $("compared-note").textContent = `${happened ? "Predicted" : "Before"}: ${said(before)}. ${
    happened ? "Happened" : "Now"}: ${said(after)}.`;
  const side = (s, m) => (!s ? "unknown" : s.samples > 1 ? `${valueOf(m, s.p50)} (p10 ${valueOf(m,
    s.p10)}, p90 ${valueOf(m, s.p90)})` : valueOf(m, s.p50));
  $("compared").replaceChildren(table("Side by side", [
    { label: "Measure", cell: (r) => r.measure.replace(/(Seconds|Milliseconds|Transferred)$/, "") },
    { label: happened ? "Predicted" : "Before", number: true, cell: (r) => side(r.before, r.measure) },
    { label: happened ? "Happened" : "Now", number: true, cell: (r) => side(r.after, r.measure) },
    { label: "Verdict", cell: (r) => r.verdict }, { label: "", cell: ranges }], rows));
}

// The tables that say what charts show, made when somebody opens them.
const tables = {
  concurrency: () => table("Concurrency", [
    { label: "At", cell: (i) => clock(doc.from + i * doc.concurrency.step) },
    { label: "Moving", number: true, cell: (i) => doc.concurrency.moving[i] },
    { label: "Waiting", number: true, cell: (i) => doc.concurrency.waiting[i] }],
  [...doc.concurrency.moving.keys()]),
  links: () => table("Links", [{ label: "Link", cell: (l) => l.name },
    { label: "Speed", number: true, cell: (l) => `${digits((l.capacity * 8) / 1e9)} Gbit/s` },
    { label: "Carried", number: true, cell: (l) => bytes(l.bytes) },
    { label: "Busiest", number: true, cell: (l) => `${digits(Math.max(...l.use) / 10)} %` }],
  linksShown()),
  headroom: () => table("Headroom", [{ label: "Host", cell: (h) => h.name },
    { label: "Memory", number: true, cell: (h) => bytes(h.memory) },
    { label: "Least headroom", number: true, cell: (h) => free(h.least) },
    { label: "At", number: true, cell: (h) => clock(h.at) }], doc.headroom),
  fan: () => { const f = fanShown(); return table("Completion", [
    { label: "Complete", number: true, cell: (i) => `${digits(percentAt(i, f))} %` },
    { label: "p10", number: true, cell: (i) => when(f.p10[i]) },
    { label: "p50", number: true, cell: (i) => when(f.p50[i]) },
    { label: "p90", number: true, cell: (i) => when(f.p90[i]) }], [...f.p50.keys()]); },
  downtimes: () => bins("downtimes", 1), durations: () => bins("durations", 1000),
};

function bins(which, unit) {
  const d = distributionOf(which, shown);
  return table(which, [
    { label: "From", number: true, cell: (i) => span(d.edges[i] * unit) },
    { label: "To", number: true, cell: (i) => span(d.edges[i + 1] * unit) },
    { label: "Migrations", number: true, cell: (i) => count(d.counts[i]) }], [...d.counts.keys()]);
}

function fill(details) {
  details.querySelector(".scroll")?.remove();
  if (details.open && !details.closest("section").hidden) details.append(tables[details.dataset.table]());
}

const fillList = list($("list"), "Migrations", columns);

// draw draws all charts; what does not depend on the filter it leaves when only that changed.
function draw(filterOnly) {
  if (listed) drawTimeline(shown);
  if (doc.downtimes) drawSpread("downtimes", 1, colour("ok"), shown);
  if (doc.durations) drawSpread("durations", 1000, colour("post"), shown);
  if (doc.links?.length) drawLinks();
  for (const d of document.querySelectorAll("details[open]")) fill(d);
  if (filterOnly) return;
  if (listed) drawConcurrency();
  if (listed && doc.headroom) drawHeadroom();
  if (doc.fans) drawFan();
  if (doc.sweep) drawSweep();
}

// refilter brings all that the filter rules up to date.
function refilter() {
  select();
  draw(true);
}

function select() {
  shown = matching();
  $("count").textContent = filtered(shown) ? `${count(shown.length)} of ${count(listed)}`
    : plural(listed, "migration");
  fillList(shown);
}

function controls() {
  let due = 0;
  const soon = () => { clearTimeout(due); due = setTimeout(refilter, 60); };
  $("text").addEventListener("input", (e) => { filter.text = e.target.value; soon(); });
  $("host").append(el("option", { value: -1 }, "all"), ...[...hostNames.keys()]
    .sort((a, b) => natural(hostNames[a], hostNames[b]))
    .map((i) => el("option", { value: i }, hostNames[i])));
  $("host").addEventListener("change", (e) => { filter.host = Number(e.target.value);
    refilter(); });
  tones.forEach((t, k) => t.count && $("tones").append(el("label", { class: "chip",
    "data-tone": t.key }, el("input", { type: "checkbox", checked: "", "data-tone": k,
    change: (e) => { filter.tones[e.target.checked ? "add" : "delete"](k); refilter(); } }),
  swatch(t.key), t.label, el("small", {}, count(t.count)))));
  $("filter").addEventListener("submit", (e) => e.preventDefault());
  $("filter").addEventListener("reset", () => { Object.assign(filter, { text: "", host: -1,
    tones: new Set(tones.keys()) }); setTimeout(refilter); });
  $("rows").addEventListener("change", () => draw(true));
  $("kind").addEventListener("change", () => draw(true));
  (doc.fans ?? []).forEach((f, i) => $("fan-of").append(el("option", { value: i },
    called(doc.sweep.combinations[f.combination]))));
  $("fan-of").addEventListener("change", () => { drawFan(); draw(true); });
  document.querySelectorAll("[data-zoom]").forEach((b) => b.addEventListener("click",
    () => zoomBy(b.dataset.zoom)));
  document.querySelectorAll("details").forEach((d) => d.addEventListener("toggle",
    () => fill(d)));
  for (const [kind, label] of Object.entries(kinds)) {
    if (doc.links?.some((l) => l.kind === kind)) $("kind").append(el("option",
      { value: kind }, label));
  }
}

// paint applies the theme: the reader's own, until they choose.
function paint(forced) {
  const now = forced ?? (theme === "auto" ? (dark.matches ? "dark" : "light") : theme);
  document.documentElement.dataset.theme = now;
  document.documentElement.style.colorScheme = now;
  $("theme").querySelector("b").textContent = theme;
  draw(false);
}

function themes() {
  $("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme];
    paint();
  });
  dark.addEventListener("change", () => paint());
  addEventListener("beforeprint", () => paint("light"));
  addEventListener("afterprint", () => paint());
  let due = 0;
  addEventListener("resize", () => { clearTimeout(due); due = setTimeout(() => draw(false), 80); });
}

$("filter").hidden = $("timeline-section").hidden = $("list-section").hidden = !listed;
$("time-section").hidden = !listed;
$("links-figure").hidden = $("links-note").hidden = !doc.links?.length;
$("spread-section").hidden = !doc.downtimes && !doc.durations;
$("sweep-section").hidden = !doc.sweep;
$("headroom-section").hidden = !listed || !doc.headroom;
$("fan-section").hidden = !doc.fans;
for (const which of ["downtimes", "durations"]) {
  $(which).closest("figure").hidden = !doc[which];
}
if (doc.activity) {
  $("rows").closest("label").hidden = true;
  $("timeline-note").textContent = "How many migrations moved memory out of each group of " +
    "hosts: the stronger the colour, the more.";
}
$("ramp").append("idle", el("i"), "full");
intro();
controls();
drains();
stayed();
sweep();
outages();
compared();
themes();
select();
paint();
document.documentElement.dataset.ready = "";
