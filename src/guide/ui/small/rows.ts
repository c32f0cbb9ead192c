// rows.ts: a name, a bar or dots, and a figure on each line. Bars begin at zero; dots stand on a logarithmic
// axis, which has no zero to begin at.

import type { Point, Value } from "../api";
import { element, type Child } from "../dom";
import { compact } from "../format";
import { isHollow, measureText, plainText, valueOf, valueText, xText, type SmallSheet } from "./sheet";

const LINES = 6;
const WIDE = 10; // what lies closer together is seen better from zero

interface Line {
  name: string;
  marks: Point[];
}

function at(one: HTMLElement, left: number): HTMLElement {
  one.style.left = `${(100 * left).toFixed(2)}%`;
  return one;
}

// Of several places on x, those that most series have, the largest first.
function placesOf({ series }: SmallSheet): Value[] {
  const seen = new Map<Value, number>();
  for (const { points } of series) for (const { x } of points) seen.set(x, (seen.get(x) ?? 0) + 1);
  const most = Math.max(...seen.values());
  return [...seen]
    .filter(([, count]) => count === most)
    .map(([place]) => place)
    .sort((a, b) => (typeof a === "number" && typeof b === "number" ? b - a : 0));
}

// One series, or the speed-up of the best: a line for each place on x. Several over names: a line for each
// name of each. Several over numbers: a line for each, at the largest number, or at both ends.
function linesOf(sheet: SmallSheet, ends: boolean): { lines: Line[]; places: Value[] } {
  const [first, ...more] = sheet.series;
  if (more.length > 0 && sheet.series.some(({ points }) => points.some(({ x }) => typeof x !== "number")))
    return {
      lines: sheet.series.flatMap(({ name, points }) =>
        points.map((point) => ({ name: `${xText(sheet, point.x)}, ${name}`, marks: [point] })),
      ),
      places: [],
    };
  if (first && (more.length === 0 || sheet.ratio))
    return {
      lines: first.points.map((point) => ({ name: xText(sheet, point.x), marks: [point] })),
      places: [],
    };
  const shared = placesOf(sheet);
  const places = [...new Set(ends ? [shared[0], shared[shared.length - 1]] : [shared[0]])].filter(
    (place) => place !== undefined,
  );
  const lines = sheet.series.map(({ name, points }) => ({
    name,
    marks: places.flatMap((place) => points.find(({ x }) => x === place) ?? []),
  }));
  return { lines: lines.filter((line) => line.marks.length > 0), places };
}

// Names are sorted by what they reached, numbers stay in their order.
function ordered(sheet: SmallSheet, lines: Line[]): Line[] {
  const numbered =
    (sheet.series.length === 1 || sheet.ratio) && lines.every(({ marks }) => typeof marks[0]?.x === "number");
  const first = ({ marks }: Line) => (marks[0] ? valueOf(sheet, marks[0]) : 0);
  const down = sheet.ratio || sheet.y.better === "higher" ? 1 : -1;
  return (numbered ? lines : [...lines].sort((a, b) => down * (first(b) - first(a)))).slice(0, LINES);
}

function spoken(sheet: SmallSheet, point: Point, places: Value[]): string {
  const where = places.length > 1 ? `${xText(sheet, point.x)}: ` : "";
  return `${where}${valueText(sheet, valueOf(sheet, point))}${isHollow(point) ? ", not checked" : ""}`;
}

function row(name: string, track: Child[], figure: string): HTMLElement {
  return element(
    "li",
    {},
    element("span", { className: "row-name" }, name),
    element("span", { className: "row-track" }, ...track),
    element("span", { className: "row-figure" }, figure),
  );
}

function caption(...parts: Child[]): HTMLElement {
  return element("figcaption", {}, ...parts);
}

function idealOf(point: Point): number | null {
  return point.speedup && point.efficiency ? point.speedup / point.efficiency : null;
}

// The bar that the eye should meet first: what the sentence is about, else the best.
function chosenOf(sheet: SmallSheet, points: Point[]): Point | undefined {
  const down = sheet.ratio || sheet.y.better === "higher" ? 1 : -1;
  const [best] = [...points].sort((a, b) => down * (valueOf(sheet, b) - valueOf(sheet, a)));
  return points.find(({ ids }) => ids.includes(sheet.about)) ?? best;
}

