// scaling.ts: speed-up or efficiency over a number of units, with the ideal as a dashed line.

import type { EChartsCoreOption } from "echarts/core";
import type { Point } from "../api";
import { figure, label } from "../format";
import type { Theme } from "../theme";
import type { Series } from "./chart";
import { isChecked } from "./chart";
import { base, looksOf, markStyle, tipOf, xAxisOf, yAxisOf } from "./drawing";

const IDEAL = "ideal";

export function drawScaling(
  all: Series[],
  over: string,
  efficiency: boolean,
  theme: Theme,
): EChartsCoreOption {
  const names = all.map((series) => series.name);
  const looks = looksOf(names, theme);
  const valueOf = (point: Point) => (efficiency ? (point.efficiency ?? null) : (point.speedup ?? null));
  const shown = (value: number) => (efficiency ? value * 100 : value);
  const places = [...new Set(all.flatMap(({ points }) => points.map(({ x }) => Number(x))))].sort(
    (a, b) => a - b,
  );
  const ideal = new Map(
    all.flatMap(({ points }) => points.map(({ x, ideal: perfect }) => [Number(x), perfect ?? 1] as const)),
  );
  return {
    ...base(theme, [...names, IDEAL]),
    xAxis: {
      ...xAxisOf(theme, label(over)),
      type: "value",
      min: places[0],
      max: places[places.length - 1],
      axisLabel: { color: theme.faint, customValues: places },
      axisTick: { customValues: places, lineStyle: { color: theme.line } },
      splitLine: { show: false },
    },
    yAxis: { ...yAxisOf(theme, efficiency ? "efficiency (%)" : "speed-up (×)"), min: 0 },
    series: [
      {
        type: "line",
        name: IDEAL,
        silent: true,
        symbol: "none",
        data: places.map((place) => [place, efficiency ? 100 : (ideal.get(place) ?? null)]),
        lineStyle: { color: theme.faint, width: 1.5, type: "dashed" },
        itemStyle: { color: theme.faint },
      },
      ...all.map((series, index) => {
        const look = looks[index];
        return {
          type: "line",
          name: series.name,
          symbol: look?.symbol,
          symbolSize: 9,
          itemStyle: { color: look?.colour },
          lineStyle: { width: 2, color: look?.colour, type: look?.dash },
          emphasis: { focus: "series" },
          data: series.points.map((point) => {
            const value = valueOf(point);
            return {
              value: [Number(point.x), value === null ? null : shown(value)],
              record: point.id,
              itemStyle: markStyle(theme, look?.colour ?? "", isChecked(point)),
            };
          }),
          tooltip: {
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const point = series.points[dataIndex];
              const value = point ? valueOf(point) : null;
              if (!point || value === null) return "";
              return tipOf(
                series.name,
                `${label(over)} ${point.x}`,
                `${figure(shown(value))} ${efficiency ? "%" : "×"}`,
                [
                  `ideal ${figure(point.ideal ?? 1)} ×`,
                  `efficiency ${figure((point.efficiency ?? 0) * 100)} %`,
                ],
              );
            },
          },
        };
      }),
    ],
  };
}
