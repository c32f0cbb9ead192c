// explorer_first.ts: what the explorer shows when the address leaves it open: one machine and one network,
// narrowed until no point mixes unlike configurations.

import { fetchValues, type Catalogue, type Count, type Filters, type Status, type Values } from "../api";
import { withFilter } from "../filters";
import { defaultState, type State } from "../state";

// Axes that are held still, each at the value that most results have, in this order.
const HELD = [
  "unit",
  "unit_name",
  "precision",
  "data",
  "ingestion",
  "scenario",
  "optimiser",
  "workers",
  "nodes",
  "threads",
  "batch",
  "affinity",
  "caches",
  "through",
  "fusion",
  "recompute",
  "pages",
  "isa",
];
// Axes that tell one framework's results apart only: those of others do not say.
const OWN_WAYS = ["unit_name", "affinity", "caches", "through", "fusion", "recompute", "pages", "isa", "optimiser"];

const X = ["batch", "threads", "framework", "model"]; // the first with several values is x

const said = (values: Values, axis: string): Count[] =>
  (values[axis] ?? []).filter(({ value }) => value !== null);

// The most frequent value of an axis; results that do not say stay where the axis is one framework's own.
function heldAt(values: Values, axis: string): string[] {
  const [most] = [...said(values, axis)].sort((a, b) => b.count - a.count);
  const open = OWN_WAYS.includes(axis) && (values[axis] ?? []).some(({ value }) => value === null);
  return most ? [String(most.value), ...(open ? [""] : [])] : [];
}

// Own results once there are any: those that came with prony are a choice.
export async function withSource(filters: Filters): Promise<Filters> {
  if (filters.source) return filters;
  const own = { ...filters, source: ["own"] };
  const values = await fetchValues(own);
  return (values.model ?? []).length > 0 ? own : filters;
}

function begun(catalogue: Catalogue, status: Status, given: Filters): Filters {
  const filters = { ...given };
  for (const axis of ["server", "model", "phase"]) {
    const value = status.newest?.point[axis];
    const known = catalogue.axes.some(({ key }) => key === axis);
    if (known && !filters[axis] && value !== null && value !== undefined) filters[axis] = [String(value)];
  }
  return filters;
}

// One series per implementation; where there is but one, per number of threads or precision.
function groupFor(usual: string[], x: string, values: Values): string[] {
  const group = usual.filter((axis) => axis !== x);
  if (group.some((axis) => said(values, axis).length > 1)) return group;
  const apart = ["threads", "precision"].find((axis) => axis !== x && said(values, axis).length > 1);
  return apart ? [...group, apart] : group;
}

// The newest result's phase, unless the other one has so many more that it says more.
function withPhase(filters: Filters, values: Values, given: Filters): Filters {
  const count = (phase: string | undefined) => values.phase?.find(({ value }) => value === phase)?.count ?? 0;
  const [most] = heldAt(values, "phase");
  if (given.phase || most === undefined || count(most) <= 2 * count(filters.phase?.[0])) return filters;
  return { ...filters, phase: [most] };
}

// The first view under the filters that an address gives.
export async function firstState(catalogue: Catalogue, status: Status, given: Filters): Promise<State> {
  const state = defaultState(catalogue, status);
  let filters = await withSource(begun(catalogue, status, given));
  filters = withPhase(filters, await fetchValues(filters), given);
  let values = await fetchValues(filters);
  const x = X.find((axis) => said(values, axis).length > 1 && !given[axis]) ?? state.x;
  const group = groupFor(state.group, x, values);
  for (const axis of HELD) {
    if (axis === x || group.includes(axis) || filters[axis] || said(values, axis).length < 2) continue;
    filters = withFilter(filters, axis, heldAt(values, axis));
    values = await fetchValues(filters);
  }
  return { ...state, x, group, filters };
}
