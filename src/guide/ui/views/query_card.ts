// query_card.ts: the answer to a query on a card: chart or charts, warning about unlike configurations, table.

import type { Answered, Axis, Catalogue, Metric, Point, Value, Values } from "../api";
import { chartFor, charts } from "../charts/index";
import {
  chosenSeries,
  HANDICAPPED,
  hasSpread,
  isChecked,
  leftOut,
  seriesOf,
  type Chart,
  type Series,
  type Sheet,
} from "../charts/chart";
import { choice, linkButton, toggled } from "../controls";
import { attributed, element, type Child } from "../dom";
import { activeFilters } from "../filters";
import { figure, label, list, many, scaleFor } from "../format";
import { valueWords } from "../naming";
import { hasOrder, inOrder } from "../order";
import { plotCard, type Panel } from "../plot";
import type { State } from "../state";
import type { Column } from "../table";
import { readTheme } from "../theme";
import { constantsOf, filtersLine, groupTitles, pointTitle, subtitleOf, titleOf } from "./query_title";

export type Change = (edit: (now: State) => Partial<State>) => void; // of the state as it is by then

// What a card is made of beside the sheet.
export interface CardContext {
  results: number;
  values?: Values; // what there is under the filters, for what is the same throughout
  source?: string; // for files
  change?: Change; // without it the card is only to be looked at
}

const REMEDIES = 3; // offered at most, as axes come: what was asked for before what was found out
const PANELS = 12; // charts side by side, at most

// What is drawn: the figures themselves, or what they are against the baseline.
function shownAs(points: Point[], y: Metric, show: State["show"]): { points: Point[]; y: Metric } {
  if (show === "figures") return { points, y };
  const title = show === "speedup" ? "speed-up" : "efficiency";
  const factor = (point: Point) =>
    show === "speedup" ? 1 : (100 * (point.efficiency ?? 0)) / (point.speedup ?? 1);
  const known = points.filter(
    (point) => typeof (show === "speedup" ? point.speedup : point.efficiency) === "number",
  );
  return {
    y: {
      key: title,
      title,
      group: y.group,
      unit: show === "speedup" ? "x" : "%",
      better: "higher",
      help: `of ${label(y.key)}`,
    },
    points: known.map((point) => {
      const speedup = point.speedup ?? 0;
      return {
        ...point,
        y: speedup * factor(point),
        low: (point.speedup_low ?? speedup) * factor(point),
        high: (point.speedup_high ?? speedup) * factor(point),
        box: null,
      };
    }),
  };
}

// Values of x in their order: commits in the order of their time, names that have no order the best first.
function placesOf(x: Axis, better: Metric["better"], points: Point[], order: Value[]): Value[] {
  const places = inOrder(
    x.key,
    points.map((point) => point.x),
  );
  if (order.length > 0) return places.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  if (x.kind === "number" || hasOrder(x.key)) return places;
  const sign = better === "higher" ? -1 : 1;
  const best = new Map<Value, number>();
  for (const { x: place, y } of points) best.set(place, Math.min(best.get(place) ?? Infinity, sign * y));
  return places.sort((a, b) => (best.get(a) ?? 0) - (best.get(b) ?? 0));
}

// Nothing where the axis or metric is not known, or no point has a figure. `order`: of x, where it is not
// that of its values.
export function sheetOf(
  catalogue: Catalogue,
  state: State,
  answered: Answered,
  order: Value[] = [],
): Sheet | null {
  const x = catalogue.axes.find(({ key }) => key === state.x);
  const metric = catalogue.metrics.find(({ key }) => key === state.y);
  if (!x || !metric) return null;
  const { points, y } = shownAs(answered.points, metric, state.show);
  if (points.length === 0) return null;
  const series = seriesOf(points, groupTitles(state));
  return {
    ...state,
    series,
    keys: series.map(({ key }) => key),
    points,
    places: placesOf(x, y.better, points, order),
    range: null,
    ends: true,
    size: { width: 0, height: 0 },
    x,
    y,
    scale: scaleFor(
      y.unit,
      points.map((point) => point.y),
    ),
    theme: readTheme(),
  };
}

function withSeries(sheet: Sheet, series: Series[]): Sheet {
  return { ...sheet, series, points: series.flatMap(({ points }) => points) };
}

// The same but the series that the reader took out.
function without(sheet: Sheet, hidden: ReadonlySet<string>): Sheet {
  if (hidden.size === 0) return sheet;
  return withSeries(
    sheet,
    sheet.series.filter(({ key }) => !hidden.has(key)),
  );
}

