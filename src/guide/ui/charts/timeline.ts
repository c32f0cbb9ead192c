// timeline.ts: what ran when, a row for each thread and stream, and one for each depth of what it was in.

import type { EChartsCoreOption } from "echarts/core";
import type { Timeline, TimelineBlock } from "../api_profiles";
import { many, quantity, scaleFor } from "../format";
import type { Theme } from "../theme";
import { blockSeries, fitted, ROW, type Block } from "./blocks";
import { base, tipOf, xAxisOf } from "./drawing";

const MOST = 60; // rows: what lies below is counted
const BOTTOM = 48; // pixels for the axis

// Which of the palette's colours a kind of span has.
const COLOURS: Record<string, number> = {
  kernel: 0,
  copy: 1,
  fill: 6,
  wait: 4,
  event: 7,
  call: 5,
  op: 2,
  python: 3,
  loader: 1,
  step: 7,
  mark: 7,
  sample: 2,
  sleep: 7,
};

export const KINDS: Record<string, string> = {
  kernel: "kernel",
  copy: "copy",
  fill: "fill",
  wait: "waiting for the GPU",
  event: "event",
  call: "call of the GPU's library",
  op: "op",
  python: "Python function",
  loader: "making a batch",
  step: "step",
  mark: "range of the program's own",
  sample: "seen running",
  sleep: "waiting",
};

export interface TimelineSheet {
  timeline: Timeline;
  firsts: number[]; // the row of each lane's name; its blocks begin below
  rows: number;
  shown: number; // lanes that have rows
}

export function timelineSheet(timeline: Timeline): TimelineSheet {
  const firsts: number[] = [];
  let rows = 0;
  for (const lane of timeline.lanes) {
    if (rows > 0 && rows + 1 + lane.rows > MOST) break;
    firsts.push(rows);
    rows += 1 + lane.rows;
  }
  return { timeline, firsts, rows, shown: firsts.length };
}

export function timelineHeight({ rows }: TimelineSheet): number {
  return rows * ROW + BOTTOM;
}

type Places = { unit: string; show: (ns: number) => string };

// Places on the axis in the unit of what is shown, with the digits that tell them apart.
function placesOf({ from, to }: Timeline): Places {
  const { unit, factor } = scaleFor("ns", [to]);
  const step = ((to - from) * factor) / 6;
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step || 1)) + 1));
  return { unit, show: (ns) => String(Number((ns * factor).toFixed(digits))) };
}

function tipOfBlock(
  timeline: Timeline,
  block: TimelineBlock | undefined,
  axis: Places,
): HTMLElement | string {
  const { lanes, names, kinds } = timeline;
  if (!block) return "";
  const [lane, , start, length, name, kind, spans, line] = block;
  const called = names[name] || KINDS[kinds[kind] ?? ""] || "";
  const notes = [
    KINDS[kinds[kind] ?? ""] ?? "",
    line >= 0 ? (names[line] ?? "") : "",
    lanes[lane]?.name ?? "",
    "A click zooms to it.",
  ];
  return tipOf(
    spans > 1 ? `${many(spans, "span")}, the longest ${called}` : called,
    `from ${axis.show(start)} ${axis.unit}`,
    quantity(length, "ns"),
    notes.filter((note) => note !== "" && note !== called),
  );
}

// The name of each lane, above its rows.
function laneNames({ timeline, firsts }: TimelineSheet, theme: Theme): object {
  const { lanes } = timeline;
  return {
    type: "custom",
    silent: true,
    animation: false,
    data: firsts.map((row) => [timeline.from, row]),
    renderItem: (
      { dataIndex, coordSys }: { dataIndex: number; coordSys: { x: number; width: number } },
      api: { coord(at: number[]): number[]; value(index: number): number },
    ) => ({
      type: "text",
      x: coordSys.x,
      y: api.coord([timeline.from, api.value(1)])[1] ?? 0,
      style: {
        text: fitted(lanes[dataIndex]?.name ?? "", coordSys.width, theme),
        fill: theme.faint,
        font: `12px ${theme.font}`,
        verticalAlign: "middle",
      },
    }),
  };
}

export function drawTimeline(sheet: TimelineSheet, theme: Theme, width: number): EChartsCoreOption {
  const { timeline, firsts, rows, shown } = sheet;
  const { names, kinds } = timeline;
  const drawn = timeline.blocks.filter(([lane]) => lane < shown);
  const blocks = drawn.map(([lane, row, start, length, name, kind, spans]): Block => ({
    from: start,
    to: start + length,
    row: (firsts[lane] ?? 0) + 1 + row,
    name: spans > 1 ? "" : names[name] || KINDS[kinds[kind] ?? ""] || "",
    colour: theme.series[COLOURS[kinds[kind] ?? ""] ?? 7] ?? theme.faint,
    pale: kinds[kind] === "sleep" || kinds[kind] === "step",
  }));
  const axis = placesOf(timeline);
  return {
    ...base(theme),
    animation: false,
    grid: { left: 8, right: 8, top: 2, bottom: BOTTOM - 2 },
    xAxis: {
      ...xAxisOf(theme, `from the beginning (${axis.unit})`),
      type: "value",
      min: timeline.from,
      max: timeline.to,
      nameGap: 28,
      axisLine: { onZero: false, lineStyle: { color: theme.line } },
      splitNumber: Math.max(2, Math.floor(width / 160)),
      axisLabel: {
        color: theme.faint,
        fontSize: 12,
        hideOverlap: true,
        alignMinLabel: "left",
        alignMaxLabel: "right",
        formatter: axis.show,
      },
    },
    yAxis: { type: "value", inverse: true, min: -0.5, max: rows - 0.5, show: false },
    series: [
      laneNames(sheet, theme),
      blockSeries(blocks, theme, (index) => tipOfBlock(timeline, drawn[index], axis)),
    ],
  };
}
