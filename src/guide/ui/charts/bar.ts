// bar.ts: bars side by side, one group per value of x: for axes of names, and for few numbers.

import type { Point } from "../api";
import { name } from "../format";
import type { Chart, Sheet } from "./chart";
import { categoriesOf, errorBars, itemsOf, seriesOf, tooltipOf, xAxis, yAxis } from "./chart";
import { base, looksOf } from "./drawing";

const xOf = (point: Point) => name(point.x);
const LAYOUT = { barMaxWidth: 56, barGap: "12%", barCategoryGap: "32%" };

export const bar: Chart = {
  name: "bar",
  title: "Bars",
  suits: () => true,
  draw(sheet: Sheet) {
    const { points, scale, logY, theme } = sheet;
    const all = seriesOf(points);
    const names = all.map((series) => series.name);
    const looks = looksOf(names, theme);
    // A logarithmic scale has no zero to stand on: bars begin at the power of ten below the least.
    const least = Math.min(...points.map((point) => Math.min(point.y, point.low))) * scale.factor;
    const floor = 10 ** Math.floor(Math.log10(least));
    return {
      ...base(theme, names),
      xAxis: {
        ...xAxis(sheet),
        type: "category",
        data: categoriesOf(points).map(name),
        axisTick: { show: false },
      },
      yAxis: { ...yAxis(sheet), ...(logY ? { min: floor, startValue: floor } : {}) },
      series: all.flatMap((series, index) => {
        const look = looks[index];
        if (!look) return [];
        return [
          {
            type: "bar",
            name: series.name,
            ...LAYOUT,
            data: itemsOf(sheet, series, look, xOf),
            itemStyle: { color: look.colour, borderRadius: [3, 3, 0, 0] },
            emphasis: { focus: "series" },
            tooltip: tooltipOf(sheet, series),
          },
          errorBars(sheet, series, theme.text, 4, xOf, (api) => {
            const places = api.barLayout({ ...LAYOUT, count: all.length });
            return places?.[index]?.offsetCenter ?? 0;
          }),
        ];
      }),
    };
  },
};
