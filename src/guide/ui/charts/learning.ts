// learning.ts: the loss of a training by epoch, and that of the rows held out.

import type { EChartsCoreOption } from "echarts/core";
import type { CurvePoint } from "../api";
import { figure } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, tipOf, xAxisOf, yAxisOf } from "./drawing";

export const LOSSES = ["training rows", "held-out rows"];

export function drawLearning(curve: CurvePoint[], shown: string[], theme: Theme): EChartsCoreOption {
  const looks = looksOf(LOSSES, theme);
  const losses = curve.flatMap(([, loss, heldOut]) => [loss, heldOut]).filter((one) => one !== null);
  const wide = losses.every((loss) => loss > 0) && Math.max(...losses) > 20 * Math.min(...losses);
  return {
    ...base(theme),
    xAxis: { ...xAxisOf(theme, "epoch"), type: "value", scale: true, minInterval: 1, splitLine: { show: false } },
    yAxis: { ...yAxisOf(theme, "loss", wide), ...(wide ? {} : { min: 0 }) },
    series: LOSSES.flatMap((name, index) =>
      shown.includes(name)
        ? [
            {
              type: "line",
              name,
              symbol: looks[index]?.symbol,
              symbolSize: curve.length > 40 ? 0 : 6,
              itemStyle: { color: looks[index]?.colour },
              lineStyle: { width: 2, color: looks[index]?.colour, type: looks[index]?.dash },
              data: curve.map((point) => [point[0], point[index + 1] ?? null]),
              tooltip: {
                formatter: ({ value }: { value: [number, number] }) =>
                  tipOf(name, `epoch ${value[0]}`, `loss ${figure(value[1])}`, []),
              },
            },
          ]
        : [],
    ),
  };
}
