// networks.ts: the networks of the store; one of them: its memory and, for each program that an iteration
// of it runs, its layers drawn and every op, as explain shows them.

import {
  fetchNetwork,
  fetchNetworks,
  type Explained,
  type NetworkEntry,
  type NetworkPage,
  type Op,
  type Program,
  type Status,
  type Tensor,
} from "../api";
import { field, select } from "../controls";
import { attributed, element, type Child } from "../dom";
import { many, quantity, shapeText, shellWord, words } from "../format";
import { download, fileName, saveButtons } from "../download";
import { drawingFile, drawProgram } from "../network_drawing";
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

// Results of networks that prony opened count their parameters; others are names of other programs.
function isOpened(entry: NetworkEntry | undefined): boolean {
  return (entry?.parameters ?? null) !== null;
}

function tensorText(tensors: Tensor[], index: number | null): string {
  return index === null ? "–" : (tensors[index]?.name ?? "?");
}

function opText({ tensors }: Program, op: Op): string {
  const out = op.outputs.map((index) => tensorText(tensors, index)).join(", ");
  return `${out ? `${out} = ` : ""}${op.op}(${op.inputs.map((index) => tensorText(tensors, index)).join(", ")})`;
}

function opColumns(program: Program): Column<Op>[] {
  const kernels = program.ops.some(({ kernel }) => kernel);
  const shape = (op: Op) =>
    shapeText(program.tensors[op.outputs.find((index) => index !== null) ?? -1]?.shape ?? []);
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
      value: (op) => opText(program, op),
      show: (op) =>
        element(
          "span",
          { className: "mono" },
          opText(program, op),
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

// A row for each part; of several programs, each says which it is of.
function workFacts(programs: Program[]): [string, Child][] {
  return programs.flatMap(({ name, parts }) =>
    Object.entries(parts)
      .filter(([, work]) => work.ops > 0)
      .map(([part, work]): [string, Child] => [
        programs.length > 1 ? `${name}, ${part}` : part,
        `${many(work.ops, "op")}, ${quantity(work.flop, "FLOP")}, ${quantity(work.bytes, "B")}${work.launches ? `, ${many(work.launches, "launch", "launches")}` : ""}`,
      ]),
  );
}

// Programs share what they keep; of the rest, what the largest of them takes.
function memoryFacts(programs: Program[]): [string, Child][] {
  const most = (bytes: (program: Program) => number) => Math.max(0, ...programs.map(bytes));
  const roles = Object.keys(programs[0]?.memory ?? {});
  return [
    ...roles.map((role): [string, number] => [ROLES[role] ?? words(role), most(({ memory }) => memory[role] ?? 0)]),
    ["activations at once", most(({ activation_peak }) => activation_peak)] as [string, number],
    ["without sharing", most(({ activation_unshared }) => activation_unshared)] as [string, number],
  ]
    .filter(([, bytes]) => bytes > 0)
    .map(([name, bytes]): [string, Child] => [name, quantity(bytes, "B")]);
}

function summary(
  { model, network, explained, id }: NetworkPage,
  entry: NetworkEntry,
  asked: Asked,
): HTMLElement {
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
        facts(workFacts(network.programs)),
      ),
      element(
        "div",
        { className: "fact-group" },
        element("h2", {}, "Memory"),
        facts(memoryFacts(network.programs)),
      ),
    ),
  );
}

const BESIDE = 320; // pixels: a wider drawing stands above its table

async function onePage(model: string, entry: NetworkEntry | undefined, asked: Asked): Promise<Child[]> {
  const text = (key: string) => asked.parameters.get(key) ?? "";
  if (!entry || entry.explained.length === 0)
    return [
      note(
        `${model} has not been explained`,
        ...(isOpened(entry)
          ? [
              element("p", {}, "This store does not have its layers. Add them beside its results:"),
              explainCommand(model, asked.status),
            ]
          : [
              element(
                "p",
                {},
                entry
                  ? "Its results come from another program, so prony cannot explain it."
                  : "This store has no result of it.",
              ),
            ]),
      ),
    ];
  const usual = entry.explained.some(({ phase }) => phase === "training") ? "training" : ""; // it shows more
  const page = await fetchNetwork(model, text("phase") || usual, text("batch"), text("backend"));
  return [
    summary(page, entry, asked),
    ...page.network.programs.map((program, index) => {
      const place = index > 0 ? `-${index + 1}` : "";
      const title = page.network.programs.length > 1 ? `${program.name}: ` : "";
      const image = drawProgram(program, place);
      const wide = Number(image.getAttribute("width")) > BESIDE;
      return element(
        "div",
        { className: wide ? "network-pair wide" : "network-pair" },
        layersCard(program, image, title, place),
        opsCard(program, title, place, asked),
      );
    }),
  ];
}

function headed(title: string, tools: HTMLElement): HTMLElement {
  return element("div", { className: "heading" }, element("h2", {}, title), tools);
}

// `place` keeps the parts of the page that belong to one program apart: "", "-2" …
function layersCard(program: Program, image: SVGElement, title: string, place: string): HTMLElement {
  const save = () => download(fileName(program.name, "svg"), "image/svg+xml", drawingFile(image));
  const region = element("div", { className: "scroll drawing", id: `drawing${place}`, tabIndex: 0 }, image);
  attributed(region, { role: "region", "aria-label": `Drawing of ${program.name}` });
  return card(
    headed(`${title}Layers`, saveButtons(`layers${place}`, [["SVG", "Save the drawing as an SVG file", save]])),
    region,
  );
}

function opsCard(program: Program, title: string, place: string, asked: Asked): HTMLElement {
  const listing: Listing<Op> = {
    id: `ops${place}`,
    caption: `Every op of ${program.name}`,
    columns: opColumns(program),
    rows: program.ops,
    sort: asked.parameters.get("sort") ?? "",
    onSort: (sort) => asked.change({ sort }),
  };
  const save = () => saveCsv(`${program.name} ops`, listing);
  const tools = saveButtons(`ops${place}`, [["CSV", "Save the ops as a CSV file", save]]);
  return card(headed(`${title}The program, op by op`, tools), tableOf(listing));
}

export const networks: View = {
  name: "networks",
  title: "Networks",
  early: true,
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
    if (entries.length === 0)
      return {
        title: "Networks",
        main: [
          note(
            "No networks yet",
            element("p", {}, "They appear with their results, or when they are explained into the store:"),
            explainCommand("lenet", asked.status),
          ),
        ],
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
    const silent = entries.find((entry) => entry.explained.length === 0 && isOpened(entry));
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
                "A page of an explained network shows its layers, work and memory:",
              ),
              explainCommand(silent.model, asked.status),
            )
          : null,
      ],
    };
  },
};
