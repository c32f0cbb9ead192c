// api.ts: the server's JSON API (docs/api.md) as types and functions. Nothing else talks to it.

export interface Axis {
  key: string;
  kind: "text" | "number";
  derived: boolean;
  help: string;
}

export interface Metric {
  key: string;
  unit: string;
  better: "lower" | "higher";
  help: string;
}

export interface Catalogue {
  axes: Axis[];
  metrics: Metric[];
}

export type Value = string | number | null; // null: the record does not say

export interface Status {
  version: string;
  store: string; // its file
  records: number;
  newest?: { id: number; at: string; point: Record<string, Value> };
}

export interface Count {
  value: Value;
  count: number;
}

export type Values = Record<string, Count[]>; // by axis

// One mark of a chart: what was measured at x within one series.
export interface Point {
  group: Value[]; // one per axis that was grouped by
  x: Value;
  y: number;
  low: number; // the ends of the results' intervals, or their spread
  high: number;
  count: number; // results that were aggregated
  unchecked: number; // of these, how many were not found right
  configurations: number; // different ones among them: more than one is unlike with unlike
  id: number; // a result to look at
}

export type Filters = Record<string, string[]>; // axis → any of these values

async function get<T>(path: string, parameters?: URLSearchParams): Promise<T> {
  const query = parameters?.toString();
  const response = await fetch(query ? `${path}?${query}` : path);
  if (response.headers.get("content-type")?.startsWith("application/json") !== true)
    throw new Error(await response.text());
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body as T;
}

export function addFilters(parameters: URLSearchParams, filters: Filters): void {
  for (const [axis, values] of Object.entries(filters))
    for (const value of values) parameters.append(axis, value);
}

export function fetchCatalogue(): Promise<Catalogue> {
  return get("/api/axes");
}

export function fetchStatus(): Promise<Status> {
  return get("/api/status");
}

// Of results that are ok, as charts are, unless the filters say otherwise.
export async function fetchValues(filters: Filters): Promise<Values> {
  const parameters = new URLSearchParams();
  addFilters(parameters, { status: ["ok"], ...filters });
  return (await get<{ values: Values }>("/api/values", parameters)).values;
}

export const AGGREGATES = ["median", "best", "min", "max", "mean"];

export interface Query {
  x: string;
  y: string;
  group: string[];
  aggregate: string;
  filters: Filters;
}

export async function fetchPoints(query: Query): Promise<Point[]> {
  const parameters = new URLSearchParams({ x: query.x, y: query.y, aggregate: query.aggregate });
  if (query.group.length > 0) parameters.set("group", query.group.join(","));
  addFilters(parameters, query.filters);
  return (await get<{ points: Point[] }>("/api/query", parameters)).points;
}
