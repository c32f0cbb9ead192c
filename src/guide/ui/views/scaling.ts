// scaling.ts: what more threads, workers or nodes bring: measured speed-up against a perfect one.

import {
  addFilters,
  fetchScaling,
  fetchValues,
  type Catalogue,
  type Filters,
  type Point,
  type Scaling,
  type Value,
} from "../api";
import { chosenSeries, leftOut, type Series } from "../charts/chart";
import { drawScaling } from "../charts/scaling";
import { choice, field, groupedSelect, panel, select } from "../controls";
import { element, type Child } from "../dom";
import { activeFilters, filterFields, filterWords, withoutEchoes } from "../filters";
import { figure, label, name } from "../format";
import { measureOptions } from "../measures";
import { learnMachines, namesOf, valueWords } from "../naming";
import {
  benchLine,
  editFilters,
  filtersOf,
  linkTo,
  note,
  type Asked,
  type Content,
  type View,
} from "../page";
import { plotCard } from "../plot";
import type { Column } from "../table";
import { withSource } from "./explorer_first";

const OWN = ["over", "y", "group", "show", "sort", "all"];
const OVER = ["threads", "workers", "nodes"];

type Row = Point & { series: Value[] };

function columnsOf({ over, groups }: Scaling, catalogue: Catalogue): Column<Row>[] {
  const ratio = (key: "speedup" | "ideal" | "efficiency", title: string, factor: number): Column<Row> => ({
    key,
    title,
    number: true,
    value: (row) => row[key] ?? null,
    show: (row) => {
      const value = row[key];
      return typeof value === "number" ? figure(value * factor) : "–";
    },
  });
  return [
    ...groups.map((axis, index): Column<Row> => ({
      key: axis,
      title: label(axis),
      number: catalogue.axes.find(({ key }) => key === axis)?.kind === "number",
      value: (row) => row.series[index] ?? null,
    })),
    {
      key: over,
      title: label(over),
      number: true,
      value: (row) => row.x,
      show: (row) => linkTo("record", { id: String(row.id) }, name(row.x)),
    },
    ratio("speedup", "speed-up (×)", 1),
    ratio("ideal", "ideal (×)", 1),
    ratio("efficiency", "efficiency (%)", 100),
  ];
}

function seriesIn(found: Scaling): Series[] {
  const names = namesOf(
    found.groups,
    found.series.map(({ group }) => group),
  );
  return found.series.map(({ group, points }, index) => ({
    key: JSON.stringify(group),
    name: names[index] ?? "",
    points,
  }));
}

// What is the same for all series: "large, training, prony, simd"
function constantsOf(found: Scaling, filters: Filters): string {
  const same = found.groups
    .map((axis, at): [string, Value[]] => [
      axis,
      [...new Set(found.series.map(({ group }) => group[at] ?? null))],
    ])
    .filter(([, values]) => values.length === 1 && values[0] !== null && values[0] !== "default")
    .map(([axis, values]) => valueWords(axis, values[0] ?? null));
  const server = filters.server?.length === 1 ? [valueWords("server", filters.server[0] ?? null)] : [];
  return [...same, ...server].join(", ");
}

