// measures.ts: metrics in the groups people look for them in (metrics.def).

import type { Catalogue } from "./api";
import type { OptionGroup } from "./controls";

const UNSAID = new Set(["", "x", "ns"]); // the drawing has the unit that suits

export function measureOptions({ groups, metrics }: Catalogue): OptionGroup[] {
  return groups
    .map((group): OptionGroup => ({
      title: group,
      options: metrics
        .filter((metric) => metric.group === group)
        .map(({ key, title, unit }) => [key, UNSAID.has(unit) ? title : `${title} (${unit})`]),
    }))
    .filter(({ options }) => options.length > 0);
}
