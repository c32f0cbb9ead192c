// line.ts: one line per series over numbers, over time, or over commits in the order of their time.

import type { Point } from "../api";
import type { Chart, Sheet } from "./chart";
import { categoryOf, crosshair, errorBars, itemsOf, looksIn, xAxis, yAxis } from "./chart";
import { base } from "./drawing";
import { endLabels, endsWidth, ROOM } from "./ends";

const MARKED = 16; // places at most that are marked themselves: 1, 3, 10, 64 say more than powers of ten
const TRENDS = ["commit", "software"]; // names that have an order in time
const GAP_REM = 1.15; // of names at line ends

const onTime = ({ x }: Sheet) => x.key === "time";
const onNumbers = ({ x, places }: Sheet) => x.kind === "number" && places.length > 1;

function xOf(sheet: Sheet): (point: Point) => number | string {
  if (onTime(sheet)) return (point) => Date.parse(String(point.x));
  if (onNumbers(sheet)) return (point) => Number(point.x);
  return (point) => categoryOf(sheet, point.x);
}

function numberAxis(sheet: Sheet) {
  const { places: given, logX, theme } = sheet;
  const places = given.filter((place) => place !== null).map(Number);
  const logarithmic = logX && places.every((place) => place > 0);
  const customValues = places.length <= MARKED ? places : undefined;
  return {
    type: logarithmic ? "log" : "value",
    ...(logarithmic ? { logBase: 2, min: Math.min(...places), max: Math.max(...places) } : { scale: true }),
    axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true, customValues },
    axisTick: { customValues, lineStyle: { color: theme.line } },
  };
}

function placeAxis(sheet: Sheet) {
  const { places, theme } = sheet;
  if (onTime(sheet))
    return { type: "time", axisLabel: { color: theme.faint, fontSize: 12, hideOverlap: true } };
  if (onNumbers(sheet)) return numberAxis(sheet);
  return {
    type: "category",
    data: places.map((place) => categoryOf(sheet, place)),
    axisTick: { show: false },
  };
}

export const line: Chart = {
  name: "line",
  title: "Lines",
  suits: ({ places, x }) =>
    places.length > 1 && (x.kind === "number" || x.key === "time" || TRENDS.includes(x.key)),
  ends: true,
  rows: ({ series, ends }) => (ends ? (series.length * GAP_REM) / 2 : 0),
  draw(sheet: Sheet) {
    const { theme, size, scale } = sheet;
    const at = xOf(sheet);
    const placed = (point: Point) => sheet.places.indexOf(point.x);
    const all = sheet.series
      .map((series) => ({
        ...series,
        points: series.points.filter(({ x }) => x !== null).sort((a, b) => placed(a) - placed(b)),
      }))
      .filter(({ points }) => points.length > 0);
    const looks = looksIn(sheet);
    const named = sheet.ends && all.length > 1 && size.width >= ROOM;
    const names = all.map((series) => series.name);
    return {
      ...base(theme, named ? endsWidth(names, size.width, theme) : 20),
      tooltip: crosshair(sheet, at),
      xAxis: { ...xAxis(sheet), ...placeAxis(sheet), splitLine: { show: false } },
      yAxis: yAxis(sheet),
      series: [
        ...all.flatMap((series) => {
          const look = looks.get(series.key);
          if (!look) return [];
          return [
            {
              type: "line",
              name: series.name,
              data: itemsOf(sheet, series, look, at),
              symbol: look.symbol,
              symbolSize: 9,
              itemStyle: { color: look.colour },
              lineStyle: { width: 2, color: look.colour, type: look.dash },
              emphasis: { focus: "series" },
            },
            errorBars(sheet, series, { colour: look.colour, z: 1, xOf: at }) /* behind the marks */,
          ];
        }),
        ...(named
          ? [
              endLabels(
                all.flatMap(({ key, name, points }) => {
                  const last = points[points.length - 1];
                  const look = looks.get(key);
                  return last && look ? [{ key, name, look, x: at(last), y: last.y * scale.factor }] : [];
                }),
                size.width,
                theme,
              ),
            ]
          : []),
      ],
    };
  },
};
