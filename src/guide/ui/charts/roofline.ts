// roofline.ts: what a machine allows, by how much is computed per byte, and where results lie under it.

import type { CustomSeriesOption } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { RooflinePoint, RoofRow } from "../api";
import { compact, figure, many, quantity } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, markStyle, tipOf, xAxisOf, yAxisOf, type Look } from "./drawing";
import { pushApart } from "./ends";

const LINE = 15; // pixels from one name to the next
const ABOVE = 9; // pixels from a roof to the middle of its name

export interface Roof {
  name: string;
  flop_per_s: number;
  bytes_per_s: number;
  far: boolean; // bytes come from the largest working set, not from the fastest cache
}

// The two slopes that some rows make, under the name of what computes.
function slopesOf(name: string, rows: RoofRow[]): Roof[] {
  const ours = rows.filter((row) => row.read_per_s > 0);
  const flop_per_s = Math.max(0, ...ours.map((row) => row.flop_per_s));
  const rates = ours.map(({ read_per_s }) => read_per_s);
  if (flop_per_s === 0) return [];
  return [
    { name, flop_per_s, bytes_per_s: Math.max(...rates), far: false },
    { name: `${name}, memory`, flop_per_s, bytes_per_s: Math.min(...rates), far: true },
  ];
}

// The CPU's, with one thread and with the most; a GPU's, in each precision.
export function roofsOf(rows: RoofRow[]): Roof[] {
  const ofCpu = rows.filter((row) => row.unit_name === null);
  const threads = [...new Set(ofCpu.map((row) => row.threads ?? 1))].sort((a, b) => a - b);
  const gpus = rows.filter((row) => row.unit_name !== null);
  const named = [...new Set(gpus.map((row) => `${row.unit_name}, ${row.precision}`))];
  return [
    ...[...new Set([threads[0], threads[threads.length - 1]])].flatMap((count) =>
      slopesOf(
        `CPU, ${many(count ?? 1, "thread")}`,
        ofCpu.filter((row) => row.threads === count),
      ),
    ),
    ...named.flatMap((name) =>
      slopesOf(
        name,
        gpus.filter((row) => `${row.unit_name}, ${row.precision}` === name),
      ),
    ),
  ];
}

export interface RooflineSheet {
  points: RooflinePoint[];
  roofs: Roof[];
  seriesOf(point: RooflinePoint): string;
}

// Names above the right ends of roofs, pushed apart where roofs are near each other.
function roofNames(roofs: Roof[], right: number, theme: Theme): CustomSeriesOption {
  return {
    type: "custom",
    silent: true,
    z: 4,
    data: roofs.map(({ flop_per_s }) => [right, flop_per_s]),
    encode: { x: 0, y: 1 },
    renderItem: (parameters, api) => {
      const area = parameters.coordSys as unknown as { x: number; y: number; width: number; height: number };
      const wanted = roofs.map(({ flop_per_s }) => (api.coord([right, flop_per_s])[1] ?? 0) - ABOVE);
      const placed = pushApart(wanted, LINE, area.y - LINE, area.y + area.height);
      return {
        type: "text",
        x: area.x + area.width - 4,
        y: placed[parameters.dataIndex] ?? 0,
        style: {
          text: roofs[parameters.dataIndex]?.name ?? "",
          fill: theme.faint,
          font: `12px ${theme.font}`,
          align: "right",
          verticalAlign: "middle",
          backgroundColor: theme.surface,
          padding: [0, 3],
        },
      };
    },
  };
}

function results(
  name: string,
  ours: RooflinePoint[],
  look: Look | undefined,
  theme: Theme,
): object {
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
}

export function drawRoofline({ points, roofs, seriesOf }: RooflineSheet, theme: Theme): EChartsCoreOption {
  const names = [...new Set(points.map(seriesOf))].sort();
  const looks = looksOf(names, theme);
  const ridges = roofs.map(({ flop_per_s, bytes_per_s }) => flop_per_s / bytes_per_s);
  const places = [...points.map(({ intensity }) => intensity), ...ridges];
  const least = 10 ** Math.floor(Math.log10(Math.min(...places) / 1.5));
  const most = 10 ** Math.ceil(Math.log10(Math.max(...places) * 3));
  return {
    ...base(theme),
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
      ...roofs.map(({ name, flop_per_s, bytes_per_s, far }) => ({
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
        lineStyle: { color: theme.faint, width: 1.5, type: far ? "dashed" : "solid" },
      })),
      roofNames(
        roofs.filter(({ far }) => !far),
        most,
        theme,
      ),
      ...names.map((name, index) =>
        results(
          name,
          points.filter((point) => seriesOf(point) === name),
          looks[index],
          theme,
        ),
      ),
    ],
  };
}
