// A flame graph on a canvas. It draws what is seen and no more: nodes narrower than a pixel are
// drawn together, so the time of a frame depends on the screen, not on the graph.

import {packageOf, shortName} from "./graph.js";
import {format, share} from "./units.js";

const ROW = 20;
const FONT = "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const LEAST = 0.6; // of a pixel: narrower nodes are joined
const ZOOM_MS = 160;

function hueOf(text) {
  let hash = 7;
  for (let i = 0; i < text.length; i++) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  }
  return ((hash >>> 0) * 0.61803398875 * 360) % 360;
}

export class Flame {
  // flip: the root stands at the bottom. onSelect(node), onHover(node or -1), onZoom(node).
  constructor(box, {flip = false, onSelect, onZoom, onMenu, label}) {
    this.box = box;
    this.flip = flip;
    this.onSelect = onSelect ?? (() => {});
    this.onZoom = onZoom ?? (() => {});
    this.onMenu = onMenu ?? (() => {});
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.space = document.createElement("div");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    box.replaceChildren(this.canvas, this.space);
    document.body.append(this.tip);
    this.context = this.canvas.getContext("2d");
    this.graph = null;
    this.wanted = null;
    this.colours = [];
    this.zoomed = 0;
    this.hovered = -1;
    this.selected = -1;
    this.frame = 0;
    this.drawn = 0; // nodes of the last frame
    this.drawMs = 0;
    this.listen();
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("mousemove", (e) => this.hover(e));
    c.addEventListener("mouseleave", () => this.leave());
    c.addEventListener("click", (e) => this.click(e));
    c.addEventListener("contextmenu", (e) => {
      const node = this.at(e);
      if (node >= 0) {
        e.preventDefault();
        this.onMenu(node);
      }
    });
    c.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("scroll", () => this.ask());
    new ResizeObserver(() => this.ask()).observe(this.box);
  }

  show(graph) {
    this.graph = graph;
    this.wanted = null;
    this.selected = -1;
    this.hovered = -1;
    this.readTheme();
    this.zoomed = 0;
    this.from = 0;
    this.width = graph.n > 0 ? graph.total[0] : 1;
    this.showsRoot = true;
    this.ask();
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    this.isDark = style.getPropertyValue("--is-dark").trim() === "1";
    this.textColour = this.isDark ? "#f4f1ea" : "#1d1a16";
    this.lineColour = style.getPropertyValue("--surface").trim();
    this.restColour = style.getPropertyValue("--rest").trim();
    this.colours = new Array(this.graph === null ? 0 : this.graph.names.length);
  }

  themeChanged() {
    this.readTheme();
    this.ask();
  }

  mark(wanted) {
    this.wanted = wanted;
    this.ask();
  }

  colourOf(node) {
    const g = this.graph;
    if (g.isDiff) {
      return this.diffColour(node);
    }
    const name = g.name[node];
    if (this.colours[name] === undefined) {
      const text = g.names[name];
      if (text === "total" || text === "other") {
        this.colours[name] = this.restColour;
      } else {
        const hue = hueOf(packageOf(text)).toFixed(0);
        this.colours[name] = this.isDark ? `hsl(${hue} 38% 36%)` : `hsl(${hue} 62% 76%)`;
      }
    }
    return this.colours[name];
  }

  // Orange: more than before; blue: less.
  diffColour(node) {
    const g = this.graph;
    const before = g.left > 0 ? g.baseTotal[node] / g.left : 0;
    const after = g.right > 0 ? (g.total[node] - g.baseTotal[node]) / g.right : 0;
    const most = Math.max(before, after);
    const change = most > 0 ? (after - before) / most : 0;
    const strength = Math.round(Math.abs(change) * 75);
    const light = this.isDark ? 32 + Math.abs(change) * 12 : 86 - Math.abs(change) * 22;
    return `hsl(${change > 0 ? 18 : 212} ${strength}% ${light.toFixed(0)}%)`;
  }

