// text.ts: how wide a text is, before it is drawn.

import type { Theme } from "../theme";

let context: CanvasRenderingContext2D | null = null;

export function textWidth(text: string, size: number, { font }: Theme, weight = 400): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return text.length * size * 0.6;
  context.font = `${weight} ${size}px ${font}`;
  return context.measureText(text).width;
}
