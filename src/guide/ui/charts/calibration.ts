// calibration.ts: what memory delivers by the size of what is worked on: the steps of the caches.

import type { EChartsCoreOption } from "echarts/core";
import type { Ceiling } from "../api";
import { compact, figure, quantity } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, tipOf, xAxisOf, yAxisOf } from "./drawing";

interface Curve {
  name: string;
  points: { set_bytes: number; rate: number }[];
}

export function curvesOf(ceilings: Ceiling[]): Curve[] {
  const threads = [...new Set(ceilings.map((ceiling) => ceiling.threads))].sort((a, b) => a - b);
  return threads.flatMap((count) => {
    const rows = ceilings.filter((ceiling) => ceiling.threads === count).sort((a, b) => a.set_bytes - b.set_bytes);
    const title = count === 1 ? "1 thread" : `${count} threads`;
    return [
      { name: `read, ${title}`, points: rows.map(({ set_bytes, read_per_s }) => ({ set_bytes, rate: read_per_s })) },
      { name: `update, ${title}`, points: rows.map(({ set_bytes, update_per_s }) => ({ set_bytes, rate: update_per_s })) },
    ];
  });
}

export function drawCalibration(curves: Curve[], theme: Theme): EChartsCoreOption {
  const names = curves.map(({ name }) => name);
  const looks = looksOf(names, theme);
  const sizes = curves.flatMap(({ points }) => points.map(({ set_bytes }) => set_bytes));
  return {
    ...base(theme, names),
    xAxis: { ...xAxisOf(theme, "working set"), type: "log", logBase: 2, min: Math.min(...sizes), max: Math.max(...sizes), axisLabel: { color: theme.faint, hideOverlap: true, formatter: (bytes: number) => `${compact(bytes)}B` }, splitLine: { show: false } },
    yAxis: { ...yAxisOf(theme, "GB/s"), min: 0 },
    series: curves.map(({ name, points }, index) => ({
      type: "line",
      name,
      symbol: looks[index]?.symbol,
      symbolSize: 6,
      itemStyle: { color: looks[index]?.colour },
      lineStyle: { width: 2, color: looks[index]?.colour, type: name.startsWith("update") ? "dashed" : "solid" },
      data: points.map(({ set_bytes, rate }) => [set_bytes, rate / 1e9]),
      tooltip: {
        formatter: ({ dataIndex }: { dataIndex: number }) => {
          const point = points[dataIndex];
          return point ? tipOf(name, `working set ${quantity(point.set_bytes, "B")}`, `${figure(point.rate / 1e9)} GB/s`, []) : "";
        },
      },
    })),
  };
}
