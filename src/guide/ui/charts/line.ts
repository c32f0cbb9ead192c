// line.ts: one line per series over an axis of numbers.

import type { Point } from "../api";
import type { Chart, Sheet } from "./chart";
import { errorBars, itemsOf, seriesOf, tooltipOf, xAxis, yAxis } from "./chart";
import { base, looksOf } from "./drawing";

const xOf = (point: Point) => Number(point.x);
const MARKED = 16; // places at most that are marked themselves: 1, 3, 10, 64 say more than powers of ten

export const line: Chart = {
  name: "line",
  title: "Lines",
  suits: ({ points, x }) => x.kind === "number" && new Set(points.map((point) => point.x)).size > 1,
  draw(sheet: Sheet) {
    const { points: given, logX, theme } = sheet;
    const all = seriesOf(given).map(({ name, points }) => ({
      name,
      points: points.filter((point) => point.x !== null).sort((a, b) => xOf(a) - xOf(b)),
    }));
    const names = all.map((series) => series.name);
    const looks = looksOf(names, theme);
    const places = [...new Set(all.flatMap(({ points }) => points.map(xOf)))];
    const logarithmic = logX && places.every((place) => place > 0);
    const customValues = places.length <= MARKED ? places : undefined;
    return {
      ...base(theme, names),
      xAxis: {
        ...xAxis(sheet),
        type: logarithmic ? "log" : "value",
        ...(logarithmic
          ? { logBase: 2, min: Math.min(...places), max: Math.max(...places) }
          : { scale: true }),
        axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true, customValues },
        axisTick: { customValues, lineStyle: { color: theme.line } },
        splitLine: { show: false },
      },
      yAxis: yAxis(sheet),
      series: all.flatMap((series, index) => {
        const look = looks[index];
        if (!look) return [];
        return [
          {
            type: "line",
            name: series.name,
            data: itemsOf(sheet, series, look, xOf),
            symbol: look.symbol,
            symbolSize: 9,
            itemStyle: { color: look.colour },
            lineStyle: { width: 2, color: look.colour, type: look.dash },
            emphasis: { focus: "series" },
            tooltip: tooltipOf(sheet, series),
          },
          errorBars(sheet, series, look.colour, 1, xOf) /* behind the marks */,
        ];
      }),
    };
  },
};
