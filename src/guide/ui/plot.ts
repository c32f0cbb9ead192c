// plot.ts: a drawing on a card, with its title, its table and its files (PNG, SVG, CSV). Every drawing of
// the guide is one of these, so none is without a table for who cannot see it.

import * as echarts from "echarts/core";
import { BarChart, BoxplotChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import type { EChartsCoreOption } from "echarts/core";

import { attributed, element, type Child } from "./dom";
import { download, fileName, saveButtons } from "./download";
import { saveCsv, tableOf, type Listing } from "./table";
import { readTheme, type Theme } from "./theme";

echarts.use([
  BarChart,
  BoxplotChart,
  CustomChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

export interface Plot<Row> {
  key: string; // a drawing of this name keeps its place from one showing to the next
  title: string;
  subtitle?: string;
  level?: "h1" | "h2" | "h3";
  tools?: Child[]; // beside the title
  notes?: Child[]; // between title and drawing
  after?: Child[]; // between drawing and table
  low?: boolean; // not the main thing of its page
  lines?: number; // it shows so many things below each other, and is as high as they need
  draw(theme: Theme): EChartsCoreOption;
  onPick?(record: number): void; // a mark that stands for this result was picked
  listing: Listing<Row>;
  folded?: boolean; // the table is closed at first
}

// What is to be drawn in an element.
interface Order {
  key: string;
  draw: (theme: Theme) => EChartsCoreOption;
  onPick: ((record: number) => void) | undefined;
}

interface Place extends Order {
  element: HTMLElement;
  chart?: echarts.ECharts;
}

// A card may be made and never shown, when the reader was quicker than the server. So an order only
// waits in its element, and reaches the drawing of its name when the element is found on the page.
const orders = new WeakMap<Element, Order>();
const places = new Map<string, Place>(); // on the page, by key

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

function exportButtons<Row>({ key, title, listing }: Plot<Row>): HTMLElement {
  const place = (act: (found: Place, named: string) => void) => {
    const found = places.get(key);
    if (found) act(found, title);
  };
  return saveButtons(key, [
    ["PNG", "Save the drawing as a PNG file", () => place(exportPng)],
    ["SVG", "Save the drawing as an SVG file", () => place(exportSvg)],
    ["CSV", "Save the figures as a CSV file", () => saveCsv(title, listing)],
  ]);
}

function slotOf<Row>({ key, title, draw, onPick, low, lines }: Plot<Row>): HTMLElement {
  const slot = element("div", { className: low ? "chart low" : "chart" });
  if (lines !== undefined) slot.style.height = `${5 + 2 * Math.max(lines, 3)}rem`;
  orders.set(slot, { key, draw, onPick });
  return attributed(slot, { role: "img", "aria-label": `${title}. The figures are in the table below it.` });
}

export function plotCard<Row>(plot: Plot<Row>): HTMLElement {
  const { key, title, subtitle, level = "h2", tools = [], notes = [], after = [], listing, folded } = plot;
  const heading = element(
    "div",
    { className: "heading" },
    element(
      "div",
      {},
      element(level, { id: `${key}-title` }, title),
      subtitle ? element("p", { className: "subtitle" }, subtitle) : null,
    ),
    element("div", { className: "tools" }, ...tools, exportButtons(plot)),
  );
  const table = tableOf(listing);
  const figures = folded
    ? element(
        "details",
        { id: `${key}-figures`, className: "figures" },
        element("summary", {}, "Figures"),
        table,
      )
    : table;
  return attributed(
    element("section", { className: "card" }, heading, ...notes, slotOf(plot), ...after, figures),
    { "aria-labelledby": `${key}-title` },
  );
}

// Gives an order that came onto the page to the drawing of its name, or to a new one.
function placeOrder(slot: HTMLElement, order: Order): void {
  const place = places.get(order.key);
  if (place) {
    place.element.className = slot.className;
    place.element.style.height = slot.style.height;
    attributed(place.element, { "aria-label": slot.getAttribute("aria-label") ?? "" });
    slot.replaceWith(place.element);
    Object.assign(place, order);
  } else {
    places.set(order.key, { element: slot, ...order });
  }
}

function startChart(place: Place): echarts.ECharts {
  const chart = echarts.init(place.element);
  chart.on("click", ({ data }) => {
    const { record } = (data ?? {}) as { record?: number };
    if (record !== undefined) place.onPick?.(record);
  });
  return chart;
}

// Draws what is on the page now, and lets go of what no longer is.
export function drawPlots(): void {
  for (const slot of document.querySelectorAll<HTMLElement>(".chart")) {
    const order = orders.get(slot);
    orders.delete(slot);
    if (order) placeOrder(slot, order);
  }
  const theme = readTheme();
  for (const [key, place] of places) {
    if (!place.element.isConnected) {
      place.chart?.dispose();
      places.delete(key);
      continue;
    }
    place.chart ??= startChart(place);
    place.chart.setOption(place.draw(theme), { notMerge: true });
    place.chart.resize();
  }
}

export function resizePlots(): void {
  for (const { chart } of places.values()) chart?.resize();
}
