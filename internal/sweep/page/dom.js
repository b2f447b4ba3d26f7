// Elements, tables, the tooltip and the details of one migration. Text is only ever set as
// text: no name becomes markup.

const $ = (id) => document.getElementById(id);

// el makes an element; a property that is a function listens.
function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") e.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(key, value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null));
  return e;
}

const swatch = (key) => el("span", { class: "swatch", "data-tone": key, "aria-hidden": "true" });

function facts(pairs) {
  return el("dl", { class: "facts" }, ...pairs.filter(([, v]) => v !== "" && v !== undefined)
    .flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
}

// titled is what a tooltip says: a title, maybe with a colour, and facts.
function titled(title, pairs, key) {
  return [el("p", { class: "facts-title" }, key ? swatch(key) : null, title), facts(pairs)];
}

// tip shows something beside the pointer; without content it hides.
function tip(content, at) {
  const box = $("tip");
  box.hidden = !content;
  if (!content) return;
  box.replaceChildren(...content);
  const { width, height } = box.getBoundingClientRect();
  const x = at.x + 16 + width > innerWidth - 8 ? at.x - 16 - width : at.x + 16;
  const y = Math.min(at.y + 16, innerHeight - height - 8);
  box.style.transform = `translate(${Math.max(8, x)}px, ${Math.max(8, y)}px)`;
}

// allOf lists all that is known of a migration.
function allOf(i) {
  const phases = ["pending", "scheduling", "scheduled", "preparing", "ready", "running"]
    .filter((p) => all[p][i] >= 0).map((p) => `${p} ${clock(all[p][i], true)}`);
  return [["From", nameOf(all.source[i])], ["To", nameOf(all.target[i])],
    ["Outcome", tones[tone[i]].label === "succeeded" || all.outcome[i] ? all.outcomes[
      all.outcome[i]] : `succeeded, ${tones[tone[i]].label}`],
    ["Mode", all.running[i] < 0 ? "" : all.modes[all.mode[i]]],
    ["Asked for", clock(all.created[i], true)],
    ["Phases", phases.join(", ")],
    ["Ended", all.ended[i] < 0 ? "not yet" : clock(all.ended[i], true)],
    ["Waited", span(waited(i))], ["Transfer", took(i) < 0 ? "" : span(took(i))],
    ["Downtime", all.downtime[i] < 0 ? "" : span(all.downtime[i])],
    ["Moved", sentBytes(i)],
    ["Why", all.reasons[all.why[i]]]];
}

const describe = (i) => titled(all.vm[i], allOf(i), tones[tone[i]].key);

// detail opens what is known of a migration; escape closes it.
function detail(i) {
  const box = $("detail");
  box.replaceChildren(el("h2", { id: "detail-title" }, all.vm[i]), facts(allOf(i)),
    el("form", { method: "dialog" }, el("button", {}, "Close")));
  box.showModal();
}

// table makes a table: columns are {label, number, value, sort, cell}; a cell is text or an
// element. What is wide scrolls by itself, also by keyboard.
function table(caption, columns, rows, sorting) {
  const head = columns.map((c) => {
    const sorted = sorting && sorting.by === c;
    const label = sorting && c.sort ? el("button", { type: "button",
      click: () => sorting.toggle(c) }, c.label, sorted ? (sorting.down ? " ↓" : " ↑") : "")
      : c.label;
    return el("th", { scope: "col", class: c.number ? "number" : null,
      "aria-sort": sorted ? (sorting.down ? "descending" : "ascending") : null }, label);
  });
  const cell = (c, r, k) => el(k ? "td" : "th", { scope: k ? null : "row",
    class: c.number ? "number" : c.wide ? "text" : null }, ...[c.cell(r)].flat());
  const body = rows.map((r) => el("tr", {}, ...columns.map((c, k) =>
    cell(c, r, k || c.button ? 1 : 0))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { "aria-label": caption }, el("thead", {}, el("tr", {}, ...head)),
      el("tbody", {}, ...body)));
}

// list is a table that shows fifty rows at a time, sorted by any column.
function list(box, caption, columns) {
  const state = { rows: [], page: 0, by: columns[0], down: false, toggle(c) {
    state.down = state.by === c && !state.down;
    state.by = c;
    order();
    draw(`th[aria-sort] button`);
  } };
  const size = 50;
  function order() {
    const { by, down } = state;
    const value = new Map(state.rows.map((r) => [r, by.sort(r)]));
    const compare = (a, b) => (typeof a === "string" ? natural(a, b) : a - b);
    state.rows.sort((a, b) => (down ? -1 : 1) * compare(value.get(a), value.get(b)) || a - b);
    state.page = 0;
  }
  function draw(focus) {
    const pages = Math.max(1, Math.ceil(state.rows.length / size));
    const turn = (by) => () => { state.page += by; draw(by < 0 ? ".back" : ".on"); };
    const rows = state.rows.slice(state.page * size, (state.page + 1) * size);
    box.replaceChildren(table(caption, columns, rows, state), pages < 2 ? "" : el("div",
      { class: "pages" },
      el("button", { type: "button", class: "back", click: turn(-1),
        disabled: state.page === 0 ? "" : null }, "← Back"),
      el("span", { "aria-live": "polite" }, `Page ${state.page + 1} of ${count(pages)}`),
      el("button", { type: "button", class: "on", click: turn(1),
        disabled: state.page === pages - 1 ? "" : null }, "On →")));
    if (focus) box.querySelector(focus)?.focus();
  }
  return (rows) => { state.rows = rows.slice(); order(); draw(); };
}
