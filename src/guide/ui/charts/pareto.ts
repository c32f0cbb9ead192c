// pareto.ts: accuracy against throughput. A line joins results of a network that no other beats in both.

import type { EChartsCoreOption } from "echarts/core";
import { compact, figure, quantity } from "../format";
import type { Theme } from "../theme";
import { base, looksOf, markStyle, tipOf, xAxisOf, yAxisOf } from "./drawing";

export interface Trade {
  model: string;
  precision: string;
  label: string; // what else tells it apart
  accuracy: number; // per cent
  throughput: number;
  checked: boolean;
  id: number;
}

// Those that no other of their network beats in both, from the most accurate on.
export function frontsOf(trades: Trade[]): Trade[][] {
  const models = [...new Set(trades.map(({ model }) => model))].sort();
  return models.map((model) => frontOf(trades.filter((trade) => trade.model === model)));
}

function frontOf(trades: Trade[]): Trade[] {
  const sorted = [...trades].sort((a, b) => b.accuracy - a.accuracy || b.throughput - a.throughput);
  let best = -Infinity;
  return sorted.filter(({ throughput }) => {
    const leads = throughput > best;
    best = Math.max(best, throughput);
    return leads;
  });
}

export function drawPareto(trades: Trade[], theme: Theme): EChartsCoreOption {
  const names = [...new Set(trades.map(({ precision }) => precision))].sort();
  const looks = looksOf(names, theme);
  const places = trades.map(({ accuracy }) => accuracy);
  const [least, most] = [Math.min(...places), Math.max(...places)];
  const room = Math.max((most - least) / 10, 0.05);
  return {
    ...base(theme),
    xAxis: {
      ...xAxisOf(theme, "accuracy (%)"),
      type: "value",
      min: least - room,
      max: Math.min(100, most + room),
      axisLabel: { color: theme.faint, formatter: figure, hideOverlap: true },
    },
    yAxis: {
      ...yAxisOf(theme, "samples/s", true),
      axisLabel: { color: theme.faint, formatter: compact, hideOverlap: true },
    },
    series: [
      ...frontsOf(trades).map((front) => ({
        type: "line",
        name: "front",
        symbol: "none",
        silent: true,
        z: 1,
        data: front.map(({ accuracy, throughput }) => [accuracy, throughput]),
        lineStyle: { color: theme.faint, width: 1.5, type: "dashed" },
      })),
      ...names.map((name, index) => {
        const ours = trades.filter(({ precision }) => precision === name);
        const look = looks[index];
        return {
          type: "scatter",
          name,
          symbol: look?.symbol,
          symbolSize: 11,
          itemStyle: { color: look?.colour, opacity: 0.9 },
          data: ours.map((trade) => ({
            value: [trade.accuracy, trade.throughput],
            record: trade.id,
            itemStyle: markStyle(theme, look?.colour ?? "", trade.checked),
          })),
          tooltip: {
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const trade = ours[dataIndex];
              return trade
                ? tipOf(
                    [name, trade.label].filter(Boolean).join(", "),
                    `${trade.accuracy.toFixed(2)} % of the answers are right`,
                    quantity(trade.throughput, "samples/s"),
                    [],
                  )
                : "";
            },
          },
        };
      }),
    ],
  };
}
