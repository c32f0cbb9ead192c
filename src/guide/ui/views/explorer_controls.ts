// explorer_controls.ts: the form beside the explorer's chart: what to measure, over which axis, grouped,
// filtered and compared how.

import type { Catalogue, Filters, Point, Values } from "../api";
import {
  check,
  chips,
  choice,
  field,
  groupedSelect,
  linkButton,
  panel,
  select,
  toggled,
  type Option,
} from "../controls";
import { attributed, element, type Child } from "../dom";
import { filterFields, filterWords } from "../filters";
import { label, name, sentence } from "../format";
import { measureOptions } from "../measures";
import { namesOf } from "../naming";
import type { Named, Shown, State } from "../state";
import { wordsOf } from "../words";
import type { Change } from "./query_card";
import { groupTitles } from "./query_title";

const MOST_GROUPS = 6; // as the server takes them, with the one that tells charts apart

const roomFor = (facet: string) => (facet ? MOST_GROUPS - 1 : MOST_GROUPS);

function groupField(catalogue: Catalogue, values: Values, state: State, change: Change): HTMLElement {
  const axes = catalogue.axes
    .map((axis) => axis.key)
    .filter((axis) => axis !== state.x && ((values[axis]?.length ?? 0) > 1 || state.group.includes(axis)));
  if (axes.length === 0)
    return element("p", { className: "hint" }, "All results have the same values on every axis.");
  const toggle = (axis: string) =>
    change((now) => ({ group: toggled(now.group, axis).slice(-roomFor(now.facet)) }));
  const first = axes.filter(
    (axis) => state.group.includes(axis) || !catalogue.axes.find(({ key }) => key === axis)?.derived,
  );
  const rest = axes.filter((axis) => !first.includes(axis));
  const more = element(
    "details",
    { id: "group-more", className: "more" },
    element("summary", {}, "More"),
    chips("group", "Computed from the others", rest, [], toggle),
  );
  return element(
    "div",
    {},
    chips("group", "One series per", first, state.group, toggle),
    rest.length > 0 ? more : null,
  );
}

// One chart for each value of an axis: several in one step, with the same axes.
function facetField(catalogue: Catalogue, values: Values, state: State, change: Change): Child {
  const axes = catalogue.axes
    .map(({ key }) => key)
    .filter((axis) => axis !== state.x && ((values[axis]?.length ?? 0) > 1 || axis === state.facet));
  if (axes.length === 0) return null;
  const options: Option[] = [["", "one chart for all"], ...axes.map((axis): Option => [axis, label(axis)])];
  return field(
    "facet",
    "One chart per",
    select("facet", options, state.facet, (facet) =>
      change((now) => ({
        facet,
        group: now.group.filter((axis) => axis !== facet).slice(-roomFor(facet)),
        point: 0,
      })),
    ),
  );
}

// What speed-ups can be taken against: a place on x, or one of the series.
function baselines(state: State, points: Point[]): Option[] {
  // Each chart has its own: the axis that tells charts apart stays out.
  const axes = groupTitles(state).filter((axis) => axis !== state.facet);
  const facet = groupTitles(state).indexOf(state.facet);
  const bare = points.map(({ group }) => group.filter((_, at) => at !== facet));
  const groups = [...new Map(bare.map((group) => [JSON.stringify(group), group])).values()];
  const names = namesOf(axes, groups);
  const series: Option[] =
    state.series.length > 0
      ? state.series.map((one) => [`series:${one.name}`, `the series ${one.name}`])
      : groups
          .filter((group) => group.length > 0)
          .map((group, index) => [
            wordsOf(Object.fromEntries(group.map((value, at) => [axes[at] ?? "", [String(value ?? "")]]))),
            names[index] ?? "",
          ]);
  const places: Option[] = [...new Set(points.map(({ x }) => x))]
    .filter((x) => x !== null)
    .slice(0, 40)
    .map((x) => [wordsOf({ [state.x]: [String(x)] }), `${label(state.x)} ${name(x)}`]);
  return [["first", `each series at its least ${label(state.x)}`], ...series, ...places];
}

function ratioFields(state: State, points: Point[], change: Change): Child[] {
  const shown = element(
    "div",
    { className: "field" },
    element("span", { className: "label" }, "Show"),
    choice(
      "show",
      "Show",
      [
        ["figures", "Figures"],
        ["speedup", "Speed-up"],
        ["efficiency", "Efficiency"],
      ],
      state.show,
      (show) => change(() => ({ show: show as Shown, logY: show === "figures" })),
    ),
  );
  if (state.show === "figures") return [shown];
  return [
    shown,
    field(
      "baseline",
      "Against",
      select("baseline", baselines(state, points), state.baseline || "first", (baseline) =>
        change(() => ({ baseline })),
      ),
    ),
  ];
}

// Where one of the series on the page is by now: others may have been added or removed.
function placeOf(now: State, drawn: State, index: number): number {
  if (now.series.length === drawn.series.length) return index;
  return now.series.findIndex(({ name: title }) => title === drawn.series[index]?.name);
}

