// chart.ts: what a chart of the explorer is, and what such charts share.
//
// A chart is one file of this folder and one line in index.ts. It turns the answer to a query into what
// ECharts draws and fetches nothing itself. A data item with `record` can be picked.

import type { CustomSeriesOption, CustomSeriesRenderItemAPI } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { Axis, Metric, Point, Value } from "../api";
import { element, type Child } from "../dom";
import { figure, label, many, name, type Scale } from "../format";
import { namesOf, valueName, valueWords } from "../naming";
import type { Theme } from "../theme";
import { looksOf, markStyle, SIGNS, xAxisOf, yAxisOf, type Look } from "./drawing";

export interface Series {
  key: string; // its look hangs on this
  name: string;
  points: Point[];
}

export interface Size {
  width: number; // pixels
  height: number;
}

export interface Sheet {
  series: Series[]; // what is drawn
  keys: string[]; // of the series of all charts that stand side by side: they share their looks
  points: Point[]; // the same, series after series
  places: Value[]; // every value of x in its order, of all charts that stand side by side
  range: [number, number] | null; // of y in figures, where charts share it
  aggregate: string;
  x: Axis;
  y: Metric;
  scale: Scale;
  logX: boolean;
  logY: boolean;
  ends: boolean; // names may stand at the ends of lines
  size: Size;
  theme: Theme;
}

export interface Chart {
  name: string; // in the address
  title: string; // on its button
  suits(sheet: Sheet): boolean; // the first of index.ts that suits is the one shown unasked
  ends?: boolean; // it has names at the ends of lines and needs a legend only where it is narrow
  rows?(sheet: Sheet): number; // lines of text below each other, where its height follows from them
  draw(sheet: Sheet): EChartsCoreOption;
}

export function seriesOf(points: Point[], axes: string[]): Series[] {
  const all = new Map<string, Point[]>();
  for (const point of points) {
    const key = JSON.stringify(point.group);
    all.set(key, [...(all.get(key) ?? []), point]);
  }
  const names = namesOf(
    axes,
    [...all.values()].map(([first]) => first?.group ?? []),
  );
  return [...all].map(([key, its], index) => ({ key, name: names[index] ?? key, points: its }));
}

// The name of what a list of values stands for, by itself.
export function seriesName(group: Value[]): string {
  return group.map(name).join(", ") || "all results";
}

const FEW = 6; // drawn at first: more lines are a tangle
const MOST = 60; // cannot be told apart, and take long

// Those that are drawn, and how many are not: the series with most points, the best of them first.
export function chosenSeries(all: Series[], better: Metric["better"], every: boolean): Series[] {
  const count = every ? MOST : all.length === FEW + 1 ? FEW + 1 : FEW;
  const sign = better === "higher" ? -1 : 1;
  const best = ({ points }: Series) => Math.min(...points.map(({ y }) => sign * y));
  const ranked = [...all]
    .sort((a, b) => b.points.length - a.points.length || best(a) - best(b))
    .slice(0, count);
  return all.filter((series) => ranked.includes(series));
}

// A line under a drawing that leaves series out, and the way to all of them.
export function leftOut(
  drawn: number,
  all: number,
  every: boolean,
  onMore?: (every: boolean) => void,
): Child {
  if (drawn === all && !(every && all > FEW + 1)) return null;
  const more = element(
    "button",
    { type: "button", className: "link", id: "more-series" },
    every ? `Only ${FEW}` : `+${all - drawn} more`,
  );
  more.addEventListener("click", () => onMore?.(!every));
  return element(
    "p",
    { className: "hint key", id: "left-out" },
    drawn < all ? `${drawn} of ${many(all, "series", "series")} are drawn; the table has all. ` : "",
    onMore ? more : null,
  );
}

// One result without an interval has none; that does not make it exact.
export function hasSpread(point: Point): boolean {
  return point.low < point.high;
}

export function isChecked(point: Point): boolean {
  return point.unchecked === 0;
}

// What marks a point that did not run as its users run it; queryCard says what it means.
export const HANDICAPPED = "†";

const FAR = 2.2; // powers of ten from which on these alone are marked

