// record.ts: one result in full: figures, samples, what it ran on, and the command that repeats it.

import type { JsonObject, Kept, KeptOne, RecordLine, Times } from "./api";
import { samplesCards } from "./samples";
import { attributed, element, type Child } from "./dom";
import { binarySize, figure, label, moment, name, quantity, sentence } from "./format";
import { card, commandLine, linkTo } from "./page";
import { tableOf, type Column } from "./table";

export type Fact = [title: string, value: Child];

export function facts(pairs: Fact[]): HTMLElement {
  return element(
    "dl",
    { className: "facts" },
    ...pairs.flatMap(([title, value]) => [element("dt", {}, title), element("dd", {}, value)]),
  );
}

const BYTES = /_bytes$/;

// An object of a record as facts: cores 2 · l3 33.6 MB
export function factsOf(object: JsonObject | null | undefined): HTMLElement {
  const pairs = Object.entries(object ?? {})
    .filter(([, value]) => value !== null && typeof value !== "object")
    .map(([key, value]): Fact => {
      if (typeof value !== "number") return [label(key), String(value)];
      if (BYTES.test(key)) return [label(key.replace(BYTES, "")), binarySize(value)];
      if (key === "ghz") return ["clock", `${figure(value)} GHz`];
      if (key === "steal") return ["steal", `${figure(100 * value)} % of the CPU time`];
      if (key === "load") return ["load", `${figure(value)} processes`];
      return [label(key), String(Number(value.toPrecision(4)))];
    });
  return pairs.length > 0 ? facts(pairs) : element("p", { className: "hint" }, "Not recorded.");
}

export function verdictBadge(verdict: string | undefined): HTMLElement {
  const shown = verdict === "right" || verdict === "wrong" ? verdict : "not checked";
  return element(
    "span",
    { className: `verdict ${shown === "right" ? "good" : shown === "wrong" ? "bad" : "open"}` },
    shown,
  );
}

function timeFacts(times: Times): Fact[] {
  const named: [string, number | null][] = [
    ["quickest", times.min],
    ["median", times.median],
    ["mean", times.mean],
    ["nine of ten within", times.p90],
    ["99 of 100 within", times.p99],
  ];
  const known = named
    .filter(([, value]) => value !== null)
    .map(([title, value]): Fact => [title, quantity(value, "ns")]);
  return [
    ...known,
    ["95 % interval", `${quantity(times.ci_low, "ns")} to ${quantity(times.ci_high, "ns")}`],
    [
      "samples",
      `${times.count.toLocaleString("en")}${times.per > 1 ? `, each of ${times.per.toLocaleString("en")} iterations` : ""}`,
    ],
  ];
}

function figureFacts(record: RecordLine): Fact[] {
  const { result } = record;
  if (!result) return [];
  const check = result.check;
  const pairs: Fact[] = [
    ["throughput", quantity(result.throughput, "samples/s")],
    [
      "× floor",
      result.times_floor
        ? `${quantity(result.times_floor, "x")} of ${quantity(result.floor_ns, "ns")}${result.bound ? `, bound by ${result.bound}` : ""}`
        : "–",
    ],
    ...(result.times_floor && result.times_now && result.times_floor > 1.05 * result.times_now
      ? [["× floor now", `${quantity(result.times_now, "x")}: memory gave less than at its best`] as Fact]
      : []),
    ["work", result.flop ? `${quantity(result.flop, "FLOP")}, ${quantity(result.bytes, "B")}` : "–"],
    [
      "check",
      element(
        "span",
        {},
        verdictBadge(check?.verdict),
        check?.against
          ? ` against ${check.against}: differs by ${quantity(check.difference, "")}, allowed ${quantity(check.tolerance, "")}`
          : check?.reason
            ? ` ${check.reason}`
            : "",
      ),
    ],
  ];
  return [...timeFacts(result.time_ns), ...pairs];
}

const METER_UNITS: [RegExp, string][] = [
  [/memory|bytes/, "B"],
  [/utilisation|^steal$/, "%"],
  [/^(system_calls|context_switches|page_faults)/, "a second"],
  [/^other_load$/, "cores"],
  [/^energy$/, "J"],
];

function partFacts({ result }: RecordLine): Fact[] {
  const parts = Object.entries(result?.parts_ns ?? {}).filter(([, value]) => value !== null);
  const meters = Object.entries(result?.meters ?? {});
  return [
    ...parts.map(([part, value]): Fact => [part, quantity(value, "ns")]),
    ...meters.map(([meter, value]): Fact => [
      label(meter),
      typeof value === "number"
        ? quantity(value, METER_UNITS.find(([names]) => names.test(meter))?.[1] ?? "")
        : value,
    ]),
  ];
}

