// blocks.ts: rectangles in rows with their names in them, as timelines and flame graphs show them. Their
// fills are tinted, so that names in the colour of the page's text can be read on all of them.

import type { CustomSeriesOption } from "echarts/charts";
import type { Theme } from "../theme";
import { textWidth } from "./text";

export interface Block {
  from: number; // on x
  to: number;
  row: number; // 0 is the uppermost
  name: string;
  colour: string;
  strong?: boolean; // it stands out
  pale?: boolean; // it stands back
}

export const ROW = 21; // pixels
const SIZE = 12; // of names
const ROOM = 26; // pixels that a name needs to be worth its place

// As much of a name as fits.
export function fitted(name: string, room: number, theme: Theme): string {
  if (room < ROOM) return "";
  if (textWidth(name, SIZE, theme) <= room) return name;
  let low = 0;
  let high = name.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (textWidth(`${name.slice(0, middle)}…`, SIZE, theme) <= room) low = middle;
    else high = middle;
  }
  return low > 1 ? `${name.slice(0, low)}…` : "";
}

// `record` of a block is its place in the list: a click says which one it was.
export function blockSeries(
  blocks: Block[],
  theme: Theme,
  tip: (index: number) => HTMLElement | string,
): CustomSeriesOption {
  return {
    type: "custom",
    animation: false,
    encode: { x: [0, 1], y: 2 },
    data: blocks.map(({ from, to, row }, record) => ({ value: [from, to, row], record })),
    tooltip: { formatter: (item: unknown) => tip((item as { dataIndex: number }).dataIndex) },
    renderItem: (parameters, api) => {
      const block = blocks[parameters.dataIndex];
      const area = parameters.coordSys as unknown as { x: number; y: number; width: number; height: number };
      const [left = 0, middle = 0] = api.coord([api.value(0), api.value(2)]);
      const [right = 0] = api.coord([api.value(1), api.value(2)]);
      const x = Math.max(left, area.x);
      const width = Math.max(Math.min(right, area.x + area.width) - x, 1);
      if (!block || right < area.x || left > area.x + area.width) return null;
      const gap = width > 3 ? 1 : 0; // pixels between neighbours
      return {
        type: "rect",
        shape: { x, y: middle - ROW / 2 + 1, width: width - gap, height: ROW - 2, r: 2 },
        style: {
          fill: block.colour,
          opacity: block.pale ? 0.1 : block.strong ? 0.62 : 0.34,
          ...(block.strong ? { stroke: theme.text, lineWidth: 1 } : {}),
        },
        textContent: {
          style: {
            text: fitted(block.name, width - gap - 8, theme),
            fill: theme.text,
            fontSize: SIZE,
            fontFamily: theme.font,
          },
        },
        textConfig: { position: "insideLeft", distance: 4 },
        emphasis: { style: { opacity: 0.62 } },
      };
    },
  } as CustomSeriesOption;
}
