// chart.ts: what a chart of the explorer is, and what such charts share.
//
// A chart is one file of this folder and one line in index.ts. It turns the answer to a query into what
// ECharts draws and fetches nothing itself. A data item with `record` can be picked.

import type { CustomSeriesOption, CustomSeriesRenderItemAPI } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { Axis, Metric, Point, Value } from "../api";
import { element, type Child } from "../dom";
import { figure, label, many, name, type Scale } from "../format";
import type { Theme } from "../theme";
import { markStyle, tipOf, xAxisOf, yAxisOf, type Look } from "./drawing";

export interface Sheet {
  points: Point[]; // sorted by series, then x
  aggregate: string;
  x: Axis;
  y: Metric;
  scale: Scale;
  logX: boolean;
  logY: boolean;
  theme: Theme;
}

export interface Chart {
  name: string; // in the address
  title: string; // on its button
  suits(sheet: Sheet): boolean; // the first of index.ts that suits is the one shown unasked
  draw(sheet: Sheet): EChartsCoreOption;
}

export interface Series {
  name: string;
  points: Point[];
}

export function seriesName(group: Value[]): string {
  return group.map(name).join(" · ") || "all results";
}

const SERIES_DRAWN = 60; // more cannot be told apart, and take long

// What is drawn of so many series, and a line that says what is not.
export function drawable<One>(series: One[]): { drawn: One[]; left: Child } {
  const drawn = series.slice(0, SERIES_DRAWN);
  const said = `The first ${drawn.length} of ${many(series.length, "series", "series")} are drawn; filters leave fewer. The table has all of them.`;
  return {
    drawn,
    left: drawn.length < series.length ? element("p", { className: "hint key", id: "left-out" }, said) : null,
  };
}

export function seriesOf(points: Point[]): Series[] {
  const all = new Map<string, Series>();
  for (const point of points) {
    const key = JSON.stringify(point.group);
    const series = all.get(key) ?? { name: seriesName(point.group), points: [] };
    series.points.push(point);
    all.set(key, series);
  }
  return [...all.values()];
}

// Numbers in their order, names as the server sorted them.
export function categoriesOf(points: Point[]): Value[] {
  const values = [...new Set(points.map((point) => point.x))];
  return values.every((value) => typeof value === "number") ? values.sort((a, b) => a - b) : values;
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

export function yAxis({ y, scale, logY, theme }: Sheet) {
  return yAxisOf(theme, `${label(y.key)}${scale.unit ? ` (${scale.unit})` : ""}`, logY);
}

export function xAxis({ x, theme }: Sheet) {
  return xAxisOf(theme, label(x.key));
}

function tip({ x, scale, aggregate }: Sheet, series: Series, point: Point): HTMLElement {
  const show = (value: number) => figure(value * scale.factor);
  const notes = [point.count === 1 ? "1 result" : `${aggregate} of ${point.count} results`];
  if (point.low < point.high) notes.unshift(`${show(point.low)} to ${show(point.high)}`);
  if (!isChecked(point)) notes.push("not checked");
  if (point.handicap !== null) notes.push(`${HANDICAPPED} ${point.handicap}`);
  if (point.configurations > 1) notes.push(`unlike in ${point.differs.map(label).join(", ")}`);
  return tipOf(series.name, `${label(x.key)} ${name(point.x)}`, `${show(point.y)} ${scale.unit}`, notes);
}

export function tooltipOf(sheet: Sheet, series: Series) {
  return {
    formatter: ({ dataIndex }: { dataIndex: number }) => {
      const point = series.points[dataIndex];
      return point ? tip(sheet, series, point) : "";
    },
  };
}

export function itemsOf(sheet: Sheet, series: Series, look: Look, xOf: (point: Point) => number | string) {
  return series.points.map((point) => ({
    value: [xOf(point), point.y * sheet.scale.factor],
    record: point.id,
    itemStyle: markStyle(sheet.theme, look.colour, isChecked(point)),
    ...(point.handicap === null
      ? {}
      : { label: { show: true, position: "top" as const, offset: [12, 0], fontSize: 16, formatter: HANDICAPPED, color: sheet.theme.text } }),
  }));
}

// Bars from low to high at the marks of one series, at height z among what is drawn. `centre` moves
// one to the middle of its bar.
export function errorBars(
  sheet: Sheet,
  series: Series,
  colour: string,
  z: number,
  xOf: (point: Point) => number | string,
  centre: (api: CustomSeriesRenderItemAPI) => number = () => 0,
): CustomSeriesOption {
  const data = series.points
    .filter((point) => point.low < point.high)
    .map((point) => [xOf(point), point.low * sheet.scale.factor, point.high * sheet.scale.factor]);
  return {
    type: "custom",
    name: series.name, // hidden together with its series by the legend
    data,
    encode: { x: 0, y: [1, 2] },
    silent: true,
    z,
    itemStyle: { color: colour },
    renderItem: (_parameters, api) => {
      const low = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(0), api.value(2)]);
      const x = (low[0] ?? 0) + centre(api);
      const bottom = low[1] ?? 0;
      const top = high[1] ?? 0;
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: "line" as const,
        shape: { x1, y1, x2, y2 },
        style: { stroke: colour, lineWidth: 1.5, opacity: 0.9 },
      });
      return {
        type: "group",
        children: [line(x, bottom, x, top), line(x - 5, top, x + 5, top), line(x - 5, bottom, x + 5, bottom)],
      };
    },
  };
}
