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
} from "../api";
import { seriesName } from "../charts/chart";
import { element, type Child } from "../dom";
import { withoutEchoes } from "../filters";
import { label, name } from "../format";
import { note, type Asked, type Content, type View } from "../page";
import { pointSections } from "../record";
import { fromParameters, toParameters, type State } from "../state";
import { explorerControls } from "./explorer_controls";
import { queryCard, sheetOf, titleOf, type Change } from "./query_card";

function queryOf(state: State): Query {
  // Between named series, which are queries of their own, the ratio is taken here.
  const here = state.series.length > 0 && state.baseline.startsWith("series:");
  return { ...state, baseline: state.show === "figures" || here ? "" : state.baseline || "first" };
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
        "Efficiency is the speed-up for each thread, worker or node added, so one of these must tell a point from its baseline: put it on x, or group by it.",
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
  return pointSections(
    `${seriesName(point.group)}, ${label(state.x)} ${name(point.x)}`,
    one,
    records,
    point.differs,
  );
}

export const explorer: View = {
  name: "explorer",
  title: "Explorer",
  async show({ catalogue, status, parameters, edit }: Asked): Promise<Content> {
    const read = (from: URLSearchParams) => fromParameters(from, catalogue, status);
    const state = read(parameters);
    const change: Change = (make) =>
      edit((address) => {
        const now = read(address);
        return toParameters({ ...now, ...make(now) });
      });
    const better = catalogue.metrics.find(({ key }) => key === state.y)?.better ?? "higher";
    const edited = state.series[state.edit]?.filters ?? {};
    const [values, answered] = await Promise.all([
      fetchValues({ ...state.filters, ...edited }),
      fetchAll(state, better),
    ]);
    const sheet = sheetOf(catalogue, state, answered);
    return {
      title: titleOf(state),
      address: toParameters(state),
      aside: explorerControls(catalogue, withoutEchoes(values, catalogue), state, answered.points, change),
      main: sheet
        ? [queryCard(sheet, state, answered.results, change), ...(await pointOf(state, answered.points))]
        : [nothing(state, answered)],
    };
  },
};
