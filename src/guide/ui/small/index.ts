// index.ts (small): the small chart of a finding.

import type { Answered, Catalogue, Finding } from "../api";
import { linesOf } from "./lines";
import { barsOf, dotsOf } from "./rows";
import { sheetOf } from "./sheet";

const KINDS = { bars: barsOf, lines: linesOf, dots: dotsOf };

// Nothing where the points cannot be drawn: the sentence stands alone then.
export function smallChart(finding: Finding, answered: Answered, catalogue: Catalogue): HTMLElement | null {
  const sheet = sheetOf(finding, answered, catalogue);
  if (!sheet) return null;
  const places = new Set(sheet.series.flatMap(({ points }) => points.map(({ x }) => x)));
  const line = places.size > 1 && [...places].every((x) => typeof x === "number");
  return finding.kind === "lines" && !line ? barsOf(sheet) : (KINDS[finding.kind] ?? barsOf)(sheet);
}
