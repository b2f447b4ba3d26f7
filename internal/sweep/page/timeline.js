// The timeline: one row for each host, as many lanes in it as migrations were under way
// at once. All of it is a few shapes, one for each colour, however many migrations there
// are; what would be narrower than a pixel is drawn together.

let rows = []; // what the timeline shows now; each drawing keeps its own

// collect adds the bars of a row to the shapes of each tone: pale ones before memory moves.
function collect(row, band, x, area, shapes) {
  const height = band.height / row.lanes, gap = height > 4 ? 1 : 0;
  const right = area.x + area.width, last = new Map(); // where each lane was drawn last
  const push = (list, lane, a, b) => {
    const from = Math.max(area.x, a), to = Math.min(right, Math.max(b, a + 1));
    if (to <= from) return;
    const before = last.get(list)?.[lane];
    if (to - from < 1.5 && before !== undefined && from - list[before] - list[before + 2] < 0.6) {
      list[before + 2] = to - list[before]; // too narrow to be told from its neighbour
      return;
    }
    if (!last.has(list)) last.set(list, []);
    last.get(list)[lane] = list.length;
    list.push(from, band.top + lane * height + gap / 2, to - from, Math.max(0.8, height - gap));
  };
  for (const [i, lane] of row.items) {
    const run = all.running[i], a = x(startOf(i)), b = x(over(i));
    if (b < area.x || a > right) continue;
    const middle = run < 0 ? b : x(run);
    if (middle - a > 0.5) push(shapes.pale[tone[i]], lane, a, middle);
    if (run >= 0) push(shapes.solid[tone[i]], lane, middle, b - (b - middle > 4 ? 1 : 0));
  }
}

// banded returns where a row is, from the room that each has.
const banded = (full, middle) => {
  const height = full * (full > 8 ? 0.78 : 1);
  return { top: middle - height / 2, height };
};

function drawTimeline(shown) {
  if (doc.activity) return drawActivity();
  const now = rows = packed(shown, $("rows").value);
  const tints = tones.map((t) => colour(t.key));
  const lanes = rows.reduce((sum, r) => sum + r.lanes, 0);
  const height = Math.min(640, Math.max(rows.length * 24, lanes * 15, 56)) + 62;
  const renderItem = (params, api) => {
    const { coordSys: area } = params, full = api.size([0, 1])[1];
    const x0 = api.coord([doc.from, 0])[0];
    const scale = (api.coord([doc.to, 0])[0] - x0) / (doc.to - doc.from);
    const shapes = { solid: tones.map(() => []), pale: tones.map(() => []) };
    now.forEach((row, r) => {
      const middle = api.coord([doc.from, r])[1];
      if (middle + full < area.y || middle - full > area.y + area.height) return;
      collect(row, banded(full, middle), (t) => x0 + (t - doc.from) * scale, area, shapes);
    });
    return { type: "group", children: tones.flatMap((_, k) => [
      bars(shapes.pale[k], tints[k], 0.35), bars(shapes.solid[k], tints[k])]).filter(seen) };
  };
  timelineOption(height, `${plural(shown.length, "migration")} of ${
    plural(rows.length, "host")}, from ${clock(doc.from)} to ${clock(doc.to)}. The table of ` +
    "migrations below says the same in words.", rows.map((r) => r.name), renderItem);
}

// drawActivity draws how many migrations there were where they are too many to be listed.
function drawActivity() {
  rows = doc.activity;
  const most = Math.max(...rows.flatMap((r) => r.moving));
  const tints = ramp();
  const renderItem = (params, api) => cells(rows.map((r) => r.moving.map((v) =>
    (levels * v) / most)), tints, params, api);
  timelineOption(Math.min(640, rows.length * 14) + 62, `How many migrations moved memory out ` +
    `of each group of hosts, at most ${digits(most)} at once.`, rows.map((r) => r.name),
  renderItem);
}

function timelineOption(height, label, names, renderItem) {
  show("timeline", height, label, {
    grid: { left: left(), right: right(), top: 8, bottom: 52 }, xAxis: timeAxis(),
    yAxis: hostAxis(names, height - 60), dataZoom: zooms(true, names.length),
    series: [whole(renderItem)],
  }, (c, pixel) => {
    const hit = under(c, pixel);
    return typeof hit === "number" ? describe(hit) : hit;
  });
  charts.get("timeline").named = names.length / (height - 60);
}

if (!doc.activity) clicks.timeline = (c, pixel) => {
  const hit = under(c, pixel);
  if (hit !== null) detail(hit);
};

// under returns the migration under a pixel, or what is to be said of a group of hosts.
function under(c, pixel) {
  const p = at(c, pixel);
  const r = p ? Math.round(p.row) : -1, row = rows[r];
  if (!row) return null;
  if (doc.activity) {
    return titled(row.name, [["At", clock(p.time)], ["Moving", digits(row.moving[p.bucket])]]);
  }
  const [, middle] = c.convertToPixel({ gridIndex: 0 }, [doc.from, r]);
  const next = c.convertToPixel({ gridIndex: 0 }, [doc.from, r ? r - 1 : r + 1])[1];
  const full = rows.length > 1 ? Math.abs(next - middle) : $("timeline").clientHeight - 60;
  const band = banded(full, middle);
  const lane = Math.floor(((pixel[1] - band.top) / band.height) * row.lanes);
  const [before] = c.convertFromPixel({ gridIndex: 0 }, [pixel[0] - 2, pixel[1]]);
  const slack = p.time - before;
  let best = null, distance = slack;
  for (const [i, where] of row.items) {
    if (where !== lane) continue;
    const off = Math.max(startOf(i) - p.time, p.time - over(i), 0);
    if (off <= distance) [best, distance] = [i, off];
  }
  return best;
}
