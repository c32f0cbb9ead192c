// drawing.ts: what every drawing shares: colours, axes, legend, tips.

import type { EChartsCoreOption } from "echarts/core";
import { element, type Child } from "../dom";
import { compact } from "../format";
import type { Theme } from "../theme";

// How one series looks, so that more series than colours can still be told apart.
export interface Look {
  colour: string;
  symbol: string;
  dash: "solid" | "dashed" | "dotted";
}

const SYMBOLS = ["circle", "rect", "triangle", "diamond"];
const DASHES = ["solid", "dashed", "dotted", "dashed"] as const;
const remembered = new Map<string, number>();

// A series keeps its look while the page is open, whatever is filtered around it.
export function looksOf(names: string[], { series: palette }: Theme): Look[] {
  const taken = new Set<number>();
  const chosen = new Map<string, number>();
  const take = (name: string, index: number) => {
    taken.add(index);
    chosen.set(name, index);
    remembered.set(name, index);
  };
  for (const name of names) {
    const index = remembered.get(name);
    if (index !== undefined && !taken.has(index) && index < Math.max(palette.length, names.length))
      take(name, index);
  }
  for (const name of names) {
    if (chosen.has(name)) continue;
    let free = 0;
    while (taken.has(free)) free++;
    take(name, free);
  }
  return names.map((name) => {
    const index = chosen.get(name) ?? 0;
    const round = Math.floor(index / palette.length) % SYMBOLS.length;
    return {
      colour: palette[index % palette.length] ?? "",
      symbol: SYMBOLS[round] ?? "circle",
      dash: DASHES[round] ?? "solid",
    };
  });
}

function axisBase(theme: Theme) {
  return {
    axisLine: { lineStyle: { color: theme.line } },
    axisTick: { lineStyle: { color: theme.line } },
    axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } },
    minorSplitLine: { show: false },
    nameTextStyle: { color: theme.faint },
  };
}

export function yAxisOf(theme: Theme, title: string, logarithmic = false) {
  return {
    ...axisBase(theme),
    type: logarithmic ? "log" : "value",
    name: title,
    nameLocation: "end",
    nameTextStyle: { color: theme.faint, align: "left", padding: [0, 0, 6, 0] },
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true, formatter: compact },
  };
}

export function xAxisOf(theme: Theme, title: string) {
  return { ...axisBase(theme), name: title, nameLocation: "middle", nameGap: 32 };
}

export function base(theme: Theme, names: string[]): EChartsCoreOption {
  const legend = names.length > 1;
  return {
    animationDuration: 250,
    color: theme.series,
    textStyle: { fontFamily: theme.font, fontSize: 13, color: theme.text },
    grid: { left: 8, right: 20, top: legend ? 72 : 34, bottom: 34, containLabel: true },
    legend: {
      type: "scroll",
      show: legend,
      data: names,
      top: 4,
      left: 0,
      itemWidth: 10,
      itemHeight: 10,
      itemGap: 18,
      lineStyle: { width: 0 },
      textStyle: { color: theme.text, fontSize: 13, lineHeight: 20 },
      pageTextStyle: { color: theme.faint },
      pageIconColor: theme.text,
      pageIconInactiveColor: theme.line,
    },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: theme.surface,
      borderColor: theme.line,
      textStyle: { color: theme.text },
    },
  };
}

// What a mark says when pointed at. Built as an element: the content-security policy allows no style
// within markup.
export function tipOf(title: string, place: string, figure: string, notes: string[]): HTMLElement {
  const lines: Child[] = notes.map((note) => element("div", { className: "tip-note" }, note));
  return element(
    "div",
    { className: "tip" },
    element("strong", {}, title),
    place ? element("div", {}, place) : null,
    element("div", { className: "tip-figure" }, figure),
    ...lines,
  );
}

// A mark whose result was not checked is hollow.
export function markStyle(theme: Theme, colour: string, checked: boolean) {
  return checked ? {} : { color: theme.surface, borderColor: colour, borderWidth: 2 };
}
