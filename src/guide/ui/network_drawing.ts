// network_drawing.ts: a program as boxes and arrows, from what explain says of it. What is given to it and
// each op of its forward part are boxes; an arrow is a tensor that one writes and another reads. The bar
// in a box is its share of the work.

import type { Op, Program, Tensor } from "./api";
import { attributed, drawn } from "./dom";
import { quantity, shapeText, words } from "./format";
import { layOut, type Item } from "./network_layout";

const BOX = { width: 214, height: 46, across: 20, down: 28, edge: 8, lane: 6 };
const NOT_LAYERS = new Set(["store", "right_class", "right_value"]); // they only count what came out

interface Box {
  op: Op | null; // none: what is given to the program, or kept from the step before
  title: string;
  shape: number[];
  inputs: number[]; // the boxes that it reads
}

// The tensor whose bytes this one shares: a reshaped tensor is no tensor of its own here.
function rootOf(program: Program, index: number): number {
  const viewed = program.tensors[index]?.view_of ?? null;
  return viewed === null ? index : rootOf(program, viewed);
}

// Samples, and chains that go on; not parameters, nor what counts or chooses rows.
function isGiven({ role, dtype }: Tensor): boolean {
  return role === "input" || (role === "state" && dtype !== "i32");
}

function boxesOf(program: Program): Box[] {
  const writers = new Map<number, number>(); // of a tensor, a box
  const boxes: Box[] = [];
  const roots = (list: (number | null)[]) =>
    list.filter((index) => index !== null).map((index) => rootOf(program, index));
  for (const op of program.ops.filter(({ op: kind, part }) => part === "forward" && !NOT_LAYERS.has(kind))) {
    for (const index of roots(op.inputs)) {
      const tensor = program.tensors[index];
      if (!tensor || writers.has(index) || !isGiven(tensor) || isLoss(op.op)) continue; // targets
      writers.set(index, boxes.length);
      boxes.push({ op: null, title: tensor.name, shape: tensor.shape, inputs: [] });
    }
    const inputs = [...new Set(roots(op.inputs).flatMap((index) => writers.get(index) ?? []))];
    for (const index of roots(op.outputs)) writers.set(index, boxes.length);
    const made = op.outputs.find((index) => index !== null) ?? -1;
    const name = program.tensors[rootOf(program, made)]?.name ?? "";
    boxes.push({ op, title: titleOf(op, name), shape: program.tensors[made]?.shape ?? [], inputs });
  }
  return boxes;
}

const isLoss = (kind: string): boolean => /entropy|mse|divergence/.test(kind);

const family = (kind: string): string =>
  /^dense|^outer|^matmul|^product/.test(kind)
    ? "f1"
    : /^conv/.test(kind)
      ? "f2"
      : /pool/.test(kind)
        ? "f3"
        : /_norm/.test(kind) && kind !== "draw_normal"
          ? "f4"
          : /lstm|gru|rnn/.test(kind)
            ? "f5"
            : isLoss(kind)
              ? "f6"
              : "f0";

// The layer it belongs to; of an op that a recipe adds, what it is and what it makes.
function titleOf({ op, layer, attributes }: Op, made: string): string {
  const given = typeof attributes === "object" && attributes !== null ? attributes : {};
  if (op === "fill") return `${made} = ${given.value}`;
  const told = given.function ?? given.activation ?? "none";
  const kind = op !== "activate" ? words(op) : told === "none" ? "copy" : String(told);
  const after = op !== "activate" && told !== "none" ? ` + ${told}` : "";
  if (layer) return `${layer}${after}`;
  return isLoss(op) || !made || made === kind ? kind : `${kind}${after} → ${made}`;
}

const top = (row: number): number => BOX.edge + row * (BOX.height + BOX.down);

