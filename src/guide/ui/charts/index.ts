// index.ts: every chart of the explorer, best first. A new chart is a file of this folder and a line here.

import type { Chart, Sheet } from "./chart";
import { bar } from "./bar";
import { box } from "./box";
import { line } from "./line";

export const charts: Chart[] = [line, bar, box];

// The chart of that name; the one that suits best when there is none.
export function chartFor(name: string, sheet: Sheet): Chart {
  return charts.find((chart) => chart.name === name) ?? charts.find((chart) => chart.suits(sheet)) ?? bar;
}
