// precision.ts: what each type of numbers gains in throughput, and what it costs in right answers.

import { fetchPoints, fetchValues, type Filters, type Point } from "../api";
import { drawPareto, frontsOf, type Trade } from "../charts/pareto";
import { panel } from "../controls";
import { element, type Child } from "../dom";
import { activeFilters, filterFields, filterWords, withoutEchoes } from "../filters";
import { many, quantity } from "../format";
import { learnMachines, valueWords } from "../naming";
import {
  benchLine,
  editFilters,
  filtersOf,
  linkTo,
  note,
  type Asked,
  type Content,
  type View,
} from "../page";
import { plotCard } from "../plot";
import type { Column } from "../table";
import { withSource } from "./explorer_first";

const OWN = ["sort"];
const GROUP = ["model", "framework", "backend", "batch", "threads", "server"]; // as many as may be asked for

const placeOf = ({ group, x }: Point): string => JSON.stringify([group, x]);

// Results that say both; what all of them share is left out of their names.
async function fetchTrades(filters: Filters): Promise<Trade[]> {
  const asked = { x: "precision", group: GROUP, aggregate: "max", baseline: "", filters };
  const [rates, shares] = await Promise.all([
    fetchPoints({ ...asked, y: "throughput" }),
    fetchPoints({ ...asked, y: "accuracy" }),
  ]);
  const rateAt = new Map(rates.points.map((point) => [placeOf(point), point]));
  const differs = GROUP.map(
    (_, at) => new Set(shares.points.map(({ group }) => String(group[at] ?? ""))).size > 1,
  );
  return shares.points.flatMap((share) => {
    const rate = rateAt.get(placeOf(share));
    if (!rate) return [];
    const words = GROUP.flatMap((axis, at) => (differs[at] ? [valueWords(axis, share.group[at] ?? null)] : []));
    return [
      {
        model: String(share.group[0] ?? ""),
        precision: String(share.x ?? ""),
        label: words.join(", "),
        accuracy: 100 * share.y,
        throughput: rate.y,
        checked: rate.unchecked === 0,
        id: rate.id,
      },
    ];
  });
}

const columns: Column<Trade>[] = [
  {
    key: "precision",
    title: "precision",
    value: (row) => row.precision,
    show: (row) => linkTo("record", { id: String(row.id) }, row.precision),
  },
  { key: "model", title: "network", value: (row) => row.model },
  { key: "label", title: "configuration", wrap: true, value: (row) => row.label },
  {
    key: "accuracy",
    title: "accuracy (%)",
    number: true,
    value: (row) => row.accuracy,
    show: (row) => row.accuracy.toFixed(2),
  },
  {
    key: "throughput",
    title: "samples/s",
    number: true,
    value: (row) => row.throughput,
    show: (row) => quantity(row.throughput, "samples/s"),
  },
];

function tradeCard(trades: Trade[], filters: Filters, asked: Asked): HTMLElement {
  const names = [...new Set(trades.map(({ precision }) => precision))].sort();
  return plotCard<Trade>({
    key: "precision",
    level: "h1",
    title: "Accuracy against throughput",
    subtitle: `${many(frontsOf(trades).flat().length, "result")} of ${trades.length} that no other beats in both`,
    filters: `Filters: ${filterWords(filters) || "none"}`,
    source: `Source: prony ${asked.status.version}`,
    notes: [activeFilters(filters, (edit) => editFilters(asked, OWN, edit))],
    after: [
      element("p", { className: "hint key" }, "Up and to the right is better. Dashed: no other of the network is as good in both. Hollow: not checked."),
      element(
        "p",
        {},
        linkTo("explorer", { x: "precision", y: "throughput", group: "framework,backend,batch" }, "Throughput by precision"),
      ),
    ],
    legend: names.map((name) => ({ key: name, name })),
    draw: (theme, _size, hidden) =>
      drawPareto(
        trades.filter((trade) => !hidden.has(trade.precision)),
        theme,
      ),
    onPick: (record) => asked.open("record", { id: String(record) }),
    listing: {
      id: "precision-table",
      caption: "Accuracy and throughput by precision",
      columns,
      rows: trades,
      sort: asked.parameters.get("sort") ?? "-throughput",
      onSort: (sort) => asked.change({ sort }),
    },
  });
}

export const precision: View = {
  name: "precision",
  title: "Precision",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const open = [...parameters].length === 0;
    const filters = open ? await withSource({}) : filtersOf(parameters, OWN);
    const [values, trades] = await Promise.all([fetchValues(filters), fetchTrades(filters), learnMachines()]);
    const aside: Child[] = [
      panel(
        ...filterFields({
          id: "filter",
          catalogue,
          values: withoutEchoes(values, catalogue),
          filters,
          change: (edit) => editFilters(asked, OWN, edit),
        }),
      ),
    ];
    const main =
      trades.length > 0
        ? [tradeCard(trades, filters, asked)]
        : [
            note(
              "No result says how accurate it is",
              element("p", {}, "Results of a trained network do, in each precision:"),
              benchLine("digits.safetensors --accuracy digits --precision all", asked.status),
            ),
          ];
    return { title: "Accuracy against throughput", aside, main };
  },
};
