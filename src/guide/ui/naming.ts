// naming.ts: values and series in words: "1 thread", "batch 64", "numpy, 2 threads"; machines by the names
// people know them by.

import { fetchMachines, type Value } from "./api";
import { label, many, name } from "./format";

const titles = new Map<string, string>(); // of machines, by server
let learning: Promise<void> | null = null;

// Fetched once; a name that is given meanwhile is known when the page is loaded again.
export function learnMachines(): Promise<void> {
  learning ??= fetchMachines().then(
    (machines) => {
      for (const { server, title } of machines) if (title) titles.set(server, title);
    },
    () => {
      learning = null;
    },
  );
  return learning;
}

const COUNTED: Record<string, string> = {
  threads: "thread",
  workers: "worker",
  nodes: "node",
  layers: "layer",
  parameters: "parameter",
  count: "unit",
};
const SPELT: Record<string, (value: string) => string> = {
  server: (value) => titles.get(value) ?? value,
  unit: (value) => value.toUpperCase(),
  fusion: (value) => `fusion ${value}`,
  pages: (value) => `${value} pages`,
  caches: (value) => `${value} caches`,
  affinity: (value) => `affinity ${value}`,
};

// A value that says by itself what it is a value of.
export function valueWords(axis: string, value: Value): string {
  if (value === null || value === "") return `no ${label(axis)} given`;
  const counted = COUNTED[axis];
  if (counted && typeof value === "number") return many(value, counted);
  if (counted && /^\d+$/.test(String(value))) return many(Number(value), counted);
  if (typeof value === "number" || /^\d+$/.test(value))
    return `${label(axis)} ${Number(value).toLocaleString("en")}`;
  return SPELT[axis]?.(value) ?? value;
}

// A value below the name of its axis: in a list of filters, on an axis.
export function valueName(axis: string, value: Value): string {
  return axis === "server" && value !== null ? (titles.get(String(value)) ?? name(value)) : name(value);
}

// One name for each group of values, made of the axes in which they differ.
export function namesOf(axes: string[], groups: Value[][]): string[] {
  const differ = axes.map((_, at) => new Set(groups.map((group) => group[at])).size > 1);
  const apart = differ.includes(true) ? differ : axes.map(() => true);
  const named = (every: boolean) =>
    groups.map((group) =>
      axes
        .map((axis, at): [string, Value] => [axis, group[at] ?? null])
        .filter(
          ([, value], at) => apart[at] && (every || (value !== null && value !== "" && value !== "default")),
        )
        .map(([axis, value]) => valueWords(axis, value))
        .join(", "),
    );
  const short = named(false);
  const clear = new Set(short).size === groups.length && !short.includes("");
  return clear ? short : named(true).map((words) => words || "all results");
}
