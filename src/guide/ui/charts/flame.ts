// flame.ts: all stacks as one picture: callers above, what they call below, as wide as their time.

import type { EChartsCoreOption } from "echarts/core";
import type { FlameTree } from "../api_profiles";
import { quantity } from "../format";
import type { Theme } from "../theme";
import { blockSeries, ROW, type Block } from "./blocks";
import { base, tipOf } from "./drawing";

const DEEPEST = 48; // rows: a click on one of the last shows what is below
const LEAST = 1 / 3000; // of the width: what is narrower cannot be seen

export interface Frame {
  node: number;
  from: number; // nanoseconds
  to: number;
  row: number;
}

// The times of all nodes, what they call included.
export class Stacks {
  readonly all: number[];
  private readonly children: number[][];

  constructor(readonly tree: FlameTree) {
    this.all = tree.nodes.map(([, , , self]) => self);
    this.children = tree.nodes.map(() => []);
    for (let node = tree.nodes.length - 1; node > 0; node--) {
      const parent = this.parentOf(node);
      this.all[parent] = (this.all[parent] ?? 0) + (this.all[node] ?? 0);
      this.children[parent]?.push(node);
    }
    for (const list of this.children) list.sort((a, b) => (this.all[b] ?? 0) - (this.all[a] ?? 0));
  }

  get total(): number {
    return this.all[0] ?? 0;
  }

  parentOf(node: number): number {
    return this.tree.nodes[node]?.[0] ?? 0;
  }

  nameOf(node: number): string {
    const [, named, file] = this.tree.nodes[node] ?? [0, 0, 0, 0];
    return node === 0 ? "all" : this.tree.names[named] || this.tree.names[file] || "without a name";
  }

  fileOf(node: number): string {
    return this.tree.names[this.tree.nodes[node]?.[2] ?? 0] ?? "";
  }

  selfOf(node: number): number {
    return this.tree.nodes[node]?.[3] ?? 0;
  }

  // From the outermost frame to the node.
  way(node: number): number[] {
    const way = [node];
    for (let at = node; at > 0; at = this.parentOf(at)) way.unshift(this.parentOf(at));
    return way;
  }

  // What is drawn with this node as wide as all: its callers, itself, what it calls.
  frames(root: number): Frame[] {
    const width = this.all[root] ?? 0;
    const above = this.way(root).map((node, row): Frame => ({ node, from: 0, to: width, row }));
    const frames = [...above];
    const wait = above.slice(-1);
    for (let frame = wait.pop(); frame; frame = wait.pop()) {
      let from = frame.from;
      for (const node of this.children[frame.node] ?? []) {
        const to = from + (this.all[node] ?? 0);
        const next = { node, from, to, row: frame.row + 1 };
        from = to;
        if (to - next.from < width * LEAST || next.row - above.length >= DEEPEST) continue;
        frames.push(next);
        wait.push(next);
      }
    }
    return frames;
  }

  finds(node: number, words: string): boolean {
    return words !== "" && `${this.nameOf(node)} ${this.fileOf(node)}`.toLowerCase().includes(words);
  }

  // The time below frames that have these words, each once.
  foundTime(words: string): number {
    let sum = 0;
    const within = this.tree.nodes.map(() => false);
    this.tree.nodes.forEach((_, node) => {
      within[node] = (node > 0 && within[this.parentOf(node)] === true) || this.finds(node, words);
      if (within[node] && !(node > 0 && within[this.parentOf(node)])) sum += this.all[node] ?? 0;
    });
    return sum;
  }
}

export function flameHeight(frames: Frame[]): number {
  return (Math.max(...frames.map(({ row }) => row)) + 1) * ROW + 8;
}

// The same function has the same colour everywhere.
function colourOf(name: string, theme: Theme): string {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return theme.series[[1, 2, 3, 5, 6, 0][hash % 6] ?? 0] ?? theme.faint;
}

export function drawFlame(stacks: Stacks, frames: Frame[], words: string, theme: Theme): EChartsCoreOption {
  const width = Math.max(...frames.map(({ to }) => to), 1);
  const rows = Math.max(...frames.map(({ row }) => row)) + 1;
  const blocks = frames.map(({ node, from, to, row }): Block => {
    const found = stacks.finds(node, words);
    return {
      from,
      to,
      row,
      name: stacks.nameOf(node),
      colour: node === 0 ? theme.faint : colourOf(stacks.nameOf(node), theme),
      strong: found,
      pale: words !== "" && !found,
    };
  });
  const share = (ns: number) => `${((100 * ns) / (stacks.total || 1)).toFixed(1)} %`;
  const tip = (index: number) => {
    const frame = frames[index];
    if (!frame) return "";
    const time = stacks.all[frame.node] ?? 0;
    const self = stacks.selfOf(frame.node);
    const notes = [`itself ${quantity(self, "ns")}, ${share(self)}`];
    if (frame.node > 0) notes.push("A click zooms to it.");
    const figure = `${quantity(time, "ns")}, ${share(time)}`;
    return tipOf(stacks.nameOf(frame.node), stacks.fileOf(frame.node), figure, notes);
  };
  return {
    ...base(theme),
    animation: false,
    grid: { left: 0, right: 0, top: 2, bottom: 2 },
    xAxis: { type: "value", min: 0, max: width, show: false },
    yAxis: { type: "value", inverse: true, min: -0.5, max: rows - 0.5, show: false },
    series: [blockSeries(blocks, theme, tip)],
  };
}
