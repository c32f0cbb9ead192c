// state.ts: what the explorer shows, and its form in the address.

import { addFilters, type Catalogue, type Filters, type Query, type Status } from "./api";
import { filtersOf } from "./page";

export interface Named {
  name: string;
  filters: Filters; // instead of the common ones of the same axes
}

export type Shown = "figures" | "speedup" | "efficiency";

export interface State extends Query {
  chart: string; // a name of charts/index.ts, or "" for the one that suits best
  logX: boolean;
  logY: boolean;
  facet: string; // an axis: one chart for each of its values; "": one chart
  every: boolean; // all series are drawn, not the first few
  series: Named[]; // none: one query, split by the groups alone
  edit: number; // the series whose filters are being chosen; -1: the common ones
  show: Shown;
  point: number; // the id of a point whose results are listed; 0: none
  sort: string;
}

export const OWN = [
  "x",
  "y",
  "group",
  "aggregate",
  "baseline",
  "chart",
  "facet",
  "all",
  "log",
  "series",
  "edit",
  "show",
  "point",
  "sort",
];
const DEFAULT_AGGREGATE = "median";

// The newest result's machine, network and phase, by batch, one series per implementation.
export function defaultState(catalogue: Catalogue, status: Status): State {
  const has = (key: string) => catalogue.axes.some((axis) => axis.key === key);
  const measures = (key: string) => catalogue.metrics.some((metric) => metric.key === key);
  const state: State = {
    x: has("batch") ? "batch" : (catalogue.axes[0]?.key ?? ""),
    y: measures("throughput") ? "throughput" : (catalogue.metrics[0]?.key ?? ""),
    group: ["framework", "backend"].filter(has),
    aggregate: DEFAULT_AGGREGATE,
    baseline: "",
    filters: {},
    chart: "",
    facet: "",
    every: false,
    logX: true,
    logY: true,
    series: [],
    edit: -1,
    show: "figures",
    point: 0,
    sort: "",
  };
  for (const key of ["server", "model", "phase"]) {
    const value = status.newest?.point[key];
    if (has(key) && value !== null && value !== undefined) state.filters[key] = [String(value)];
  }
  return state;
}

export function toParameters(state: State): URLSearchParams {
  const parameters = new URLSearchParams({ y: state.y, x: state.x });
  const set = (key: string, value: string) => {
    if (value) parameters.set(key, value);
  };
  set("group", state.group.join(","));
  set("aggregate", state.aggregate === DEFAULT_AGGREGATE ? "" : state.aggregate);
  set("show", state.show === "figures" ? "" : state.show);
  set("baseline", state.baseline);
  set("chart", state.chart);
  set("facet", state.facet);
  set("all", state.every ? "yes" : "");
  set("log", (state.logX ? "x" : "") + (state.logY ? "y" : ""));
  set("point", state.point > 0 ? String(state.point) : "");
  set("sort", state.sort);
  set("edit", state.edit >= 0 && state.edit < state.series.length ? String(state.edit) : "");
  for (const { name, filters } of state.series)
    parameters.append("series", String(addFilters(new URLSearchParams({ name }), filters)));
  return addFilters(parameters, state.filters);
}

function readSeries(text: string): Named {
  const parameters = new URLSearchParams(text);
  return { name: parameters.get("name") ?? "", filters: filtersOf(parameters, ["name"]) };
}

// An address with no y and x is the first view. What is not known (an axis of another version) is
// left to the server, which says so by name.
export function fromParameters(parameters: URLSearchParams, catalogue: Catalogue, status: Status): State {
  const state = defaultState(catalogue, status);
  const x = parameters.get("x");
  const y = parameters.get("y");
  if (x === null || y === null) return state;
  const text = (key: string) => parameters.get(key) ?? "";
  const show = text("show");
  return {
    x,
    y,
    group: text("group")
      .split(",")
      .filter((axis) => axis !== ""),
    aggregate: text("aggregate") || DEFAULT_AGGREGATE,
    baseline: text("baseline"),
    chart: text("chart"),
    facet: text("facet"),
    every: text("all") !== "",
    logX: text("log").includes("x"),
    logY: text("log").includes("y"),
    series: parameters.getAll("series").map(readSeries),
    edit: text("edit") ? Number(text("edit")) : -1,
    show: show === "speedup" || show === "efficiency" ? show : "figures",
    point: Number(text("point")) || 0,
    sort: text("sort"),
    filters: filtersOf(parameters, OWN),
  };
}
