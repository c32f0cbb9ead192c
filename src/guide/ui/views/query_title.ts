// query_title.ts: what a chart shows in words: the measure and the axis, and behind them what is the same
// for all of it: "Throughput by batch: large, training, 1 thread, CPU, AMD EPYC".

import type { Filters, Value, Values } from "../api";
import { filterWords } from "../filters";
import { label, many, sentence } from "../format";
import { valueName, valueWords } from "../naming";
import type { State } from "../state";

// Axes that a reader must know the value of, in the order in which people say them.
const SAID = [
  "model",
  "phase",
  "batch",
  "precision",
  "data",
  "ingestion",
  "scenario",
  "framework",
  "backend",
  "threads",
  "workers",
  "nodes",
  "unit",
  "server",
];
// Values that go without saying.
const PLAIN: Record<string, string> = {
  precision: "fp32",
  data: "synthetic",
  ingestion: "resident",
  scenario: "iterate",
  backend: "default",
  workers: "1",
  nodes: "1",
};

const TRENDS = ["commit", "software", "time"];

export function titleOf(state: State): string {
  const what =
    state.show === "figures"
      ? label(state.y)
      : `${state.show === "speedup" ? "speed-up" : "efficiency"} of ${label(state.y)}`;
  return sentence(`${what} ${TRENDS.includes(state.x) ? "over" : "by"} ${label(state.x)}`);
}

function constantOf(axis: string, filters: Filters, values: Values): Value {
  const found: Value[] = filters[axis] ?? (values[axis] ?? []).map(({ value }) => value);
  const [value = null] = found;
  return found.length === 1 && String(value) !== PLAIN[axis] ? value : null;
}

// `values`: what there is under the filters; {}: only filters are known to hold for all.
export function constantsOf(state: State, values: Values): string {
  const own = new Set(state.series.flatMap(({ filters }) => Object.keys(filters)));
  return SAID.filter((axis) => axis !== state.x && axis !== state.facet && !own.has(axis))
    .map((axis): [string, Value] => [axis, constantOf(axis, state.filters, values)])
    .filter(([, value]) => value !== null && value !== "")
    .map(([axis, value]) => valueWords(axis, value))
    .join(", ");
}

export function subtitleOf(state: State, results: number, better: string): string {
  const baseline = (state.baseline || "first")
    .replace(/^series:/, "")
    .replace(/^first$/, `each series at its least ${label(state.x)}`);
  return [
    ...(state.facet ? [`one chart per ${label(state.facet)}`] : []),
    ...(state.show === "figures" ? [] : [`against ${baseline}`]),
    `${many(results, "result")}, ${state.aggregate} at each point`,
    `${better} is better`,
  ].join(" · ");
}

// For files, which have no controls beside them.
export function filtersLine(state: State): string {
  const named = state.series.map(
    ({ name, filters }) => `${name}: ${filterWords(filters) || "no filters of its own"}`,
  );
  const words = [filterWords(state.filters), ...named].filter(Boolean).join(" · ");
  return `Filters: ${words || "none"}`;
}

// What the table and the CSV call the groups of a point.
export function groupTitles(state: State): string[] {
  return [
    ...(state.series.length > 0 ? ["series"] : []),
    ...(state.facet ? [state.facet] : []),
    ...state.group.filter((axis) => axis !== state.facet),
  ];
}

// "ours, 2 threads, batch 64"
export function pointTitle(state: State, group: Value[], x: Value): string {
  const titles = groupTitles(state);
  const parts = group.map((value, at) =>
    titles[at] === "series" ? String(value) : valueWords(titles[at] ?? "", value),
  );
  return [...parts, `${label(state.x)} ${valueName(state.x, x)}`].join(", ");
}
