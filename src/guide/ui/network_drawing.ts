// network_drawing.ts: a program as boxes and arrows, from what explain says of it. An op of the forward
// part is a box, in the row after the last of those it needs; an arrow is a tensor that one writes and
// another reads. The bar in a box is its share of the work.

import type { Op, Program } from "./api";
import { attributed, drawn } from "./dom";
import { label, quantity, shapeText } from "./format";

const BOX = { width: 206, height: 46, across: 26, down: 26, edge: 8 };
const NOT_LAYERS = new Set(["store", "right_class", "right_value"]); // they only count what came out

interface Box {
  op: Op;
  inputs: Box[];
  row: number;
  column: number;
}

// The tensor whose bytes this one shares: a reshaped tensor is no tensor of its own here.
function rootOf(program: Program, index: number): number {
  const viewed = program.tensors[index]?.view_of ?? null;
  return viewed === null ? index : rootOf(program, viewed);
}

function boxesOf(program: Program): Box[] {
  const writers = new Map<number, Box>();
  const rows: number[] = [];
  const boxes: Box[] = [];
  for (const op of program.ops.filter(({ op: kind, part }) => part === "forward" && !NOT_LAYERS.has(kind))) {
    const roots = (list: (number | null)[]) =>
      list.filter((index) => index !== null).map((index) => rootOf(program, index));
    const inputs = [...new Set(roots(op.inputs).flatMap((index) => writers.get(index) ?? []))];
    const row = Math.max(-1, ...inputs.map((box) => box.row)) + 1;
    const column = rows[row] ?? 0;
    rows[row] = column + 1;
    const box = { op, inputs, row, column };
    for (const index of roots(op.outputs)) writers.set(index, box);
    boxes.push(box);
  }
  return boxes;
}

const family = (kind: string): string =>
  /^dense|^outer|^matmul|^product/.test(kind)
    ? "f1"
    : /^conv/.test(kind)
      ? "f2"
      : /pool/.test(kind)
        ? "f3"
        : /norm/.test(kind)
          ? "f4"
          : /lstm|gru|rnn/.test(kind)
            ? "f5"
            : /entropy|error|loss/.test(kind)
              ? "f6"
              : "f0";

function titleOf({ op, layer, attributes }: Op): string {
  const told =
    typeof attributes === "object" && attributes !== null
      ? (attributes.function ?? attributes.activation)
      : null;
  const kind = op === "activate" && told ? String(told) : label(op);
  const after = op !== "activate" && told && told !== "none" ? ` + ${told}` : "";
  return layer && layer !== kind ? `${layer}${after}` : `${kind}${after}`;
}

// `place` keeps the drawings of one page apart.
export function drawProgram(program: Program, place: string): SVGElement {
  const boxes = boxesOf(program);
  const columns = Math.max(1, ...boxes.map(({ column }) => column + 1));
  const rows = Math.max(1, ...boxes.map(({ row }) => row + 1));
  const most = Math.max(1, ...boxes.map(({ op }) => op.flop));
  const width = columns * (BOX.width + BOX.across) - BOX.across + 2 * BOX.edge;
  const height = rows * (BOX.height + BOX.down) - BOX.down + 2 * BOX.edge;
  const perRow = (row: number) => boxes.filter((box) => box.row === row).length;
  const at = ({ row, column }: Box) => {
    const used = perRow(row) * (BOX.width + BOX.across) - BOX.across;
    return {
      x: (width - used) / 2 + column * (BOX.width + BOX.across),
      y: BOX.edge + row * (BOX.height + BOX.down),
    };
  };
  const arrows = boxes.flatMap((box) =>
    box.inputs.map((input) => {
      const [from, to] = [at(input), at(box)];
      const [x1, y1, x2, y2] = [from.x + BOX.width / 2, from.y + BOX.height, to.x + BOX.width / 2, to.y - 3];
      const bend = (y2 - y1) / 2;
      return drawn("path", {
        class: "arrow",
        d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`,
        "marker-end": `url(#arrow-head${place})`,
      });
    }),
  );
  const shapes = boxes.map((box) => {
    const { x, y } = at(box);
    const { op } = box;
    const out = program.tensors[op.outputs.find((index) => index !== null) ?? -1];
    const share = Math.max(2, (op.flop / most) * (BOX.width - 24));
    return drawn(
      "g",
      { class: `box ${family(op.op)}`, transform: `translate(${x} ${y})` },
      drawn("title", {}, `${titleOf(op)}: ${quantity(op.flop, "FLOP")}, ${quantity(op.bytes, "B")}`),
      drawn("rect", { class: "frame", width: BOX.width, height: BOX.height, rx: 7 }),
      drawn("rect", { class: "stripe", width: 5, height: BOX.height, rx: 2.5 }),
      drawn("text", { class: "box-title", x: 14, y: 18 }, titleOf(op)),
      drawn(
        "text",
        { class: "box-shape", x: BOX.width - 10, y: 33, "text-anchor": "end" },
        shapeText(out?.shape ?? []),
      ),
      drawn("text", { class: "box-work", x: 14, y: 33 }, quantity(op.flop, "FLOP")),
      drawn("rect", { class: "share", x: 14, y: 38, width: share, height: 3, rx: 1.5 }),
    );
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
