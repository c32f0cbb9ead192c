// calibration.ts: what memory delivers by the size of what is worked on: the steps of the caches.

import type { EChartsCoreOption } from "echarts/core";
import type { Ceiling } from "../api";
import { binarySize, figure, many } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, tipOf, xAxisOf, yAxisOf } from "./drawing";

export interface Curve {
  name: string;
  points: { set_bytes: number; per_s: number }[];
}

const KINDS = ["read", "update"]; // copy lies between them

// With one thread and with the most, on these pages, by whichever instructions were best; GPUs.
export function curvesOf(ceilings: Ceiling[], pages: string): Curve[] {
  const rows = ceilings.filter((row) => row.pages === pages);
  const threads = [...new Set(rows.map((row) => row.threads ?? 1))].sort((a, b) => a - b);
  const ends = [...new Set([threads[0], threads[threads.length - 1]])].filter((count) => count !== undefined);
  const gpus = [...new Set(ceilings.flatMap((row) => row.unit_name ?? []))];
  const units = [
    ...ends.map((count) => ({
      name: many(count, "thread"),
      rows: rows.filter((row) => row.threads === count),
    })),
    ...gpus.map((name) => ({ name, rows: ceilings.filter((row) => row.unit_name === name) })),
  ];
  return KINDS.flatMap((kind) =>
    units.map((unit): Curve => {
      const best = new Map<number, number>();
      for (const { ceiling, set_bytes = 0, per_s } of unit.rows)
        if (ceiling === kind) best.set(set_bytes, Math.max(per_s, best.get(set_bytes) ?? 0));
      const points = [...best]
        .map(([set_bytes, per_s]) => ({ set_bytes, per_s }))
        .sort((a, b) => a.set_bytes - b.set_bytes);
      return { name: `${kind}, ${unit.name}`, points };
    }),
  ).filter(({ points }) => points.length > 0);
}

export function drawCalibration(curves: Curve[], theme: Theme): EChartsCoreOption {
  const names = curves.map(({ name }) => name);
  const looks = looksOf(names, theme);
  const sizes = curves.flatMap(({ points }) => points.map(({ set_bytes }) => set_bytes));
  const places = [...new Set(sizes)];
  return {
    ...base(theme),
    xAxis: {
      ...xAxisOf(theme, "working set"),
      type: "log",
      logBase: 2,
      min: Math.min(...sizes),
      max: Math.max(...sizes),
      axisLabel: { color: theme.faint, hideOverlap: true, formatter: binarySize, customValues: places },
      axisTick: { customValues: places, lineStyle: { color: theme.line } },
      splitLine: { show: false },
    },
    yAxis: { ...yAxisOf(theme, "GB/s"), min: 0 },
    series: curves.map(({ name, points }, index) => ({
      type: "line",
      name,
      symbol: looks[index]?.symbol,
      symbolSize: 6,
      itemStyle: { color: looks[index]?.colour },
      lineStyle: {
        width: 2,
        color: looks[index]?.colour,
        type: name.startsWith("update") ? "dashed" : "solid",
      },
      data: points.map(({ set_bytes, per_s }) => [set_bytes, per_s / 1e9]),
      tooltip: {
        formatter: ({ dataIndex }: { dataIndex: number }) => {
          const point = points[dataIndex];
          return point
            ? tipOf(
                name,
                `working set ${binarySize(point.set_bytes)}`,
                `${figure(point.per_s / 1e9)} GB/s`,
                [],
              )
            : "";
        },
      },
    })),
  };
}
