// forest.ts: ratios with their intervals, one line each, around 1.

import type { EChartsCoreOption } from "echarts/core";
import { figure } from "../format";
import type { Theme } from "../theme";
import type { Size } from "./chart";
import { base, namesWidth, tipOf, xAxisOf } from "./drawing";
import { textWidth } from "./text";

export interface Ratio {
  name: string;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
  a: { id: number };
}

const FINE = [0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5];
const COARSE = [0.1, 0.2, 0.5, 1, 2, 5, 10];
const POWERS = [1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1e3, 1e4];

// Ratios that people think in, as many as there is room for; 1 is always one of them.
function marksBetween(least: number, most: number, width: number): number[] {
  const spread = (most / least) * (width > 560 ? 1 : 3);
  const marks = spread > 60 ? POWERS : spread > 2.5 ? COARSE : FINE;
  return marks.filter((mark) => mark >= least && mark <= most);
}

// "large, training, batch 64" in two lines, broken after a comma.
function twoLines(name: string, room: number, theme: Theme): string {
  if (textWidth(name, 12, theme) <= room) return name;
  const parts = name.split(", ");
  let first = parts.length - 1;
  while (first > 1 && textWidth(parts.slice(0, first).join(", "), 12, theme) > room) first--;
  return `${parts.slice(0, first).join(", ")},\n${parts.slice(first).join(", ")}`;
}

function colourOf(verdict: string, theme: Theme): string {
  return verdict === "faster" ? theme.good : verdict === "slower" ? theme.bad : theme.faint;
}

// A bar from the low to the high end of each interval.
function intervals(rows: Ratio[], theme: Theme): object {
  return {
    type: "custom",
    silent: true,
    data: rows.map(({ low, high, ratio }, index) => [low ?? ratio, high ?? ratio, index]),
    encode: { x: [0, 1], y: 2 },
    renderItem: (
      _parameters: unknown,
      api: { coord(at: number[]): number[]; value(dimension: number): number },
    ) => {
      const from = api.coord([api.value(0), api.value(2)]);
      const to = api.coord([api.value(1), api.value(2)]);
      const row = rows[api.value(2)];
      return {
        type: "line",
        shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] },
        style: {
          stroke: colourOf(row?.verdict ?? "", theme),
          lineWidth: 4,
          opacity: 0.45,
          lineCap: "round",
        },
      };
    },
  };
}

function ratios(rows: Ratio[], theme: Theme): object {
  return {
    type: "scatter",
    symbolSize: 10,
    data: rows.map(({ name, ratio, verdict, a }) => ({
      value: [ratio, name],
      record: a.id,
      itemStyle: { color: colourOf(verdict, theme) },
    })),
    tooltip: {
      formatter: ({ dataIndex }: { dataIndex: number }) => {
        const row = rows[dataIndex];
        if (!row) return "";
        const interval =
          row.low !== null && row.high !== null ? [`${figure(row.low)} to ${figure(row.high)}`] : [];
        return tipOf(row.name, "", `A ÷ B = ${figure(row.ratio)}`, [...interval, row.verdict]);
      },
    },
  };
}

export function forest(rows: Ratio[], theme: Theme, { width }: Size): EChartsCoreOption {
  const ends = rows.flatMap(({ ratio, low, high }) => [ratio, low ?? ratio, high ?? ratio, 1]);
  const room = namesWidth(
    rows.map(({ name }) => name),
    width,
    theme,
  );
  const least = Math.min(...ends);
  const most = Math.max(...ends);
  return {
    ...base(theme),
    grid: { left: 8, right: 24, top: 12, bottom: 34, containLabel: true },
    xAxis: {
      ...xAxisOf(theme, "A ÷ B"),
      type: "log",
      logBase: most / least > 16 ? 10 : 2,
      min: least / 1.05,
      max: most * 1.05,
      axisLabel: {
        color: theme.faint,
        hideOverlap: true,
        formatter: figure,
        customValues: marksBetween(least / 1.05, most * 1.05, width),
      },
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: rows.map(({ name }) => name),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: {
        color: theme.text,
        interval: 0,
        formatter: (name: string) => twoLines(name, room, theme), // a line of the drawing has room for two
        fontSize: width > 560 ? 12 : 11,
        lineHeight: 13,
      },
    },
    series: [
      {
        type: "line",
        silent: true,
        symbol: "none",
        data: rows.flatMap(({ name }) => [[1, name]]),
        lineStyle: { color: theme.faint, width: 1, type: "dashed" },
      },
      intervals(rows, theme),
      ratios(rows, theme),
    ],
  };
}
