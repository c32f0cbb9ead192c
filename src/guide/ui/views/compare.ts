// compare.ts: two selections, the results of one beside those of the other that are alike in all else:
// ratio, interval and verdict, as the server finds them.

import {
  addFilters,
  fetchComparison,
  fetchValues,
  type Catalogue,
  type Comparison,
  type Filters,
  type Match,
  type Values,
} from "../api";
import { chips, field, groupedSelect, panel, select, type Option } from "../controls";
import { forest } from "../charts/forest";
import { attributed, element, type Child } from "../dom";
import { activeFilters, filterFields, filterWords, withFilter, withoutEchoes } from "../filters";
import { figure, label, many, quantity, sentence } from "../format";
import { measureOptions } from "../measures";
import { learnMachines, valueName, valueWords } from "../naming";
import {
  changed,
  editFilters,
  filtersOf,
  linkTo,
  remark,
  type Asked,
  type Content,
  type View,
} from "../page";
import { plotCard } from "../plot";
import { verdictBadge } from "../record";
import type { Column } from "../table";
import { readWords, wordsOf } from "../words";
import { withSource } from "./explorer_first";

const OWN = ["a", "b", "y", "sort"];
const CHARTED = 30; // rows at most that are drawn

interface Sides {
  a: Filters;
  b: Filters;
}

interface State extends Sides {
  y: string;
  filters: Filters; // of both
}

function readSides(parameters: URLSearchParams): Sides {
  return { a: readWords(parameters.get("a") ?? ""), b: readWords(parameters.get("b") ?? "") };
}

function withSides(parameters: URLSearchParams, { a, b }: Sides): URLSearchParams {
  return changed(parameters, { a: wordsOf(a), b: wordsOf(b) });
}

// The values of an axis that can be asked for; "" is any.
function valuesOf(values: Values, axis: string): string[] {
  return (values[axis] ?? []).map(({ value }) => String(value ?? "")).filter(Boolean);
}

// The same, those of most results first.
function frequent(values: Values, axis: string): string[] {
  const counts = [...(values[axis] ?? [])].sort((a, b) => b.count - a.count);
  return valuesOf({ [axis]: counts }, axis);
}

// Without a question in the address: the first axis that tells two kinds of results apart.
function firstQuestion(values: Values): Sides {
  for (const axis of ["framework", "backend", "server", "commit", "threads", "model"]) {
    const [one, two] = frequent(values, axis).sort((a, b) => Number(b === "prony") - Number(a === "prony"));
    const ours: Filters =
      one === "prony" && valuesOf(values, "backend").includes("simd") ? { backend: ["simd"] } : {};
    if (one && two) return { a: { [axis]: [one], ...ours }, b: { [axis]: [two] } };
  }
  return { a: {}, b: {} };
}

// An address without a question begins with one's own results, where these have something to compare.
async function firstState(given: Filters): Promise<Sides & { filters: Filters }> {
  const own = await withSource(given);
  const sides = firstQuestion(await fetchValues(own));
  if (Object.keys(sides.a).length > 0) return { ...sides, filters: own };
  return { ...firstQuestion(await fetchValues(given)), filters: given };
}

const VERDICTS: Record<string, string> = { faster: "good", slower: "bad", same: "even" };

function verdict(text: string): HTMLElement {
  return element("span", { className: `verdict ${VERDICTS[text] ?? "open"}` }, text);
}

function sideSelect(side: "a" | "b", axis: string, values: Values, state: State, asked: Asked): HTMLElement {
  const options: Option[] = [
    ["", "any"],
    ...valuesOf(values, axis).map((value): Option => [value, valueName(axis, value)]),
  ];
  const chosen = state[side][axis]?.join(",") ?? "";
  const made = select(`${side}-${axis}`, options, chosen, (value) =>
    asked.edit((address) => {
      const now = readSides(address);
      return withSides(address, { ...now, [side]: withFilter(now[side], axis, value ? [value] : []) });
    }),
  );
  return attributed(made, { "aria-label": `${label(axis)} of ${side.toUpperCase()}` });
}

