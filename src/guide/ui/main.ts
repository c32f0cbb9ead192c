// main.ts: puts the page together. The state comes from the address; each change makes a new address,
// asks the server for what it needs, and shows form, chart and table from the answers.

import * as echarts from "echarts/core";
import { BarChart, CustomChart, LineChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

import { fetchCatalogue, fetchPoints, fetchStatus, fetchValues, type Catalogue, type Status, type Values } from "./api";
import { chartFor, charts } from "./charts/index";
import type { Sheet, Theme } from "./charts/chart";
import { showControls } from "./controls";
import { element, find } from "./dom";
import { label, list, scaleFor, sentence } from "./format";
import { fromSearch, toSearch, type State } from "./state";
import { showTable } from "./table";

echarts.use([BarChart, CustomChart, LineChart, GridComponent, LegendComponent, TooltipComponent, CanvasRenderer]);

const dark = matchMedia("(prefers-color-scheme: dark)");
let drawing: echarts.ECharts | undefined;
let redraw = () => {};

function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (property: string) => style.getPropertyValue(property).trim();
  return {
    text: read("--text"),
    faint: read("--faint"),
    line: read("--line"),
    surface: read("--surface"),
    font: getComputedStyle(document.body).fontFamily,
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => read(`--series-${number}`)),
  };
}

function showMessage(...content: (Node | string)[]): void {
  const message = find("message");
  message.replaceChildren(...content);
  message.hidden = content.length === 0;
  find("view").hidden = content.length > 0;
  find("figures").hidden = content.length > 0;
}

function showStore(status: Status): void {
  const results = `${status.records.toLocaleString("en")} ${status.records === 1 ? "result" : "results"}`;
  const newest = status.newest ? ` · newest ${new Date(status.newest.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}` : "";
  const store = find("store");
  store.textContent = results + newest;
  store.title = status.store;
}

// A computed axis that says no more than the one it is computed from (the effective batch of one
// worker) would only be in the way.
function withoutEchoes(values: Values, catalogue: Catalogue): Values {
  const given = new Set(catalogue.axes.filter((axis) => !axis.derived).map(({ key }) => JSON.stringify(values[key])));
  const echoes = catalogue.axes.filter((axis) => axis.derived && given.has(JSON.stringify(values[axis.key])));
  return Object.fromEntries(Object.entries(values).filter(([axis]) => !echoes.some(({ key }) => key === axis)));
}

// Points that stand for unlike configurations, and what could tell these apart.
function showWarning(state: State, values: Values, sheet: Sheet): void {
  const mixed = sheet.points.filter((point) => point.configurations > 1).length;
  const warning = find("warning");
  warning.hidden = mixed === 0;
  if (mixed === 0) return;
  const apart = Object.keys(values).filter((axis) => {
    const counts = values[axis] ?? [];
    const left = state.filters[axis]?.length ?? counts.length;
    return counts.length > 1 && left > 1 && axis !== state.x && !state.group.includes(axis);
  });
  const points = mixed === 1 ? "One point mixes" : `${mixed} points mix`;
  const remedy = apart.length > 0 ? ` They differ in ${list(apart.map(label))}: filter or group by it.` : "";
  warning.textContent = `${points} unlike configurations.${remedy}`;
}

function showChart(sheet: Sheet, state: State, change: (changed: Partial<State>) => void): void {
  const chart = chartFor(state.chart, sheet);
  find("chart-choice").replaceChildren(
    ...charts.map(({ name, title }) => {
      const button = element("button", { type: "button", id: `chart-${name}` }, title);
      button.setAttribute("aria-pressed", String(name === chart.name));
      button.addEventListener("click", () => change({ chart: name }));
      return button;
    }),
  );
  const place = find("chart");
  place.setAttribute("aria-label", `${find("title").textContent}. The figures are in the table below.`);
  drawing ??= echarts.init(place);
  redraw = () => drawing?.setOption(chart.draw({ ...sheet, theme: readTheme() }), { notMerge: true });
  redraw();
  drawing.resize();
}

function showTitle(state: State): void {
  const by = state.group.length > 0 ? `, per ${list(state.group.map(label))}` : "";
  const title = sentence(`${label(state.y)} by ${label(state.x)}${by}`);
  const filters = Object.entries(state.filters).map(([axis, values]) => `${label(axis)} ${values.map((value) => value || "not given").join(" or ")}`);
  find("title").textContent = title;
  find("subtitle").textContent = filters.join(" · ") || "all results";
  document.title = `${title} – prony guide`;
}

// For a shell: quoted only where that is needed.
function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

function showEmpty(status: Status): void {
  const store = shellWord(status.store);
  showMessage(
    element("strong", {}, "No results yet."),
    " Measure a network on this machine and reload this page:",
    element("code", { className: "command" }, `prony bench small --batch 1,8,64 --store ${store}`),
    "or file records measured elsewhere:",
    element("code", { className: "command" }, `prony store add results.jsonl --store ${store}`),
  );
  find("controls").hidden = true;
}

class Page {
  private turn = 0; // the newest request wins, whichever answer comes first

  constructor(
    private readonly catalogue: Catalogue,
    private readonly status: Status,
    private state: State,
  ) {}

  readonly change = (changed: Partial<State>): void => {
    this.state = { ...this.state, ...changed };
    history.pushState(null, "", toSearch(this.state));
    void this.show();
  };

  restore(): void {
    this.state = fromSearch(location.search, this.catalogue, this.status);
    void this.show();
  }

  async show(): Promise<void> {
    const turn = ++this.turn;
    const { catalogue, state } = this;
    try {
      const [all, points] = await Promise.all([fetchValues(state.filters), fetchPoints(state)]);
      if (turn !== this.turn) return;
      const values = withoutEchoes(all, catalogue);
      showControls(find("form"), catalogue, values, state, this.change);
      const x = catalogue.axes.find(({ key }) => key === state.x);
      const y = catalogue.metrics.find(({ key }) => key === state.y);
      if (!x || !y || points.length === 0) {
        showMessage(`No result under these filters has a figure for ${label(state.y)}.`);
        return;
      }
      const scale = scaleFor(y.unit, points.map((point) => point.y));
      const sheet: Sheet = { ...state, points, x, y, scale, theme: readTheme() };
      showMessage();
      showTitle(state);
      showWarning(state, values, sheet);
      showTable(find("table"), sheet, state.group);
      showChart(sheet, state, this.change);
    } catch (error) {
      if (turn === this.turn) showMessage(error instanceof Error ? error.message : String(error));
    }
  }
}

async function start(): Promise<void> {
  if (matchMedia("(max-width: 52rem)").matches) find<HTMLDetailsElement>("controls").open = false;
  try {
    const [catalogue, status] = await Promise.all([fetchCatalogue(), fetchStatus()]);
    showStore(status);
    if (status.records === 0) {
      showEmpty(status);
      return;
    }
    const state = fromSearch(location.search, catalogue, status);
    history.replaceState(null, "", toSearch(state));
    const page = new Page(catalogue, status, state);
    addEventListener("popstate", () => page.restore());
    addEventListener("resize", () => drawing?.resize());
    dark.addEventListener("change", () => redraw());
    await page.show();
  } catch (error) {
    showMessage(`The guide does not answer: ${error instanceof Error ? error.message : String(error)}`);
  }
}

void start();
