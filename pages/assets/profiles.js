// The page of profiles: fetches what the form asks for, draws it, and keeps what is seen in the
// address.

import * as graphs from "./graph.js";
import {Flame} from "./flame.js";
import {Timeline} from "./timeline.js";
import {format, share} from "./units.js";
import "./theme.js";

const ROWS_MAX = 400;
const byId = (id) => document.getElementById(id);
const state = new URLSearchParams(location.search);

function remember(name, value) {
  if (value === "" || value === null) {
    state.delete(name);
  } else {
    state.set(name, value);
  }
  history.replaceState(null, "", `?${state}`);
}

function element(tag, text, className) {
  const el = document.createElement(tag);
  if (text !== undefined) {
    el.textContent = text;
  }
  if (className !== undefined) {
    el.className = className;
  }
  return el;
}

// The parts of a function's name between which lines may break: after "/" and ".", and before "(".
function breakable(name) {
  return name.split(/(?<=[/.])|(?=\()/).flatMap((part, i) => (i === 0 ? [part] : [element("wbr"), part]));
}

// The parameters of the form, as far as the server knows them.
function query(extra) {
  const q = new URLSearchParams();
  const known = ["service", "type", "from", "until", "labels", "compare", "base_service",
    "base_from", "base_until", "base_labels"];
  const form = new FormData(byId("ask"));
  for (const name of known) {
    const value = form.get(name);
    if (value !== null && value !== "") {
      q.set(name, value);
    }
  }
  for (const [name, value] of Object.entries(extra)) {
    q.set(name, value);
  }
  return q;
}

async function getJson(path, extra) {
  const answer = await fetch(`${path}?${query(extra)}`, {headers: {Accept: "application/json"}});
  if (!answer.ok) {
    const text = await answer.text();
    let message = text;
    try {
      message = JSON.parse(text).error ?? text;
    } catch {
      // A line of text.
    }
    throw new Error(message.trim());
  }
  return answer.json();
}

class Page {
  constructor() {
    this.graph = null;
    this.rows = [];
    this.sort = {column: "self", isUp: false};
    byId("workbench").hidden = false;
    byId("static").hidden = true;
    this.flame = new Flame(byId("flame"), {
      label: "Flame graph; arrow keys select, Enter zooms, s shows callers and callees",
      onSelect: (node) => this.describe(node),
      onZoom: (node) => remember("zoom", node > 0 ? graphs.pathHash(this.graph, node) : ""),
      onMenu: (node) => this.sandwich(this.graph.name[node]),
    });
    this.timeline = new Timeline(byId("timeline"), (a, b, isBase) => this.choose(a, b, isBase));
    this.listen();
    this.view(state.get("view") ?? (window.innerWidth < 900 ? "flame" : "both"));
  }

  listen() {
    byId("search").addEventListener("input", () => this.find(byId("search").value));
    byId("reset").addEventListener("click", () => this.reset());
    byId("unsandwich").addEventListener("click", () => this.sandwich(-1));
    byId("copy-link").addEventListener("click", () => this.copy("copy-link", this.exactLink()));
    byId("copy-pprof").addEventListener("click", () => this.copy("copy-pprof", this.command()));
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.view(button.dataset.view));
    }
    for (const button of document.querySelectorAll("[data-chooses]")) {
      button.addEventListener("click", () => this.chooses(button.dataset.chooses));
    }
    this.listenToDivider();
    document.addEventListener("themechange", () => {
      this.flame.themeChanged();
      this.timeline.draw();
      this.callers?.themeChanged();
      this.callees?.themeChanged();
    });
    document.addEventListener("keydown", (e) => this.key(e));
    byId("ask").addEventListener("change", (e) => {
      if (e.target.tagName === "SELECT") {
        byId("ask").requestSubmit();
      }
    });
  }

  // Dragging the edge of the table sets its width; so do the arrow keys on it. A double click resets it.
  listenToDivider() {
    const divider = byId("divider");
    const both = divider.closest(".both");
    const set = (pixels) => {
      const most = both.clientWidth - 200;
      const width = Math.round(Math.max(160, Math.min(most, pixels)));
      both.style.setProperty("--table", `${width}px`);
      divider.setAttribute("aria-valuenow", String(Math.round((100 * width) / both.clientWidth)));
      localStorage.setItem("tableWidth", String(width));
    };
    const kept = Number(localStorage.getItem("tableWidth"));
    if (kept > 0) {
      both.style.setProperty("--table", `${kept}px`);
    }
    divider.addEventListener("pointerdown", (e) => {
      e.preventDefault();
      divider.setPointerCapture(e.pointerId);
    });
    divider.addEventListener("pointermove", (e) => {
      if (divider.hasPointerCapture(e.pointerId)) {
        set(e.clientX - both.getBoundingClientRect().left);
      }
    });
    divider.addEventListener("dblclick", () => {
      both.style.removeProperty("--table");
      localStorage.removeItem("tableWidth");
    });
    divider.addEventListener("keydown", (e) => {
      const step = {ArrowLeft: -20, ArrowRight: 20}[e.key];
      if (step !== undefined) {
        e.preventDefault();
        e.stopPropagation();
        set(divider.parentElement.clientWidth + step);
      }
    });
  }

  key(event) {
    const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      byId("search").focus();
    } else if (event.key === "Escape") {
      if (isTyping) {
        event.target.blur();
      } else if (event.target.tagName !== "CANVAS") {
        this.reset();
      }
    }
  }

  view(kind) {
    byId("workbench").dataset.view = kind;
    for (const button of document.querySelectorAll("[data-view]")) {
      if (button.tagName === "BUTTON") {
        button.setAttribute("aria-pressed", String(button.dataset.view === kind));
      }
    }
    if (this.graph !== null) {
      remember("view", kind);
    }
  }

  async load() {
    // The page carries the data that it was made of.
    this.show(JSON.parse(byId("data").textContent));
    try {
      await this.loadTimeline();
    } catch (e) {
      byId("timeline").textContent = e.message;
    }
    document.documentElement.dataset.ready = "1";
  }

  note(text, isError) {
    byId("note").textContent = text;
    byId("note").classList.toggle("bad", isError === true);
  }

  show(data) {
    const began = performance.now();
    this.graph = graphs.decode(data);
    const g = this.graph;
    this.flame.show(g);
    this.rows = graphs.functions(g);
    this.sort.column = g.isDiff ? "change" : "self";
    byId("table").classList.toggle("diff", g.isDiff);
    this.describe(0);
    if (state.has("q")) {
      byId("search").value = state.get("q");
      this.find(state.get("q"));
    } else {
      this.fillTable();
    }
    this.restore();
    byId("flame").dataset.count = String(g.n);
    byId("flame").dataset.decodeMs = (performance.now() - began).toFixed(1);
  }

  restore() {
    if (state.has("zoom")) {
      this.flame.zoom(graphs.nodeOfHash(this.graph, state.get("zoom")));
    }
    if (state.has("fn")) {
      this.sandwich(this.graph.names.indexOf(state.get("fn")));
    }
  }

  describe(node) {
    const g = this.graph;
    if (g.isDiff) {
      const after = g.total[node] - g.baseTotal[node];
      this.note(`${g.names[g.name[node]]}: ${format(g.baseTotal[node], g.unit)} ` +
        `(${share(g.baseTotal[node], g.left)}) → ${format(after, g.unit)} (${share(after, g.right)})`);
    } else {
      this.note(`${g.names[g.name[node]]}: ${format(g.total[node], g.unit)} ` +
        `(${share(g.total[node], g.total[0])}), self ${format(g.self[node], g.unit)}`);
    }
  }

  // ---- search

  find(text) {
    remember("q", text);
    this.wanted = text === "" ? null : graphs.search(this.graph, text);
    this.flame.mark(this.wanted);
    this.fillTable();
    const out = byId("found");
    if (this.wanted === null) {
      out.textContent = "";
      return;
    }
    const g = this.graph;
    const sum = graphs.outermost(g, this.wanted).reduce((s, node) => s + g.total[node], 0);
    out.textContent = `${share(sum, g.total[0])} · ${format(sum, g.unit)}`;
  }

  reset() {
    byId("search").value = "";
    this.find("");
    this.flame.reset();
    this.sandwich(-1);
    this.describe(0);
  }

  // ---- callers and callees

  sandwich(name) {
    const g = this.graph;
    const isShown = name > 0;
    byId("sandwich").hidden = !isShown;
    byId("flame").hidden = isShown;
    remember("fn", isShown ? g.names[name] : "");
    if (!isShown) {
      this.flame.ask();
      return;
    }
    const wanted = new Uint8Array(g.names.length);
    wanted[name] = 1;
    const roots = graphs.outermost(g, wanted);
    this.callers ??= new Flame(byId("callers"), {
      label: "Callers", flip: true, onMenu: (n) => this.sandwich(this.callers.graph.name[n]),
    });
    this.callees ??= new Flame(byId("callees"), {
      label: "Callees", onMenu: (n) => this.sandwich(this.callees.graph.name[n]),
    });
    byId("sandwich-name").textContent = g.names[name];
    this.callers.show(graphs.callersOf(g, roots));
    this.callees.show(graphs.calleesOf(g, roots));
  }

  // ---- table

  fillTable() {
    const g = this.graph;
    const columns = g.isDiff ? [
      ["name", "Function"], ["before", "Before"], ["after", "After"], ["change", "Change"],
    ] : [["name", "Function"], ["self", "Self"], ["total", "Total"]];
    const rows = this.sorted();
    const shown = rows.slice(0, ROWS_MAX);
    const head = element("tr");
    for (const [column, text] of columns) {
      head.append(this.headCell(column, text));
    }
    byId("table").tHead.replaceChildren(head);
    byId("table").tBodies[0].replaceChildren(...shown.map((row) => this.row(row)));
    byId("rows").textContent = rows.length > shown.length ?
      `The first ${shown.length} of ${rows.length} functions; search narrows the list.` :
      `${rows.length} functions.`;
  }

  headCell(column, text) {
    const th = element("th");
    const button = element("button", text);
    button.type = "button";
    const isThis = this.sort.column === column;
    th.setAttribute("aria-sort", isThis ? (this.sort.isUp ? "ascending" : "descending") : "none");
    button.addEventListener("click", () => {
      this.sort = {column, isUp: isThis ? !this.sort.isUp : column === "name"};
      this.fillTable();
    });
    th.append(button);
    return th;
  }

  sorted() {
    const g = this.graph;
    const q = byId("search").value === "" ? null : this.wanted;
    const at = q === null ? null : new Set(g.names.filter((_, i) => q[i] === 1));
    const rows = at === null ? [...this.rows] : this.rows.filter((row) => at.has(row.name));
    const key = {
      name: (row) => row.name,
      self: (row) => row.self,
      total: (row) => row.total,
      before: (row) => row.baseTotal,
      after: (row) => row.total - row.baseTotal,
      change: (row) => Math.abs(this.changeOf(row)),
    }[this.sort.column];
    const sign = this.sort.isUp ? 1 : -1;
    return rows.sort((a, b) => {
      const x = key(a);
      const y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * sign;
    });
  }

  // The change of a function: its share after, less its share before.
  changeOf(row) {
    const g = this.graph;
    const before = g.left > 0 ? row.baseTotal / g.left : 0;
    const after = g.right > 0 ? (row.total - row.baseTotal) / g.right : 0;
    return after - before;
  }

  row(row) {
    const g = this.graph;
    const tr = element("tr");
    const name = element("td", undefined, "name");
    const button = element("button");
    button.append(...breakable(row.name));
    button.type = "button";
    button.title = `${row.name}: callers and callees`;
    button.addEventListener("click", () => this.sandwich(g.names.indexOf(row.name)));
    name.append(button);
    tr.append(name);
    if (g.isDiff) {
      const after = row.total - row.baseTotal;
      const change = this.changeOf(row) * 100;
      tr.append(this.cell(row.baseTotal, g.left), this.cell(after, g.right));
      const text = `${change > 0 ? "+" : ""}${change.toFixed(2)} %`;
      tr.append(element("td", text, change > 0 ? "num more" : change < 0 ? "num less" : "num"));
    } else {
      tr.append(this.cell(row.self, g.total[0]), this.cell(row.total, g.total[0]));
    }
    return tr;
  }

  cell(value, whole) {
    const td = element("td", undefined, "num bar");
    td.style.setProperty("--part", whole > 0 ? String(Math.min(1, value / whole)) : "0");
    td.append(element("span", format(value, this.graph.unit)), element("small", share(value, whole)));
    return td;
  }

  // ---- time

  async loadTimeline() {
    const own = byId("timeline").dataset;
    const data = await getJson("api/v1/timeline", {});
    const ranges = [{from: Number(own.from), until: Number(own.until), kind: "this"}];
    if (own.baseFrom !== undefined) {
      ranges.unshift({from: Number(own.baseFrom), until: Number(own.baseUntil), kind: "base"});
    }
    const isDiff = own.baseFrom !== undefined;
    this.timeline.show(data, isDiff ? ranges : [],
      isDiff ? "" : "Drag to choose a range");
  }

  chooses(what) {
    this.timeline.choosesBase = what === "base";
    for (const button of document.querySelectorAll("[data-chooses]")) {
      button.setAttribute("aria-pressed", String(button.dataset.chooses === what));
    }
  }

  choose(from, until, isBase) {
    const form = byId("ask");
    form.elements[isBase ? "base_from" : "from"].value = String(from);
    form.elements[isBase ? "base_until" : "until"].value = String(until);
    form.requestSubmit();
  }

  // ---- links

  // With instants in place of "now-1h", so that it shows the same tomorrow.
  exactLink() {
    const own = byId("timeline").dataset;
    const exact = new URLSearchParams(state);
    const form = byId("ask").elements;
    exact.set("service", form.service.value);
    exact.set("type", form.type.value);
    exact.set("from", own.from);
    exact.set("until", own.until);
    if (own.baseFrom !== undefined) {
      exact.set("base_from", own.baseFrom);
      exact.set("base_until", own.baseUntil);
    }
    return `${location.origin}${location.pathname}?${exact}`;
  }

  command() {
    const own = byId("timeline").dataset;
    const q = query({from: own.from, until: own.until});
    for (const name of [...q.keys()]) {
      if (name.startsWith("base_") || name === "compare") {
        q.delete(name);
      }
    }
    const here = new URL("api/v1/pprof", location.href);
    // No quote of the shell ends early: URLSearchParams writes it as %27.
    return `go tool pprof '${here.origin}${here.pathname}?${q}'`;
  }

  async copy(id, text) {
    const button = byId(id);
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without HTTPS there is no clipboard: show it to be copied by hand.
      byId("copied").hidden = false;
      byId("copied").value = text;
      byId("copied").select();
      return;
    }
    setTimeout(() => {
      button.textContent = before;
    }, 1200);
  }
}

if (byId("workbench") !== null) {
  const page = new Page();
  window.profpull = page; // for tests and the console
  page.load();
}
