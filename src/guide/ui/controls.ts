// controls.ts: the form beside the chart: what to measure, over which axis, grouped and filtered how.
// It is made anew from the state after each change; what had the focus has it again.

import { AGGREGATES, type Catalogue, type Count, type Values } from "./api";
import { element } from "./dom";
import { label, list, name, sentence } from "./format";
import type { State } from "./state";

type Change = (changed: Partial<State>) => void;

function field(id: string, title: string, control: HTMLElement, hint = ""): HTMLElement {
  const parts: HTMLElement[] = [element("label", { htmlFor: id }, title), control];
  if (hint) {
    parts.push(element("p", { className: "hint", id: `${id}-hint` }, hint));
    control.setAttribute("aria-describedby", `${id}-hint`);
  }
  return element("div", { className: "field" }, ...parts);
}

function select(id: string, keys: string[], chosen: string, onChoose: (key: string) => void): HTMLElement {
  // What the address asks for is shown even where this version does not know it.
  const all = keys.includes(chosen) ? keys : [chosen, ...keys];
  const options = all.map((key) => element("option", { value: key, selected: key === chosen }, label(key)));
  const made = element("select", { id }, ...options);
  made.addEventListener("change", () => onChoose(made.value));
  return made;
}

function check(id: string, title: string, on: boolean, onChange: (on: boolean) => void, count?: number): HTMLElement {
  const box = element("input", { type: "checkbox", id, checked: on });
  box.addEventListener("change", () => onChange(box.checked));
  const row = element("label", { className: "check", htmlFor: id }, box, element("span", { className: "check-name", title }, title));
  if (count !== undefined) row.append(element("span", { className: "count" }, String(count)));
  return row;
}

function toggled(all: string[], one: string, on: boolean): string[] {
  return on ? [...all, one] : all.filter((other) => other !== one);
}

// A value in the address and in a filter: nothing stands for "not given".
function filterText(count: Count): string {
  return count.value === null ? "" : String(count.value);
}

function filterGroup(axis: string, counts: Count[], state: State, change: Change): HTMLElement {
  const chosen = state.filters[axis] ?? [];
  const boxes = counts.map((count) => {
    const value = filterText(count);
    return check(
      `filter-${axis}-${value}`,
      name(count.value),
      chosen.includes(value),
      (on) => {
        const { [axis]: _, ...others } = state.filters;
        const values = toggled(chosen, value, on);
        change({ filters: values.length > 0 ? { ...others, [axis]: values } : others });
      },
      count.count,
    );
  });
  return element("fieldset", { className: "filter" }, element("legend", {}, label(axis)), ...boxes);
}

// Axes with something to choose from, the chosen ones too when only one value is left.
function choosable(values: Values, state: State): [string, Count[]][] {
  return Object.entries(values).filter(([axis, counts]) => counts.length > 1 || state.filters[axis]);
}

function groupField(catalogue: Catalogue, values: Values, state: State, change: Change): HTMLElement {
  const axes = catalogue.axes
    .map((axis) => axis.key)
    .filter((axis) => axis !== state.x && ((values[axis]?.length ?? 0) > 1 || state.group.includes(axis)));
  const chips = axes.map((axis) => {
    const on = state.group.includes(axis);
    const chip = element("button", { type: "button", className: "chip", id: `group-${axis}` }, label(axis));
    chip.setAttribute("aria-pressed", String(on));
    chip.addEventListener("click", () => change({ group: toggled(state.group, axis, !on) }));
    return chip;
  });
  const group = element("div", { className: "field" }, element("span", { className: "label", id: "group-label" }, "One series per"));
  const row = element("div", { className: "chips" }, ...chips);
  row.setAttribute("role", "group");
  row.setAttribute("aria-labelledby", "group-label");
  group.append(chips.length > 0 ? row : element("p", { className: "hint" }, "Every result is alike in what could tell them apart."));
  return group;
}

function sameThroughout(values: Values, state: State): string {
  const facts = Object.entries(values)
    .filter(([axis, counts]) => counts.length === 1 && counts[0]?.value !== null && !state.filters[axis])
    .map(([axis, counts]) => `${label(axis)} ${name(counts[0]?.value ?? null)}`);
  return facts.join(" · ");
}

export function showControls(form: HTMLElement, catalogue: Catalogue, values: Values, state: State, change: Change): void {
  const focused = document.activeElement?.id;
  const metric = catalogue.metrics.find(({ key }) => key === state.y);
  const axis = catalogue.axes.find(({ key }) => key === state.x);
  const better = metric ? `${metric.help}; ${metric.better} is better` : "";
  const filters = choosable(values, state);
  const fixed = sameThroughout(values, state);
  const chosen = Object.keys(state.filters);

  const clear = element("button", { type: "button", className: "link", id: "clear", disabled: chosen.length === 0 }, "Clear");
  clear.addEventListener("click", () => change({ filters: {} }));
  clear.setAttribute("aria-label", `Clear the filters${chosen.length > 0 ? ` on ${list(chosen.map(label))}` : ""}`);

  form.replaceChildren(
    field("y", "Measure (y)", select("y", catalogue.metrics.map(({ key }) => key), state.y, (y) => change({ y })), sentence(better)),
    field("x", "Across (x)", select("x", catalogue.axes.map(({ key }) => key), state.x, (x) => change({ x, group: state.group.filter((key) => key !== x) })), sentence(axis?.help ?? "")),
    groupField(catalogue, values, state, change),
    field("aggregate", "Several results at one point", select("aggregate", AGGREGATES, state.aggregate, (aggregate) => change({ aggregate }))),
    element(
      "fieldset",
      { className: "scales" },
      element("legend", {}, "Logarithmic"),
      ...(axis?.kind === "number" ? [check("log-x", "x", state.logX, (logX) => change({ logX }))] : []),
      check("log-y", "y", state.logY, (logY) => change({ logY })),
    ),
    element("div", { className: "filters-title" }, element("h2", {}, "Filters"), clear),
    ...filters.map(([key, counts]) => filterGroup(key, counts, state, change)),
  );
  if (fixed) form.append(element("p", { className: "hint same" }, `The same in all of these: ${fixed}`));
  if (focused) document.getElementById(focused)?.focus();
}
