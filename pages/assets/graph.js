// Graphs of stacks as flat arrays: read from the levels that the server sends, searched, summed and
// turned around. Nothing here touches the page.

// Nodes stand level by level, each level from left to right; a level i has the nodes from starts[i]
// to starts[i + 1] - 1. The children of a node stand next to each other.
export class Graph {
  constructor(names, levels, n, isDiff) {
    this.names = names;
    this.n = n;
    this.isDiff = isDiff;
    this.starts = new Int32Array(levels + 1);
    this.x = new Float64Array(n);
    this.total = new Float64Array(n);
    this.self = new Float64Array(n);
    this.name = new Int32Array(n);
    this.parent = new Int32Array(n).fill(-1);
    this.child = new Int32Array(n).fill(-1); // the first one
    this.children = new Int32Array(n);
    // The parts of the sums that are from the baseline, for a difference.
    this.baseTotal = isDiff ? new Float64Array(n) : null;
    this.baseSelf = isDiff ? new Float64Array(n) : null;
    this.left = 0;
    this.right = 0;
    this.unit = "";
  }

  get levels() {
    return this.starts.length - 1;
  }

  levelOf(node) {
    let low = 0;
    let high = this.levels;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= node) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // The first node of a level that ends after x.
  firstAfter(level, x) {
    let low = this.starts[level];
    let high = this.starts[level + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] + this.total[middle] > x) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // The names from the root to a node.
  path(node) {
    const path = [];
    for (let i = node; i >= 0; i = this.parent[i]) {
      path.push(this.names[this.name[i]]);
    }
    return path.reverse();
  }
}

function linkLevel(g, level) {
  if (level === 0) {
    return;
  }
  let parent = g.starts[level - 1];
  const end = g.starts[level];
  for (let i = g.starts[level]; i < g.starts[level + 1]; i++) {
    while (parent + 1 < end && g.x[i] >= g.x[parent] + g.total[parent]) {
      parent++;
    }
    g.parent[i] = parent;
    if (g.child[parent] < 0) {
      g.child[parent] = i;
    }
    g.children[parent]++;
  }
}

// Reads an answer of /api/v1/flamegraph.
export function decode(data) {
  const width = data.diff ? 7 : 4;
  const n = data.levels.reduce((sum, level) => sum + level.length / width, 0);
  const g = new Graph(data.names, data.levels.length, n, data.diff);
  g.left = data.left;
  g.right = data.right;
  g.unit = data.unit;
  let at = 0;
  data.levels.forEach((level, depth) => {
    g.starts[depth] = at;
    let x = 0;
    for (let i = 0; i < level.length; i += width, at++) {
      if (data.diff) {
        x += level[i] + level[i + 3];
        g.baseTotal[at] = level[i + 1];
        g.baseSelf[at] = level[i + 2];
        g.total[at] = level[i + 1] + level[i + 4];
        g.self[at] = level[i + 2] + level[i + 5];
      } else {
        x += level[i];
        g.total[at] = level[i + 1];
        g.self[at] = level[i + 2];
      }
      g.x[at] = x;
      g.name[at] = level[i + width - 1];
      x += g.total[at];
    }
    g.starts[depth + 1] = at;
    linkLevel(g, depth);
  });
  return g;
}

// A package, class or file: what functions of one place have in common.
export function packageOf(name) {
  const slash = name.lastIndexOf("/");
  const colons = name.indexOf("::", slash + 1);
  if (colons > 0) {
    return name.slice(0, colons);
  }
  const dot = name.indexOf(".", slash + 1);
  return dot > 0 ? name.slice(0, dot) : name;
}

export function shortName(name) {
  const bracket = name.indexOf("[");
  const slash = name.lastIndexOf("/", bracket > 0 ? bracket : name.length);
  return slash >= 0 ? name.slice(slash + 1) : name;
}

// The nodes of some names that have no node of these names above them, so that sums count no
// recursion twice.
export function outermost(g, isWanted) {
  const inside = new Uint8Array(g.n);
  const found = [];
  for (let i = 0; i < g.n; i++) {
    const parent = g.parent[i];
    inside[i] = parent >= 0 ? inside[parent] : 0;
    if (isWanted[g.name[i]] === 1) {
      if (inside[i] === 0) {
        found.push(i);
      }
      inside[i] = 1;
    }
  }
  return found;
}

// Finds the names that contain a text, or match a regular expression written as /.../. The case of
// letters does not matter.
export function search(g, text) {
  const isWanted = new Uint8Array(g.names.length);
  let matches = (name) => name.toLowerCase().includes(text.toLowerCase());
  const regex = /^\/(.+)\/$/.exec(text);
  if (regex !== null) {
    try {
      const compiled = new RegExp(regex[1], "i");
      matches = (name) => compiled.test(name);
    } catch {
      // Not a regular expression yet: it is being typed.
    }
  }
  g.names.forEach((name, i) => {
    isWanted[i] = i > 0 && matches(name) ? 1 : 0;
  });
  return isWanted;
}