// A and B side by side, a row for each axis in which they may differ.
function question(state: State, ofA: Values, ofB: Values, catalogue: Catalogue, asked: Asked): HTMLElement {
  const named = [...new Set([...Object.keys(state.a), ...Object.keys(state.b)])];
  const open = catalogue.axes
    .map(({ key }) => key)
    .filter((axis) => named.includes(axis) || valuesOf(ofA, axis).length > 1);
  const toggle = (axis: string) =>
    asked.edit((address) => {
      const { a, b } = readSides(address);
      const chosen = axis in a || axis in b ? [] : valuesOf(ofA, axis).slice(0, 1);
      return withSides(address, { a: withFilter(a, axis, chosen), b: withFilter(b, axis, chosen) });
    });
  const rows = named.map((axis) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label(axis)),
      element("td", {}, sideSelect("a", axis, ofA, state, asked)),
      element("td", {}, sideSelect("b", axis, ofB, state, asked)),
    ),
  );
  return element(
    "section",
    { className: "card" },
    element("h1", {}, "Compare two selections"),
    element(
      "table",
      { className: "question" },
      element("caption", { className: "unseen" }, "Definitions of A and B"),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", {}),
          element("th", { scope: "col" }, "A"),
          element("th", { scope: "col" }, "B"),
        ),
      ),
      element("tbody", {}, ...rows),
    ),
    chips("apart", "They differ in", open, named, toggle),
  );
}

function summaryLine({ summary }: Comparison): Child[] {
  const { matched, faster, slower, same, unknown, ratio, only_a, only_b, handicapped } = summary;
  const overall =
    ratio === null
      ? ""
      : ratio < 1
        ? `A takes ${figure(ratio)} of B's time: ${figure(1 / ratio)} × faster, by the geometric mean.`
        : `A takes ${figure(ratio)} × B's time, by the geometric mean.`;
  const counts: [number, string][] = [
    [faster, "faster"],
    [slower, "slower"],
    [same, "same"],
    [unknown, "can't tell"],
  ];
  return [
    element(
      "p",
      { className: "lead", id: "summary" },
      `${many(matched, "configuration")} matched. ${overall}`,
    ),
    element(
      "p",
      { className: "tally" },
      ...counts
        .filter(([count]) => count > 0)
        .flatMap(([count, text]) => [verdict(text), ` ${count.toLocaleString("en")}  `]),
    ),
    only_a + only_b > 0
      ? element(
          "p",
          { className: "hint" },
          `Without a partner: ${only_a.toLocaleString("en")} of A, ${only_b.toLocaleString("en")} of B.`,
        )
      : null,
    handicapped > 0
      ? element(
          "p",
          { className: "hint" },
          `Left out as handicapped, since their users would run them faster: ${many(handicapped, "result")}.`,
        )
      : null,
  ];
}

function columnsOf(comparison: Comparison, unit: string, sides: Sides): Column<Match>[] {
  const side = (which: "a" | "b"): Column<Match> => ({
    key: which,
    title: `${which.toUpperCase()}: ${sideName(sides[which])}`,
    unit,
    number: true,
    value: (row) => row[which].y,
    show: (row) => linkTo("record", { id: String(row[which].id) }, quantity(row[which].y, unit)),
  });
  const end = (which: "low" | "high", title: string): Column<Match> => ({
    key: which,
    title,
    number: true,
    value: (row) => row[which],
    show: (row) => {
      const value = row[which];
      return value === null ? "–" : figure(value);
    },
  });
  return [
    ...comparison.axes.map((axis): Column<Match> => ({
      key: axis,
      title: label(axis),
      number: typeof comparison.rows[0]?.point[axis] === "number",
      value: ({ point }) => point[axis] ?? null,
    })),
    side("a"),
    side("b"),
    {
      key: "ratio",
      title: "A ÷ B",
      number: true,
      value: ({ ratio }) => ratio,
      show: ({ ratio }) => figure(ratio),
    },
    end("low", "from"),
    end("high", "to"),
    { key: "verdict", title: "A is", value: (row) => row.verdict, show: (row) => verdict(row.verdict) },
    {
      key: "check",
      title: "checks",
      value: ({ a, b }) => `${a.check}, ${b.check}`,
      show: ({ a, b }) => element("span", {}, verdictBadge(a.check), " ", verdictBadge(b.check)),
    },
  ];
}

// inference, batch 1, 2 threads; an axis on which all rows that say it say the same tells nothing
function rowLabel({ axes, rows }: Comparison, { point }: Match): string {
  const said = (axis: string) =>
    new Set(rows.map((row) => row.point[axis]).filter((value) => value !== null)).size;
  const told = axes.filter((axis) => point[axis] !== null && point[axis] !== undefined && said(axis) > 1);
  return told.map((axis) => valueWords(axis, point[axis] ?? null)).join(", ") || "the one configuration";
}

