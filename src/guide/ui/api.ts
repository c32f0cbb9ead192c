// api.ts: the server's JSON API (docs/api.md) as types and functions; its profiles are in api_profiles.ts.
// Nothing else talks to it.

import { wordsOf } from "./words";

export interface Axis {
  key: string;
  kind: "text" | "number";
  derived: boolean;
  help: string;
}

export interface Metric {
  key: string;
  title: string; // what people call it
  group: string; // one of the catalogue's
  unit: string;
  better: "lower" | "higher";
  help: string;
}

export interface Catalogue {
  axes: Axis[];
  metrics: Metric[];
  groups: string[]; // of metrics, in the order of lists
  aggregates: string[];
  frameworks: Record<string, string>; // what people call them, by key
}

export type Value = string | number | null; // null: the record does not say
export type PointOf = Record<string, Value>; // a configuration, by axis

export interface Status {
  version: string;
  store: string; // its file
  records: number;
  views: Record<string, boolean>; // those that need results of their own kind: whether there are any
  newest?: { id: number; at: string; point: PointOf };
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
  box: [number, number, number, number, number] | null; // least, quartiles, largest
  count: number; // results that were aggregated
  unchecked: number; // of these, how many were not found right
  handicap: string | null; // why it did not run as its users run it: nothing is concluded from it
  configurations: number; // different ones among them: more than one is unlike with unlike
  differs: string[]; // the axes in which they are
  id: number; // a result to look at
  ids: number[]; // all of them, the newest first
  baseline?: number | null; // these where a baseline was asked for
  speedup?: number | null;
  speedup_low?: number | null;
  speedup_high?: number | null;
  efficiency?: number | null;
  ideal?: number | null; // of a perfect scaling
}

export type Filters = Record<string, string[]>; // axis → any of these values

export interface Query {
  x: string;
  y: string;
  group: string[];
  aggregate: string;
  baseline: string; // "", "first", or words: framework=numpy
  filters: Filters;
}

