// box.ts: what the samples of each point look like: least, quartiles and largest.

import type { Point } from "../api";
import { figure, label, name } from "../format";
import type { Chart, Series, Sheet } from "./chart";
import { categoriesOf, isChecked, seriesOf, xAxis, yAxis } from "./chart";
import { base, looksOf, tipOf } from "./drawing";

// One figure alone is a box of no height.
const boxOf = (point: Point) => point.box ?? [point.y, point.y, point.y, point.y, point.y];

function tooltipOf({ x, scale }: Sheet, series: Series) {
  return {
    formatter: ({ dataIndex }: { dataIndex: number }) => {
      const point = series.points[dataIndex];
      if (!point) return "";
      const [least, first, middle, third, largest] = boxOf(point).map((value) =>
        figure(value * scale.factor),
      );
      const notes = [
        `half within ${first} to ${third}`,
        `all within ${least} to ${largest}`,
        point.count === 1 ? "samples of 1 result" : `${point.count} results`,
      ];
      return tipOf(series.name, `${label(x.key)} ${name(point.x)}`, `${middle} ${scale.unit}`, notes);
    },
  };
}

export const box: Chart = {
  name: "box",
  title: "Boxes",
  suits: () => false,
  draw(sheet: Sheet) {
    const { points, scale, theme } = sheet;
    const all = seriesOf(points);
    const names = all.map((series) => series.name);
    const looks = looksOf(names, theme);
    const places = categoriesOf(points);
    return {
      ...base(theme, names),
      xAxis: {
        ...xAxis(sheet),
        type: "category",
        data: places.map(name),
        axisTick: { show: false },
        splitArea: { show: false },
      },
      yAxis: { ...yAxis(sheet), scale: true },
      series: all.map((series, index) => ({
        type: "boxplot",
        name: series.name,
        boxWidth: [6, 34],
        data: series.points.map((point) => ({
          value: [places.indexOf(point.x), ...boxOf(point).map((value) => value * scale.factor)],
          record: point.id,
          itemStyle: isChecked(point) ? {} : { borderType: "dashed" },
        })),
        encode: { x: 0, y: [1, 2, 3, 4, 5] },
        itemStyle: { color: theme.surface, borderColor: looks[index]?.colour, borderWidth: 1.8 },
        tooltip: tooltipOf(sheet, series),
      })),
    };
  },
};
