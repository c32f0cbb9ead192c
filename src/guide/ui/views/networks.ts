// networks.ts: the networks of the store; one of them: its layers drawn, its memory, and every op of the
// program it becomes, as explain shows them.

import {
  fetchNetwork,
  fetchNetworks,
  type Explained,
  type Network,
  type NetworkEntry,
  type NetworkPage,
  type Op,
  type Status,
  type Tensor,
} from "../api";
import { field, select } from "../controls";
import { attributed, element, type Child } from "../dom";
import { label, many, quantity, shapeText, shellWord } from "../format";
import { download, fileName, saveButtons } from "../download";
import { drawingFile, drawNetwork } from "../network_drawing";
import { card, commandLine, linkTo, note, remark, type Asked, type Content, type View } from "../page";
import { facts } from "../record";
import { saveCsv, tableOf, type Column, type Listing } from "../table";

const listed: Column<NetworkEntry>[] = [
  {
    key: "model",
    title: "network",
    value: (row) => row.model,
    show: (row) => linkTo("networks", { model: row.model }, row.model),
  },
  {
    key: "parameters",
    title: "parameters",
    number: true,
    value: (row) => row.parameters,
    show: (row) => row.parameters?.toLocaleString("en") ?? "–",
  },
  {
    key: "layers",
    title: "layers",
    number: true,
    value: (row) => row.layers,
    show: (row) => (row.layers === null ? "–" : String(row.layers)),
  },
  {
    key: "records",
    title: "results",
    number: true,
    value: (row) => row.records,
    show: (row) =>
      row.records > 0
        ? linkTo(
            "explorer",
            { y: "throughput", x: "batch", group: "framework,backend", log: "xy", model: row.model },
            row.records.toLocaleString("en"),
          )
        : "0",
  },
  {
    key: "explained",
    title: "explained",
    wrap: true,
    value: (row) => row.explained.length,
    show: (row) => (row.explained.length > 0 ? [...new Set(row.explained.map(explainedText))].join("; ") : "not yet"),
  },
];

const ROLES: Record<string, string> = {
  param: "parameters",
  grad: "gradients",
  activation: "activations",
  statistic: "statistics",
};

function explainedText({ phase, batch, backend }: Explained): string {
  return `${phase}, batch ${batch}${backend ? `, ${backend}` : ""}`;
}

function explainCommand(model: string, { store }: Status): HTMLElement {
  return commandLine(
    `prony explain ${shellWord(model)} --phase training --json | prony store add - --store ${shellWord(store)}`,
  );
}

function tensorText(tensors: Tensor[], index: number | null): string {
  return index === null ? "–" : (tensors[index]?.name ?? "?");
}

function opText({ tensors }: Network, op: Op): string {
  const out = op.outputs.map((index) => tensorText(tensors, index)).join(", ");
  return `${out ? `${out} = ` : ""}${op.op}(${op.inputs.map((index) => tensorText(tensors, index)).join(", ")})`;
}

function opColumns(network: Network): Column<Op>[] {
  const kernels = network.ops.some(({ kernel }) => kernel);
  const shape = (op: Op) =>
    shapeText(network.tensors[op.outputs.find((index) => index !== null) ?? -1]?.shape ?? []);
  return [
    { key: "part", title: "part", value: (op) => op.part },
    { key: "shape", title: "shape", number: true, value: shape },
    {
      key: "flop",
      title: "FLOP",
      unit: "FLOP",
      number: true,
      value: (op) => op.flop,
      show: (op) => quantity(op.flop, "FLOP"),
    },
    {
      key: "bytes",
      title: "bytes",
      unit: "B",
      number: true,
      value: (op) => op.bytes,
      show: (op) => quantity(op.bytes, "B"),
    },
    {
      key: "intensity",
      title: "FLOP/B",
      number: true,
      value: (op) => op.intensity,
      show: (op) => (op.intensity === null ? "–" : op.intensity.toFixed(2)),
    },
    {
      key: "op",
      title: "op",
      value: (op) => opText(network, op),
      show: (op) =>
        element(
          "span",
          { className: "mono" },
          opText(network, op),
          op.made_by ? element("span", { className: "faint" }, `  [${op.made_by}]`) : null,
        ),
    },
    ...(kernels
      ? [
          {
            key: "kernel",
            title: "kernel",
            value: (op: Op) => op.kernel ?? null,
            show: (op: Op) => element("span", { className: "mono" }, op.kernel ?? "–"),
          },
        ]
      : []),
  ];
}

