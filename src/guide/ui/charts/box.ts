// box.ts: what the samples of each point look like: least, quartiles and largest.

import type { Point } from "../api";
import { figure, label } from "../format";
import type { Chart, Series, Sheet } from "./chart";
import { categoryOf, isChecked, looksIn, xAxis, yAxis } from "./chart";
import { base, tipOf } from "./drawing";

// One figure alone is a box of no height.
const boxOf = (point: Point) => point.box ?? [point.y, point.y, point.y, point.y, point.y];

function tooltipOf(sheet: Sheet, series: Series) {
  const { x, scale } = sheet;
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
      return tipOf(
        series.name,
        `${label(x.key)} ${categoryOf(sheet, point.x)}`,
        `${middle} ${scale.unit}`,
        notes,
      );
    },
  };
}

// The axis reaches to the ends of the boxes.
function withBoxes(sheet: Sheet): Sheet {
  const points = sheet.points.map((point) => {
    const [least, , , , largest] = boxOf(point);
    return {
      ...point,
      low: Math.min(point.low, least ?? point.low),
      high: Math.max(point.high, largest ?? point.high),
    };
  });
  return { ...sheet, points };
}

export const box: Chart = {
  name: "box",
  title: "Boxes",
  suits: () => false,
  draw(sheet: Sheet) {
    const { series: all, places, scale, theme } = sheet;
    const looks = looksIn(sheet);
    return {
      ...base(theme),
      xAxis: {
        ...xAxis(sheet),
        type: "category",
        data: places.map((place) => categoryOf(sheet, place)),
        axisTick: { show: false },
        splitArea: { show: false },
      },
      yAxis: { ...yAxis(withBoxes(sheet)), scale: true },
      series: all.map((series) => ({
        type: "boxplot",
        name: series.name,
        boxWidth: [6, 34],
        data: series.points.map((point) => ({
          value: [places.indexOf(point.x), ...boxOf(point).map((value) => value * scale.factor)],
          record: point.id,
          itemStyle: isChecked(point) ? {} : { borderType: "dashed" },
        })),
        encode: { x: 0, y: [1, 2, 3, 4, 5] },
        itemStyle: { color: theme.surface, borderColor: looks.get(series.key)?.colour, borderWidth: 1.8 },
        tooltip: tooltipOf(sheet, series),
      })),
    };
  },
};