export interface Answered {
  points: Point[];
  results: number;
  differs: string[];
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Check {
  verdict: "none" | "right" | "wrong";
  against?: string;
  difference?: number;
  tolerance?: number;
  reason?: string;
}

export interface Times {
  min: number | null;
  median: number | null;
  mean: number | null;
  p90: number | null;
  p99: number | null;
  ci_low: number | null;
  ci_high: number | null;
  count: number;
  per: number;
}

// A line of the store; see src/record/record.h.
export interface RecordLine {
  point: PointOf;
  status: "ok" | "skipped" | "failed";
  reason?: string;
  handicap?: string;
  program?: string;
  kernels?: string[];
  result?: {
    time_ns: Times;
    parts_ns?: Record<string, number | null>;
    start_ns?: number | null;
    throughput?: number | null;
    floor_ns?: number | null;
    bound?: string;
    times_floor?: number | null;
    best_times_floor?: number | null;
    times_now?: number | null;
    flop?: number | null;
    bytes?: number | null;
    check?: Check;
    meters?: Record<string, number | string>;
  };
  samples_ns?: number[];
  machine?: JsonObject;
  software?: JsonObject;
  at?: string;
}

export interface Kept {
  id: number;
  record: RecordLine;
}

export interface KeptOne extends Kept {
  label: string;
  command: string | null;
}

export interface Side {
  id: number;
  y: number;
  low: number | null;
  high: number | null;
  check: string;
}

export interface Match {
  point: PointOf;
  a: Side;
  b: Side;
  ratio: number; // below 1: a is better
  low: number | null;
  high: number | null;
  verdict: string;
}

export interface Comparison {
  y: string;
  axes: string[];
  rows: Match[];
  summary: {
    matched: number;
    faster: number;
    slower: number;
    same: number;
    unknown: number;
    ratio: number | null;
    only_a: number;
    only_b: number;
    handicapped: number; // results that were left out
  };
}

// What a machine did at best (src/estimate/calibrate.h).
export interface Ceiling {
  ceiling: string; // fp32, tf32 …: FLOP; read, copy, update: bytes; launch: kernels
  unit_name?: string; // a GPU's; the CPU's has the next three
  isa?: string;
  threads?: number;
  pages?: string; // these two of memory only
  set_bytes?: number;
  per_s: number;
}

// What a machine allows with so many threads on so large a working set.
export interface RoofRow {
  unit_name: string | null; // of a GPU; null: the CPU, with so many threads
  threads: number | null;
  set_bytes: number;
  isa: string | null;
  precision: string;
  flop_per_s: number;
  read_per_s: number;
  update_per_s: number;
}

export interface RooflinePoint {
  id: number;
  intensity: number;
  flop_rate: number;
  byte_rate: number;
  times_floor: number | null;
  bound: string | null;
  check: string;
  label: string;
  point: PointOf;
}

export interface Roofline {
  server: string;
  servers: string[];
  machine: JsonObject | null;
  ceilings: RoofRow[];
  points: RooflinePoint[];
}

export interface Scaling {
  over: string;
  groups: string[];
  series: { group: Value[]; points: Point[] }[];
}

export interface Machine {
  server: string;
  title?: string; // the name people know it by
  unit_names: string[];
  records: number;
  newest: string | null;
  machine: JsonObject | null;
  software: JsonObject | null;
  calibration: JsonObject | null;
}

export interface Explained {
  id: number;
  phase: string;
  batch: number;
  backend: string | null;
}

export interface NetworkEntry {
  model: string;
  parameters: number | null;
  layers: number | null;
  records: number;
  explained: Explained[];
}

export interface Tensor {
  name: string;
  role: string;
  dtype: string;
  shape: number[];
  bytes: number;
  view_of: number | null;
}

export interface Op {
  op: string;
  part: string;
  layer: string | null;
  inputs: (number | null)[];
  outputs: (number | null)[];
  flop: number;
  bytes: number;
  intensity: number | null;
  attributes: JsonObject | string | null;
  made_by: string | null;
  kernel?: string | null;
  launches?: number;
}

// One of the programs that are an iteration, in their order.
export interface Program {
  name: string;
  parts: Record<string, { ops: number; flop: number; bytes: number; launches?: number }>;
  memory: Record<string, number>;
  activation_peak: number;
  activation_unshared: number;
  tensors: Tensor[];
  ops: Op[];
}

export interface Network {
  model: string;
  phase: string;
  batch: number;
  backend: string | null;
  program: string;
  parameters: number;
  programs: Program[];
}

export interface NetworkPage {
  model: string;
  id: number;
  network: Network;
  explained: Explained[];
}

export interface Answer {
  name: string;
  question: string;
  sentence: string;
  known: boolean;
  chart: string; // parameters of a query
  command: string | null;
  ids: number[];
}

export interface Answers {
  model: string | null;
  machine: string | null; // what people call it
  shipped: boolean; // its results came with prony
  answers: Answer[];
}

export interface LiveRecord {
  id: number;
  at: string;
  status: string;
  check: string;
  label: string;
  point: PointOf;
  time_median: number | null;
  throughput: number | null;
  times_floor: number | null;
}

export interface Running {
  server: string;
  process: number;
  done: number;
  total: number;
  current: string;
  started: string;
  left_s: number | null;
  curve: CurvePoint[] | null; // of a training
}

export type CurvePoint = [epoch: number, loss: number | null, heldOut: number | null];

export interface Live {
  newest: number;
  change: number;
  records: LiveRecord[];
  running: Running[];
}

export type Drawing = "bars" | "lines" | "dots";

// A sentence that the figures carry, the chart that shows it, the command that measures it again.
export interface Finding {
  name: string;
  title: string;
  sentence: string;
  approximate: boolean;
  chart: string; // parameters of a query
  kind: Drawing;
  command: string | null;
  ids: number[];
}

export interface MachineEntry {
  server: string;
  machine: string; // its human name
  source: string; // own, or shipped with prony
  results: number;
}

export interface Overview {
  server: string | null; // null: there are no results
  machine: string | null;
  source: string;
  results: number;
  newest: string | null;
  others: MachineEntry[];
  findings: Finding[];
  lacking: string | null; // without findings: why
  command: string | null; // and what would settle it
}

export interface Term {
  key: string;
  term: string;
  text: string;
}

export class Unreachable extends Error {} // no server answers

export class Refused extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

export async function get<T>(path: string, parameters?: URLSearchParams): Promise<T> {
  const query = parameters?.toString();
  const response = await fetch(query ? `${path}?${query}` : path).catch(() => {
    throw new Unreachable("The server has stopped.");
  });
  if (response.headers.get("content-type")?.startsWith("application/json") !== true)
    throw new Refused(await response.text(), response.status);
  const body = await response.json();
  if (!response.ok) throw new Refused(body.error.message, response.status);
  return body as T;
}

export function addFilters(parameters: URLSearchParams, filters: Filters): URLSearchParams {
  for (const [axis, values] of Object.entries(filters))
    for (const value of values) parameters.append(axis, value);
  return parameters;
}

// Parameters that are there, with the filters.
export function asked(given: Record<string, string>, filters: Filters): URLSearchParams {
  const present = Object.entries(given).filter(([, value]) => value !== "");
  return addFilters(new URLSearchParams(present), filters);
}

export function fetchCatalogue(): Promise<Catalogue> {
  return get("/api/axes");
}

export function fetchStatus(): Promise<Status> {
  return get("/api/status");
}

// Of results that are ok, as charts are, unless the filters say otherwise.
export async function fetchValues(filters: Filters): Promise<Values> {
  return (await get<{ values: Values }>("/api/values", asked({}, { status: ["ok"], ...filters }))).values;
}

export function fetchPoints({ x, y, group, aggregate, baseline, filters }: Query): Promise<Answered> {
  return get("/api/query", asked({ x, y, group: group.join(","), aggregate, baseline }, filters));
}

export async function fetchRecords(ids: number[]): Promise<Kept[]> {
  return (await get<{ records: Kept[] }>("/api/records", asked({ ids: ids.join(","), samples: "no" }, {})))
    .records;
}

export function fetchRecord(id: number): Promise<KeptOne> {
  return get(`/api/record/${id}`);
}

export function fetchComparison(a: Filters, b: Filters, y: string, filters: Filters): Promise<Comparison> {
  return get("/api/compare", asked({ a: wordsOf(a), b: wordsOf(b), y }, filters));
}

// Of a store without such results the server says neither machine nor points.
export async function fetchRoofline(server: string, filters: Filters): Promise<Roofline> {
  const {
    points = [],
    server: chosen,
    ...rest
  } = await get<Omit<Roofline, "server" | "points"> & Partial<Roofline>>(
    "/api/roofline",
    asked({ server }, filters),
  );
  return { ...rest, points, server: chosen ?? "" };
}

export function fetchScaling(over: string, y: string, group: string[], filters: Filters): Promise<Scaling> {
  return get("/api/scaling", asked({ over, y, group: group.join(",") }, filters));
}

export async function fetchMachines(): Promise<Machine[]> {
  return (await get<{ machines: Machine[] }>("/api/machines")).machines;
}

export async function fetchNetworks(): Promise<NetworkEntry[]> {
  return (await get<{ networks: NetworkEntry[] }>("/api/networks")).networks;
}

export async function fetchNetwork(
  model: string,
  phase: string,
  batch: string,
  backend: string,
): Promise<NetworkPage> {
  const page: NetworkPage = await get(
    `/api/network/${encodeURIComponent(model)}`,
    asked({ phase, batch, backend }, {}),
  );
  // a line of the first version is one program itself
  const alone = { ...(page.network as unknown as Program), name: model };
  return { ...page, network: { ...page.network, programs: page.network.programs ?? [alone] } };
}

export function fetchAnswers(filters: Filters): Promise<Answers> {
  return get("/api/answers", asked({}, filters));
}

export function fetchOverview(chosen: { server?: string; source?: string }): Promise<Overview> {
  return get("/api/overview", new URLSearchParams(chosen));
}

// The points of a finding's chart.
export function fetchChart(chart: string): Promise<Answered> {
  return get("/api/query", new URLSearchParams(chart));
}

export async function fetchGlossary(): Promise<Term[]> {
  return (await get<{ terms: Term[] }>("/api/glossary")).terms;
}

export function fetchLive(after: number): Promise<Live> {
  return get("/api/live", new URLSearchParams({ after: String(after) }));
}
