// explorer.ts: any metric over any axis, filtered, grouped, aggregated, against a baseline; and what is
// behind a point.

import {
  fetchPoints,
  fetchRecord,
  fetchRecords,
  fetchValues,
  type Answered,
  type Metric,
  type Point,
  type Query,
  type Status,
  type Value,
} from "../api";
import { element, type Child } from "../dom";
import { withoutEchoes } from "../filters";
import { label, many, moment } from "../format";
import { learnMachines } from "../naming";
import { filtersOf, note, type Asked, type Content, type View } from "../page";
import { pointSections } from "../record";
import { fromParameters, OWN, toParameters, type State } from "../state";
import { explorerControls } from "./explorer_controls";
import { firstState } from "./explorer_first";
import { queryCard, sheetOf, type Change } from "./query_card";
import { groupTitles, pointTitle, titleOf } from "./query_title";

const IN_TIME = ["commit", "software"]; // names whose order is that of their first results

// The axis that tells charts apart is one more that splits the results.
function queryOf(state: State): Query {
  // Between named series, which are queries of their own, the ratio is taken here.
  const here = state.series.length > 0 && state.baseline.startsWith("series:");
  const group = groupTitles({ ...state, series: [] });
  return { ...state, group, baseline: state.show === "figures" || here ? "" : state.baseline || "first" };
}

// Commits as they came: each at the time of its first result.
async function orderOf(state: State): Promise<Value[]> {
  if (!IN_TIME.includes(state.x)) return [];
  const { points } = await fetchPoints({ ...state, x: "time", group: [state.x], baseline: "" });
  const first = new Map<Value, string>();
  for (const { group, x } of points) {
    const value = group[0] ?? null;
    const before = first.get(value);
    if (before === undefined || String(x) < before) first.set(value, String(x));
  }
  return [...first.keys()].sort((a, b) => String(first.get(a)).localeCompare(String(first.get(b))));
}

function sourceOf({ version, store, newest }: Status, results: number): string {
  const file = store.split("/").pop() ?? store;
  return `Source: prony ${version}, ${file}, ${many(results, "result")}; newest of the store ${moment(newest?.at)}`;
}

function ratioTo(base: Point | undefined, point: Point, better: Metric["better"]): Point {
  if (!base) return { ...point, baseline: null, speedup: null, efficiency: null };
  if (base === point)
    return { ...point, baseline: point.y, speedup: 1, speedup_low: 1, speedup_high: 1, efficiency: null };
  const over = (ours: number, theirs: number) => (better === "higher" ? ours / theirs : theirs / ours);
  const ends = [over(point.low, base.high), over(point.high, base.low)];
  return {
    ...point,
    baseline: base.y,
    speedup: over(point.y, base.y),
    speedup_low: Math.min(...ends),
    speedup_high: Math.max(...ends),
    efficiency: null,
  };
}

function againstSeries(points: Point[], baseline: string, better: Metric["better"]): Point[] {
  const place = ({ group, x }: Point) => JSON.stringify([group.slice(1), x]);
  const bases = new Map(
    points.filter(({ group }) => group[0] === baseline).map((point) => [place(point), point]),
  );
  return points.map((point) => ratioTo(bases.get(place(point)), point, better));
}

// One query, or one for each named series.
async function fetchAll(state: State, better: Metric["better"]): Promise<Answered> {
  const query = queryOf(state);
  if (state.series.length === 0) return fetchPoints(query);
  const answers = await Promise.all(
    state.series.map(({ filters }) => fetchPoints({ ...query, filters: { ...state.filters, ...filters } })),
  );
  const points = answers.flatMap((answer, index) =>
    answer.points.map((point) => ({ ...point, group: [state.series[index]?.name ?? "", ...point.group] })),
  );
  return {
    points:
      state.show !== "figures" && !query.baseline
        ? againstSeries(points, state.baseline.replace(/^series:/, ""), better)
        : points,
    results: answers.reduce((sum, { results }) => sum + results, 0),
    differs: [...new Set(answers.flatMap(({ differs }) => differs))],
  };
}

function nothing(state: State, answered: Answered): HTMLElement {
  if (answered.points.length > 0 && state.show === "efficiency")
    return note(
      "No efficiency to show",
      element(
        "p",
        {},
        "Efficiency is the speed-up for each thread, worker or node added. Put one of these on x, or group by it.",
      ),
    );
  if (answered.points.length > 0)
    return note(
      "No speed-up to show",
      element(
        "p",
        {},
        "No point has a partner in the baseline. Choose another baseline, or the first of each series.",
      ),
    );
  return note(
    "Nothing to show",
    element(
      "p",
      {},
      `No result under these filters has a figure for ${label(state.y)}. Take a filter away, or choose another measure.`,
    ),
  );
}

async function pointOf(state: State, points: Point[]): Promise<Child[]> {
  const point = points.find(({ id, ids }) => id === state.point || ids.includes(state.point));
  if (!point) return [];
  const [records, one] = await Promise.all([fetchRecords(point.ids), fetchRecord(state.point)]);
  return pointSections(pointTitle(state, point.group, point.x), one, records, point.differs);
}

export const explorer: View = {
  name: "explorer",
  title: "Explore",
  async show({ catalogue, status, parameters, edit }: Asked): Promise<Content> {
    const read = (from: URLSearchParams) => fromParameters(from, catalogue, status);
    const open = !parameters.has("x") || !parameters.has("y");
    const state = open ? await firstState(catalogue, status, filtersOf(parameters, OWN)) : read(parameters);
    const change: Change = (make) =>
      edit((address) => {
        const now = read(address);
        return toParameters({ ...now, ...make(now) });
      });
    const better = catalogue.metrics.find(({ key }) => key === state.y)?.better ?? "higher";
    const edited = state.series[state.edit]?.filters ?? {};
    const [found, common, answered, order] = await Promise.all([
      fetchValues({ ...state.filters, ...edited }),
      state.edit >= 0 ? fetchValues(state.filters) : null,
      fetchAll(state, better),
      orderOf(state),
      learnMachines(),
    ]);
    const values = withoutEchoes(found, catalogue);
    const sheet = sheetOf(catalogue, state, answered, order);
    const context = {
      results: answered.results,
      values: common ?? found,
      source: sourceOf(status, answered.results),
      change,
    };
    return {
      title: titleOf(state),
      address: toParameters(state),
      aside: explorerControls(catalogue, values, state, answered.points, change),
      main: sheet
        ? [queryCard(sheet, state, context), ...(await pointOf(state, answered.points))]
        : [nothing(state, answered)],
    };
  },
};
