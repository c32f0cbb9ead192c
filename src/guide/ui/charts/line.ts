// line.ts: one line per series over an axis of numbers. A result whose outputs were not checked is
// hollow.

import type { Chart, Sheet } from "./chart";
import { base, coloursOf, errorBars, isChecked, seriesOf, tip, xAxis, yAxis } from "./chart";
import type { Point } from "../api";

const xOf = (point: Point) => Number(point.x);

export const line: Chart = {
  name: "line",
  title: "Lines",
  suits: ({ points, x }) => x.kind === "number" && new Set(points.map((point) => point.x)).size > 1,
  draw(sheet: Sheet) {
    const { points: given, scale, logX, theme } = sheet;
    const all = seriesOf(given).map(({ name, points }) => ({
      name,
      points: points.filter((point) => point.x !== null).sort((a, b) => xOf(a) - xOf(b)),
    }));
    const colours = coloursOf(all, theme);
    const logarithmic = logX && all.every(({ points }) => points.every((point) => xOf(point) > 0));
    const marks = [...new Set(all.flatMap(({ points }) => points.map(xOf)))];
    return {
      ...base(theme, all),
      xAxis: {
        ...xAxis(sheet),
        // The measured places are marked themselves: 1, 3, 10, 64 say more than powers of ten.
        type: logarithmic ? "log" : "value",
        ...(logarithmic ? { logBase: 2, min: Math.min(...marks), max: Math.max(...marks) } : { scale: true }),
        axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true, customValues: marks.length <= 16 ? marks : undefined },
        axisTick: { customValues: marks.length <= 16 ? marks : undefined, lineStyle: { color: theme.line } },
        splitLine: { show: false },
      },
      yAxis: yAxis(sheet),
      series: all.flatMap((series, index) => {
        const colour = colours[index] ?? theme.text;
        return [
          {
            type: "line",
            name: series.name,
            data: series.points.map((point) => ({
              value: [xOf(point), point.y * scale.factor],
              itemStyle: isChecked(point) ? {} : { color: theme.surface, borderColor: colour, borderWidth: 2 },
            })),
            symbol: "circle",
            symbolSize: 8,
            itemStyle: { color: colour },
            lineStyle: { width: 2, color: colour },
            emphasis: { focus: "series" },
            tooltip: {
              formatter: ({ dataIndex }: { dataIndex: number }) => {
                const point = series.points[dataIndex];
                return point ? tip(sheet, series, point) : "";
              },
            },
          },
          errorBars(sheet, series, colour, 1, xOf) /* behind the marks */,
        ];
      }),
    };
  },
};
