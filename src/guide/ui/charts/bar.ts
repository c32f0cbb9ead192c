// bar.ts: bars side by side, one group per value of x: upright over numbers, lying where x has names, so
// that these can be read. On a logarithmic scale, which has no zero to stand on, index.ts takes dots.

import type { Point } from "../api";
import type { Chart, Sheet } from "./chart";
import { categoryOf, crosshair, errorBars, itemsOf, looksIn, xAxis, yAxis } from "./chart";
import { base, LYING, lyingAxis, namesAxis } from "./drawing";

const LAYOUT = { barMaxWidth: 40, barGap: "12%", barCategoryGap: "32%" };

const lies = ({ x }: Sheet) => x.kind === "text";

export const bar: Chart = {
  name: "bar",
  title: "Bars",
  suits: () => true,
  rows: (sheet) =>
    lies(sheet) ? 1 + sheet.places.length * Math.max(1.2, 0.35 + 0.55 * sheet.series.length) : 0,
  draw(sheet: Sheet) {
    const { series: all, places, theme } = sheet;
    const xOf = (point: Point) => categoryOf(sheet, point.x);
    const looks = looksIn(sheet);
    const flipped = lies(sheet);
    const names = places.map((place) => categoryOf(sheet, place));
    return {
      ...base(theme),
      tooltip: crosshair(sheet, xOf, flipped ? "y" : "x"),
      ...(flipped
        ? { grid: LYING, xAxis: lyingAxis(yAxis(sheet)), yAxis: namesAxis(theme, names, sheet.size.width) }
        : {
            xAxis: { ...xAxis(sheet), type: "category", data: names, axisTick: { show: false } },
            yAxis: yAxis(sheet),
          }),
      series: all.flatMap((series, index) => {
        const look = looks.get(series.key);
        if (!look) return [];
        return [
          {
            type: "bar",
            name: series.name,
            ...LAYOUT,
            data: itemsOf(sheet, series, look, xOf, flipped),
            itemStyle: { color: look.colour, borderRadius: flipped ? [0, 3, 3, 0] : [3, 3, 0, 0] },
            emphasis: { focus: "series" },
          },
          errorBars(sheet, series, {
            colour: theme.text,
            z: 4,
            xOf,
            flipped,
            centre: (api) => api.barLayout({ ...LAYOUT, count: all.length })?.[index]?.offsetCenter ?? 0,
          }),
        ];
      }),
    };
  },
};
