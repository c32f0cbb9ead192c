// scaling.ts: speed-up or efficiency over a number of units, with the ideal as a dashed line.

import type { EChartsCoreOption } from "echarts/core";
import type { Point } from "../api";
import { figure, label } from "../format";
import type { Theme } from "../theme";
import type { Series, Size } from "./chart";
import { isChecked } from "./chart";
import { base, looksOf, markStyle, SIGNS, tipOf, xAxisOf, yAxisOf, type Look } from "./drawing";
import { endLabels, endsWidth, ROOM } from "./ends";
import { element } from "../dom";

export interface ScalingSheet {
  series: Series[];
  over: string;
  efficiency: boolean; // instead of the speed-up
}

const IDEAL = "ideal";

function valueOf({ efficiency }: ScalingSheet, point: Point): number | null {
  const value = efficiency ? point.efficiency : point.speedup;
  return typeof value === "number" ? value * (efficiency ? 100 : 1) : null;
}

// Every series with so many units, the fastest first.
function tipAt(sheet: ScalingSheet, place: number, looks: Look[]): HTMLElement {
  const unit = sheet.efficiency ? "%" : "×";
  const found = sheet.series
    .flatMap((series, index) =>
      series.points
        .filter(({ x }) => Number(x) === place)
        .map((point) => ({ name: series.name, look: looks[index], value: valueOf(sheet, point) })),
    )
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const tip = tipOf(`${label(sheet.over)} ${place}`, "", "", []);
  const rows = found.map(({ name, look, value }) => {
    const sign = element("span", { className: "swatch" }, SIGNS[look?.symbol ?? ""] ?? "●");
    sign.style.color = `var(${look?.variable ?? "--text"})`;
    return element(
      "tr",
      {},
      element("td", {}, sign, name),
      element("td", { className: "number tip-figure" }, value === null ? "–" : `${figure(value)} ${unit}`),
    );
  });
  tip.append(element("table", {}, element("tbody", {}, ...rows)));
  return tip;
}

function idealLine(sheet: ScalingSheet, places: number[], theme: Theme) {
  const ideal = new Map(
    sheet.series.flatMap(({ points }) => points.map(({ x, ideal: perfect }) => [Number(x), perfect ?? 1])),
  );
  return {
    type: "line",
    name: IDEAL,
    silent: true,
    symbol: "none",
    data: places.map((place) => [place, sheet.efficiency ? 100 : (ideal.get(place) ?? null)]),
    lineStyle: { color: theme.faint, width: 1.5, type: "dashed" },
    itemStyle: { color: theme.faint },
  };
}

function endsOf(sheet: ScalingSheet, looks: Look[], places: number[], theme: Theme) {
  const last = places[places.length - 1] ?? 1;
  const ideal = sheet.efficiency
    ? 100
    : Math.max(
        ...sheet.series.flatMap(({ points }) =>
          points.filter(({ x }) => x === last).map((p) => p.ideal ?? 1),
        ),
        1,
      );
  const perfect = { colour: theme.faint, variable: "--faint", symbol: "circle", dash: "dashed" as const };
  return [
    ...sheet.series.flatMap(({ key, name, points }, index) => {
      const end = points[points.length - 1];
      const value = end ? valueOf(sheet, end) : null;
      const look = looks[index];
      return end && look && value !== null ? [{ key, name, look, x: Number(end.x), y: value }] : [];
    }),
    { name: IDEAL, look: perfect, x: last, y: ideal },
  ];
}

export function drawScaling(sheet: ScalingSheet, theme: Theme, size: Size): EChartsCoreOption {
  const { series: all, over, efficiency } = sheet;
  const looks = looksOf(
    all.map(({ key }) => key),
    theme,
  );
  const places = [...new Set(all.flatMap(({ points }) => points.map(({ x }) => Number(x))))].sort(
    (a, b) => a - b,
  );
  const named = size.width >= ROOM;
  const names = [...all.map(({ name }) => name), IDEAL];
  return {
    ...base(theme, named ? endsWidth(names, size.width, theme) : 20),
    tooltip: {
      trigger: "axis",
      confine: true,
      backgroundColor: theme.surface,
      borderColor: theme.line,
      textStyle: { color: theme.text },
      axisPointer: { type: "line", snap: true, lineStyle: { color: theme.faint, type: "dashed" } },
      formatter: (given: { value: number[] }[]) => {
        const place = given[0]?.value[0];
        return place === undefined ? "" : tipAt(sheet, place, looks);
      },
    },
    xAxis: {
      ...xAxisOf(theme, label(over)),
      type: "value",
      min: places[0],
      max: places[places.length - 1],
      axisLabel: { color: theme.faint, customValues: places },
      axisTick: { customValues: places, lineStyle: { color: theme.line } },
      splitLine: { show: false },
    },
    yAxis: { ...yAxisOf(theme, efficiency ? "efficiency (%)" : "speed-up (×)"), min: 0 },
    series: [
      idealLine(sheet, places, theme),
      ...all.map((series, index) => {
        const look = looks[index];
        return {
          type: "line",
          name: series.name,
          symbol: look?.symbol,
          symbolSize: 9,
          itemStyle: { color: look?.colour },
          lineStyle: { width: 2, color: look?.colour, type: look?.dash },
          emphasis: { focus: "series" },
          data: series.points.map((point) => ({
            value: [Number(point.x), valueOf(sheet, point)],
            record: point.id,
            itemStyle: markStyle(theme, look?.colour ?? "", isChecked(point)),
          })),
        };
      }),
      ...(named ? [endLabels(endsOf(sheet, looks, places, theme), size.width, theme)] : []),
    ],
  };
}
