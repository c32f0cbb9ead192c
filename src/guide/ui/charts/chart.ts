// chart.ts: what a chart is, and what charts share: the page's colours, axes and error bars.
//
// A chart is one file of this folder and one line in index.ts. It turns the server's answer into what
// ECharts draws and fetches nothing itself.

import type { CustomSeriesOption, CustomSeriesRenderItemAPI } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { Axis, Metric, Point, Value } from "../api";
import { compact, figure, label, name, type Scale } from "../format";
import { element } from "../dom";

export interface Theme {
  text: string;
  faint: string;
  line: string;
  surface: string;
  series: string[];
  font: string;
}

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

export function seriesOf(points: Point[]): Series[] {
  const all = new Map<string, Series>();
  for (const point of points) {
    const key = JSON.stringify(point.group);
    const title = point.group.map(name).join(" · ") || "all results";
    const series = all.get(key) ?? { name: title, points: [] };
    series.points.push(point);
    all.set(key, series);
  }
  return [...all.values()];
}

const remembered = new Map<string, number>();

// A series keeps its colour while the page is open, whatever is filtered around it.
export function coloursOf(all: Series[], { series: palette }: Theme): string[] {
  const taken = new Set<number>();
  const chosen = new Map<string, number>();
  const take = (name: string, index: number) => {
    taken.add(index);
    chosen.set(name, index);
    remembered.set(name, index);
  };
  for (const { name } of all) {
    const index = remembered.get(name);
    if (index !== undefined && !taken.has(index)) take(name, index);
  }
  for (const { name } of all) {
    if (chosen.has(name)) continue;
    const free = palette.findIndex((_, index) => !taken.has(index));
    take(name, free >= 0 ? free : chosen.size % palette.length);
  }
  return all.map(({ name }) => palette[chosen.get(name) ?? 0] ?? "");
}

// Numbers in their order, names as the server sorted them.
export function categoriesOf(points: Point[]): Value[] {
  const values = [...new Set(points.map((point) => point.x))];
  return values.every((value) => typeof value === "number") ? values.sort((a, b) => a - b) : values;
}

export function isChecked(point: Point): boolean {
  return point.unchecked === 0;
}

function valueAxis(theme: Theme) {
  return {
    axisLine: { lineStyle: { color: theme.line } },
    axisTick: { lineStyle: { color: theme.line } },
    axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } },
    minorSplitLine: { show: false },
    nameTextStyle: { color: theme.faint },
  };
}

export function yAxis({ y, scale, logY, theme }: Sheet) {
  return {
    ...valueAxis(theme),
    type: logY ? "log" : "value",
    name: `${label(y.key)}${scale.unit ? ` (${scale.unit})` : ""}`,
    nameLocation: "end",
    nameTextStyle: { color: theme.faint, align: "left", padding: [0, 0, 6, -36] },
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true, formatter: compact },
  };
}

export function xAxis({ x, theme }: Sheet) {
  return { ...valueAxis(theme), name: label(x.key), nameLocation: "middle", nameGap: 32 };
}

export function base(theme: Theme, series: Series[]) {
  return {
    animationDuration: 250,
    color: theme.series,
    textStyle: { fontFamily: theme.font, fontSize: 13, color: theme.text },
    grid: { left: 8, right: 20, top: series.length > 1 ? 66 : 32, bottom: 34, containLabel: true },
    legend: {
      type: "scroll",
      show: series.length > 1,
      top: 0,
      left: 0,
      icon: "circle",
      itemWidth: 10,
      itemHeight: 10,
      itemGap: 18,
      textStyle: { color: theme.text, fontSize: 13 },
      pageTextStyle: { color: theme.faint },
      pageIconColor: theme.text,
      pageIconInactiveColor: theme.line,
    },
    tooltip: {
      trigger: "item",
      backgroundColor: theme.surface,
      borderColor: theme.line,
      textStyle: { color: theme.text },
    },
  };
}

// Built as an element: the content-security policy allows no style within markup.
export function tip({ x, scale, aggregate }: Sheet, series: Series, point: Point): HTMLElement {
  const show = (value: number) => figure(value * scale.factor);
  const notes = [point.count === 1 ? "1 result" : `${aggregate} of ${point.count} results`];
  if (point.low < point.high) notes.unshift(`${show(point.low)} to ${show(point.high)}`);
  if (!isChecked(point)) notes.push("not checked");
  if (point.configurations > 1) notes.push(`${point.configurations} unlike configurations`);
  return element(
    "div",
    { className: "tip" },
    element("strong", {}, series.name),
    element("div", {}, `${label(x.key)} ${name(point.x)}`),
    element("div", { className: "tip-figure" }, `${show(point.y)} ${scale.unit}`),
    ...notes.map((note) => element("div", { className: "tip-note" }, note)),
  );
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
