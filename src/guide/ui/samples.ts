// samples.ts: the samples of one result: how often which time (histogram), and in the order in which they
// were taken (time line), where warm-up and disturbances show.

import type { EChartsCoreOption } from "echarts/core";
import type { RecordLine } from "./api";
import { base, tipOf, xAxisOf, yAxisOf } from "./charts/drawing";
import { compact, figure, many, scaleFor, type Scale } from "./format";
import { plotCard } from "./plot";
import type { Theme } from "./theme";

interface Bin {
  from: number;
  to: number;
  count: number;
}

// Bins by the rule of Freedman and Diaconis (twice the middle half ÷ cube root of n), 5 to 40 of them.
export function binsOf(samples: number[]): Bin[] {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const least = at(0);
  const range = at(1) - least;
  const wanted = range / ((2 * (at(0.75) - at(0.25))) / Math.cbrt(sorted.length));
  const count = range === 0 ? 1 : Math.max(5, Math.min(40, Math.ceil(Number.isFinite(wanted) ? wanted : 40)));
  const width = range === 0 ? least * 0.01 : range / count;
  const bins = Array.from({ length: count }, (_, index): Bin => ({
    from: least + index * width,
    to: least + (index + 1) * width,
    count: 0,
  }));
  for (const sample of sorted) {
    const bin = bins[Math.min(count - 1, Math.floor((sample - least) / width))];
    if (bin) bin.count++;
  }
  return bins;
}

function drawHistogram(bins: Bin[], scale: Scale, theme: Theme): EChartsCoreOption {
  const shown = (value: number) => figure(value * scale.factor);
  return {
    ...base(theme),
    xAxis: {
      ...xAxisOf(theme, `time of one iteration (${scale.unit})`),
      type: "value",
      scale: true,
      splitLine: { show: false },
      axisLabel: { color: theme.faint, formatter: compact, hideOverlap: true },
    },
    yAxis: { ...yAxisOf(theme, "samples"), minInterval: 1 },
    series: [
      {
        type: "bar",
        barWidth: "92%",
        data: bins.map(({ from, to, count }) => [((from + to) / 2) * scale.factor, count]),
        itemStyle: { color: theme.series[0] },
        tooltip: {
          formatter: ({ dataIndex }: { dataIndex: number }) => {
            const bin = bins[dataIndex];
            return bin
              ? tipOf(
                  `${shown(bin.from)} to ${shown(bin.to)} ${scale.unit}`,
                  "",
                  many(bin.count, "sample"),
                  [],
                )
              : "";
          },
        },
      },
    ],
  };
}

function histogram(bins: Bin[], scale: Scale): HTMLElement {
  const shown = (value: number) => figure(value * scale.factor);
  return plotCard<Bin>({
    key: "histogram",
    title: "How often which time",
    level: "h3",
    low: true,
    folded: true,
    draw: (theme) => drawHistogram(bins, scale, theme),
    listing: {
      id: "histogram-table",
      caption: "Number of samples by time",
      columns: [
        {
          key: "from",
          title: `from (${scale.unit})`,
          unit: "ns",
          number: true,
          value: ({ from }) => from,
          show: ({ from }) => shown(from),
        },
        {
          key: "to",
          title: `to (${scale.unit})`,
          unit: "ns",
          number: true,
          value: ({ to }) => to,
          show: ({ to }) => shown(to),
        },
        { key: "samples", title: "samples", number: true, value: ({ count }) => count },
      ],
      rows: bins,
    },
  });
}

interface Taken {
  index: number;
  value: number;
}

function drawTimeLine(rows: Taken[], median: number, scale: Scale, theme: Theme): EChartsCoreOption {
  return {
    ...base(theme),
    xAxis: {
      ...xAxisOf(theme, "sample"),
      type: "value",
      min: 1,
      max: Math.max(2, rows.length),
      splitLine: { show: false },
    },
    yAxis: { ...yAxisOf(theme, `time of one iteration (${scale.unit})`), scale: true },
    series: [
      {
        type: "scatter",
        symbolSize: rows.length > 500 ? 3 : 6,
        data: rows.map(({ index, value }) => [index, value * scale.factor]),
        itemStyle: { color: theme.series[0], opacity: 0.75 },
        tooltip: {
          formatter: ({ dataIndex }: { dataIndex: number }) => {
            const row = rows[dataIndex];
            return row
              ? tipOf(`sample ${row.index}`, "", `${figure(row.value * scale.factor)} ${scale.unit}`, [])
              : "";
          },
        },
      },
      {
        type: "line",
        silent: true,
        symbol: "none",
        data: [
          [1, median * scale.factor],
          [Math.max(2, rows.length), median * scale.factor],
        ],
        lineStyle: { color: theme.series[1], width: 1.5, type: "dashed" },
      },
    ],
  };
}

function timeLine(samples: number[], median: number, scale: Scale): HTMLElement {
  const rows = samples.map((value, index) => ({ index: index + 1, value }));
  return plotCard<Taken>({
    key: "time-line",
    title: "In the order taken",
    level: "h3",
    low: true,
    folded: true,
    draw: (theme) => drawTimeLine(rows, median, scale, theme),
    listing: {
      id: "time-line-table",
      caption: "The samples in the order in which they were taken",
      columns: [
        { key: "sample", title: "sample", number: true, value: ({ index }) => index },
        {
          key: "time",
          title: `time (${scale.unit})`,
          unit: "ns",
          number: true,
          value: ({ value }) => value,
          show: ({ value }) => figure(value * scale.factor),
        },
      ],
      rows,
    },
  });
}

export function samplesCards(record: RecordLine): HTMLElement[] {
  const samples = record.samples_ns ?? [];
  const median = record.result?.time_ns.median;
  if (samples.length < 2 || !median) return [];
  const scale = scaleFor("ns", samples);
  const pair = document.createElement("div");
  pair.className = "pair";
  pair.append(histogram(binsOf(samples), scale), timeLine(samples, median, scale));
  return [pair];
}
