// machines.ts: the machines of the store; one of them: its facts, its software, and what it can do at best.

import { fetchMachines, type Ceiling, type JsonObject, type Machine } from "../api";
import { curvesOf, drawCalibration } from "../charts/calibration";
import { choice } from "../controls";
import { element, type Child } from "../dom";
import { binarySize, many, moment, name, quantity } from "../format";
import {
  benchLine,
  card,
  commandLine,
  linkTo,
  note,
  remark,
  type Asked,
  type Content,
  type View,
} from "../page";
import { plotCard } from "../plot";
import { facts, factsOf } from "../record";
import { tableOf, type Column } from "../table";

const fact = (object: JsonObject | null, key: string) => {
  const value = object?.[key];
  return typeof value === "string" || typeof value === "number" ? value : null;
};

const listed: Column<Machine>[] = [
  {
    key: "server",
    title: "machine",
    value: (row) => row.server,
    show: (row) => linkTo("machines", { server: row.server }, name(row.server)),
  },
  {
    key: "unit",
    title: "processing units",
    value: (row) => row.unit_names.join(", "),
    show: (row) => row.unit_names.join(", ") || "–",
  },
  { key: "cores", title: "cores", number: true, value: (row) => fact(row.machine, "cores") },
  {
    key: "memory",
    title: "memory",
    unit: "B",
    number: true,
    value: (row) => fact(row.machine, "memory_bytes"),
    show: (row) => {
      const bytes = fact(row.machine, "memory_bytes");
      return typeof bytes === "number" ? binarySize(bytes) : "–";
    },
  },
  {
    key: "records",
    title: "results",
    number: true,
    value: (row) => row.records,
    show: (row) =>
      linkTo(
        "explorer",
        {
          y: "throughput",
          x: "batch",
          group: "model,phase,framework,backend",
          log: "xy",
          server: row.server,
        },
        row.records.toLocaleString("en"),
      ),
  },
  { key: "calibrated", title: "calibrated", value: (row) => (ceilingsOf(row).length > 0 ? "yes" : "no") },
  { key: "newest", title: "newest result", value: (row) => row.newest, show: (row) => moment(row.newest) },
];

function ceilingsOf(machine: Machine): Ceiling[] {
  const rows = machine.calibration?.ceilings;
  return Array.isArray(rows) ? (rows as unknown as Ceiling[]) : [];
}

const isMemory = ({ set_bytes }: Ceiling) => set_bytes !== undefined;
const rateOf = (row: Ceiling) => (isMemory(row) ? "B/s" : row.ceiling === "launch" ? "1/s" : "FLOP/s");

const columns: Column<Ceiling>[] = [
  { key: "ceiling", title: "ceiling", value: (row) => row.ceiling },
  {
    key: "isa",
    title: "unit",
    value: (row) => row.unit_name ?? row.isa ?? null,
  },
  { key: "threads", title: "threads", number: true, value: (row) => row.threads ?? null },
  { key: "pages", title: "pages", value: (row) => row.pages ?? null, show: (row) => row.pages ?? "–" },
  {
    key: "set_bytes",
    title: "working set",
    unit: "B",
    number: true,
    value: (row) => row.set_bytes ?? null,
    show: (row) => binarySize(row.set_bytes),
  },
  {
    key: "per_s",
    title: "at best",
    unit: "per s",
    number: true,
    value: (row) => row.per_s,
    show: (row) => quantity(row.per_s, rateOf(row)),
  },
];

function peaksText(ceilings: Ceiling[]): string {
  const peaks = new Map<string, number>();
  for (const row of ceilings)
    if (rateOf(row) === "FLOP/s") peaks.set(row.ceiling, Math.max(row.per_s, peaks.get(row.ceiling) ?? 0));
  return [...peaks].map(([kind, per_s]) => `${kind} ${quantity(per_s, "FLOP/s")}`).join(" · ");
}

function calibrationCard(machine: Machine, asked: Asked): HTMLElement {
  const ceilings = ceilingsOf(machine);
  const sizes = [...new Set(ceilings.flatMap(({ pages }) => pages ?? []))].sort();
  const pages = asked.parameters.get("pages") ?? sizes[0] ?? "";
  const curves = curvesOf(ceilings, pages);
  if (curves.length === 0)
    return remark(
      "Not calibrated",
      element(
        "p",
        {},
        "This store has no calibration of this machine, so there is no curve and no roofline. On that machine:",
      ),
      commandLine("prony machine --calibrate"),
      element("p", {}, "The next bench there files it:"),
      benchLine("small", asked.status),
    );
  return plotCard<Ceiling>({
    key: "calibration",
    title: "Memory rate by working set",
    subtitle: `The best bursts seen. At most: ${peaksText(ceilings)}`,
    tools:
      sizes.length > 1
        ? [
            choice(
              "pages",
              "Pages",
              sizes.map((size): [string, string] => [size, `${size} pages`]),
              pages,
              (size) => asked.change({ pages: size }),
            ),
          ]
        : [],
    folded: true,
    legend: curves.map(({ name }) => ({ key: name, name })),
    draw: (theme, _size, hidden) =>
      drawCalibration(
        curves.filter((curve) => !hidden.has(curve.name)),
        theme,
      ),
    listing: {
      id: "calibration-table",
      caption: "Ceilings by unit, threads, pages and working set",
      columns,
      rows: ceilings,
    },
  });
}

function onePage(machine: Machine, asked: Asked): Child[] {
  const { server } = machine;
  return [
    card(
      element(
        "div",
        { className: "heading" },
        element(
          "div",
          {},
          element("h1", {}, name(server)),
          element(
            "p",
            { className: "subtitle" },
            `${machine.unit_names.join(", ") || "processing unit not given"} · ${many(machine.records, "result")}, the newest ${moment(machine.newest)}`,
          ),
        ),
        element(
          "div",
          { className: "tools" },
          linkTo("roofline", { server }, "Roofline"),
          linkTo(
            "explorer",
            { y: "throughput", x: "batch", group: "model,phase,framework,backend", log: "xy", server },
            "Results",
          ),
        ),
      ),
      element(
        "div",
        { className: "fact-groups" },
        element("div", { className: "fact-group" }, element("h2", {}, "Machine"), factsOf(machine.machine)),
        element(
          "div",
          { className: "fact-group" },
          element("h2", {}, "Software"),
          machine.software ? factsOf(machine.software) : facts([["software", "not recorded"]]),
        ),
      ),
    ),
    calibrationCard(machine, asked),
  ];
}

export const machines: View = {
  name: "machines",
  title: "Machines",
  async show(asked: Asked): Promise<Content> {
    const all = await fetchMachines();
    const server = asked.parameters.get("server");
    if (server !== null) {
      const one = all.find((machine) => machine.server === server);
      return {
        title: name(server),
        main: one
          ? onePage(one, asked)
          : [note(`There is no machine ${server}`, element("p", {}, linkTo("machines", {}, "All machines")))],
      };
    }
    const list = card(
      element("h1", {}, "Machines"),
      tableOf({
        id: "machines",
        caption: "The machines of this store",
        columns: listed,
        rows: all,
        sort: asked.parameters.get("sort") ?? "",
        onSort: (sort) => asked.change({ sort }),
      }),
    );
    return {
      title: "Machines",
      main: [list, all.length === 1 && all[0] ? calibrationCard(all[0], asked) : null],
    };
  },
};