// What a side is, in a few words: "prony, simd"
function sideName(side: Filters): string {
  return (
    Object.entries(side)
      .map(([axis, values]) => values.map((value) => valueWords(axis, value)).join(" or "))
      .join(", ") || "all results"
  );
}

function result(comparison: Comparison, state: State, asked: Asked): HTMLElement {
  const { catalogue, parameters } = asked;
  const metric = catalogue.metrics.find(({ key }) => key === comparison.y);
  const charted = comparison.rows
    .slice(0, CHARTED)
    .map((row) => ({ ...row, name: rowLabel(comparison, row) }));
  return plotCard<Match>({
    key: "compare",
    title: sentence(label(comparison.y)),
    constants: `${sideName(state.a)} (A) against ${sideName(state.b)} (B)`,
    filters: `A: ${filterWords(state.a) || "all"} · B: ${filterWords(state.b) || "all"} · Both: ${filterWords(state.filters) || "all"}`,
    source: `Source: prony ${asked.status.version}`,
    notes: [
      activeFilters(state.filters, (edit) => editFilters(asked, OWN, edit)),
      ...summaryLine(comparison),
    ],
    after: [
      element(
        "p",
        { className: "hint key" },
        "Below 1, A is better. Bars are the interval of the ratio; only they decide.",
      ),
      comparison.rows.length > CHARTED
        ? element(
            "p",
            { className: "hint key" },
            `The first ${CHARTED} of ${many(comparison.rows.length, "configuration")} are drawn; the table below and the CSV file go on.`,
          )
        : null,
    ],
    lines: charted.length,
    draw: (theme, size) => forest(charted, theme, size),
    onPick: (record) => asked.open("record", { id: String(record) }),
    listing: {
      id: "compare-table",
      caption: "Matched configurations of A and B",
      columns: columnsOf(comparison, metric?.unit ?? "", state),
      rows: comparison.rows,
      sort: parameters.get("sort") ?? "",
      onSort: (sort) => asked.change({ sort }),
    },
  });
}

export const compare: View = {
  name: "compare",
  title: "Compare",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const given = parameters.has("a") || parameters.has("b");
    const [begin] = await Promise.all([
      given ? null : firstState(filtersOf(parameters, OWN)),
      learnMachines(),
    ]);
    const filters = begin?.filters ?? filtersOf(parameters, OWN);
    const sides = begin ?? readSides(parameters);
    const values = await fetchValues(filters);
    const state: State = { ...sides, y: parameters.get("y") ?? "time_median", filters };
    const aside = [
      panel(
        field(
          "y",
          "Measure",
          groupedSelect("y", measureOptions(catalogue), state.y, (y) => asked.change({ y })),
        ),
        ...filterFields(
          {
            id: "filter",
            catalogue,
            values: withoutEchoes(values, catalogue),
            filters,
            change: (edit) => editFilters(asked, OWN, edit),
          },
          "Filters of both",
        ),
      ),
    ];
    const asks = Object.keys(state.a).length > 0 || Object.keys(state.b).length > 0;
    const [ofA, ofB, comparison] = await Promise.all([
      fetchValues({ ...filters, ...state.a }),
      fetchValues({ ...filters, ...state.b }),
      asks ? fetchComparison(state.a, state.b, state.y, filters) : null,
    ]);
    const main = [question(state, withoutEchoes(ofA, catalogue), ofB, catalogue, asked)];
    if (comparison && comparison.rows.length > 0) main.push(result(comparison, state, asked));
    else
      main.push(
        remark(
          "Nothing matches",
          element(
            "p",
            {},
            comparison
              ? `No configuration of A has a match in B: ${many(comparison.summary.only_a, "configuration")} of A and ${comparison.summary.only_b} of B are alone. Let them differ in more axes, or choose other values.`
              : "There is nothing to compare yet: no two results differ in framework, backend, machine, commit, threads or model.",
          ),
        ),
      );
    return {
      title: "Compare",
      address: addFilters(
        withSides(new URLSearchParams([...parameters].filter(([key]) => OWN.includes(key))), sides),
        filters,
      ),
      aside,
      main,
    };
  },
};