// Where a logarithmic axis has its marks: at powers of ten, or at 1, 2, 5 where there are few of these.
export function logMarks(low: number, high: number): number[] {
  const steps = Math.log10(high / low) > FAR ? [1] : [1, 2, 5];
  const marks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of steps) marks.push(Number((step * 10 ** power).toPrecision(6)));
  const first = marks.filter((mark) => mark <= low * 1.0001).length - 1;
  const last = marks.findIndex((mark) => mark >= high * 0.9999);
  return marks.slice(Math.max(0, first), last < 0 ? undefined : Math.max(last, first + 1) + 1);
}

// Where y begins and ends: at marks around the figures, of all charts that share it; else at zero.
function bounds({ range, points, scale, logY }: Sheet) {
  const own = points.flatMap(({ y, low, high }) => [y, low, high]);
  const [low, high] = (range ?? [Math.min(...own), Math.max(...own)]).map(
    (value) => value * scale.factor,
  ) as [number, number];
  if (logY && low > 0) {
    const customValues = logMarks(low, high);
    return { min: customValues[0], max: customValues[customValues.length - 1], customValues };
  }
  if (!range) return {};
  const step = 10 ** Math.floor(Math.log10(Math.max(high, 1e-12)));
  return { min: Math.min(0, low), max: Math.ceil((high * 1.02) / (step / 2)) * (step / 2) };
}

export function yAxis(sheet: Sheet) {
  const { y, scale, logY, theme } = sheet;
  const axis = yAxisOf(theme, `${label(y.key)}${scale.unit ? ` (${scale.unit})` : ""}`, logY);
  const { customValues, ...ends } = bounds(sheet);
  if (!customValues) return { ...axis, ...ends };
  return {
    ...axis,
    ...ends,
    axisLabel: { ...axis.axisLabel, customValues },
    axisTick: { ...axis.axisTick, customValues },
    splitLine: { ...axis.splitLine, customValues },
  };
}

export function xAxis({ x, theme }: Sheet) {
  return xAxisOf(theme, label(x.key));
}

export const categoryOf = ({ x }: Sheet, value: Value) => valueName(x.key, value);

// The same where no title stands beside it: "batch 64"
export const rowName = ({ x }: Sheet, value: Value) =>
  typeof value === "number" ? valueWords(x.key, value) : valueName(x.key, value);

export function looksIn({ keys, theme }: Sheet): Map<string, Look> {
  const looks = looksOf(keys, theme);
  return new Map(keys.map((key, index) => [key, looks[index] as Look]));
}

/* Tips: a crosshair, and what every series has there, the largest first. */

const TIP_ROWS = 12;

function marksOf({ scale }: Sheet, point: Point): string[] {
  const show = (value: number) => figure(value * scale.factor);
  return [
    hasSpread(point) ? `${show(point.low)} to ${show(point.high)}` : "",
    isChecked(point) ? "" : "not checked",
    point.handicap === null ? "" : `${HANDICAPPED} ${point.handicap}`,
    point.configurations > 1 ? `unlike in ${point.differs.map(label).join(", ")}` : "",
  ].filter(Boolean);
}

function tipRow(sheet: Sheet, series: Series, point: Point, look: Look | undefined): HTMLElement {
  const sign = element("span", { className: "swatch" }, SIGNS[look?.symbol ?? ""] ?? "●");
  sign.style.color = `var(${look?.variable ?? "--text"})`;
  return element(
    "tr",
    {},
    element("td", {}, sign, series.name),
    element(
      "td",
      { className: "number tip-figure" },
      `${figure(point.y * sheet.scale.factor)} ${sheet.scale.unit}`,
    ),
    element("td", { className: "tip-note" }, marksOf(sheet, point).join(", ")),
  );
}

// Every series at one place of x, the largest figure first, as the lines stand above each other.
function tipAt(sheet: Sheet, place: Value): HTMLElement {
  const looks = looksIn(sheet);
  const found = sheet.series
    .flatMap((series) => series.points.filter(({ x }) => x === place).map((point) => ({ series, point })))
    .sort((a, b) => b.point.y - a.point.y);
  const counts = [...new Set(found.map(({ point }) => point.count))];
  const results =
    counts.length === 1 && counts[0] === 1
      ? found.length === 1
        ? "1 result"
        : "1 result each"
      : `${sheet.aggregate} of ${counts.sort((a, b) => a - b).join(", ")} results`;
  return element(
    "div",
    { className: "tip" },
    element("strong", {}, `${label(sheet.x.key)} ${categoryOf(sheet, place)}`),
    element(
      "table",
      {},
      element(
        "tbody",
        {},
        ...found
          .slice(0, TIP_ROWS)
          .map(({ series, point }) => tipRow(sheet, series, point, looks.get(series.key))),
      ),
    ),
    element(
      "div",
      { className: "tip-note" },
      found.length > TIP_ROWS ? `${found.length - TIP_ROWS} more series · ${results}` : results,
    ),
  );
}

