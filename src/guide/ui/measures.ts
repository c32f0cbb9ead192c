// measures.ts: metrics in the groups people look for them in. A metric that is not named here goes by its
// unit, so that a new row of metrics.def has a group by itself.

import type { Catalogue, Metric } from "./api";
import type { OptionGroup } from "./controls";
import { label } from "./format";

const GROUPS = ["time", "rate", "limit", "memory", "energy", "learning", "other"];

const NAMED: Record<string, string> = {
  floor: "limit",
  times_floor: "limit",
  best_times_floor: "limit",
  times_now: "limit",
  of_limit: "limit",
  cpu_utilisation: "limit",
  gpu_utilisation: "limit",
  compute_share: "limit",
  memory_rate: "memory",
  memory_best: "memory",
  loss: "learning",
  accuracy: "learning",
  target_time: "learning",
  target_epochs: "learning",
  reached: "learning",
  time_interval: "time",
  gpu_clock: "energy",
};

const BY_UNIT: Record<string, string> = {
  ns: "time",
  s: "time",
  B: "memory",
  J: "energy",
  W: "energy",
  Hz: "energy",
};

const UNSAID = new Set(["", "x", "ns"]); // the drawing has the unit that suits

export function groupOf({ key, unit }: Metric): string {
  return NAMED[key] ?? BY_UNIT[unit] ?? (unit.endsWith("/s") ? "rate" : "other");
}

export function measureOptions({ metrics }: Catalogue): OptionGroup[] {
  return GROUPS.map((group): OptionGroup => ({
    title: group,
    options: metrics
      .filter((metric) => groupOf(metric) === group)
      .map(({ key, unit }) => [key, UNSAID.has(unit) ? label(key) : `${label(key)} (${unit})`]),
  })).filter(({ options }) => options.length > 0);
}