  ask() {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame((now) => {
        this.frame = 0;
        this.draw(now);
      });
    }
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const rows = this.graph.levels * ROW;
    const w = this.box.clientWidth;
    const most = Math.max(160, Math.round(window.innerHeight * (this.flip ? 0.4 : 0.72)));
    const h = Math.min(rows, most);
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
      this.canvas.style.width = `${w}px`;
      this.canvas.style.height = `${h}px`;
      this.box.style.maxHeight = `${h}px`;
      this.space.style.height = `${Math.max(0, rows - h)}px`;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [w, h];
  }

  // The range of values that is seen now, on the way to the one that was asked for.
  step(now) {
    const node = this.zoomed;
    const g = this.graph;
    const from = g.x[node];
    const width = g.total[node] || 1;
    if (this.moveStart === undefined) {
      this.from = from;
      this.width = width;
      return;
    }
    const t = Math.min(1, Math.max(0, (now - this.moveStart) / ZOOM_MS));
    const eased = 1 - (1 - t) ** 3;
    this.from = this.moveFrom + (from - this.moveFrom) * eased;
    this.width = this.moveWidth + (width - this.moveWidth) * eased;
    if (t < 1) {
      this.ask();
    } else {
      this.moveStart = undefined;
    }
  }

  yOf(level) {
    const row = this.flip ? this.graph.levels - 1 - level : level;
    return row * ROW - this.box.scrollTop;
  }

  draw(now) {
    if (this.graph === null || this.graph.n === 0 || this.box.clientWidth === 0) {
      return;
    }
    const began = performance.now();
    const [w, h] = this.resize();
    if (this.showsRoot) {
      this.showsRoot = false;
      this.box.scrollTop = this.flip ? this.box.scrollHeight : 0;
    }
    this.step(now);
    const ctx = this.context;
    ctx.clearRect(0, 0, w, h);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    this.charWidth = ctx.measureText("mmmmmmmmmm").width / 10;
    this.drawn = 0;
    for (let level = 0; level < this.graph.levels; level++) {
      const y = this.yOf(level);
      if (y > -ROW && y < h) {
        this.drawLevel(level, y, w);
      }
    }
    this.drawMs = performance.now() - began;
  }

  drawLevel(level, y, w) {
    const g = this.graph;
    const scale = w / this.width;
    const end = g.starts[level + 1];
    const right = this.from + this.width;
    let joinedFrom = -1;
    let joinedTo = -1;
    for (let i = g.firstAfter(level, this.from); i < end && g.x[i] < right; i++) {
      const x0 = (g.x[i] - this.from) * scale;
      const wide = g.total[i] * scale;
      if (wide >= LEAST) {
        this.drawNode(i, Math.max(0, x0), Math.min(w, x0 + wide), y);
        this.drawn++;
        continue;
      }
      if (x0 > joinedTo + 1) {
        this.drawJoined(joinedFrom, joinedTo, y);
        joinedFrom = x0;
      }
      joinedTo = x0 + wide;
      // On to the first node that reaches the next half pixel.
      const next = g.firstAfter(level, this.from + (Math.max(x0, 0) + 0.5) / scale);
      i = Math.max(i, next - 1);
      this.drawn++;
    }
    this.drawJoined(joinedFrom, joinedTo, y);
  }

  drawJoined(from, to, y) {
    if (to >= from && from >= 0) {
      this.context.fillStyle = this.restColour;
      this.context.fillRect(from, y, Math.max(0.5, to - from), ROW - 1);
    }
  }

  drawNode(node, x0, x1, y) {
    const ctx = this.context;
    const g = this.graph;
    const isFaint = this.wanted !== null && this.wanted[g.name[node]] !== 1;
    ctx.globalAlpha = isFaint ? 0.28 : this.isAbove(node) ? 0.55 : 1;
    ctx.fillStyle = this.colourOf(node);
    const gap = x1 - x0 > 3 ? 1 : 0;
    ctx.fillRect(x0, y, x1 - x0 - gap, ROW - 1);
    if (node === this.hovered || node === this.selected) {
      ctx.globalAlpha = 1;
      ctx.strokeStyle = this.textColour;
      ctx.lineWidth = 1.5;
      ctx.strokeRect(x0 + 0.75, y + 0.75, Math.max(0.5, x1 - x0 - gap - 1.5), ROW - 2.5);
    }
    const chars = Math.floor((x1 - x0 - 8) / this.charWidth);
    if (chars >= 3) {
      ctx.globalAlpha = isFaint ? 0.5 : 1;
      ctx.fillStyle = this.textColour;
      ctx.fillText(this.textOf(node, chars), x0 + 4, y + ROW / 2);
    }
    ctx.globalAlpha = 1;
  }

  textOf(node, chars) {
    const g = this.graph;
    const name = g.names[g.name[node]];
    const short = name.length <= chars ? name : shortName(name);
    if (short.length > chars) {
      return `${short.slice(0, chars - 1)}…`;
    }
    const more = `  ${share(this.valueOf(node), this.valueOf(0))}`;
    return short.length + more.length <= chars ? short + more : short;
  }

  valueOf(node) {
    return this.graph.total[node];
  }

  // Returns true if a node is above the one that the graph is zoomed to.
  isAbove(node) {
    const g = this.graph;
    return node !== this.zoomed && g.x[node] <= g.x[this.zoomed] &&
      g.total[node] > g.total[this.zoomed] && node < this.zoomed;
  }

  // ---- mouse and touch

  at(event) {
    if (this.graph === null || this.graph.n === 0) {
      return -1;
    }
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + this.box.scrollTop) / ROW);
    const level = this.flip ? this.graph.levels - 1 - row : row;
    if (level < 0 || level >= this.graph.levels) {
      return -1;
    }
    const x = this.from + ((event.clientX - box.left) / box.width) * this.width;
    const node = this.graph.firstAfter(level, x);
    return node < this.graph.starts[level + 1] && this.graph.x[node] <= x ? node : -1;
  }

  hover(event) {
    const node = this.at(event);
    if (node !== this.hovered) {
      this.hovered = node;
      this.ask();
    }
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    if (node < 0) {
      this.tip.hidden = true;
      return;
    }
    this.fillTip(node);
    this.tip.hidden = false;
    const w = this.tip.offsetWidth;
    const h = this.tip.offsetHeight;
    const x = Math.min(event.clientX + 14, window.innerWidth - w - 8);
    const below = event.clientY + 18 + h < window.innerHeight;
    this.tip.style.left = `${Math.max(8, x)}px`;
    this.tip.style.top = `${below ? event.clientY + 18 : event.clientY - h - 10}px`;
  }

  fillTip(node) {
    const g = this.graph;
    const lines = [g.names[g.name[node]]];
    if (g.isDiff) {
      const after = g.total[node] - g.baseTotal[node];
      lines.push(`before ${format(g.baseTotal[node], g.unit)} (${share(g.baseTotal[node], g.left)})`);
      lines.push(`after ${format(after, g.unit)} (${share(after, g.right)})`);
    } else {
      lines.push(`total ${format(g.total[node], g.unit)} (${share(g.total[node], g.total[0])})`);
      lines.push(`self ${format(g.self[node], g.unit)} (${share(g.self[node], g.total[0])})`);
    }
    this.tip.replaceChildren(...lines.map((line, i) => {
      const el = document.createElement(i === 0 ? "b" : "div");
      el.textContent = line;
      return el;
    }));
  }

  leave() {
    this.hovered = -1;
    this.tip.hidden = true;
    this.ask();
  }

  click(event) {
    const node = this.at(event);
    if (node >= 0) {
      this.selected = node;
      this.onSelect(node);
      this.zoom(node);
    }
  }

  // ---- zoom and keys

  zoom(node) {
    if (node === this.zoomed) {
      return;
    }
    this.moveStart = performance.now();
    this.moveFrom = this.from;
    this.moveWidth = this.width;
    this.zoomed = node;
    this.onZoom(node);
    this.ask();
  }

  reset() {
    this.selected = -1;
    this.zoom(0);
    this.ask();
  }

  // The node that an arrow key leads to from one, or -1.
  neighbour(node, key) {
    const g = this.graph;
    const deeper = this.flip ? "ArrowUp" : "ArrowDown";
    if (node < 0) {
      return this.zoomed;
    }
    if (key === deeper) {
      let best = -1;
      for (let i = 0; i < g.children[node]; i++) {
        const child = g.child[node] + i;
        best = best < 0 || g.total[child] > g.total[best] ? child : best;
      }
      return best;
    }
    if (key === "ArrowUp" || key === "ArrowDown") {
      return g.parent[node];
    }
    const level = g.levelOf(node);
    const next = key === "ArrowLeft" ? node - 1 : node + 1;
    return next >= g.starts[level] && next < g.starts[level + 1] ? next : -1;
  }

  key(event) {
    if (this.graph === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key.startsWith("Arrow")) {
      const next = this.neighbour(this.selected, event.key);
      if (next >= 0) {
        this.select(next);
      }
    } else if (event.key === "Enter" && this.selected >= 0) {
      this.zoom(this.selected);
    } else if (event.key === "s" && this.selected >= 0) {
      this.onMenu(this.selected);
    } else if (event.key === "Escape" || event.key === "Backspace" || event.key === "0") {
      this.reset();
    } else {
      return;
    }
    event.preventDefault();
  }

  select(node) {
    this.selected = node;
    this.onSelect(node);
    const g = this.graph;
    if (g.x[node] < this.from || g.x[node] >= this.from + this.width) {
      this.zoom(g.parent[node] >= 0 ? g.parent[node] : 0);
    }
    const y = this.yOf(g.levelOf(node)) + this.box.scrollTop;
    if (y < this.box.scrollTop || y + ROW > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = y - this.box.clientHeight / 2;
    }
    this.ask();
  }
}
