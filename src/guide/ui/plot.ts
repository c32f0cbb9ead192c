// plot.ts: a drawing on a card, with its title, its table and its files (PNG, SVG, CSV). Every drawing of
// the guide is one of these, so none is without a table for who cannot see it.

import * as echarts from "echarts/core";
import { BarChart, BoxplotChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import type { EChartsCoreOption } from "echarts/core";

import { attributed, element, type Child } from "./dom";
import { download, fileName } from "./download";
import { csvOf, tableOf, type Listing } from "./table";
import { readTheme, type Theme } from "./theme";

echarts.use([BarChart, BoxplotChart, CustomChart, LineChart, ScatterChart, GridComponent, LegendComponent, TooltipComponent, CanvasRenderer, SVGRenderer]);

export interface Plot<Row> {
  key: string; // a drawing of this name keeps its place from one showing to the next
  title: string;
  subtitle?: string;
  level?: "h1" | "h2" | "h3";
  tools?: Child[]; // beside the title
  notes?: Child[]; // between title and drawing
  after?: Child[]; // between drawing and table
  low?: boolean; // not the main thing of its page
  draw(theme: Theme): EChartsCoreOption;
  onPick?(record: number): void; // a mark that stands for this result was picked
  listing: Listing<Row>;
  folded?: boolean; // the table is closed at first
}

interface Place {
  element: HTMLElement;
  chart?: echarts.ECharts;
  draw: (theme: Theme) => EChartsCoreOption;
  onPick: ((record: number) => void) | undefined;
}

const places = new Map<string, Place>();

function exportSvg(place: Place, title: string): void {
  const { clientWidth: width, clientHeight: height } = place.element;
  const theme = readTheme();
  const still = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  still.setOption({ ...place.draw(theme), animation: false, backgroundColor: theme.surface });
  download(fileName(title, "svg"), "image/svg+xml", still.renderToSVGString());
  still.dispose();
}

function exportPng(place: Place, title: string): void {
  const { chart } = place;
  if (!chart) return;
  const drawn = chart.renderToCanvas({ pixelRatio: 2, backgroundColor: readTheme().surface });
  drawn.toBlob((blob) => {
    if (blob) download(fileName(title, "png"), "image/png", blob);
  }, "image/png");
}

function exportButtons<Row>(place: Place, { key, title, listing }: Plot<Row>): HTMLElement {
  const ways: [string, string, () => void][] = [
    ["PNG", "Save the drawing as a PNG file", () => exportPng(place, title)],
    ["SVG", "Save the drawing as an SVG file", () => exportSvg(place, title)],
    ["CSV", "Save the figures as a CSV file", () => download(fileName(title, "csv"), "text/csv", csvOf(listing))],
  ];
  const buttons = ways.map(([name, help, act]) => {
    const button = attributed(element("button", { type: "button", id: `${key}-${name.toLowerCase()}`, title: help }, name), { "aria-label": help });
    button.addEventListener("click", act);
    return button;
  });
  return attributed(element("div", { className: "choice quiet" }, ...buttons), { role: "group", "aria-label": "Save" });
}

function placeOf<Row>({ key, title, draw, onPick, low }: Plot<Row>): Place {
  const place = places.get(key) ?? { element: element("div", {}), draw, onPick };
  Object.assign(place, { draw, onPick });
  place.element.className = low ? "chart low" : "chart";
  attributed(place.element, { role: "img", "aria-label": `${title}. The figures are in the table below it.` });
  places.set(key, place);
  return place;
}

export function plotCard<Row>(plot: Plot<Row>): HTMLElement {
  const { key, title, subtitle, level = "h2", tools = [], notes = [], after = [], listing, folded } = plot;
  const place = placeOf(plot);
  const heading = element(
    "div",
    { className: "heading" },
    element("div", {}, element(level, { id: `${key}-title` }, title), subtitle ? element("p", { className: "subtitle" }, subtitle) : null),
    element("div", { className: "tools" }, ...tools, exportButtons(place, plot)),
  );
  const table = tableOf(listing);
  const figures = folded ? element("details", { id: `${key}-figures`, className: "figures" }, element("summary", {}, "Figures"), table) : table;
  return attributed(element("section", { className: "card" }, heading, ...notes, place.element, ...after, figures), { "aria-labelledby": `${key}-title` });
}

// Draws what is on the page now, and lets go of what no longer is.
export function drawPlots(): void {
  const theme = readTheme();
  for (const [key, place] of places) {
    if (!place.element.isConnected) {
      place.chart?.dispose();
      places.delete(key);
      continue;
    }
    if (!place.chart) {
      place.chart = echarts.init(place.element);
      place.chart.on("click", ({ data }) => {
        const { record } = (data ?? {}) as { record?: number };
        if (record !== undefined) place.onPick?.(record);
      });
    }
    place.chart.setOption(place.draw(theme), { notMerge: true });
    place.chart.resize();
  }
}

export function resizePlots(): void {
  for (const { chart } of places.values()) chart?.resize();
}