// From one item to another in the next row, between the rows; and through that row, where it is a lane.
function lineTo(upper: Item, lower: Item, head: string): SVGElement {
  const start = top(upper.row) + BOX.height;
  const end = top(lower.row) - (lower.box === null ? 0 : 3);
  const middle = (start + end) / 2;
  const [x1, x2] = [upper.x + BOX.edge, lower.x + BOX.edge];
  const line = x1 === x2 ? `V${end}` : `C${x1} ${middle} ${x2} ${middle} ${x2} ${end}`;
  return drawn("path", {
    class: "arrow",
    d: `M${x1} ${start}${line}${lower.box === null ? `V${end + BOX.height}` : ""}`,
    ...(lower.box === null ? {} : { "marker-end": `url(#${head})` }),
  });
}

function boxOf({ op, title, shape }: Box, most: number, x: number, y: number): SVGElement {
  const share = op ? Math.max(2, (op.flop / most) * (BOX.width - 24)) : 0;
  const work = op ? `: ${quantity(op.flop, "FLOP")}, ${quantity(op.bytes, "B")}` : ": given to the program";
  return drawn(
    "g",
    { class: `box ${op ? family(op.op) : "given"}`, transform: `translate(${x} ${y})` },
    drawn("title", {}, title + work),
    drawn("rect", { class: "frame", width: BOX.width, height: BOX.height, rx: op ? 7 : BOX.height / 2 }),
    op && drawn("rect", { class: "stripe", width: 5, height: BOX.height, rx: 2.5 }),
    drawn("text", { class: "box-title", x: op ? 14 : 24, y: op ? 18 : 28 }, title),
    drawn(
      "text",
      { class: "box-shape", x: BOX.width - (op ? 10 : 24), y: op ? 33 : 28, "text-anchor": "end" },
      shapeText(shape),
    ),
    op && drawn("text", { class: "box-work", x: 14, y: 33 }, quantity(op.flop, "FLOP")),
    op && drawn("rect", { class: "share", x: 14, y: 38, width: share, height: 3, rx: 1.5 }),
  );
}

// `place` keeps the drawings of one page apart.
export function drawProgram(program: Program, place: string): SVGElement {
  const boxes = boxesOf(program);
  const layout = layOut(boxes.map(({ inputs }) => inputs), BOX.width, BOX.lane, BOX.across);
  const items = layout.rows.flat();
  const most = Math.max(1, ...boxes.map(({ op }) => op?.flop ?? 0));
  const width = layout.width + 2 * BOX.edge;
  const height = top(layout.rows.length) - BOX.down + BOX.edge;
  const arrows = items.flatMap((upper) =>
    upper.below.map((lower) => lineTo(upper, lower, `arrow-head${place}`)),
  );
  const shapes = items.flatMap(({ box: number, x, row }) => {
    const box = boxes[number ?? -1];
    return box ? [boxOf(box, most, x - BOX.width / 2 + BOX.edge, top(row))] : [];
  });
  const head = drawn(
    "defs",
    {},
    drawn(
      "marker",
      {
        id: `arrow-head${place}`,
        viewBox: "0 0 8 8",
        refX: 6,
        refY: 4,
        markerWidth: 7,
        markerHeight: 7,
        orient: "auto",
      },
      drawn("path", { class: "arrow-head", d: "M0 0L8 4L0 8z" }),
    ),
  );
  const image = drawn(
    "svg",
    { class: "network", viewBox: `0 0 ${width} ${height}`, width, height },
    head,
    ...arrows,
    ...shapes,
  );
  return attributed(image, {
    role: "img",
    "aria-label": `The layers of ${program.name} and how they are connected. The table below lists them.`,
  });
}

const STYLES = ["fill", "stroke", "stroke-width", "font-size", "font-weight", "font-family"];

// As a file of its own: what the page's style sheet says of the drawing is written into it.
export function drawingFile(image: SVGElement): string {
  const copy = image.cloneNode(true) as SVGElement;
  const copies = [...copy.querySelectorAll("*")];
  [...image.querySelectorAll("*")].forEach((one, index) => {
    const style = getComputedStyle(one);
    for (const name of STYLES)
      copies[index]?.setAttribute(name, style.getPropertyValue(name).replace(/"/g, "'"));
  });
  return new XMLSerializer().serializeToString(copy);
}