// Self and total of each function; the total counts each stack once.
export function functions(g) {
  const rows = g.names.map((name) => ({name, self: 0, total: 0, baseSelf: 0, baseTotal: 0}));
  for (let i = 0; i < g.n; i++) {
    const row = rows[g.name[i]];
    row.self += g.self[i];
    row.baseSelf += g.isDiff ? g.baseSelf[i] : 0;
    let above = g.parent[i];
    while (above >= 0 && g.name[above] !== g.name[i]) {
      above = g.parent[above];
    }
    if (above < 0) {
      row.total += g.total[i];
      row.baseTotal += g.isDiff ? g.baseTotal[i] : 0;
    }
  }
  rows.shift();
  return rows.filter((row) => row.total > 0);
}

// A level of groups of nodes to one of a new graph.
function assemble(g, levels) {
  const n = levels.reduce((sum, level) => sum + level.length, 0);
  const out = new Graph(g.names, levels.length, n, g.isDiff);
  Object.assign(out, {left: g.left, right: g.right, unit: g.unit});
  let at = 0;
  levels.forEach((level, depth) => {
    out.starts[depth] = at;
    for (const group of level) {
      group.at = at;
      out.x[at] = group.x;
      out.total[at] = group.total;
      out.self[at] = group.self;
      out.name[at] = group.name;
      if (g.isDiff) {
        out.baseTotal[at] = group.base;
        out.baseSelf[at] = 0;
      }
      if (group.up !== null) {
        const parent = group.up.at;
        out.parent[at] = parent;
        if (out.child[parent] < 0) {
          out.child[parent] = at;
        }
        out.children[parent]++;
      }
      at++;
    }
    out.starts[depth + 1] = at;
  });
  return out;
}

function newGroup(name, up) {
  return {name, up, nodes: [], weights: [], bases: [], total: 0, base: 0, self: 0, x: 0, at: 0};
}

function addTo(groups, up, g, node, weight, base) {
  const name = g.name[node];
  let group = groups.get(name);
  if (group === undefined) {
    group = newGroup(name, up);
    groups.set(name, group);
  }
  group.nodes.push(node);
  group.weights.push(weight);
  group.bases.push(base);
  group.total += weight;
  group.base += base;
}

// The graph that grows from nodes of one function: down to its callees, or up to its callers.
function grow(g, roots, step) {
  const first = new Map();
  for (const node of roots) {
    addTo(first, null, g, node, g.total[node], g.isDiff ? g.baseTotal[node] : 0);
  }
  let level = [...first.values()];
  const levels = [];
  while (level.length > 0) {
    levels.push(level);
    const next = [];
    for (const group of level) {
      const groups = new Map();
      group.nodes.forEach((node, i) => step(groups, group, node, group.weights[i], group.bases[i]));
      const sorted = [...groups.values()].sort((a, b) => b.total - a.total);
      let x = group.x;
      for (const below of sorted) {
        below.x = x;
        x += below.total;
        next.push(below);
      }
      group.self = Math.max(0, group.total - (x - group.x));
    }
    level = next;
  }
  return assemble(g, levels);
}

export function calleesOf(g, roots) {
  return grow(g, roots, (groups, group, node) => {
    const first = g.child[node];
    for (let i = 0; i < g.children[node]; i++) {
      const child = first + i;
      addTo(groups, group, g, child, g.total[child], g.isDiff ? g.baseTotal[child] : 0);
    }
  });
}

export function callersOf(g, roots) {
  // The walk up keeps the node where it is, but counts what the function below it has.
  return grow(g, roots, (groups, group, node, weight, base) => {
    const parent = g.parent[node];
    if (parent > 0) {
      addTo(groups, group, g, parent, weight, base);
    }
  });
}

// A number that stands for the path of each node, for links: equal for equal paths of names.
export function pathHash(g, node) {
  let hash = 0x811c9dc5;
  for (const name of g.path(node)) {
    for (let i = 0; i < name.length; i++) {
      hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
    }
    hash = Math.imul(hash ^ 0x3b, 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, "0");
}

export function nodeOfHash(g, wanted) {
  const nameHash = g.names.map((name) => [...Array(name.length).keys()].map((i) => name.charCodeAt(i)));
  const hashes = new Int32Array(g.n);
  for (let i = 0; i < g.n; i++) {
    let hash = g.parent[i] >= 0 ? hashes[g.parent[i]] : 0x811c9dc5 | 0;
    for (const code of nameHash[g.name[i]]) {
      hash = Math.imul(hash ^ code, 0x01000193);
    }
    hashes[i] = Math.imul(hash ^ 0x3b, 0x01000193);
    if ((hashes[i] >>> 0).toString(16).padStart(8, "0") === wanted) {
      return i;
    }
  }
  return 0;
}
