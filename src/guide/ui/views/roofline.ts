// roofline.ts (views): one machine's ceilings, with every result that was measured on it under them.

import { fetchRoofline, fetchValues, type Roofline, type RooflinePoint } from "../api";
import { seriesName } from "../charts/chart";
import { drawRoofline, roofsOf } from "../charts/roofline";
import { field, panel, select } from "../controls";
import { element, type Child } from "../dom";
import { filterFields, filterWords, withoutEchoes } from "../filters";
import { figure, list, many, name, quantity } from "../format";
import { learnMachines, valueName } from "../naming";
import {
  benchLine,
  commandLine,
  editFilters,
  filtersOf,
  linkTo,
  note,
  type Asked,
  type Content,
  type View,
} from "../page";
import { plotCard } from "../plot";
import { verdictBadge } from "../record";
import type { Column } from "../table";

const OWN = ["server", "colour", "sort"];
const IMPLEMENTATION = "framework,backend"; // one colour for each of these together

const MOST = 2000; // points the server sends

const ROOFS_KEY =
  "Slopes: bandwidth of the fastest cache (solid) and of main memory (dashed). A result above a dashed slope was served from a cache. Flat: the most FLOP/s, on a CPU in fp32. ";

const columns: Column<RooflinePoint>[] = [
  {
    key: "label",
    title: "result",
    wrap: true,
    value: (row) => row.label,
    show: (row) => linkTo("record", { id: String(row.id) }, row.label),
  },
  {
    key: "intensity",
    title: "FLOP per byte",
    number: true,
    value: (row) => row.intensity,
    show: (row) => figure(row.intensity),
  },
  {
    key: "flop_rate",
    title: "FLOP/s",
    unit: "FLOP/s",
    number: true,
    value: (row) => row.flop_rate,
    show: (row) => quantity(row.flop_rate, "FLOP/s"),
  },
  {
    key: "byte_rate",
    title: "bytes/s",
    unit: "B/s",
    number: true,
    value: (row) => row.byte_rate,
    show: (row) => quantity(row.byte_rate, "B/s"),
  },
  {
    key: "times_floor",
    title: "× floor",
    number: true,
    value: (row) => row.times_floor,
    show: (row) => quantity(row.times_floor, "x"),
  },
  { key: "bound", title: "bound by", value: (row) => row.bound },
  { key: "check", title: "check", value: (row) => row.check, show: (row) => verdictBadge(row.check) },
];

const onCpu = ({ point }: RooflinePoint) => point.unit === null || point.unit === "cpu";

// Results on units whose calibration the store has not.
function otherUnits({ points, ceilings }: Roofline): HTMLElement | null {
  const others = points.filter((point) => !onCpu(point));
  if (others.length === 0 || ceilings.some(({ unit_name }) => unit_name !== null)) return null;
  const named = [...new Set(others.flatMap(({ point }) => point.unit_name ?? []))];
  const units = [...new Set(others.map(({ point }) => name(point.unit ?? null).toUpperCase()))];
  return element(
    "div",
    { className: "warning", id: "no-roof" },
    `No roof for ${many(others.length, "result")} on the ${list(units)}${named.length > 0 ? ` (${list(named.map(String))})` : ""}: the store has no calibration of it. On that machine, before the next bench:`,
    commandLine("prony machine --calibrate --unit gpu"),
  );
}

function missingCeilings(server: string, { status }: Asked): HTMLElement {
  return element(
    "div",
    { className: "warning" },
    `The store has no calibration of ${server}, so there is no roof to draw. Calibrate that machine; the next bench files it:`,
    commandLine("prony machine --calibrate"),
    benchLine("small", status),
  );
}

function rooflineCard(found: Roofline, colour: string, words: string, asked: Asked): HTMLElement {
  const roofs = roofsOf(found.ceilings);
  const seriesOf = ({ point }: RooflinePoint) =>
    seriesName(colour.split(",").map((axis) => point[axis] ?? null));
  const names = [...new Set(found.points.map(seriesOf))].sort();
  const shown =
    found.points.length === MOST ? `the newest ${many(MOST, "result")}` : many(found.points.length, "result");
  return plotCard<RooflinePoint>({
    key: "roofline",
    level: "h1",
    title: `Roofline of ${valueName("server", found.server)}`,
    subtitle: [words, shown].filter(Boolean).join(" · "),
    notes: [
      !found.ceilings.some(({ unit_name }) => unit_name === null) && found.points.some(onCpu) ? missingCeilings(found.server, asked) : null,
      otherUnits(found),
    ],
    after: [
      element(
        "p",
        { className: "hint key" },
        `${roofs.length > 0 ? ROOFS_KEY : ""}FLOP and bytes are what the task needs. Hollow: not checked.`,
      ),
    ],
    legend: names.map((title) => ({ key: title, name: title })),
    draw: (theme, _size, hidden) =>
      drawRoofline(
        { points: found.points.filter((point) => !hidden.has(seriesOf(point))), roofs, seriesOf },
        theme,
      ),
    onPick: (record) => asked.open("record", { id: String(record) }),
    listing: {
      id: "roofline-table",
      caption: `Results measured on ${found.server}`,
      columns,
      rows: found.points,
      sort: asked.parameters.get("sort") ?? "-flop_rate",
      onSort: (sort) => asked.change({ sort }),
    },
  });
}

export const roofline: View = {
  name: "roofline",
  title: "Roofline",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const filters = filtersOf(parameters, OWN);
    const [found] = await Promise.all([
      fetchRoofline(parameters.get("server") ?? "", filters),
      learnMachines(),
    ]);
    const values = withoutEchoes(
      await fetchValues({ ...filters, ...(found.server ? { server: [found.server] } : {}) }),
      catalogue,
    );
    delete values.server; // it has a field of its own
    const colour = parameters.get("colour") ?? IMPLEMENTATION;
    const colours = catalogue.axes.map(({ key }) => key).filter((axis) => (values[axis]?.length ?? 0) > 1);
    const aside: Child[] = [
      panel(
        field(
          "server",
          "Machine",
          select(
            "server",
            found.servers.map((server): [string, string] => [server, valueName("server", server)]),
            found.server,
            (server) => asked.change({ server }),
          ),
        ),
        field(
          "colour",
          "One colour per",
          select("colour", [[IMPLEMENTATION, "framework and backend"], ...colours], colour, (axis) =>
            asked.change({ colour: axis }),
          ),
        ),
        ...filterFields({
          id: "filter",
          catalogue,
          values,
          filters,
          change: (edit) => editFilters(asked, OWN, edit),
        }),
      ),
    ];
    const main =
      found.points.length > 0
        ? [rooflineCard(found, colour, filterWords(filters), asked)]
        : [
            note(
              "Nothing on this roofline",
              element(
                "p",
                {},
                "No result here has the FLOP and bytes of its task. Results of prony bench have them:",
              ),
              benchLine("large --batch 1,10,64", asked.status),
            ),
          ];
    return { title: `Roofline of ${found.server || "a machine"}`, aside, main };
  },
};
