// machines.ts: the machines of the store; one of them: its facts, its software, and what it can do at best.

import { fetchMachines, type Ceiling, type JsonObject, type Machine } from "../api";
import { curvesOf, drawCalibration } from "../charts/calibration";
import { element, type Child } from "../dom";
import { many, moment, name, quantity } from "../format";
import { commandLine, linkTo, note, remark, type Asked, type Content, type View } from "../page";
import { plotCard } from "../plot";
import { facts, factsOf } from "../record";
import { tableOf, type Column } from "../table";

const fact = (object: JsonObject | null, key: string) => {
  const value = object?.[key];
  return typeof value === "string" || typeof value === "number" ? value : null;
};

const listed: Column<Machine>[] = [
  { key: "server", title: "machine", value: (row) => row.server, show: (row) => linkTo("machines", { server: row.server }, name(row.server)) },
  { key: "unit", title: "processing units", value: (row) => row.unit_names.join(", "), show: (row) => row.unit_names.join(", ") || "–" },
  { key: "cores", title: "cores", number: true, value: (row) => fact(row.machine, "cores") },
  { key: "memory", title: "memory", unit: "B", number: true, value: (row) => fact(row.machine, "memory_bytes"), show: (row) => { const bytes = fact(row.machine, "memory_bytes"); return typeof bytes === "number" ? quantity(bytes, "B") : "–"; } },
  { key: "records", title: "results", number: true, value: (row) => row.records, show: (row) => linkTo("explorer", { y: "throughput", x: "batch", group: "model,phase,framework,backend", log: "xy", server: row.server }, row.records.toLocaleString("en")) },
  { key: "calibrated", title: "calibrated", value: (row) => (row.calibration ? "yes" : "no") },
  { key: "newest", title: "newest result", value: (row) => row.newest, show: (row) => moment(row.newest) },
];

function ceilingsOf(machine: Machine): Ceiling[] {
  const rows = machine.calibration?.ceilings;
  return Array.isArray(rows) ? (rows as unknown as Ceiling[]) : [];
}

const columns: Column<Ceiling>[] = [
  { key: "threads", title: "threads", number: true, value: (row) => row.threads },
  { key: "set_bytes", title: "working set", unit: "B", number: true, value: (row) => row.set_bytes, show: (row) => quantity(row.set_bytes, "B") },
  { key: "isa", title: "instructions", value: (row) => row.isa },
  { key: "flop_per_s", title: "multiply-adds", unit: "FLOP/s", number: true, value: (row) => row.flop_per_s, show: (row) => quantity(row.flop_per_s, "FLOP/s") },
  { key: "read_per_s", title: "read", unit: "B/s", number: true, value: (row) => row.read_per_s, show: (row) => quantity(row.read_per_s, "B/s") },
  { key: "update_per_s", title: "update", unit: "B/s", number: true, value: (row) => row.update_per_s, show: (row) => quantity(row.update_per_s, "B/s") },
];

function calibrationCard(machine: Machine): HTMLElement {
  const ceilings = ceilingsOf(machine);
  if (ceilings.length === 0)
    return remark("Not calibrated", element("p", {}, "What this machine can do at best has not been filed, so there is no curve and no roofline. On that machine:"), commandLine("prony machine --calibrate --store"));
  const peak = Math.max(...ceilings.map(({ flop_per_s }) => flop_per_s));
  return plotCard<Ceiling>({
    key: "calibration",
    title: "What memory delivers, by working set",
    subtitle: `the best bursts of prony machine --calibrate; multiply-adds at most ${quantity(peak, "FLOP/s")}`,
    folded: true,
    draw: (theme) => drawCalibration(curvesOf(ceilings), theme),
    listing: { id: "calibration-table", caption: "Ceilings by threads and working set", columns, rows: ceilings },
  });
}

function onePage(machine: Machine): Child[] {
  const { server } = machine;
  return [
    element(
      "section",
      { className: "card" },
      element("div", { className: "heading" }, element("div", {}, element("h1", {}, name(server)), element("p", { className: "subtitle" }, `${machine.unit_names.join(", ") || "processing unit not given"} · ${many(machine.records, "result")}, the newest ${moment(machine.newest)}`)), element("div", { className: "tools" }, linkTo("roofline", { server }, "Roofline"), linkTo("explorer", { y: "throughput", x: "batch", group: "model,phase,framework,backend", log: "xy", server }, "Results"))),
      element("div", { className: "fact-groups" }, element("div", { className: "fact-group" }, element("h2", {}, "Machine"), factsOf(machine.machine)), element("div", { className: "fact-group" }, element("h2", {}, "Software"), machine.software ? factsOf(machine.software) : facts([["software", "not recorded"]]))),
    ),
    calibrationCard(machine),
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
      return { title: name(server), main: one ? onePage(one) : [note(`There is no machine ${server}`, element("p", {}, linkTo("machines", {}, "All machines")))] };
    }
    const list = element("section", { className: "card" }, element("h1", {}, "Machines"), tableOf({ id: "machines", caption: "The machines of this store", columns: listed, rows: all, sort: asked.parameters.get("sort") ?? "", onSort: (sort) => asked.change({ sort }) }));
    return { title: "Machines", main: [list, all.length === 1 && all[0] ? calibrationCard(all[0]) : null] };
  },
};