// `across`: the axis on which places lie, y where a chart lies on its side.
export function crosshair(sheet: Sheet, xOf: (point: Point) => number | string, across: "x" | "y" = "x") {
  const { theme, points } = sheet;
  const places = new Map(points.map((point) => [xOf(point), point.x]));
  return {
    trigger: "axis",
    confine: true,
    backgroundColor: theme.surface,
    borderColor: theme.line,
    textStyle: { color: theme.text },
    axisPointer: {
      type: "line",
      axis: across,
      snap: true,
      lineStyle: { color: theme.faint, type: "dashed" },
      label: { show: false },
    },
    formatter: (given: { value: (number | string)[] } | { value: (number | string)[] }[]) => {
      const at = (Array.isArray(given) ? given[0] : given)?.value[across === "x" ? 0 : 1];
      const place = at === undefined ? undefined : places.get(at);
      return place === undefined ? "" : tipAt(sheet, place);
    },
  };
}

export function itemsOf(
  sheet: Sheet,
  series: Series,
  look: Look,
  xOf: (point: Point) => number | string,
  flipped = false,
) {
  return series.points.map((point) => {
    const at = [xOf(point), point.y * sheet.scale.factor];
    return {
      value: flipped ? at.reverse() : at,
      record: point.id,
      itemStyle: markStyle(sheet.theme, look.colour, isChecked(point)),
      ...(point.handicap === null ? {} : handicapLabel(sheet)),
    };
  });
}

function handicapLabel({ theme }: Sheet) {
  return {
    label: {
      show: true,
      position: "top" as const,
      offset: [12, 0],
      fontSize: 16,
      formatter: HANDICAPPED,
      color: theme.text,
    },
  };
}

export interface ErrorBars {
  colour: string;
  z: number; // height among what is drawn
  xOf(point: Point): number | string;
  centre?(api: CustomSeriesRenderItemAPI): number; // moves one to the middle of its bar
  flipped?: boolean; // the figures lie along x
}

// Bars from low to high at the marks of one series.
export function errorBars(sheet: Sheet, series: Series, bars: ErrorBars): CustomSeriesOption {
  const { colour, z, xOf, centre = () => 0, flipped = false } = bars;
  const data = series.points
    .filter(hasSpread)
    .map((point) => [xOf(point), point.low * sheet.scale.factor, point.high * sheet.scale.factor]);
  return {
    type: "custom",
    data: flipped ? data.map(([place, low, high]) => [low ?? 0, place ?? "", high ?? 0]) : data,
    encode: flipped ? { x: [0, 2], y: 1 } : { x: 0, y: [1, 2] },
    silent: true,
    z,
    itemStyle: { color: colour },
    renderItem: (_parameters, api) => {
      const [first, second, third] = [api.value(0), api.value(1), api.value(2)];
      const from = api.coord([first, second]);
      const to = api.coord(flipped ? [third, second] : [first, third]);
      const [x1 = 0, y1 = 0] = from;
      const [x2 = 0, y2 = 0] = to;
      const move = centre(api);
      const line = (ax: number, ay: number, bx: number, by: number) => ({
        type: "line" as const,
        shape: { x1: ax, y1: ay, x2: bx, y2: by },
        style: { stroke: colour, lineWidth: 1.5, opacity: 0.9 },
      });
      return {
        type: "group",
        children: flipped
          ? [
              line(x1, y1 + move, x2, y1 + move),
              line(x1, y1 + move - 4, x1, y1 + move + 4),
              line(x2, y1 + move - 4, x2, y1 + move + 4),
            ]
          : [
              line(x1 + move, y1, x1 + move, y2),
              line(x1 + move - 5, y1, x1 + move + 5, y1),
              line(x1 + move - 5, y2, x1 + move + 5, y2),
            ],
      };
    },
  };
}
