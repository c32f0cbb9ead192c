// roofline.ts: what a machine allows, by how much is computed per byte, and where results lie under it.

import type { EChartsCoreOption } from "echarts/core";
import type { Ceiling, RooflinePoint } from "../api";
import { compact, figure, quantity } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, markStyle, tipOf, xAxisOf, yAxisOf } from "./drawing";

export interface Roof {
  name: string;
  flop_per_s: number;
  bytes_per_s: number;
}

// For each number of threads, of all working sets: the fastest (a cache) and the slowest (memory).
export function roofsOf(ceilings: Ceiling[]): Roof[] {
  const threads = [...new Set(ceilings.map((ceiling) => ceiling.threads))].sort((a, b) => a - b);
  return threads.flatMap((count) => {
    const all = ceilings.filter((ceiling) => ceiling.threads === count);
    const flop = Math.max(...all.map(({ flop_per_s }) => flop_per_s));
    const ranked = [...all].sort((a, b) => b.read_per_s - a.read_per_s);
    const [fastest, slowest] = [ranked[0], ranked[ranked.length - 1]];
    const title = count === 1 ? "1 thread" : `${count} threads`;
    const ends = fastest === slowest ? [fastest] : [fastest, slowest];
    return ends.flatMap((end) => (end ? [{ name: `${title}, ${quantity(end.set_bytes, "B")}`, flop_per_s: flop, bytes_per_s: end.read_per_s }] : []));
  });
}

export interface RooflineSheet {
  points: RooflinePoint[];
  roofs: Roof[];
  seriesOf(point: RooflinePoint): string;
}

export function drawRoofline({ points, roofs, seriesOf }: RooflineSheet, theme: Theme): EChartsCoreOption {
  const names = [...new Set(points.map(seriesOf))].sort();
  const looks = looksOf(names, theme);
  const ridges = roofs.map(({ flop_per_s, bytes_per_s }) => flop_per_s / bytes_per_s);
  const places = [...points.map(({ intensity }) => intensity), ...ridges];
  const least = 10 ** Math.floor(Math.log10(Math.min(...places) / 1.5));
  const most = 10 ** Math.ceil(Math.log10(Math.max(...places) * 3));
  return {
    ...base(theme, names),
    xAxis: { ...xAxisOf(theme, "arithmetic intensity (FLOP per byte)"), type: "log", min: least, max: most, axisLabel: { color: theme.faint, formatter: figure, hideOverlap: true } },
    yAxis: { ...yAxisOf(theme, "FLOP/s", true), axisLabel: { color: theme.faint, formatter: compact, hideOverlap: true } },
    series: [
      ...roofs.map(({ name, flop_per_s, bytes_per_s }, index) => ({
        type: "line",
        name,
        symbol: "none",
        silent: true,
        z: 1,
        data: [[least, Math.min(flop_per_s, least * bytes_per_s)], [flop_per_s / bytes_per_s, flop_per_s], [most, flop_per_s]],
        lineStyle: { color: theme.faint, width: 1.5, type: index % 2 ? "dashed" : "solid" },
        endLabel: { show: index % 2 === 0, formatter: name.split(",")[0], color: theme.faint, align: "right", offset: [-6, -9] },
      })),
      ...names.map((name, index) => {
        const ours = points.filter((point) => seriesOf(point) === name);
        const look = looks[index];
        return {
          type: "scatter",
          name,
          symbol: look?.symbol,
          symbolSize: 10,
          itemStyle: { color: look?.colour, opacity: 0.9 },
          data: ours.map((point) => ({ value: [point.intensity, point.flop_rate], record: point.id, itemStyle: markStyle(theme, look?.colour ?? "", point.check === "right") })),
          tooltip: {
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const point = ours[dataIndex];
              if (!point) return "";
              const floor = point.times_floor ? [`${quantity(point.times_floor, "x")} floor${point.bound ? `, bound by ${point.bound}` : ""}`] : [];
              return tipOf(point.label, `${figure(point.intensity)} FLOP per byte`, quantity(point.flop_rate, "FLOP/s"), [...floor, quantity(point.byte_rate, "B/s")]);
            },
          },
        };
      }),
    ],
  };
}
