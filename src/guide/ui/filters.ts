// filters.ts: every axis as a filter, showing the values that exist under the other filters, with how
// many results each would leave.

import type { Catalogue, Count, Filters, Values } from "./api";
import { check, choice, linkButton, toggled } from "./controls";
import { attributed, element, type Child } from "./dom";
import { label, list, sentence } from "./format";
import { valueName } from "./naming";
import { compareValues } from "./order";

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

// What can be listed without burying the rest, in its natural order; the chosen ones always.
function listedOf(axis: string, counts: Count[], chosen: string[]): Count[] {
  const known = counts.filter((count) => chosen.includes(filterText(count)));
  const gone = chosen.filter((value) => !known.some((count) => filterText(count) === value));
  const frequent = [...counts].sort((a, b) => b.count - a.count).slice(0, VALUES);
  const shown = counts.filter((count) => frequent.includes(count) || known.includes(count));
  return [...shown, ...gone.map((value) => ({ value, count: 0 }))].sort((a, b) =>
    compareValues(a.value, b.value, axis),
  );
}

// All that the search leaves, or none: then the axis is no filter.
function allOrNone(
  axis: string,
  listed: Count[],
  boxes: HTMLElement[],
  { id, change }: FilterPanel,
): HTMLElement {
  const put = (values: string[]) => change((now) => withFilter(now, axis, values));
  const all = () => put(listed.filter((_, at) => !boxes[at]?.hidden).map(filterText));
  return element(
    "div",
    { className: "all-none" },
    linkButton(`${id}-${axis}-all`, "All", all, `Choose every ${label(axis)} that is listed`),
    linkButton(`${id}-${axis}-none`, "None", () => put([]), `Choose no ${label(axis)}`),
  );
}

function filterGroup(axis: string, counts: Count[], panel: FilterPanel): HTMLElement {
  const { id, filters, change } = panel;
  const chosen = filters[axis] ?? [];
  const listed = listedOf(axis, counts, chosen);
  const boxes = listed.map((count) => {
    const value = filterText(count);
    const put = (on: boolean) => change((now) => withFilter(now, axis, toggled(now[axis] ?? [], value, on)));
    const title = valueName(axis, count.value);
    return check(`${id}-${axis}-${value}`, title, chosen.includes(value), put, count.count);
  });
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
    listed.length > 2 ? allOrNone(axis, listed, boxes, panel) : null,
    ...boxes,
    counts.length > VALUES
      ? element("p", { className: "hint" }, `The ${VALUES} most frequent of ${counts.length}.`)
      : null,
  );
  return element(
    "details",
    { id: `${id}-${axis}`, className: "filter-fold", open: chosen.length > 0 || FIRST.has(axis) },
    summary,
    group,
  );
}

// Leaves the axes and values whose names have the text in them.
function search(folds: HTMLElement[], text: string): void {
  const wanted = text.trim().toLowerCase();
  const has = (one: Element | null) => (one?.textContent ?? "").toLowerCase().includes(wanted);
  for (const fold of folds) {
    const whole = has(fold.querySelector("summary"));
    const rows = [...fold.querySelectorAll<HTMLElement>(".check")];
    for (const row of rows) row.hidden = !whole && !has(row.querySelector(".check-name"));
    fold.hidden = rows.length > 0 && rows.every((row) => row.hidden);
    if (wanted && !fold.hidden) fold.setAttribute("open", "");
  }
}

function searchField(id: string, folds: HTMLElement[]): Child {
  if (folds.length < 3) return null;
  const input = element("input", {
    type: "search",
    id: `${id}-search`,
    placeholder: "Find an axis or a value",
  });
  input.addEventListener("input", () => search(folds, input.value));
  return attributed(input, { "aria-label": "Find a filter", autocomplete: "off" });
}

// The filters that hold, each with a way to take it off.
export function activeFilters(filters: Filters, change: FilterPanel["change"]): Child {
  const axes = Object.keys(filters);
  if (axes.length === 0) return null;
  const chips = axes.map((axis) => {
    const words = list(
      (filters[axis] ?? []).map((value) => valueName(axis, value)),
      "or",
    );
    const chip = element(
      "button",
      { type: "button", className: "chip active", id: `active-${axis}` },
      element("span", { className: "chip-axis" }, label(axis)),
      ` ${words} `,
      element("span", { className: "cross", ariaHidden: "true" }, "×"),
    );
    chip.addEventListener("click", () => change((now) => withFilter(now, axis, [])));
    return attributed(chip, { "aria-label": `Take off the filter ${label(axis)} ${words}` });
  });
  const clear = axes.length > 1 ? linkButton("active-clear", "Clear all", () => change(() => ({}))) : null;
  return attributed(element("div", { className: "active-filters", id: "active" }, ...chips, clear), {
    role: "group",
    "aria-label": "Filters that hold",
  });
}

// A computed axis that says no more than the one it is computed from (the effective batch of one
// worker, the name of a machine that is already named) would only be in the way.
export function withoutEchoes(values: Values, catalogue: Catalogue): Values {
  const countsOf = (axis: string) => JSON.stringify((values[axis] ?? []).map(({ count }) => count).sort());
  const given = new Set(
    catalogue.axes.filter((axis) => !axis.derived).map(({ key }) => JSON.stringify(values[key])),
  );
  const echoes = catalogue.axes
    .filter((axis) => axis.derived && given.has(JSON.stringify(values[axis.key])))
    .map(({ key }) => key);
  if (countsOf("machine") === countsOf("server")) echoes.push("machine");
  return Object.fromEntries(Object.entries(values).filter(([axis]) => !echoes.includes(axis)));
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
    .map(([axis, counts]) => `${label(axis)} ${valueName(axis, counts[0]?.value ?? null)}`)
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
  const folds = choosable(values, filters).map(([axis, counts]) => filterGroup(axis, counts, panel));
  return [
    element("div", { className: "filters-title" }, element("h2", {}, title), clear),
    searchField(id, folds),
    scalingField(panel),
    ...folds,
    same ? element("p", { className: "hint same" }, `The same in all of these: ${same}`) : null,
  ];
}

// For a line under a title: model large · phase training
export function filterWords(filters: Filters): string {
  return Object.entries(filters)
    .map(
      ([axis, values]) =>
        `${label(axis)} ${values.map((value) => valueName(axis, value || null)).join(" or ")}`,
    )
    .join(" · ");
}