export function barsOf(sheet: SmallSheet): HTMLElement {
  const { lines: all, places } = linesOf(sheet, false);
  const lines = ordered(sheet, all);
  const share = !sheet.ratio && sheet.y.key === "of_limit";
  const points = lines.flatMap(({ marks }) => marks);
  const ideals = sheet.ratio ? points.map((point) => idealOf(point) ?? 0) : [];
  const most = Math.max(share ? 100 : 0, ...ideals, ...points.map((point) => valueOf(sheet, point))) || 1;
  const chosen = chosenOf(sheet, points);
  const rows = lines.flatMap(({ name, marks: [point] }) => {
    if (!point) return [];
    const value = valueOf(sheet, point);
    const fill = element("span", {
      className: `row-bar${isHollow(point) ? " hollow" : ""}${point === chosen ? " chosen" : ""}`,
      title: spoken(sheet, point, places),
    });
    fill.style.width = `${((100 * value) / most).toFixed(2)}%`;
    const ideal = sheet.ratio ? idealOf(point) : null;
    const mark = ideal ? at(element("span", { className: "row-ideal", title: "ideal" }), ideal / most) : null;
    return [row(name, [fill, mark], plainText(sheet, value))];
  });
  const where = typeof places[0] === "number" ? ` at ${xText(sheet, places[0])}` : "";
  const whose = sheet.ratio && sheet.series[0]?.name ? `, ${sheet.series[0].name}` : "";
  return element(
    "figure",
    { className: share ? "small rows share" : "small rows" },
    element("ol", {}, ...rows),
    caption(
      share
        ? "100 % is the limit of the hardware in use"
        : `${measureText(sheet)}${where}${whose}`,
      ideals.some((ideal) => ideal > 0) ? element("span", { className: "key-ideal" }, "ideal") : null,
    ),
  );
}

// The powers of ten around all figures, and where a figure stands between them.
function logAxis(figures: number[]): { ticks: number[]; place: (value: number) => number } {
  const known = figures.filter((value) => value > 0);
  const first = Math.floor(Math.log10(Math.min(...known)) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...known)) - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, step) => 10 ** (first + step));
  return { ticks, place: (value) => (Math.log10(value) - first) / (last - first) };
}

function axisOf(ticks: number[], limit: number[]): HTMLElement {
  const every = Math.ceil((ticks.length - 1) / 4); // so that figures have room beside each other
  const shown = ticks.flatMap((tick, index) =>
    index % every === 0
      ? [at(element("span", {}, limit.includes(tick) ? "limit" : compact(tick)), index / (ticks.length - 1))]
      : [],
  );
  return element("div", { className: "row-axis" }, ...shown);
}

export function dotsOf(sheet: SmallSheet): HTMLElement {
  const { lines: all, places } = linesOf(sheet, true);
  const lines = ordered(sheet, all);
  const shown = (point: Point) => valueOf(sheet, point) * sheet.scale.factor;
  const limit = sheet.y.key === "times_floor" && !sheet.ratio ? [1] : []; // what the figures are a multiple of
  const figures = [...limit, ...lines.flatMap(({ marks }) => marks.map(shown))];
  if (figures.some((value) => value <= 0)) return barsOf(sheet);
  if (limit.length === 0 && places.length < 2 && Math.max(...figures) < WIDE * Math.min(...figures))
    return barsOf(sheet);
  const { ticks, place } = logAxis(figures);
  const grid = () =>
    ticks.map((_, index) => at(element("span", { className: "row-grid" }), index / (ticks.length - 1)));
  const tone = (point: Point) => (places.length > 1 ? ` tone-${places.indexOf(point.x) + 1}` : " tone-1");
  const rows = lines.map(({ name, marks }) => {
    const dots = marks.map((point) =>
      at(
        element("span", {
          className: `row-dot${isHollow(point) ? " hollow" : ""}${tone(point)}`,
          title: spoken(sheet, point, places),
        }),
        place(shown(point)),
      ),
    );
    const first = marks.find(({ x }) => x === places[0]) ?? marks[0];
    return row(name, [...grid(), ...dots], first ? plainText(sheet, valueOf(sheet, first)) : "–");
  });
  const keys =
    places.length > 1
      ? places.map((x, index) => element("span", { className: `key-dot tone-${index + 1}` }, xText(sheet, x)))
      : [];
  const largest = typeof places[0] === "number" ? xText(sheet, places[0]) : "";
  const where = largest === "" ? "" : keys.length > 0 ? `, figures at ${largest}` : `, ${largest}`;
  const below = element("li", { ariaHidden: "true" }, element("span"), axisOf(ticks, limit), element("span"));
  return element(
    "figure",
    { className: "small rows dots" },
    element("ol", {}, ...rows, below),
    caption(...keys, `${measureText(sheet)}, logarithmic${where}`),
  );
}
