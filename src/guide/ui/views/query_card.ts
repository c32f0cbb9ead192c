// query_card.ts: the answer to a query on a card: chart, warning about unlike configurations, table.

import type { Answered, Catalogue, Metric, Point } from "../api";
import { chartFor, charts } from "../charts/index";
import { drawable, HANDICAPPED, hasSpread, isChecked, seriesName, seriesOf, type Sheet } from "../charts/chart";
import { choice, linkButton, toggled } from "../controls";
import { attributed, element, type Child } from "../dom";
import { filterWords } from "../filters";
import { figure, label, list, many, name, scaleFor, sentence } from "../format";
import { plotCard } from "../plot";
import type { State } from "../state";
import type { Column } from "../table";
import { readTheme } from "../theme";

export type Change = (edit: (now: State) => Partial<State>) => void; // of the state as it is by then

const REMEDIES = 3; // offered at most, as axes come: what was asked for before what was found out

// What is drawn: the figures themselves, or what they are against the baseline.
function shownAs(points: Point[], y: Metric, show: State["show"]): { points: Point[]; y: Metric } {
  if (show === "figures") return { points, y };
  const factor = (point: Point) =>
    show === "speedup" ? 1 : (100 * (point.efficiency ?? 0)) / (point.speedup ?? 1);
  const known = points.filter(
    (point) => typeof (show === "speedup" ? point.speedup : point.efficiency) === "number",
  );
  return {
    y: {
      key: show === "speedup" ? "speed-up" : "efficiency",
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

// Nothing where the axis or metric is not known, or no point has a figure.
export function sheetOf(catalogue: Catalogue, state: State, answered: Answered): Sheet | null {
  const x = catalogue.axes.find(({ key }) => key === state.x);
  const metric = catalogue.metrics.find(({ key }) => key === state.y);
  if (!x || !metric) return null;
  const { points, y } = shownAs(answered.points, metric, state.show);
  if (points.length === 0) return null;
  return {
    ...state,
    points,
    x,
    y,
    scale: scaleFor(
      y.unit,
      points.map((point) => point.y),
    ),
    theme: readTheme(),
  };
}

function warning(points: Point[], state: State, change?: Change): Child {
  const mixed = points.filter((point) => point.configurations > 1);
  if (mixed.length === 0) return null;
  const apart = [...new Set(mixed.flatMap(({ differs }) => differs))];
  const said = mixed.length === 1 ? "One point mixes" : `${mixed.length.toLocaleString("en")} points mix`;
  const remedies = apart
    .filter((axis) => change && axis !== state.x && !state.group.includes(axis))
    .slice(0, REMEDIES)
    .map((axis) =>
      linkButton(`mixed-${axis}`, `one series per ${label(axis)}`, () =>
        change?.((now) => ({ group: toggled(now.group, axis, true) })),
      ),
    );
  return attributed(
    element(
      "p",
      { className: "warning", id: "warning" },
      `${said} unlike configurations${apart.length > 0 ? `, which differ in ${list(apart.map(label))}` : ""}. `,
      ...remedies.flatMap((remedy, index) => [index > 0 ? " · " : "", remedy]),
    ),
    { role: "status" },
  );
}

function resultsColumn(sheet: Sheet, change?: Change): Column<Point> {
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
      const spoken = `Show ${many(point.count, "result")} of ${seriesName(point.group)}, ${label(sheet.x.key)} ${name(point.x)}`;
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
  const titles = [...(state.series.length > 0 ? ["series"] : []), ...state.group];
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
    resultsColumn(sheet, change),
  ];
}

export function titleOf(state: State): string {
  const what =
    state.show === "figures"
      ? label(state.y)
      : `${state.show === "speedup" ? "speed-up" : "efficiency"} of ${label(state.y)}`;
  const by = state.group.length > 0 ? `, per ${list(state.group.map(label))}` : "";
  return sentence(`${what} by ${label(state.x)}${by}`);
}

function subtitleOf(state: State, results: number): string {
  const baseline = (state.baseline || "first")
    .replace(/^series:/, "")
    .replace(/^first$/, `each series at its least ${label(state.x)}`);
  return [
    filterWords(state.filters) || "all results",
    ...(state.show === "figures" ? [] : [`against ${baseline}`]),
    many(results, "result"),
  ].join(" · ");
}

// Without `change` it is only to be looked at.
export function queryCard(sheet: Sheet, state: State, results: number, change?: Change): HTMLElement {
  const chart = chartFor(state.chart, sheet);
  const hollow = sheet.points.some((point) => !isChecked(point));
  const handicapped = sheet.points.some((point) => point.handicap !== null);
  const { drawn, left } = drawable(seriesOf(sheet.points));
  const points = drawn.flatMap((series) => series.points);
  const kinds = charts.map((each): [string, string] => [each.name, each.title]);
  return plotCard<Point>({
    key: "chart",
    level: change ? "h1" : "h2",
    title: titleOf(state),
    subtitle: subtitleOf(state, results),
    tools: change ? [choice("kind", "Chart", kinds, chart.name, (kind) => change(() => ({ chart: kind })))] : [],
    notes: [warning(sheet.points, state, change)],
    after: [
      hollow
        ? element(
            "p",
            { className: "hint key" },
            "Hollow or dashed: the outputs were not checked against the reference.",
          )
        : null,
      handicapped
        ? element(
            "p",
            { className: "hint key" },
            `${HANDICAPPED} Handicapped: it did not run as its users run it, and nothing is concluded from it. The table says why.`,
          )
        : null,
      left,
    ],
    folded: !change,
    draw: (theme) => chart.draw({ ...sheet, points, theme }),
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