// A sheet for each value of the axis that tells the charts apart, with the same axes and looks.
function facetsOf(sheet: Sheet, state: State): { value: Value; sheet: Sheet }[] {
  const titles = groupTitles(state);
  const at = titles.indexOf(state.facet);
  const bare = sheet.points.map((point) => ({
    ...point,
    group: point.group.filter((_, index) => index !== at),
  }));
  const facet = new Map(bare.map((point, index) => [point, sheet.points[index]?.group[at] ?? null]));
  const all = seriesOf(
    bare,
    titles.filter((_, index) => index !== at),
  );
  const drawn = chosenSeries(all, sheet.y.better, state.every);
  const ys = bare.flatMap(({ y, low, high }) => [y, low, high]);
  const shared: Sheet = {
    ...sheet,
    keys: all.map(({ key }) => key),
    ends: false,
    range: [Math.min(...ys), Math.max(...ys)],
  };
  return inOrder(state.facet, [...facet.values()]).map((value) => ({
    value,
    sheet: withSeries(
      shared,
      drawn
        .map((series) => ({ ...series, points: series.points.filter((point) => facet.get(point) === value) }))
        .filter(({ points }) => points.length > 0),
    ),
  }));
}

// Axes that change what is computed: a line along which one of them changes shows more than its x.
const TOLD = [
  "model",
  "phase",
  "batch",
  "precision",
  "data",
  "ingestion",
  "unit",
  "threads",
  "workers",
  "nodes",
  "scenario",
];

// Such axes with several values that neither x, series nor charts tell apart.
function hiddenAxes(state: State, values: Values): string[] {
  const told = new Set([
    state.x,
    ...groupTitles(state),
    ...state.series.flatMap(({ filters }) => Object.keys(filters)),
  ]);
  const several = (axis: string) =>
    (state.filters[axis] ?? (values[axis] ?? []).filter(({ value }) => value !== null)).length > 1;
  return TOLD.filter((axis) => !told.has(axis) && several(axis));
}

function remediesFor(axes: string[], state: State, change?: Change): Child[] {
  return axes
    .filter((axis) => change && axis !== state.x && !state.group.includes(axis))
    .slice(0, REMEDIES)
    .map((axis) =>
      linkButton(`mixed-${axis}`, `one series per ${label(axis)}`, () =>
        change?.((now) => ({ group: toggled(now.group, axis, true) })),
      ),
    )
    .flatMap((remedy, index) => [index > 0 ? " · " : "", remedy]);
}

function warning(points: Point[], state: State, values: Values, change?: Change): Child {
  const mixed = points.filter((point) => point.configurations > 1);
  const hidden = mixed.length === 0 ? hiddenAxes(state, values) : [];
  if (mixed.length === 0 && hidden.length === 0) return null;
  const apart = mixed.length > 0 ? [...new Set(mixed.flatMap(({ differs }) => differs))] : hidden;
  const differ = list(apart.map(label));
  const count = mixed.length === 1 ? "One point mixes" : `${mixed.length.toLocaleString("en")} points mix`;
  const said =
    mixed.length > 0
      ? `${count} unlike configurations${differ ? `, which differ in ${differ}` : ""}. `
      : `From point to point ${differ} ${apart.length > 1 ? "differ" : "differs"}, too. `;
  return attributed(
    element("p", { className: "warning", id: "warning" }, said, ...remediesFor(apart, state, change)),
    { role: "status" },
  );
}

function resultsColumn(state: State, change?: Change): Column<Point> {
  const column: Column<Point> = {
    key: "results",
    title: "results",
    number: true,
    value: (point) => point.count,
  };
  if (!change) return column;
  return {
    ...column,
    show: (point) => {
      const spoken = `Show ${many(point.count, "result")} of ${pointTitle(state, point.group, point.x)}`;
      return linkButton(
        `point-${point.id}`,
        many(point.count, "result"),
        () => change((now) => ({ point: point.ids.includes(now.point) ? 0 : point.id })),
        spoken,
      );
    },
  };
}

function columnsOf(sheet: Sheet, state: State, change?: Change): Column<Point>[] {
  const { x, y, scale } = sheet;
  const titles = groupTitles(state);
  const unit = scale.unit ? ` (${scale.unit})` : "";
  const number = (key: string, title: string, value: (point: Point) => number | null): Column<Point> => ({
    key,
    title,
    unit: y.unit,
    number: true,
    value,
    show: (point) => {
      const known = value(point);
      return known === null ? "–" : figure(known * scale.factor);
    },
  });
  const boxes =
    state.chart === "box" ? ["least", "first quartile", "median", "third quartile", "largest"] : [];
  return [
    ...titles.map((key, index): Column<Point> => ({
      key,
      title: label(key),
      value: (point) => point.group[index] ?? null,
    })),
    { key: x.key, title: label(x.key), number: x.kind === "number", value: (point) => point.x },
    number(y.key, `${label(y.key)}${unit}`, (point) => point.y),
    number("low", "from", (point) => (hasSpread(point) ? point.low : null)),
    number("high", "to", (point) => (hasSpread(point) ? point.high : null)),
    ...boxes.map((title, index) =>
      number(title.replace(" ", "_"), title, (point) => point.box?.[index] ?? null),
    ),
    { key: "check", title: "check", value: (point) => (isChecked(point) ? "right" : "not checked") },
    ...(sheet.points.some((point) => point.handicap !== null)
      ? [{ key: "handicap", title: "handicap", value: (point: Point) => point.handicap ?? "none" }]
      : []),
    resultsColumn(state, change),
  ];
}