function group(title: string, ...content: Child[]): HTMLElement {
  return element("div", { className: "fact-group" }, element("h3", {}, title), ...content);
}

// Everything that is known of one result.
export function recordSections(
  { id, label: called, command, record }: KeptOne,
  heading: "h1" | "h2" = "h2",
): HTMLElement[] {
  const point = Object.entries(record.point).filter(([, value]) => value !== null && value !== "");
  const parts = partFacts(record);
  const kernels = record.kernels ?? [];
  const peer = record.software?.["peer"];
  const title = element(heading, { id: `record-${id}` }, sentence(called));
  const whole = card(
    element(
      "div",
      { className: "heading" },
      element(
        "div",
        {},
        title,
        element("p", { className: "subtitle" }, `Record ${id} · ${moment(record.at)}`),
      ),
      heading === "h1" ? null : linkTo("record", { id: String(id) }, "On a page of its own"),
    ),
    record.status === "ok"
      ? null
      : element(
          "p",
          { className: "warning" },
          sentence(`${record.status}: ${record.reason ?? "no reason given"}`),
        ),
    record.handicap === undefined
      ? null
      : element(
          "p",
          { className: "warning" },
          sentence(`handicapped: ${record.handicap}. Its users would run it faster, so no finding rests on it.`),
        ),
    command
      ? group("Repeat it", commandLine(command))
      : element(
          "p",
          { className: "hint" },
          "It was measured by another program: prony has no command that repeats it.",
        ),
    element(
      "div",
      { className: "fact-groups" },
      record.result ? group("Figures", facts(figureFacts(record))) : null,
      group("Configuration", facts(point.map(([axis, value]) => [label(axis), name(value)]))),
      group("Machine", factsOf(record.machine)),
      group("Software", factsOf(record.software)),
      peer && typeof peer === "object" && !Array.isArray(peer)
        ? group("The framework's software", factsOf(peer))
        : null,
      parts.length > 0 ? group("Parts and meters", facts(parts)) : null,
      kernels.length > 0
        ? group("Kernels that ran", element("p", { className: "mono" }, kernels.join(" · ")))
        : null,
    ),
  );
  return [attributed(whole, { "aria-labelledby": `record-${id}` }), ...samplesCards(record)];
}

// The results behind one point of a chart: all of them in a table, the one it stands for in full.
export function pointSections(
  title: string,
  one: KeptOne,
  records: Kept[],
  differs: string[],
): HTMLElement[] {
  if (records.length < 2) return recordSections(one);
  const columns: Column<Kept>[] = [
    {
      key: "id",
      title: "record",
      value: ({ id }) => id,
      show: ({ id }) => linkTo("record", { id: String(id) }, String(id)),
    },
    {
      key: "at",
      title: "measured",
      value: ({ record }) => record.at ?? null,
      show: ({ record }) => moment(record.at),
    },
    ...differs.map((axis): Column<Kept> => ({
      key: axis,
      title: label(axis),
      value: ({ record }) => record.point[axis] ?? null,
    })),
    {
      key: "time",
      title: "time, median",
      number: true,
      value: ({ record }) => record.result?.time_ns.median ?? null,
      show: ({ record }) => quantity(record.result?.time_ns.median, "ns"),
    },
    {
      key: "throughput",
      title: "throughput",
      number: true,
      value: ({ record }) => record.result?.throughput ?? null,
      show: ({ record }) => quantity(record.result?.throughput, "samples/s"),
    },
    {
      key: "floor",
      title: "× floor",
      number: true,
      value: ({ record }) => record.result?.times_floor ?? null,
      show: ({ record }) => quantity(record.result?.times_floor, "x"),
    },
    {
      key: "check",
      title: "check",
      value: ({ record }) => record.result?.check?.verdict ?? null,
      show: ({ record }) => verdictBadge(record.result?.check?.verdict),
    },
    { key: "server", title: "machine", value: ({ record }) => record.point.server ?? null },
  ];
  const all = card(
    element("h2", {}, `${records.length} results at ${title}`),
    tableOf({
      id: "point-records",
      caption: `The results at ${title}`,
      columns,
      rows: records,
      isChosen: ({ id }) => id === one.id,
    }),
  );
  return [all, ...recordSections(one)];
}
