// filters.ts: every axis as a filter, showing the values that exist under the other filters, with how
// many results each would leave.

import type { Catalogue, Count, Filters, Values } from "./api";
import { check, choice, linkButton, toggled } from "./controls";
import { element, type Child } from "./dom";
import { label, list, name, sentence } from "./format";

interface FilterPanel {
  id: string; // tells the filters of two selections on one page apart
  catalogue: Catalogue;
  values: Values;
  filters: Filters;
  change(edit: (now: Filters) => Filters): void;
}

const VALUES = 60; // listed of one axis, the most frequent; the address can name any
const FIRST = new Set(["framework", "backend", "model", "phase", "batch"]); // open from the start

// A value in the address and in a filter: nothing stands for "not given".
function filterText(count: Count): string {
  return count.value === null ? "" : String(count.value);
}

export function withFilter(filters: Filters, axis: string, values: string[]): Filters {
  const { [axis]: _, ...others } = filters;
  return values.length > 0 ? { ...others, [axis]: values } : others;
}

function titleOf(axis: string, filters: Filters): string {
  if (axis !== "batch") return sentence(label(axis));
  const scaling = filters.scaling?.[0];
  return scaling === "strong" ? "Batch of all workers" : scaling === "weak" ? "Batch of one worker" : "Batch";
}

// What can be listed without burying the rest, in the order in which it came; the chosen ones always.
function listedOf(counts: Count[], chosen: string[]): Count[] {
  const known = counts.filter((count) => chosen.includes(filterText(count)));
  const gone = chosen.filter((value) => !known.some((count) => filterText(count) === value));
  const frequent = [...counts].sort((a, b) => b.count - a.count).slice(0, VALUES);
  const shown = counts.filter((count) => frequent.includes(count) || known.includes(count));
  return [...shown, ...gone.map((value) => ({ value, count: 0 }))];
}

function filterGroup(axis: string, counts: Count[], { id, filters, change }: FilterPanel): HTMLElement {
  const chosen = filters[axis] ?? [];
  const listed = listedOf(counts, chosen);
  const boxes = listed.map((count) => {
    const value = filterText(count);
    const put = (on: boolean) => 
      change((now) => withFilter(now, axis, toggled(now[axis] ?? [], value, on)));
    return check(`${id}-${axis}-${value}`, name(count.value), chosen.includes(value), put, count.count);
  });
  if (counts.length > VALUES)
    boxes.push(element("p", { className: "hint" }, `The ${VALUES} most frequent of ${counts.length}.`));
  const summary = element(
    "summary",
    {},
    titleOf(axis, filters),
    chosen.length > 0 ? element("span", { className: "badge" }, String(chosen.length)) : null,
  );
  const group = element(
    "fieldset",
    { id: `${id}-${axis}-values`, className: "filter" },
    element("legend", { className: "unseen" }, titleOf(axis, filters)),
    ...boxes,
  );
  return element(
    "details",
    { id: `${id}-${axis}`, className: "filter-fold", open: chosen.length > 0 || FIRST.has(axis) },
    summary,
    group,
  );
}

// A computed axis that says no more than the one it is computed from (the effective batch of one
// worker) would only be in the way.
export function withoutEchoes(values: Values, catalogue: Catalogue): Values {
  const given = new Set(
    catalogue.axes.filter((axis) => !axis.derived).map(({ key }) => JSON.stringify(values[key])),
  );
  const echoes = catalogue.axes.filter((axis) => axis.derived && given.has(JSON.stringify(values[axis.key])));
  return Object.fromEntries(
    Object.entries(values).filter(([axis]) => !echoes.some(({ key }) => key === axis)),
  );
}

// Axes with something to choose from, the chosen ones too when only one value is left.
export function choosable(values: Values, filters: Filters): [string, Count[]][] {
  const listed = Object.entries(values).filter(
    ([axis, counts]) => axis !== "scaling" && (counts.length > 1 || filters[axis]),
  );
  return [
    ...listed,
    ...Object.keys(filters)
      .filter((axis) => axis !== "scaling" && !values[axis])
      .map((axis): [string, Count[]] => [axis, []]),
  ];
}

function scalingField({ id, values, filters, change }: FilterPanel): Child {
  const given = (values.scaling ?? []).some(({ value }) => value !== null);
  if (!given && !filters.scaling) return null;
  const chosen = filters.scaling?.[0] ?? "";
  return element(
    "div",
    { className: "field" },
    element("span", { className: "label" }, "Scaling"),
    choice(`${id}-scaling`, "Scaling", [["", "Any"], "weak", "strong"], chosen, (value) =>
      change((now) => withFilter(now, "scaling", value ? [value] : [])),
    ),
    element(
      "p",
      { className: "hint" },
      "Weak: the batch filter is the batch of one worker. Strong: of all workers together.",
    ),
  );
}

function sameThroughout({ values, filters }: FilterPanel): string {
  return Object.entries(values)
    .filter(([axis, counts]) => counts.length === 1 && counts[0]?.value !== null && !filters[axis])
    .map(([axis, counts]) => `${label(axis)} ${name(counts[0]?.value ?? null)}`)
    .join(" · ");
}

export function filterFields(panel: FilterPanel, title = "Filters"): Child[] {
  const { id, values, filters, change } = panel;
  const chosen = Object.keys(filters);
  const clear = linkButton(
    `${id}-clear`,
    "Clear",
    () => change(() => ({})),
    `Clear the filters${chosen.length > 0 ? ` on ${list(chosen.map(label))}` : ""}`,
  );
  clear.disabled = chosen.length === 0;
  const same = sameThroughout(panel);
  return [
    element("div", { className: "filters-title" }, element("h2", {}, title), clear),
    scalingField(panel),
    ...choosable(values, filters).map(([axis, counts]) => filterGroup(axis, counts, panel)),
    same ? element("p", { className: "hint same" }, `The same in all of these: ${same}`) : null,
  ];
}

// For a line under a title: model large · phase training
export function filterWords(filters: Filters): string {
  return Object.entries(filters)
    .map(([axis, values]) => `${label(axis)} ${values.map((value) => value || "not given").join(" or ")}`)
    .join(" · ");
}