// What stands below a chart: what its marks mean, and what it leaves out.
function keysOf(sheet: Sheet): Child[] {
  const hint = (text: string) => element("p", { className: "hint key" }, text);
  return [
    sheet.points.some((point) => !isChecked(point))
      ? hint("Hollow or dashed: the outputs were not checked against the reference.")
      : null,
    sheet.points.some((point) => point.handicap !== null)
      ? hint(
          `${HANDICAPPED} Handicapped: its users would run it faster, so no finding rests on it. The table says why.`,
        )
      : null,
  ];
}

interface Drawing {
  chart: Chart;
  drawn: Series[];
  all: number; // series
  lines: number;
  panels?: Panel[];
  left: Child;
}

function faceted(sheet: Sheet, state: State, chart: Chart): Drawing {
  const facets = facetsOf(sheet, state);
  const shown = facets.slice(0, PANELS);
  const drawn = new Map(shown.flatMap((facet) => facet.sheet.series.map((series) => [series.key, series])));
  const all = shown[0]?.sheet.keys ?? [];
  return {
    chart,
    drawn: all.flatMap((key) => drawn.get(key) ?? []),
    all: all.length,
    lines: chart.ends ? 0 : Math.max(...shown.map((facet) => chart.rows?.(facet.sheet) ?? 0)),
    panels: shown.map(({ value, sheet: its }, index) => ({
      key: `chart-${index}`,
      title: valueWords(state.facet, value),
      draw: (theme, size, hidden) => chart.draw({ ...without(its, hidden), theme, size }),
    })),
    left:
      facets.length > PANELS
        ? element(
            "p",
            { className: "hint key" },
            `The first ${PANELS} of ${many(facets.length, "chart")} are drawn; filters choose others.`,
          )
        : null,
  };
}

function drawingOf(sheet: Sheet, state: State): Drawing {
  const chart = chartFor(state.chart, sheet);
  if (state.facet) return faceted(sheet, state, chart);
  const drawn = chosenSeries(sheet.series, sheet.y.better, state.every);
  const lines = chart.rows?.(withSeries(sheet, drawn)) ?? 0;
  return { chart, drawn, all: sheet.series.length, lines, left: null };
}

export function queryCard(sheet: Sheet, state: State, context: CardContext): HTMLElement {
  const { results, values = {}, source, change } = context;
  const { chart, drawn, all, lines, panels, left } = drawingOf(sheet, state);
  const kinds = charts.map((each): [string, string] => [each.name, each.title]);
  const choose = (kind: string) =>
    change?.(() => ({ chart: kind, ...(kind === "bar" ? { logY: false } : {}) }));
  const more = (every: boolean) => change?.(() => ({ every }));
  return plotCard<Point>({
    key: "chart",
    level: change ? "h1" : "h2",
    title: titleOf(state),
    constants: constantsOf(state, values),
    subtitle: subtitleOf(state, results, sheet.y.better),
    filters: filtersLine(state),
    ...(source ? { source } : {}),
    tools: change ? [choice("kind", "Chart", kinds, chart.name, choose)] : [],
    notes: [
      change
        ? activeFilters(state.filters, (edit) => change((now) => ({ filters: edit(now.filters), point: 0 })))
        : null,
      warning(sheet.points, state, values, change),
    ],
    after: [leftOut(drawn.length, all, state.every, change ? more : undefined), left, ...keysOf(sheet)],
    folded: !change,
    lines,
    legend: drawn.map(({ key, name: title }) => ({ key, name: title })),
    ends: chart.ends ?? false,
    draw: (theme, size, hidden) => chart.draw({ ...without(withSeries(sheet, drawn), hidden), theme, size }),
    ...(panels ? { panels } : {}),
    ...(change ? { onPick: (record: number) => change(() => ({ point: record })) } : {}),
    listing: {
      id: "table",
      caption: `${titleOf(state)}: the figures of the chart`,
      columns: columnsOf(sheet, { ...state, chart: chart.name }, change),
      rows: sheet.points,
      sort: state.sort,
      ...(change ? { onSort: (sort: string) => change(() => ({ sort })) } : {}),
      isChosen: (point) => point.ids.includes(state.point),
    },
  });
}
