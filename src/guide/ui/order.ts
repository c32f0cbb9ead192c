// order.ts: values in the order people expect: numbers by size, precisions from wide to narrow, names by
// the alphabet, and records that do not say at the end.

import type { Value } from "./api";

const ORDERS: Record<string, string[]> = {
  phase: ["training", "inference"],
  precision: ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4"],
  unit: ["cpu", "gpu"],
  isa: ["scalar", "neon", "avx2-only", "avx2", "avx512-only", "avx512"],
  pages: ["4k", "2m"],
  data: ["synthetic", "real/gpu", "real/dram", "real/cache", "real/nvme", "real/ssd", "real/disk"],
};

// Whether its values have an order of their own, beside that of their names.
export function hasOrder(axis: string): boolean {
  return axis in ORDERS || axis === "time";
}

function placeIn(axis: string, value: Value): number {
  const at = ORDERS[axis]?.indexOf(String(value)) ?? -1;
  return at < 0 ? Number.MAX_SAFE_INTEGER : at;
}

export function compareValues(a: Value, b: Value, axis = ""): number {
  if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return placeIn(axis, a) - placeIn(axis, b) || String(a).localeCompare(String(b), "en", { numeric: true });
}

export function inOrder(axis: string, values: Value[]): Value[] {
  return [...new Set(values)].sort((a, b) => compareValues(a, b, axis));
}
