// Cores, bytes or objects over time as bars, and lines where a version came. Dragging chooses a range; arrow keys move it by half of its length.

import {axisEnd, formatRate} from "./units.js";

const HEIGHT = 118;
const HEAD = 16;
const FOOT = 18;

function clock(ms, spanMs) {
  const d = new Date(ms);
  const two = (n) => String(n).padStart(2, "0");
  const time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (spanMs > 36 * 3600e3) {
    return `${d.getMonth() + 1}-${two(d.getDate())} ${time}`;
  }
  return spanMs < 600e3 ? `${time}:${two(d.getSeconds())}` : time;
}

export class Timeline {
  // onChoose(fromMs, untilMs, isBase)
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label",
        "Totals over time; drag to choose a time range, arrow keys move it");
    this.canvas.tabIndex = 0;
    this.note = document.createElement("output");
    box.replaceChildren(this.canvas, this.note);
    this.context = this.canvas.getContext("2d");
    this.data = null;
    this.ranges = [];
    this.drag = null;
    this.choosesBase = false;
    this.listen();
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => {
      c.setPointerCapture(e.pointerId);
      this.drag = {from: this.timeAt(e), to: this.timeAt(e), isBase: e.shiftKey || this.choosesBase};
    });
    c.addEventListener("pointermove", (e) => {
      if (this.drag !== null) {
        this.drag.to = this.timeAt(e);
        this.draw();
      }
      this.tell(this.timeAt(e));
    });
    c.addEventListener("pointerup", () => this.drop());
    c.addEventListener("pointercancel", () => {
      this.drag = null;
      this.draw();
    });
    c.addEventListener("pointerleave", () => {
      this.note.textContent = this.hint;
    });
    c.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  key(event) {
    const steps = {ArrowLeft: -0.5, ArrowRight: 0.5};
    if (this.data === null || !Object.hasOwn(steps, event.key) || event.altKey || event.ctrlKey ||
        event.metaKey) {
      return;
    }
    event.preventDefault();
    const range = this.ranges.find((r) => (r.kind === "base") === this.choosesBase) ?? this.data;
    const by = Math.round((range.until - range.from) * steps[event.key]);
    this.onChoose(range.from + by, range.until + by, this.choosesBase);
  }

  drop() {
    const d = this.drag;
    this.drag = null;
    if (d === null || this.data === null) {
      return;
    }
    const from = Math.min(d.from, d.to);
    const to = Math.max(d.from, d.to);
    if (to - from >= this.data.stepMs / 2) {
      this.onChoose(Math.floor(from), Math.ceil(to), d.isBase);
    }
    this.draw();
  }

  // data: {from, until, stepMs, rateUnit, rates: [[ms, value]], versions: [{timeMs, version}]}; ranges: [{from, until, kind}]
  show(data, ranges, hint) {
    this.data = data;
    this.ranges = ranges;
    this.hint = hint;
    this.note.textContent = hint;
    this.end = axisEnd(data.rates.reduce((most, p) => Math.max(most, p[1]), 0), data.rateUnit);
    this.draw();
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return this.data === null ? 0 : this.data.from + part * (this.data.until - this.data.from);
  }

  tell(ms) {
    if (this.data === null) {
      return;
    }
    const near = this.data.rates.find((p) => ms <= p[0] && ms > p[0] - this.data.stepMs);
    const at = new Date(ms).toLocaleString();
    this.note.textContent = near === undefined ? `${at} · no profile` :
      `${at} · ${formatRate(near[1], this.data.rateUnit)}`;
  }

  draw() {
    const w = this.box.clientWidth;
    if (this.data === null || w === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${HEIGHT}px`;
    const ctx = this.context;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const {from, until, stepMs, rates} = this.data;
    const x = (ms) => ((ms - from) / (until - from)) * w;
    const floor = HEIGHT - FOOT;
    for (const range of this.ranges) {
      ctx.fillStyle = colour(range.kind === "base" ? "--base-soft" : "--accent-soft");
      ctx.fillRect(x(range.from), 0, Math.max(2, x(range.until) - x(range.from)), floor);
    }
    ctx.fillStyle = colour("--accent");
    const wide = Math.max(1, (stepMs / (until - from)) * w - 1);
    for (const [ms, value] of rates) {
      const high = (value / this.end) * (floor - HEAD);
      ctx.fillRect(x(ms) - wide, floor - Math.max(1, high), wide, Math.max(1, high));
    }
    ctx.fillStyle = colour("--line");
    ctx.fillRect(0, floor, w, 1);
    this.drawClock(x, colour, w);
    this.drawAxis(colour, w, floor);
    this.drawVersions(x, colour, w, floor);
    if (this.drag !== null) {
      const a = x(Math.min(this.drag.from, this.drag.to));
      const b = x(Math.max(this.drag.from, this.drag.to));
      ctx.fillStyle = colour(this.drag.isBase ? "--base-soft" : "--accent-soft");
      ctx.fillRect(a, 0, b - a, floor);
      ctx.fillStyle = colour(this.drag.isBase ? "--base" : "--accent");
      ctx.fillRect(a, 0, 1, floor);
      ctx.fillRect(b, 0, 1, floor);
    }
  }

  // Lines at the end of the axis and at its half, each with its value.
  drawAxis(colour, w, floor) {
    const ctx = this.context;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "bottom";
    for (const part of [1, 0.5]) {
      const y = Math.round(floor - part * (floor - HEAD));
      const text = formatRate(this.end * part, this.data.rateUnit);
      ctx.fillStyle = colour("--line");
      ctx.fillRect(0, y, w, 1);
      ctx.fillStyle = colour("--surface");
      ctx.globalAlpha = 0.8;
      ctx.fillRect(0, y - 14, ctx.measureText(text).width + 6, 14);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour("--muted");
      ctx.fillText(text, 2, y - 1);
    }
  }

  // A line where the first profile of a version came, with its name if there is room.
  drawVersions(x, colour, w, floor) {
    const ctx = this.context;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "top";
    let free = Number.NEGATIVE_INFINITY;
    for (const {timeMs, version} of this.data.versions) {
      const at = Math.round(x(timeMs));
      ctx.fillStyle = colour("--base");
      ctx.fillRect(at, 0, 2, floor);
      const text = version.length > 24 ? `${version.slice(0, 23)}…` : version;
      const wide = ctx.measureText(text).width;
      const left = Math.max(0, at + 5 + wide > w ? at - 4 - wide : at + 5);
      if (left > free) {
        ctx.fillText(text, left, 2);
        free = left + wide + 8;
      }
    }
  }

  drawClock(x, colour, w) {
    const ctx = this.context;
    const {from, until} = this.data;
    ctx.fillStyle = colour("--muted");
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const n = Math.max(2, Math.floor(w / 130));
    for (let i = 0; i <= n; i++) {
      const ms = from + ((until - from) * i) / n;
      ctx.textAlign = i === 0 ? "left" : i === n ? "right" : "center";
      ctx.fillText(clock(ms, until - from), x(ms), HEIGHT - FOOT / 2 + 1);
    }
    ctx.textAlign = "left";
  }
}
