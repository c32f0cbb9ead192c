// bar.ts: bars side by side, one group per value of x: for axes of names, and for few numbers.

import type { Chart, Sheet } from "./chart";
import { base, categoriesOf, coloursOf, errorBars, isChecked, seriesOf, tip, xAxis, yAxis } from "./chart";
import type { Point } from "../api";
import { name } from "../format";

const xOf = (point: Point) => name(point.x);
const LAYOUT = { barMaxWidth: 56, barGap: "12%", barCategoryGap: "32%" };

export const bar: Chart = {
  name: "bar",
  title: "Bars",
  suits: () => true,
  draw(sheet: Sheet) {
    const { points, scale, logY, theme } = sheet;
    const all = seriesOf(points);
    const colours = coloursOf(all, theme);
    // A logarithmic scale has no zero to stand on: bars begin at the power of ten below the least.
    const least = Math.min(...points.map((point) => Math.min(point.y, point.low))) * scale.factor;
    const floor = 10 ** Math.floor(Math.log10(least));
    return {
      ...base(theme, all),
      xAxis: {
        ...xAxis(sheet),
        type: "category",
        data: categoriesOf(points).map(name),
        axisTick: { show: false },
      },
      yAxis: { ...yAxis(sheet), ...(logY ? { min: floor, startValue: floor } : {}) },
      series: all.flatMap((series, index) => {
        const colour = colours[index] ?? theme.text;
        return [
          {
            type: "bar",
            name: series.name,
            ...LAYOUT,
            data: series.points.map((point) => ({
              value: [xOf(point), point.y * scale.factor],
              itemStyle: isChecked(point) ? {} : { color: theme.surface, borderColor: colour, borderWidth: 2 },
            })),
            itemStyle: { color: colour, borderRadius: [3, 3, 0, 0] },
            emphasis: { focus: "series" },
            tooltip: {
              formatter: ({ dataIndex }: { dataIndex: number }) => {
                const point = series.points[dataIndex];
                return point ? tip(sheet, series, point) : "";
              },
            },
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
