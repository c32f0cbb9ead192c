// index.ts: every chart of the explorer, best first. A new chart is a file of this folder and a line here.

import type { Chart, Sheet } from "./chart";
import { bar } from "./bar";
import { box } from "./box";
import { dot } from "./dot";
import { line } from "./line";

export const charts: Chart[] = [line, dot, bar, box];

// The chart of that name; the one that suits best when there is none. Bars need a zero to stand on.
export function chartFor(name: string, sheet: Sheet): Chart {
  const asked = charts.find((chart) => chart.name === name);
  if (asked === bar && sheet.logY) return dot;
  return asked ?? charts.find((chart) => chart.suits(sheet)) ?? bar;
}