function withSeries({ series }: State, place: number, changed: Partial<Named>): Named[] {
  return series.map((one, at) => (at === place ? { ...one, ...changed } : one));
}

function nameInput(state: State, index: number, change: Change): HTMLInputElement {
  const input = attributed(
    element("input", {
      id: `series-${index}-name`,
      type: "text",
      value: state.series[index]?.name ?? "",
      maxLength: 60,
    }),
    { "aria-label": `Name of series ${index + 1}` },
  );
  input.addEventListener("change", () =>
    change((now) => ({ series: withSeries(now, placeOf(now, state, index), { name: input.value }) })),
  );
  return input;
}

// Series with names of their own, each with filters instead of the common ones.
function seriesFields(state: State, change: Change): HTMLElement {
  const rows = state.series.map((one, index) =>
    element(
      "li",
      {},
      element(
        "div",
        { className: "series-row" },
        nameInput(state, index, change),
        linkButton(
          `series-${index}-remove`,
          "Remove",
          () =>
            change((now) => {
              const place = placeOf(now, state, index);
              return { series: now.series.filter((_, at) => at !== place), edit: -1 };
            }),
          `Remove the series ${one.name}`,
        ),
      ),
      element("p", { className: "hint" }, filterWords(one.filters) || "no filters of its own yet"),
    ),
  );
  const add = linkButton("series-add", "Add a series", () =>
    change(({ series }) => {
      const added: Named = { name: `series ${series.length + 1}`, filters: {} };
      return { series: [...series, added], edit: series.length };
    }),
  );
  return element(
    "div",
    { className: "field" },
    element("div", { className: "filters-title" }, element("h2", {}, "Named series"), add),
    rows.length > 0
      ? element("ol", { className: "series-list" }, ...rows)
      : element(
          "p",
          { className: "hint" },
          "Put selections of your own on one chart: each has a name and filters.",
        ),
  );
}

function editedFilters(catalogue: Catalogue, values: Values, state: State, change: Change): Child[] {
  const one = state.series[state.edit];
  const filters = one?.filters ?? state.filters;
  const put = (edit: (filters: Filters) => Filters) =>
    change((now) => {
      if (!one) return { filters: edit(now.filters), point: 0 };
      const place = placeOf(now, state, state.edit);
      return {
        series: withSeries(now, place, { filters: edit(now.series[place]?.filters ?? {}) }),
        point: 0,
      };
    });
  const whose: Option[] = [
    ["-1", "all series"],
    ...state.series.map(({ name: title }, index): Option => [String(index), title]),
  ];
  return [
    state.series.length > 0
      ? field(
          "edit",
          "Filters of",
          select("edit", whose, String(one ? state.edit : -1), (edit) =>
            change(() => ({ edit: Number(edit) })),
          ),
        )
      : null,
    ...filterFields(
      { id: "filter", catalogue, values, filters, change: put },
      one ? `Filters of ${one.name}` : "Filters",
    ),
  ];
}

export function explorerControls(
  catalogue: Catalogue,
  values: Values,
  state: State,
  points: Point[],
  change: Change,
): Child[] {
  const metric = catalogue.metrics.find(({ key }) => key === state.y);
  const axis = catalogue.axes.find(({ key }) => key === state.x);
  const better = metric ? `${metric.help}; ${metric.better} is better` : "";
  const across = [
    { title: "", options: catalogue.axes.filter(({ derived }) => !derived).map(({ key }) => key) },
    { title: "computed", options: catalogue.axes.filter(({ derived }) => derived).map(({ key }) => key) },
  ];
  return [
    panel(
      field(
        "y",
        "Measure (y)",
        groupedSelect("y", measureOptions(catalogue), state.y, (y) => change(() => ({ y, point: 0 }))),
        sentence(better),
      ),
      field(
        "x",
        "Across (x)",
        groupedSelect("x", across, state.x, (x) =>
          change((now) => ({
            x,
            group: now.group.filter((key) => key !== x),
            facet: now.facet === x ? "" : now.facet,
            point: 0,
            sort: "",
          })),
        ),
        sentence(axis?.help ?? ""),
      ),
      groupField(catalogue, values, state, change),
      facetField(catalogue, values, state, change),
      field(
        "aggregate",
        "Several results at one point",
        select("aggregate", catalogue.aggregates, state.aggregate, (aggregate) =>
          change(() => ({ aggregate })),
        ),
      ),
      ...ratioFields(state, points, change),
      element(
        "fieldset",
        { className: "scales" },
        element("legend", {}, "Logarithmic"),
        axis?.kind === "number" ? check("log-x", "x", state.logX, (logX) => change(() => ({ logX }))) : null,
        check("log-y", "y", state.logY, (logY) => change(() => ({ logY }))),
      ),
      seriesFields(state, change),
      ...editedFilters(catalogue, values, state, change),
    ),
  ];
}
