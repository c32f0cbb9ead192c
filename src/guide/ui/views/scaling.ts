// scaling.ts: what more threads, workers or nodes bring: measured speed-up against a perfect one.

import { fetchScaling, fetchValues, type Catalogue, type Point, type Scaling, type Value } from "../api";
import { drawable, seriesName } from "../charts/chart";
import { drawScaling } from "../charts/scaling";
import { choice, field, panel, select } from "../controls";
import { element, type Child } from "../dom";
import { filterFields, filterWords, withoutEchoes } from "../filters";
import { figure, label, list, name } from "../format";
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

const OWN = ["over", "y", "group", "show", "sort"];
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

function scalingCard(found: Scaling, y: string, show: string, words: string, asked: Asked): HTMLElement {
  const rows = found.series.flatMap(({ group, points }) =>
    points.map((point): Row => ({ ...point, series: group })),
  );
  const apart = found.groups.map((_, at) => new Set(found.series.map(({ group }) => group[at])).size > 1);
  const told = (group: Value[]) => (apart.includes(true) ? group.filter((_, at) => apart[at]) : group);
  const { drawn, left } = drawable(
    found.series.map(({ group, points }) => ({ name: seriesName(told(group)), points })),
  );
  return plotCard<Row>({
    key: "scaling",
    level: "h1",
    title: `${show === "efficiency" ? "Efficiency" : "Speed-up"} over ${label(found.over)}`,
    subtitle: [
      words || "all results",
      `of ${label(y)}, each series against its own least`,
      `per ${list(found.groups.filter((_, at) => apart[at] || !apart.includes(true)).map(label))}`,
    ].join(" · "),
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
    after: [
      element(
        "p",
        { className: "hint key" },
        `Dashed: the ideal, twice the ${label(found.over)}, twice the speed.`,
      ),
      left,
    ],
    draw: (theme) => drawScaling(drawn, found.over, show === "efficiency", theme),
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

export const scaling: View = {
  name: "scaling",
  title: "Scaling",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const filters = filtersOf(parameters, OWN);
    const over = parameters.get("over") ?? "threads";
    const y = parameters.get("y") ?? "throughput";
    const group = (parameters.get("group") ?? "").split(",").filter(Boolean);
    const [values, found] = await Promise.all([fetchValues(filters), fetchScaling(over, y, group, filters)]);
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
          select(
            "y",
            catalogue.metrics.map(({ key }) => key),
            y,
            (chosen) => asked.change({ y: chosen }),
          ),
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
        ? [scalingCard(found, y, parameters.get("show") ?? "speedup", filterWords(filters), asked)]
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
    return { title: `Scaling over ${label(over)}`, aside, main };
  },
};