function summary(
  { model, network, explained, id }: NetworkPage,
  entry: NetworkEntry,
  asked: Asked,
): HTMLElement {
  const parts = Object.entries(network.parts).filter(([, part]) => part.ops > 0);
  const memory = Object.entries(network.memory).filter(([, bytes]) => bytes > 0);
  const choose = (chosen: string) => {
    const one = explained.find((each) => String(each.id) === chosen);
    if (one) asked.change({ phase: one.phase, batch: String(one.batch), backend: one.backend });
  };
  return card(
    element(
      "div",
      { className: "heading" },
      element(
        "div",
        {},
        element("h1", {}, model),
        element(
          "p",
          { className: "subtitle" },
          `${network.parameters.toLocaleString("en")} parameters · program ${network.program}`,
        ),
      ),
      entry.records > 0
        ? linkTo(
            "explorer",
            { y: "throughput", x: "batch", group: "framework,backend", log: "xy", model },
            many(entry.records, "result"),
          )
        : "no results yet",
    ),
    explained.length > 1
      ? field(
          "explained",
          "Explained as",
          select(
            "explained",
            explained.map((each): [string, string] => [String(each.id), explainedText(each)]),
            String(id),
            choose,
          ),
        )
      : element("p", { className: "hint" }, explainedText(network as unknown as Explained)),
    element(
      "div",
      { className: "fact-groups" },
      element(
        "div",
        { className: "fact-group" },
        element("h2", {}, "Work of one iteration"),
        facts(
          parts.map(([part, work]) => [
            part,
            `${many(work.ops, "op")}, ${quantity(work.flop, "FLOP")}, ${quantity(work.bytes, "B")}${work.launches ? `, ${many(work.launches, "launch", "launches")}` : ""}`,
          ]),
        ),
      ),
      element(
        "div",
        { className: "fact-group" },
        element("h2", {}, "Memory"),
        facts([
          ...memory.map(([role, bytes]): [string, Child] => [ROLES[role] ?? label(role), quantity(bytes, "B")]),
          ["activations at once", quantity(network.activation_peak, "B")],
          ["without sharing", quantity(network.activation_unshared, "B")],
        ]),
      ),
    ),
  );
}

async function onePage(model: string, entry: NetworkEntry | undefined, asked: Asked): Promise<Child[]> {
  const text = (key: string) => asked.parameters.get(key) ?? "";
  if (!entry || entry.explained.length === 0)
    return [
      note(
        `${model} has not been explained`,
        element("p", {}, "What it is made of is not in this store. File that beside its results:"),
        explainCommand(model, asked.status),
      ),
    ];
  const page = await fetchNetwork(model, text("phase"), text("batch"), text("backend"));
  return [
    summary(page, entry, asked),
    element("div", { className: "network-pair" }, layersCard(page.network), opsCard(page.network, asked)),
  ];
}

function headed(title: string, tools: HTMLElement): HTMLElement {
  return element("div", { className: "heading" }, element("h2", {}, title), tools);
}

function layersCard(network: Network): HTMLElement {
  const image = drawNetwork(network);
  const save = () => download(fileName(network.model, "svg"), "image/svg+xml", drawingFile(image));
  const place = element("div", { className: "scroll drawing", id: "drawing", tabIndex: 0 }, image);
  attributed(place, { role: "region", "aria-label": "Drawing of the network" });
  return card(
    headed("Layers", saveButtons("layers", [["SVG", "Save the drawing as an SVG file", save]])),
    place,
  );
}

function opsCard(network: Network, asked: Asked): HTMLElement {
  const listing: Listing<Op> = {
    id: "ops",
    caption: `Every op of ${network.model}`,
    columns: opColumns(network),
    rows: network.ops,
    sort: asked.parameters.get("sort") ?? "",
    onSort: (sort) => asked.change({ sort }),
  };
  const save = () => saveCsv(`${network.model} ops`, listing);
  const tools = saveButtons("ops", [["CSV", "Save the ops as a CSV file", save]]);
  return card(headed("The program, op by op", tools), tableOf(listing));
}

export const networks: View = {
  name: "networks",
  title: "Networks",
  async show(asked: Asked): Promise<Content> {
    const entries = await fetchNetworks();
    const model = asked.parameters.get("model");
    if (model)
      return {
        title: model,
        main: await onePage(
          model,
          entries.find((entry) => entry.model === model),
          asked,
        ),
      };
    const all = card(
      element("h1", {}, "Networks"),
      tableOf({
        id: "networks",
        caption: "The networks of this store",
        columns: listed,
        rows: entries,
        sort: asked.parameters.get("sort") ?? "",
        onSort: (sort) => asked.change({ sort }),
      }),
    );
    const silent = entries.find(({ explained }) => explained.length === 0);
    return {
      title: "Networks",
      main: [
        all,
        silent
          ? remark(
              "What is one made of?",
              element(
                "p",
                {},
                "Of a network that was explained, its page shows the layers, the work and the memory:",
              ),
              explainCommand(silent.model, asked.status),
            )
          : null,
      ],
    };
  },
};
