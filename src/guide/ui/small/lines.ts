// lines.ts: a line for each series, its name and last figure where it ends. The lines are stretched to the
// card's width; words and dots are not, for they stand beside and above them.

import type { Point } from "../api";
import { pushApart } from "../charts/ends";
import { attributed, drawn, element } from "../dom";
import { compact, label } from "../format";
import { isHollow, measureText, valueOf, valueText, xText, type SmallSeries, type SmallSheet } from "./sheet";

const HEIGHT = 126; // pixels, as overview.css has it
const NAME_HEIGHT = 18; // of one name at a line's end
const LOG_FROM = 30; // a wider range than this is drawn logarithmically
const TICK_SHARE = 0.11; // of the width, for the figures below the axis

interface Scale1 {
  log: boolean;
  ticks: number[];
  place: (value: number) => number; // 0 to 1
}

function niceStep(most: number, steps: number): number {
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= rough) ?? 10) * power;
}

function yScale(values: number[]): Scale1 {
  const most = Math.max(...values);
  const least = Math.min(...values);
  if (least > 0 && most / least > LOG_FROM) {
    const first = Math.floor(Math.log10(least) + 1e-9);
    const last = Math.ceil(Math.log10(most) - 1e-9);
    const every = Math.ceil((last - first) / 4);
    const ticks = Array.from({ length: last - first + 1 }, (_, step) => 10 ** (first + step));
    return {
      log: true,
      ticks: ticks.filter((_, index) => index % every === 0),
      place: (value) => (Math.log10(value) - first) / (last - first),
    };
  }
  const step = niceStep(most || 1, 3);
  const top = Math.ceil((most || 1) / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  return { log: false, ticks, place: (value) => value / top };
}

function xScale(places: number[]): Scale1 {
  const first = places[0] ?? 0;
  const last = places[places.length - 1] ?? 1;
  const log = first > 0 && last / first >= 8;
  const place = (value: number) =>
    last === first
      ? 0.5
      : log
        ? Math.log(value / first) / Math.log(last / first)
        : (value - first) / (last - first);
  const ticks: number[] = [];
  for (const value of [...places].reverse())
    if (ticks.every((tick) => Math.abs(place(tick) - place(value)) >= TICK_SHARE)) ticks.push(value);
  return { log, ticks, place };
}

const percent = (share: number) => `${(100 * share).toFixed(2)}%`;

function dotOf(
  sheet: SmallSheet,
  series: SmallSeries,
  point: Point,
  left: number,
  bottom: number,
  tone: number,
) {
  const figure = valueText(sheet, valueOf(sheet, point));
  const dot = element("span", {
    className: `line-dot tone-${tone}${isHollow(point) ? " hollow" : ""}`,
    title: `${series.name ? `${series.name}, ` : ""}${xText(sheet, point.x)}: ${figure}`,
  });
  dot.style.left = percent(left);
  dot.style.bottom = percent(bottom);
  return dot;
}

function areaOf(sheet: SmallSheet, xs: Scale1, ys: Scale1): HTMLElement {
  const shown = (point: Point) => valueOf(sheet, point) * sheet.scale.factor;
  const paths = sheet.series.map(({ points }, index) =>
    drawn("polyline", {
      class: `line tone-${index + 1}`,
      points: points
        .map(
          (point) =>
            `${(100 * xs.place(Number(point.x))).toFixed(2)},${(100 - 100 * ys.place(shown(point))).toFixed(2)}`,
        )
        .join(" "),
    }),
  );
  const grid = ys.ticks.map((tick) =>
    drawn("line", {
      class: "line-grid",
      x1: 0,
      x2: 100,
      y1: 100 - 100 * ys.place(tick),
      y2: 100 - 100 * ys.place(tick),
    }),
  );
  const dots = sheet.series.flatMap((series, index) =>
    series.points.map((point) =>
      dotOf(sheet, series, point, xs.place(Number(point.x)), ys.place(shown(point)), index + 1),
    ),
  );
  return element(
    "div",
    { className: "line-area" },
    drawn(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
      ...grid,
      ...paths,
    ),
    ...dots,
  );
}

function namesOf(sheet: SmallSheet, ys: Scale1): HTMLElement {
  const ends = sheet.series.map(({ points }) => {
    const last = points[points.length - 1];
    return last ? valueOf(sheet, last) * sheet.scale.factor : 0;
  });
  const middles = pushApart(
    ends.map((end) => HEIGHT * (1 - ys.place(end))),
    NAME_HEIGHT,
    0,
    HEIGHT,
  );
  const names = sheet.series.map(({ name }, index) => {
    const one = element(
      "span",
      { className: `line-name tone-${index + 1}`, title: name },
      name ? `${name} ` : "",
      element("b", {}, compact(ends[index] ?? 0)),
    );
    one.style.top = `${((middles[index] ?? 0) - NAME_HEIGHT / 2).toFixed(1)}px`;
    return one;
  });
  return element("div", { className: "line-names" }, ...names);
}

function ticksOf(kind: "x" | "y", scale: Scale1): HTMLElement {
  const ticks = scale.ticks.map((tick) => {
    const one = element("span", {}, kind === "x" ? tick.toLocaleString("en") : compact(tick));
    one.style[kind === "x" ? "left" : "bottom"] = percent(scale.place(tick));
    return one;
  });
  return element("div", { className: `line-${kind}` }, ...ticks);
}

export function linesOf(sheet: SmallSheet): HTMLElement {
  const all = sheet.series.flatMap(({ points }) => points);
  const places = [...new Set(all.map(({ x }) => Number(x)))].sort((a, b) => a - b);
  const xs = xScale(places);
  const ys = yScale(all.map((point) => valueOf(sheet, point) * sheet.scale.factor));
  const plot = element(
    "div",
    { className: "line-plot" },
    ticksOf("y", ys),
    areaOf(sheet, xs, ys),
    namesOf(sheet, ys),
    ticksOf("x", xs),
  );
  const said = sheet.series
    .map(({ name, points }) =>
      `${name} ${points.map((point) => `${xText(sheet, point.x)}: ${valueText(sheet, valueOf(sheet, point))}`).join(", ")}`.trim(),
    )
    .join("; ");
  const log =
    xs.log && ys.log
      ? "both axes logarithmic"
      : xs.log
        ? `${label(sheet.x)} logarithmic`
        : ys.log
          ? "logarithmic"
          : "";
  return element(
    "figure",
    { className: "small lines" },
    attributed(plot, { role: "img", "aria-label": said }),
    element("figcaption", {}, `${measureText(sheet)} by ${label(sheet.x)}${log ? `, ${log}` : ""}`),
  );
}
