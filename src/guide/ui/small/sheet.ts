// sheet.ts: what a small chart of the overview shows: the points of a finding's query as named series.
//
// A small chart is made of elements rather than drawn on a canvas: its words are text that wraps, scales,
// is read aloud and can be checked. It shows few things; the explorer shows all.

import type { Answered, Catalogue, Finding, Metric, Point, Value } from "../api";
import { compact, figure, label, scaleFor, type Scale } from "../format";
import { valueWords } from "../naming";

const SHOWN = { bars: 6, dots: 6, lines: 4 }; // series at most, the best

const LONG = 1e5; // figures from here on are written with a prefix

export interface SmallSeries {
  name: string;
  points: Point[]; // in the order of x
}

export interface SmallSheet {
  series: SmallSeries[]; // the best first
  x: string; // its axis
  y: Metric;
  ratio: boolean; // what is shown is the speed-up against a baseline
  scale: Scale;
  about: number; // the result whose share of the limit the sentence says; 0: it is about several
  catalogue: Catalogue;
}

// A value as one says it: 2 threads · batch 64 · NumPy · Python list
function titleOf(axis: string, value: Value, { frameworks }: Catalogue): string {
  if (axis === "framework" && value !== null)
    return (frameworks[String(value)] ?? String(value)).replace(/^an? /, "");
  return valueWords(axis, value);
}

export function valueOf(sheet: SmallSheet, point: Point): number {
  return sheet.ratio ? (point.speedup ?? 0) : point.y;
}

// Where the caption says the unit.
export function plainText({ scale }: SmallSheet, value: number): string {
  const short = ["%", "×"].includes(scale.unit) ? ` ${scale.unit}` : "";
  const shown = value * scale.factor;
  if (scale.unit === "%" && shown >= 10) return `${Math.round(shown)} %`;
  return (shown >= LONG ? compact(shown) : figure(shown)) + short;
}

export function valueText(sheet: SmallSheet, value: number): string {
  const { unit, factor } = sheet.scale;
  return unit ? `${figure(value * factor)} ${unit}` : figure(value * factor);
}

export function xText(sheet: SmallSheet, x: Value): string {
  return titleOf(sheet.x, x, sheet.catalogue);
}

export function isHollow(point: Point): boolean {
  return point.unchecked > 0;
}

const byX = (a: Point, b: Point) =>
  typeof a.x === "number" && typeof b.x === "number"
    ? a.x - b.x
    : String(a.x).localeCompare(String(b.x), "en");

// The fewest axes, first ones first, by which all series can be told apart.
function tellingAxes(groups: string[], all: Value[][]): number[] {
  const kinds = (axes: number[]) =>
    new Set(all.map((group) => JSON.stringify(axes.map((at) => group[at])))).size;
  let telling: number[] = [];
  groups.forEach((_, at) => {
    if (kinds([...telling, at]) > kinds(telling)) telling = [...telling, at];
  });
  return telling;
}

function split(points: Point[]): SmallSeries[] {
  const all = new Map<string, SmallSeries>();
  for (const point of points) {
    const key = JSON.stringify(point.group);
    const series = all.get(key) ?? { name: "", points: [] };
    series.points.push(point);
    all.set(key, series);
  }
  return [...all.values()].map((series) => ({ ...series, points: series.points.sort(byX) }));
}

function named(all: SmallSeries[], groups: string[], catalogue: Catalogue): SmallSeries[] {
  const telling = tellingAxes(
    groups,
    all.map(({ points }) => points[0]?.group ?? []),
  );
  return all.map(({ points }) => {
    const words = telling
      .map((at) => titleOf(groups[at] ?? "", points[0]?.group[at] ?? null, catalogue))
      .filter((word) => word !== "default");
    return { name: words.join(", "), points };
  });
}

// A line needs two places; series of one are only shown where no other has more.
function drawable(all: SmallSeries[], kind: Finding["kind"]): SmallSeries[] {
  const long = all.filter(({ points }) => points.length > 1);
  return kind === "lines" && long.length > 0 ? long : all;
}

// The better of two series: by the last place that both have.
function rank(better: Metric["better"]): (a: SmallSeries, b: SmallSeries) => number {
  const last = ({ points }: SmallSeries) => points[points.length - 1]?.y ?? 0;
  return (a, b) => (better === "higher" ? last(b) - last(a) : last(a) - last(b));
}

// Nothing where the axis or the metric is not known, or there is nothing to show.
export function sheetOf(finding: Finding, answered: Answered, catalogue: Catalogue): SmallSheet | null {
  const parameters = new URLSearchParams(finding.chart);
  const x = parameters.get("x") ?? "";
  const y = catalogue.metrics.find(({ key }) => key === parameters.get("y"));
  const ratio = parameters.has("baseline");
  const points = answered.points.filter(
    (point) => point.x !== null && (!ratio || typeof point.speedup === "number"),
  );
  if (!y || points.length === 0) return null;
  const groups = (parameters.get("group") ?? "").split(",").filter(Boolean);
  const drawn = drawable(split(points), finding.kind)
    .sort(rank(y.better))
    .slice(0, SHOWN[finding.kind] ?? SHOWN.bars);
  const figures = points.map((point) => (ratio ? (point.speedup ?? 0) : point.y));
  return {
    series: named(drawn, groups, catalogue),
    x,
    y,
    ratio,
    scale: scaleFor(ratio ? "x" : y.unit, figures),
    about: y.key === "of_limit" ? (finding.ids[0] ?? 0) : 0,
    catalogue,
  };
}

// What the chart shows, in words, with the unit: for its caption.
export function measureText({ y, ratio, scale }: SmallSheet): string {
  if (ratio) return "speed-up";
  if (y.key === "of_limit") return "share of the limit";
  if (y.key === "times_floor") return "time ÷ the limit";
  if (y.key === "throughput") return "samples per second";
  return scale.unit && scale.unit !== "×" ? `${label(y.key)} (${scale.unit})` : label(y.key);
}
