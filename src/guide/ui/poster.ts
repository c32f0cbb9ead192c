// poster.ts: a drawing as a file that stands by itself: title, filters, legend, one or several drawings,
// and the source. It is laid out once, as texts and drawings on a sheet, and painted as PNG or as SVG.

import * as echarts from "echarts/core";
import type { EChartsCoreOption } from "echarts/core";

import type { Size } from "./charts/chart";
import { looksOf, SIGNS } from "./charts/drawing";
import { textWidth } from "./charts/text";
import { element } from "./dom";
import { download, fileName } from "./download";
import { readTheme, type Theme } from "./theme";

export interface Poster {
  title: string;
  lines: string[]; // below the title: filters, what the figures are
  legend: { key: string; name: string }[];
  drawings: { title: string; draw(theme: Theme, size: Size): EChartsCoreOption }[];
  width: number; // of the drawing on the page; files are at least WIDTH wide
  height: number; // of each drawing
  source: string;
}

interface Words {
  x: number;
  y: number; // of the line's middle
  text: string;
  size: number;
  weight: number;
  colour: string;
}

interface Drawn extends Size {
  x: number;
  y: number;
  option: EChartsCoreOption;
}

interface Layout extends Size {
  words: Words[];
  drawn: Drawn[];
}

const WIDTH = 960;
const MARGIN = 24;
const COLUMNS = 3; // of small drawings at most
const PIXELS = 2; // of a PNG file for each of the page

// Words in lines no longer than `room` pixels.
function wrapped(text: string, size: number, weight: number, room: number, theme: Theme): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = lines.length > 0 ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length > 0 && textWidth(longer, size, theme, weight) <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

class Sheet implements Layout {
  height = MARGIN;
  words: Words[] = [];
  drawn: Drawn[] = [];

  constructor(
    readonly width: number,
    private readonly theme: Theme,
  ) {}

  write(text: string, size: number, weight: number, colour: string): void {
    for (const line of wrapped(text, size, weight, this.width - 2 * MARGIN, this.theme)) {
      this.words.push({ x: MARGIN, y: this.height + size * 0.7, text: line, size, weight, colour });
      this.height += size * 1.4;
    }
  }

  list(entries: Poster["legend"]): void {
    const size = 13;
    const looks = looksOf(
      entries.map(({ key }) => key),
      this.theme,
    );
    let x = MARGIN;
    this.height += 8;
    entries.forEach(({ name }, index) => {
      const wide = textWidth(name, size, this.theme) + 16;
      if (x > MARGIN && x + wide > this.width - MARGIN) {
        x = MARGIN;
        this.height += 20;
      }
      const y = this.height + 9;
      const look = looks[index];
      const sign = { x, y, text: SIGNS[look?.symbol ?? ""] ?? "●", size: 11, weight: 400 };
      this.words.push({ ...sign, colour: look?.colour ?? this.theme.text });
      this.words.push({ x: x + 16, y, text: name, size, weight: 400, colour: this.theme.text });
      x += wide + 18;
    });
    this.height += entries.length > 0 ? 24 : 0;
  }

  draw(drawings: Poster["drawings"], height: number): void {
    const columns = Math.min(COLUMNS, drawings.length);
    const width = Math.floor((this.width - 2 * MARGIN - (columns - 1) * MARGIN) / columns);
    drawings.forEach(({ title, draw }, index) => {
      const x = MARGIN + (index % columns) * (width + MARGIN);
      const top = title ? 20 : 0;
      if (title)
        this.words.push({
          x,
          y: this.height + 10,
          text: title,
          size: 13,
          weight: 600,
          colour: this.theme.text,
        });
      const option = {
        ...draw(this.theme, { width, height }),
        animation: false,
        backgroundColor: this.theme.surface,
      };
      this.drawn.push({ x, y: this.height + top, width, height, option });
      if (index % columns === columns - 1 || index === drawings.length - 1) this.height += height + top + 8;
    });
  }
}

function layOut(poster: Poster, theme: Theme): Layout {
  const sheet = new Sheet(Math.max(WIDTH, poster.width + 2 * MARGIN), theme);
  sheet.write(poster.title, 19, 650, theme.text);
  for (const line of poster.lines) sheet.write(line, 13, 400, theme.faint);
  sheet.list(poster.legend);
  sheet.height += 6;
  sheet.draw(poster.drawings, poster.height);
  sheet.write(poster.source, 11, 400, theme.faint);
  sheet.height += MARGIN / 2;
  return sheet;
}

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign] ?? "&quot;");

function svgOf({ x, y, width, height, option }: Drawn): string {
  const still = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  still.setOption(option);
  const text = still.renderToSVGString();
  still.dispose();
  return `<g transform="translate(${x} ${y})">${text}</g>`;
}

export function saveSvg(poster: Poster): void {
  const theme = readTheme();
  const { width, height, words, drawn } = layOut(poster, theme);
  const texts = words.map(
    ({ x, y, text, size, weight, colour }) =>
      `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}" fill="${colour}" dominant-baseline="central">${escaped(text)}</text>`,
  );
  const whole = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(theme.font)}">`,
    `<title>${escaped(poster.title)}</title>`,
    `<rect width="100%" height="100%" fill="${theme.surface}"/>`,
    ...texts,
    ...drawn.map(svgOf),
    "</svg>\n",
  ];
  download(fileName(poster.title, "svg"), "image/svg+xml", whole.join("\n"));
}

function paint(context: CanvasRenderingContext2D, { x, y, width, height, option }: Drawn): void {
  const still = echarts.init(element("div"), null, { width, height, devicePixelRatio: PIXELS });
  still.setOption(option);
  context.drawImage(still.renderToCanvas({ pixelRatio: PIXELS }), x, y, width, height);
  still.dispose();
}

export function savePng(poster: Poster): void {
  const theme = readTheme();
  const { width, height, words, drawn } = layOut(poster, theme);
  const canvas = element("canvas", { width: width * PIXELS, height: Math.ceil(height * PIXELS) });
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(PIXELS, PIXELS);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  for (const { x, y, text, size, weight, colour } of words) {
    context.font = `${weight} ${size}px ${theme.font}`;
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }
  for (const one of drawn) paint(context, one);
  canvas.toBlob((blob) => {
    if (blob) download(fileName(poster.title, "png"), "image/png", blob);
  }, "image/png");
}
