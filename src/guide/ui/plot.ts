// plot.ts: a drawing on a card, with its title, its table and its files (PNG, SVG, CSV). Every drawing of
// the guide is one of these, so none is without a table for who cannot see it.

import * as echarts from "echarts/core";
import { BarChart, BoxplotChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import type { EChartsCoreOption } from "echarts/core";

import type { Size } from "./charts/chart";
import { looksOf, SIGNS } from "./charts/drawing";
import { attributed, element, type Child } from "./dom";
import { saveButtons } from "./download";
import { many } from "./format";
import { savePng, saveSvg, type Poster } from "./poster";
import { saveCsv, tableOf, type Listing } from "./table";
import { readTheme, type Theme } from "./theme";

echarts.use([
  BarChart,
  BoxplotChart,
  CustomChart,
  LineChart,
  ScatterChart,
  GridComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

// `hidden`: the keys of the legend whose series the reader took out.
export type Draw = (theme: Theme, size: Size, hidden: ReadonlySet<string>) => EChartsCoreOption;

// One of several drawings of the same kind, side by side.
export interface Panel {
  key: string;
  title: string;
  draw: Draw;
}

export interface Entry {
  key: string; // what its look hangs on
  name: string;
}

export interface Plot<Row> {
  key: string; // a drawing of this name keeps its place from one showing to the next
  title: string;
  constants?: string; // what holds for all of it, behind the title
  subtitle?: string;
  filters?: string; // in words, for files; the page shows them in its controls
  source?: string; // where the figures come from, for files
  level?: "h1" | "h2" | "h3";
  tools?: Child[]; // beside the title
  notes?: Child[]; // between title and drawing
  after?: Child[]; // between drawing and table
  low?: boolean; // not the main thing of its page
  lines?: number; // it shows so many things below each other, and is as high as they need
  height?: number; // or so many pixels
  legend?: Entry[]; // what the colours mean
  ends?: boolean; // names stand at the ends of lines where there is room: then there is no legend
  draw: Draw;
  panels?: Panel[]; // instead of the one drawing
  onPick?(record: number): void; // a mark that stands for this result was picked
  onStretch?(from: number, to: number): void; // a stretch of x was drawn with the mouse
  listing: Listing<Row>;
  folded?: boolean; // the table is closed at first
}

// What is to be drawn in an element.
interface Order {
  key: string;
  draw(theme: Theme, size: Size): EChartsCoreOption;
  onHide(series: string): void;
  onPick: ((record: number) => void) | undefined;
  onStretch: ((from: number, to: number) => void) | undefined;
}

interface Place extends Order {
  element: HTMLElement;
  dragged?: boolean; // a stretch was drawn just now
  chart?: echarts.ECharts;
}

// A card may be made and never shown, when the reader was quicker than the server. So an order only
// waits in its element, and reaches the drawing of its name when the element is found on the page.
const orders = new WeakMap<Element, Order>();
const places = new Map<string, Place>(); // on the page, by key

// Series that the reader took out, by drawing; they stay out while the page is open.
const hiddenIn = new Map<string, Set<string>>();

function hiddenOf(key: string): Set<string> {
  const hidden = hiddenIn.get(key) ?? new Set<string>();
  hiddenIn.set(key, hidden);
  return hidden;
}

const PHONE = "(max-width: 40rem)"; // where a table is long: it is closed at first
const HEIGHT = 400; // of a drawing in a file, in pixels, where the page does not show it

function posterOf<Row>(plot: Plot<Row>): Poster {
  const {
    key,
    title,
    constants,
    subtitle,
    filters,
    source = "Source: prony guide",
    legend = [],
    ends,
    panels,
  } = plot;
  const place = places.get(panels?.[0]?.key ?? key);
  const hidden = hiddenOf(key);
  return {
    title: constants ? `${title}: ${constants}` : title,
    lines: [filters, subtitle].filter((line): line is string => Boolean(line)),
    legend: ends && !panels ? [] : legend.filter((entry) => !hidden.has(entry.key)),
    drawings: (panels ?? [{ title: "", draw: plot.draw }]).map(({ title: name, draw }) => ({
      title: name,
      draw: (theme, size) => draw(theme, size, hidden),
    })),
    height: place?.element.clientHeight ?? HEIGHT,
    width: panels ? 0 : (place?.element.clientWidth ?? 0),
    source,
  };
}

function exportButtons<Row>(plot: Plot<Row>): HTMLElement {
  const { key, title, listing } = plot;
  return saveButtons(key, [
    ["PNG", "Save the drawing as a PNG file", () => savePng(posterOf(plot))],
    ["SVG", "Save the drawing as an SVG file", () => saveSvg(posterOf(plot))],
    ["CSV", "Save the figures as a CSV file", () => saveCsv(title, listing)],
  ]);
}

function slotOf<Row>(plot: Plot<Row>, title: string, { key, draw }: Panel): HTMLElement {
  const { onPick, onStretch, low, lines = 0, height, ends, panels } = plot;
  const slot = element("div", { className: low ? "chart low" : panels ? "chart panel" : "chart" });
  const needed = `${5 + 2 * Math.max(lines, 3)}rem`;
  if (lines > 0) slot.style[ends ? "minHeight" : "height"] = needed;
  if (height) slot.style.height = `${height}px`;
  const hidden = hiddenOf(plot.key);
  orders.set(slot, {
    key,
    draw: (theme, size) => draw(theme, size, hidden),
    onHide: (series) => toggleSeries(plot, series),
    onPick,
    onStretch,
  });
  return attributed(slot, { role: "img", "aria-label": `${title}. The figures are in the table below it.` });
}

function drawingOf<Row>(plot: Plot<Row>): HTMLElement {
  const { key, title, draw, panels } = plot;
  if (!panels) return slotOf(plot, title, { key, title, draw });
  const figures = panels.map((panel) =>
    element(
      "figure",
      { className: "panel-figure" },
      element("figcaption", {}, panel.title),
      slotOf(plot, `${title}, ${panel.title}`, panel),
    ),
  );
  return element("div", { className: "panels", id: `${key}-panels` }, ...figures);
}

// Takes a series out or back in. The last one that is left brings all of them back.
function toggleSeries<Row>({ key, legend = [] }: Plot<Row>, series: string): void {
  const hidden = hiddenOf(key);
  if (!hidden.delete(series)) hidden.add(series);
  if (legend.every((entry) => hidden.has(entry.key))) hidden.clear();
  const list = document.getElementById(`${key}-legend`);
  if (list) markHidden(list, legend, hidden);
  resizePlots();
}

function markHidden(list: HTMLElement, legend: Entry[], hidden: ReadonlySet<string>): void {
  list.classList.toggle("in-use", legend.some((entry) => hidden.has(entry.key)));
  list.querySelectorAll("button").forEach((button, index) => {
    button.setAttribute("aria-pressed", String(!hidden.has(legend[index]?.key ?? "")));
  });
}

// What the colours mean: a list that wraps and has no pages. Each entry hides its series, or shows it again.
function legendOf<Row>(plot: Plot<Row>): Child {
  const { key, legend = [], ends, panels } = plot;
  if (legend.length < 2) return null;
  const looks = looksOf(
    legend.map((entry) => entry.key),
    readTheme(),
  );
  const items = legend.map(({ key: series, name }, index) => {
    const sign = element(
      "span",
      { className: "swatch", ariaHidden: "true" },
      SIGNS[looks[index]?.symbol ?? ""] ?? "●",
    );
    sign.style.color = `var(${looks[index]?.variable ?? "--text"})`;
    const button = element("button", { type: "button", title: `Hide or show ${name}` }, sign, name);
    button.addEventListener("click", () => toggleSeries(plot, series));
    return element("li", {}, button);
  });
  const list = element(
    "ul",
    { className: ends && !panels ? "legend narrow" : "legend", id: `${key}-legend` },
    ...items,
  );
  markHidden(list, legend, hiddenOf(key));
  return attributed(list, { "aria-label": "Series" });
}

export function plotCard<Row>(plot: Plot<Row>): HTMLElement {
  const { key, title, constants, subtitle, level = "h2", tools = [], notes = [], after = [] } = plot;
  const heading = element(
    "div",
    { className: "heading" },
    element(
      "div",
      {},
      element(
        level,
        { id: `${key}-title` },
        constants ? `${title}: ` : title,
        constants ? element("span", { className: "constants" }, constants) : null,
      ),
      subtitle ? element("p", { className: "subtitle" }, subtitle) : null,
    ),
    element("div", { className: "tools" }, ...tools, exportButtons(plot)),
  );
  const table = tableOf(plot.listing);
  const figures =
    plot.folded || matchMedia(PHONE).matches
      ? element(
          "details",
          { id: `${key}-figures`, className: "figures" },
          element("summary", {}, `Figures: ${many(plot.listing.rows.length, "row")}`),
          table,
        )
      : table;
  return attributed(
    element(
      "section",
      { className: "card plot" },
      heading,
      ...notes,
      legendOf(plot),
      drawingOf(plot),
      ...after,
      figures,
    ),
    { "aria-labelledby": `${key}-title` },
  );
}

// Gives an order that came onto the page to the drawing of its name, or to a new one.
function placeOrder(slot: HTMLElement, order: Order): void {
  const place = places.get(order.key);
  if (place) {
    place.element.className = slot.className;
    place.element.style.cssText = slot.style.cssText;
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
    const { record, series } = (data ?? {}) as { record?: number; series?: string };
    if (series !== undefined) place.onHide(series);
    if (record !== undefined && !place.dragged) place.onPick?.(record);
  });
  followDrag(place, chart);
  return chart;
}

const DRAG = 5; // pixels: a shorter one is a click

// A stretch that is drawn with the mouse from one place to another. Fingers scroll the page.
function followDrag(place: Place, chart: echarts.ECharts): void {
  const { element: slot } = place;
  const band = element("div", { className: "chart-band", hidden: true });
  const xOf = (event: PointerEvent) => event.clientX - slot.getBoundingClientRect().left;
  let begun: number | null = null;
  slot.append(band);
  slot.addEventListener("pointerdown", (event) => {
    if (place.onStretch && event.pointerType === "mouse" && event.button === 0) begun = xOf(event);
  });
  slot.addEventListener("pointermove", (event) => {
    if (begun === null) return;
    const [left, right] = [begun, xOf(event)].sort((a, b) => a - b) as [number, number];
    band.hidden = right - left < DRAG;
    band.style.left = `${left}px`;
    band.style.width = `${right - left}px`;
  });
  const end = (event: PointerEvent) => {
    if (begun === null) return;
    const ends = [begun, xOf(event)].sort((a, b) => a - b) as [number, number];
    begun = null;
    band.hidden = true;
    if (ends[1] - ends[0] < DRAG) return;
    place.dragged = true; // the click that ends it picks nothing
    setTimeout(() => (place.dragged = false));
    const [from, to] = ends.map((x) => Number(chart.convertFromPixel({ xAxisIndex: 0 }, x)));
    if (from !== undefined && to !== undefined) place.onStretch?.(from, to);
  };
  slot.addEventListener("pointerup", end);
  slot.addEventListener("pointerleave", end);
}

function drawPlace(place: Place, theme: Theme): void {
  const { clientWidth: width, clientHeight: height } = place.element;
  place.chart ??= startChart(place);
  place.chart.resize();
  place.chart.setOption(place.draw(theme, { width, height }), { notMerge: true });
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
    if (place.element.isConnected) {
      drawPlace(place, theme);
      continue;
    }
    place.chart?.dispose();
    places.delete(key);
  }
}

// How wide names may be depends on the room there is, so drawings are made anew.
export function resizePlots(): void {
  const theme = readTheme();
  for (const place of places.values()) if (place.chart) drawPlace(place, theme);
}
