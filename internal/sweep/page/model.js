// The document, what is derived from it, and the filter. Nothing here touches the page.

const doc = JSON.parse(document.getElementById("document").textContent);
const all = doc.migrations || { vm: [], total: 0, outcomes: [], modes: [], reasons: [""] };
const listed = all.vm.length;
const complete = listed === all.total;
const hostNames = doc.hosts || [];

// A tone is what a migration looks like: its outcome, and its mode if it succeeded.
const tones = [
  ["ok", "succeeded"], ["paused", "paused copy"], ["post", "post-copy"],
  ["lost", "memory lost"], ["failed", "failed"], ["aborted", "aborted"],
  ["open", "unfinished"],
].map(([key, label]) => ({ key, label, count: 0 }));
const toneOfOutcome = [0, 3, 4, 5, 6];
const tone = Uint8Array.from({ length: listed }, (_, i) =>
  all.outcome[i] === 0 ? all.mode[i] : toneOfOutcome[all.outcome[i]]);
for (const t of tone) tones[t].count++;

const nameOf = (host) => (host < 0 ? "–" : hostNames[host]);
const startOf = (i) => (all.scheduling[i] >= 0 ? all.scheduling[i] : all.created[i]);
const over = (i) => (all.ended[i] < 0 ? doc.to : all.ended[i]);
const took = (i) => (all.running[i] < 0 ? -1 : over(i) - all.running[i]);
const waited = (i) => (all.running[i] < 0 ? over(i) : all.running[i]) - all.created[i];

// What text is sought in, made once.
const sought = Array.from({ length: listed }, (_, i) => [all.vm[i], nameOf(all.source[i]),
  nameOf(all.target[i]), all.reasons[all.why[i]]].join("\n").toLowerCase());

const filter = { text: "", host: -1, tones: new Set(tones.keys()) };

// matching lists the migrations that the filter shows.
function matching() {
  const text = filter.text.trim().toLowerCase();
  const shown = [];
  for (let i = 0; i < listed; i++) {
    if (!filter.tones.has(tone[i])) continue;
    if (filter.host >= 0 && all.source[i] !== filter.host && all.target[i] !== filter.host) {
      continue;
    }
    if (text && !sought[i].includes(text)) continue;
    shown.push(i);
  }
  return shown;
}

const filtered = (shown) => shown.length < listed;

// quantile is the smallest value that at least a share q of the sorted do not exceed.
const quantile = (sorted, q) =>
  sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];

// spread sums up values in the bins of a distribution.
function spread(base, values) {
  const sorted = Float64Array.from(values).sort();
  const counts = base.counts.map(() => 0);
  const first = Math.round(10 * Math.log10(base.edges[0]));
  for (const v of sorted) {
    counts[Math.floor(10 * Math.log10(Math.max(v, 0.1)) + 1e-9) - first]++;
  }
  return { count: sorted.length, edges: base.edges, counts, p50: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) };
}

// distributionOf returns a distribution of what is shown. Without a filter it is the
// document's own, which counts also what is not listed.
function distributionOf(which, shown) {
  const base = doc[which];
  if (!base || !filtered(shown)) return base;
  const value = which === "downtimes" ? (i) => all.downtime[i]
    : (i) => (all.outcome[i] <= 1 && all.running[i] >= 0 ? took(i) / 1000 : -1);
  return spread(base, shown.map(value).filter((v) => v >= 0));
}

// The formats. Numbers are those of the document, rounded for people only here.
const two = (n) => String(n).padStart(2, "0");
const count = (n) => Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
// digits rounds to three, and never what is left of the point.
const digits = (n) => (Math.abs(n) >= 100 ? count(n) : Number(n.toPrecision(3)).toString());

// clock formats a moment as the trace does, without milliseconds where they say nothing.
function clock(ms, fine) {
  const s = Math.floor(ms / 1000), h = Math.floor(s / 3600);
  const text = `${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return (h ? `${h}:${text}` : text) + (fine ? `.${String(ms % 1000).padStart(3, "0")}` : "");
}

// span formats a time that passed: two units at most, as the command's tables do.
function span(ms) {
  if (ms < 0) return "–";
  if (ms < 1000) return `${digits(ms)}\u00a0ms`;
  const s = ms / 1000;
  if (s < 60) return `${digits(s)}\u00a0s`;
  const whole = Math.floor(s), h = Math.floor(whole / 3600);
  if (!h) return `${Math.floor(whole / 60)}\u00a0min\u00a0${two(whole % 60)}\u00a0s`;
  return `${h}\u00a0h\u00a0${two(Math.floor(whole / 60) % 60)}\u00a0min`;
}

// sentBytes formats what a migration has sent.
const sentBytes = (i) => (all.bytes[i] < 0 ? "unknown" : all.bytes[i] ? bytes(all.bytes[i]) : "");

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let u = 0;
  for (; n >= 1024 && u < units.length - 1; u++) n /= 1024;
  return `${u ? digits(n) : n}\u00a0${units[u]}`;
}

const natural = new Intl.Collator("en", { numeric: true }).compare;

// packed puts the migrations that are shown on lanes, by host: rows of
// {name, lanes, items: [[migration, lane], …] by time}.
function packed(shown, side) {
  const rows = new Map();
  for (const i of shown) {
    const host = all[side][i];
    if (!rows.has(host)) rows.set(host, { name: nameOf(host), items: [], free: [] });
    rows.get(host).items.push(i);
  }
  for (const row of rows.values()) {
    row.items.sort((a, b) => startOf(a) - startOf(b) || a - b);
    row.items = row.items.map((i) => {
      let lane = row.free.findIndex((until) => until <= startOf(i));
      if (lane < 0) lane = row.free.length;
      row.free[lane] = Math.max(over(i), startOf(i));
      return [i, lane];
    });
    row.lanes = row.free.length;
  }
  return [...rows.values()].sort((a, b) => natural(a.name, b.name));
}
