// state.ts: what the page shows, and its form in the address, so that a view can be shared, kept as a
// bookmark and reached again with the browser's back button.

import { addFilters, type Catalogue, type Query, type Status } from "./api";

export interface State extends Query {
  chart: string; // a name of charts/index.ts, or "" for the one that suits best
  logX: boolean;
  logY: boolean;
}

const DEFAULT_AGGREGATE = "median";

// The first view: the newest result's network and phase, by batch, one series per implementation.
export function defaultState(catalogue: Catalogue, status: Status): State {
  const has = (key: string) => catalogue.axes.some((axis) => axis.key === key);
  const measures = (key: string) => catalogue.metrics.some((metric) => metric.key === key);
  const state: State = {
    x: has("batch") ? "batch" : (catalogue.axes[0]?.key ?? ""),
    y: measures("throughput") ? "throughput" : (catalogue.metrics[0]?.key ?? ""),
    group: ["framework", "backend"].filter(has),
    aggregate: DEFAULT_AGGREGATE,
    filters: {},
    chart: "",
    logX: true,
    logY: true,
  };
  for (const key of ["model", "phase"]) {
    const value = status.newest?.point[key];
    if (has(key) && value !== null && value !== undefined) state.filters[key] = [String(value)];
  }
  return state;
}

export function toSearch(state: State): string {
  const parameters = new URLSearchParams({ y: state.y, x: state.x });
  if (state.group.length > 0) parameters.set("group", state.group.join(","));
  if (state.aggregate !== DEFAULT_AGGREGATE) parameters.set("aggregate", state.aggregate);
  if (state.chart) parameters.set("chart", state.chart);
  const log = (state.logX ? "x" : "") + (state.logY ? "y" : "");
  if (log) parameters.set("log", log);
  addFilters(parameters, state.filters);
  return `?${parameters}`;
}

// An address with no y and x is the first view. What is not known (an axis of another version) is
// left to the server, which says so by name.
export function fromSearch(search: string, catalogue: Catalogue, status: Status): State {
  const parameters = new URLSearchParams(search);
  const state = defaultState(catalogue, status);
  const x = parameters.get("x");
  const y = parameters.get("y");
  if (x === null || y === null) return state;
  state.x = x;
  state.y = y;
  state.group = (parameters.get("group") ?? "").split(",").filter((axis) => axis !== "");
  state.aggregate = parameters.get("aggregate") ?? DEFAULT_AGGREGATE;
  state.chart = parameters.get("chart") ?? "";
  const log = parameters.get("log") ?? "";
  state.logX = log.includes("x");
  state.logY = log.includes("y");
  state.filters = {};
  const own = new Set(["x", "y", "group", "aggregate", "chart", "log"]);
  for (const [key, value] of parameters)
    if (!own.has(key)) (state.filters[key] ??= []).push(value);
  return state;
}
