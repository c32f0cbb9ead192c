// dot.ts: a dot per figure, one line per value of x, names on the left: for names on a logarithmic scale,
// where the length of a bar would mean nothing.

import type { Point } from "../api";
import type { Chart, Sheet } from "./chart";
import { crosshair, errorBars, itemsOf, looksIn, rowName, yAxis } from "./chart";
import { base, LYING, lyingAxis, namesAxis } from "./drawing";

const STEP = 6; // pixels between the dots of two series on one line

export const dot: Chart = {
  name: "dot",
  title: "Dots",
  suits: ({ logY }) => logY,
  rows: ({ places, series }) => 1 + places.length * Math.max(1.2, 0.6 + 0.22 * series.length),
  draw(sheet: Sheet) {
    const { series: all, places, theme } = sheet;
    const xOf = (point: Point) => rowName(sheet, point.x);
    const looks = looksIn(sheet);
    const names = places.map((place) => rowName(sheet, place));
    return {
      ...base(theme),
      grid: LYING,
      tooltip: crosshair(sheet, xOf, "y"),
      xAxis: lyingAxis(yAxis(sheet)),
      yAxis: {
        ...namesAxis(theme, names, sheet.size.width),
        splitLine: { show: true, lineStyle: { color: theme.line } },
      },
      series: all.flatMap((series, index) => {
        const look = looks.get(series.key);
        if (!look) return [];
        const move = (index - (all.length - 1) / 2) * STEP;
        return [
          {
            type: "scatter",
            name: series.name,
            symbol: look.symbol,
            symbolSize: 11,
            symbolOffset: [0, move],
            data: itemsOf(sheet, series, look, xOf, true),
            itemStyle: { color: look.colour, opacity: 1 },
            emphasis: { focus: "series" },
          },
          errorBars(sheet, series, { colour: look.colour, z: 1, xOf, flipped: true, centre: () => move }),
        ];
      }),
    };
  },
};
