// drawing.ts: what every drawing shares: colours, axes, tips.

import type { EChartsCoreOption } from "echarts/core";
import { element, type Child } from "../dom";
import { compact } from "../format";
import type { Theme } from "../theme";
import { textWidth } from "./text";

// How one series looks, so that more series than colours can still be told apart.
export interface Look {
  colour: string;
  variable: string; // the same colour in style.css
  symbol: string;
  dash: "solid" | "dashed" | "dotted";
}

const STILL = "(prefers-reduced-motion: reduce)";
const SYMBOLS = ["circle", "rect", "triangle", "diamond"];
export const SIGNS: Record<string, string> = { circle: "●", rect: "■", triangle: "▲", diamond: "◆" };
const DASHES = ["solid", "dashed", "dotted", "dashed"] as const;
const remembered = new Map<string, number>();

// A series, by its key or its name, keeps its look while the page is open, whatever is filtered around it.
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
      variable: `--series-${(index % palette.length) + 1}`,
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

// An axis of figures, along the bottom.
export function lyingAxis(axis: ReturnType<typeof yAxisOf>) {
  return {
    ...axis,
    nameLocation: "middle",
    nameGap: 32,
    nameTextStyle: { color: axis.axisLabel.color },
    splitLine: { ...axis.splitLine, show: true },
  };
}

// As wide as the longest name needs, up to so much of the drawing that some of it is left.
export function namesWidth(names: string[], width: number, theme: Theme): number {
  const longest = Math.max(0, ...names.map((name) => textWidth(name, 12, theme)));
  return Math.ceil(Math.min(longest + 4, width * (width > 560 ? 0.5 : 0.4)));
}

// Names below each other, in full where that leaves room for the drawing.
export function namesAxis(theme: Theme, names: string[], width: number) {
  return {
    ...axisBase(theme),
    type: "category",
    inverse: true,
    data: names,
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { show: false, lineStyle: { color: theme.line } },
    axisLabel: {
      color: theme.text,
      fontSize: 12,
      lineHeight: 13,
      interval: 0,
      width: namesWidth(names, width, theme),
      overflow: "break",
    },
  };
}

// Of a chart whose figures lie along the bottom, with nothing above it.
export const LYING = { left: 8, right: 24, top: 8, bottom: 34, containLabel: true };

// `right`: pixels beside the drawing, for names at the ends of lines.
export function base(theme: Theme, right = 20): EChartsCoreOption {
  return {
    animation: !matchMedia(STILL).matches,
    animationDuration: 250,
    color: theme.series,
    textStyle: { fontFamily: theme.font, fontSize: 13, color: theme.text },
    grid: { left: 8, right, top: 34, bottom: 34, containLabel: true },
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
    figure ? element("div", { className: "tip-figure" }, figure) : null,
    ...lines,
  );
}

// A mark whose result was not checked is hollow.
export function markStyle(theme: Theme, colour: string, checked: boolean) {
  return checked ? {} : { color: theme.surface, borderColor: colour, borderWidth: 2 };
}
