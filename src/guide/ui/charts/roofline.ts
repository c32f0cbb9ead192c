// roofline.ts: what a machine allows, by how much is computed per byte, and where results lie under it.

import type { EChartsCoreOption } from "echarts/core";
import type { Ceiling, RooflinePoint } from "../api";
import { compact, figure, many, quantity } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, markStyle, tipOf, xAxisOf, yAxisOf } from "./drawing";

export interface Roof {
  name: string;
  flop_per_s: number;
  bytes_per_s: number;
  dash: "solid" | "dashed" | "dotted";
}

// With one thread and with the most: fp32, on memory at its fastest (a cache) and at its slowest (the
// largest working set), and with the most threads what lower precisions would allow.
export function roofsOf(ceilings: Ceiling[]): Roof[] {
  const threads = [...new Set(ceilings.map((row) => row.threads))].sort((a, b) => a - b);
  const most = threads[threads.length - 1];
  return [...new Set([threads[0], most])].flatMap((count) => {
    const ours = ceilings.filter((row) => row.threads === count);
    const peak = (kind: string) =>
      Math.max(0, ...ours.filter(({ ceiling }) => ceiling === kind).map(({ per_s }) => per_s));
    const best = new Map<number, number>(); // bytes read a second, by working set
    for (const { ceiling, set_bytes = 0, per_s } of ours)
      if (ceiling === "read") best.set(set_bytes, Math.max(per_s, best.get(set_bytes) ?? 0));
    const rates = [...best.values()];
    if (peak("fp32") === 0 || rates.length === 0) return [];
    const title = many(count ?? 1, "thread");
    const [fast, slow] = [Math.max(...rates), Math.min(...rates)];
    const lower = count === most ? ["bf16", "int8"].filter((kind) => peak(kind) > peak("fp32")) : [];
    return [
      { name: title, flop_per_s: peak("fp32"), bytes_per_s: fast, dash: "solid" as const },
      { name: `${title}, memory`, flop_per_s: peak("fp32"), bytes_per_s: slow, dash: "dashed" as const },
      ...lower.map((kind) => ({
        name: `${title}, ${kind}`,
        flop_per_s: peak(kind),
        bytes_per_s: fast,
        dash: "dotted" as const,
      })),
    ];
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
    xAxis: {
      ...xAxisOf(theme, "arithmetic intensity (FLOP per byte)"),
      type: "log",
      min: least,
      max: most,
      axisLabel: { color: theme.faint, formatter: figure, hideOverlap: true },
    },
    yAxis: {
      ...yAxisOf(theme, "FLOP/s", true),
      axisLabel: { color: theme.faint, formatter: compact, hideOverlap: true },
    },
    series: [
      ...roofs.map(({ name, flop_per_s, bytes_per_s, dash }) => ({
        type: "line",
        name,
        symbol: "none",
        silent: true,
        z: 1,
        data: [
          [least, Math.min(flop_per_s, least * bytes_per_s)],
          [flop_per_s / bytes_per_s, flop_per_s],
          [most, flop_per_s],
        ],
        lineStyle: { color: theme.faint, width: 1.5, type: dash },
        endLabel: {
          show: dash !== "dashed",
          formatter: name,
          color: theme.faint,
          align: "right",
          offset: [-6, -9],
        },
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
          data: ours.map((point) => ({
            value: [point.intensity, point.flop_rate],
            record: point.id,
            itemStyle: markStyle(theme, look?.colour ?? "", point.check === "right"),
          })),
          tooltip: {
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const point = ours[dataIndex];
              if (!point) return "";
              const floor = point.times_floor
                ? [
                    `${quantity(point.times_floor, "x")} floor${point.bound ? `, bound by ${point.bound}` : ""}`,
                  ]
                : [];
              return tipOf(
                point.label,
                `${figure(point.intensity)} FLOP per byte`,
                quantity(point.flop_rate, "FLOP/s"),
                [...floor, quantity(point.byte_rate, "B/s")],
              );
            },
          },
        };
      }),
    ],
  };
}
