// ends.ts: names at the ends of lines, pushed apart so that none lies on another, instead of a legend.

import type { CustomSeriesOption } from "echarts";
import type { Theme } from "../theme";
import type { Look } from "./drawing";
import { textWidth } from "./text";

export interface End {
  key?: string; // of its series: picking the name takes it out
  name: string;
  look: Look;
  x: number | string;
  y: number;
}

const GAP = 17; // pixels from one name to the next
const FONT = 12.5;
const LEAD = 26; // pixels from the last place to where names begin
const SHARE = 0.4; // of the width, at most, for names
export const ROOM = 560; // pixels of width from which on names stand at line ends

// The right margin that these names need.
export function endsWidth(names: string[], width: number, theme: Theme): number {
  const longest = Math.max(0, ...names.map((name) => textWidth(name, FONT, theme)));
  return Math.ceil(Math.min(longest, width * SHARE) + LEAD + 16);
}

interface Block {
  at: number; // where its middle is
  members: number[];
}

// Places at least `gap` apart, each as near to the wanted one as that allows, between top and bottom.
// Neighbours that are too near become one block around their mean, until no two blocks touch.
export function pushApart(wanted: number[], gap: number, top: number, bottom: number): number[] {
  const half = ({ members }: Block) => ((members.length - 1) * gap) / 2;
  const within = (block: Block) => {
    block.at = Math.max(top + half(block), Math.min(bottom - half(block), block.at));
    return block;
  };
  const blocks: Block[] = [];
  const order = wanted.map((_, index) => index).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  for (const index of order) {
    let last = within({ at: wanted[index] ?? 0, members: [index] });
    for (let before = blocks.pop(); before; before = blocks.pop()) {
      if (before.at + half(before) + gap <= last.at - half(last)) {
        blocks.push(before);
        break;
      }
      const members = [...before.members, ...last.members];
      const sum = before.at * before.members.length + last.at * last.members.length;
      last = within({ at: sum / members.length, members });
    }
    blocks.push(last);
  }
  const placed = [...wanted];
  for (const block of blocks)
    block.members.forEach((member, at) => (placed[member] = block.at - half(block) + at * gap));
  return placed;
}

// The mark of a series, small, as on its line.
function signOf({ symbol, colour }: Look, x: number, y: number) {
  const style = { fill: colour };
  if (symbol === "rect")
    return { type: "rect" as const, shape: { x: x - 3.5, y: y - 3.5, width: 7, height: 7 }, style };
  const up = [[x, y - 4.5]];
  const points =
    symbol === "triangle"
      ? [...up, [x + 4.5, y + 4], [x - 4.5, y + 4]]
      : [...up, [x + 4.5, y], [x, y + 4.5], [x - 4.5, y]];
  if (symbol === "circle") return { type: "circle" as const, shape: { cx: x, cy: y, r: 4 }, style };
  return { type: "polygon" as const, shape: { points }, style };
}

export function endLabels(ends: End[], width: number, theme: Theme): CustomSeriesOption {
  const textRoom = Math.floor(width * SHARE);
  return {
    type: "custom",
    z: 5,
    data: ends.map(({ key, x, y }) => ({ value: [x, y], series: key })),
    encode: { x: 0, y: 1 },
    tooltip: { show: false },
    renderItem: (parameters, api) => {
      const area = parameters.coordSys as unknown as { x: number; y: number; width: number; height: number };
      const index = parameters.dataIndex;
      const end = ends[index];
      if (!end) return { type: "group", children: [] };
      const at = ends.map((one) => api.coord([one.x, one.y]));
      const placed = pushApart(
        at.map((point) => point[1] ?? 0),
        GAP,
        area.y,
        area.y + area.height,
      );
      const [fromX = 0, fromY = 0] = at[index] ?? [];
      const y = placed[index] ?? 0;
      const right = area.x + area.width + LEAD;
      const edge = Math.max(fromX + 6, area.x + area.width + 4);
      return {
        type: "group",
        children: [
          {
            type: "polyline",
            silent: true,
            shape: {
              points: [
                [fromX + 6, fromY],
                [edge, fromY],
                [right - 8, y],
              ],
            },
            style: { stroke: end.look.colour, fill: "none", lineWidth: 1, lineDash: [1, 4], opacity: 0.8 }, // no data
          },
          signOf(end.look, right - 2, y),
          {
            type: "text",
            x: right + 6,
            y,
            silent: end.key === undefined,
            style: {
              text: end.name,
              fill: theme.text,
              font: `${FONT}px ${theme.font}`,
              verticalAlign: "middle",
              overflow: "truncate",
              width: textRoom,
            },
          },
        ],
      };
    },
  };
}