function scalingCard(found: Scaling, y: string, show: string, filters: Filters, asked: Asked): HTMLElement {
  const rows = found.series.flatMap(({ group, points }) =>
    points.map((point): Row => ({ ...point, series: group })),
  );
  const every = asked.parameters.has("all");
  const all = seriesIn(found);
  const drawn = chosenSeries(all, "higher", every);
  const sheet = { series: drawn, over: found.over, efficiency: show === "efficiency" };
  return plotCard<Row>({
    key: "scaling",
    level: "h1",
    title: `${show === "efficiency" ? "Efficiency" : "Speed-up"} over ${label(found.over)}`,
    constants: constantsOf(found, filters),
    subtitle: `${label(y)}: each series against its own least number of ${label(found.over)}`,
    filters: `Filters: ${filterWords(filters) || "none"}`,
    source: `Source: prony ${asked.status.version}`,
    tools: [
      choice(
        "show",
        "Show",
        [
          ["speedup", "Speed-up"],
          ["efficiency", "Efficiency"],
        ],
        show,
        (shown) => asked.change({ show: shown }),
      ),
    ],
    notes: [activeFilters(filters, (edit) => editFilters(asked, OWN, edit))],
    after: [
      leftOut(drawn.length, all.length, every, (more) => asked.change({ all: more ? "yes" : null })),
      element(
        "p",
        { className: "hint key" },
        `Dashed: the ideal. Twice the ${label(found.over)} would be twice the speed.`,
      ),
    ],
    legend: drawn.map(({ key, name: title }) => ({ key, name: title })),
    ends: true,
    lines: (drawn.length * 1.15) / 2,
    draw: (theme, size, hidden) =>
      drawScaling({ ...sheet, series: drawn.filter(({ key }) => !hidden.has(key)) }, theme, size),
    onPick: (record) => asked.open("record", { id: String(record) }),
    listing: {
      id: "scaling-table",
      caption: `Speed-up over ${label(found.over)}`,
      columns: columnsOf(found, asked.catalogue),
      rows,
      sort: asked.parameters.get("sort") ?? "",
      onSort: (sort) => asked.change({ sort }),
    },
  });
}

// What an address that leaves it open begins with: one network on one machine, those of the newest
// result where they were measured with several numbers, else those with most series.
async function firstFilters(over: string, y: string, given: Filters, asked: Asked): Promise<Filters> {
  const newest = asked.status.newest?.point;
  const filters = { ...(await withSource(given)) };
  for (const axis of ["model", "server"].filter((each) => !given[each])) {
    const group = ["server", "model", "phase", "framework", "backend", "batch"];
    const { groups, series } = await fetchScaling(over, y, group, filters);
    const at = groups.indexOf(axis);
    const counts = new Map<string, number>();
    for (const { group } of series)
      counts.set(String(group[at] ?? ""), (counts.get(String(group[at] ?? "")) ?? 0) + 1);
    const wanted = String(newest?.[axis] ?? "");
    const [most] = [...counts].sort((a, b) => b[1] - a[1]);
    const chosen = counts.has(wanted) ? wanted : most?.[0];
    if (chosen) filters[axis] = [chosen];
  }
  return filters;
}

export const scaling: View = {
  name: "scaling",
  title: "Scaling",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const over = parameters.get("over") ?? "threads";
    const y = parameters.get("y") ?? "throughput";
    const given = filtersOf(parameters, OWN);
    const open = !parameters.has("over") || Object.keys(given).length === 0; // a link, no choice made here
    const filters = open ? await firstFilters(over, y, given, asked) : given;
    const group = (parameters.get("group") ?? "").split(",").filter(Boolean);
    const [values, found] = await Promise.all([
      fetchValues(filters),
      fetchScaling(over, y, group, filters),
      learnMachines(),
    ]);
    // Threads can be measured here; the others are offered where records have several of them.
    const offered = OVER.filter(
      (axis) => axis === "threads" || axis === over || (values[axis]?.length ?? 0) > 1,
    );
    const aside: Child[] = [
      panel(
        field(
          "over",
          "Over",
          select("over", offered, over, (chosen) => asked.change({ over: chosen })),
        ),
        field(
          "y",
          "Speed-up of",
          groupedSelect("y", measureOptions(catalogue), y, (chosen) => asked.change({ y: chosen })),
        ),
        ...filterFields({
          id: "filter",
          catalogue,
          values: withoutEchoes(values, catalogue),
          filters,
          change: (edit) => editFilters(asked, OWN, edit),
        }),
      ),
    ];
    const main =
      found.series.length > 0
        ? [scalingCard(found, y, parameters.get("show") ?? "speedup", filters, asked)]
        : [
            note(
              `Nothing measured with several ${label(over)}`,
              element(
                "p",
                {},
                `No configuration under these filters was measured with more than one number of ${label(over)}.`,
              ),
              over === "threads" ? benchLine("large --threads 1,2", asked.status) : null,
            ),
          ];
    const own = new URLSearchParams([...parameters].filter(([key]) => OWN.includes(key) && key !== "over"));
    own.set("over", over);
    const address = open ? addFilters(own, filters) : parameters;
    return { title: `Scaling over ${label(over)}`, address, aside, main };
  },
};
