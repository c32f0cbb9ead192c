// overview.ts: the first view: what this machine can do with neural networks, in a few sentences, each
// with a small chart, the way to its figures and the command that measures it again.

import {
  fetchChart,
  fetchLive,
  fetchOverview,
  type Answered,
  type Finding,
  type Live,
  type MachineEntry,
  type Overview,
  type Running,
  type Term,
} from "../api";
import { ELSEWHERE, machineTitle } from "../chooser";
import { commandToCopy, copyButton } from "../copy";
import { attributed, element, type Child } from "../dom";
import { emptyStore } from "../empty";
import { dayOf, many, moment, shellWord } from "../format";
import { cardShapes } from "../frame";
import { HOME, linkTo, type Asked, type Content, type View } from "../page";
import { sentenceParts } from "../sentences";
import { smallChart } from "../small/index";
import { explained, glossary } from "../terms";

const AGAIN_MS = 5000;
const BUSY_MS = 1500; // while something is measured
const CARDS = 6;
const COMING = 3; // cards whose shapes are shown while something is measured

type Drawn = [Finding, Answered | null];

// A chart that another card shows already says nothing new.
function newChart([finding, answered]: Drawn, asked: Asked, seen: Set<string>): HTMLElement | null {
  const chart = answered ? smallChart(finding, answered, asked.catalogue) : null;
  if (!chart || seen.has(chart.outerHTML)) return null;
  seen.add(chart.outerHTML);
  return chart;
}

function cardOf(drawn: Drawn, asked: Asked, terms: Term[], seen: Set<string>): HTMLElement {
  const [finding] = drawn;
  const { name, title, sentence, chart, command } = finding;
  const explore = new URLSearchParams(chart);
  if (explore.has("baseline")) explore.set("show", "speedup");
  else if (finding.kind !== "bars") explore.set("log", "xy");
  const ways: Child[] = [
    chart
      ? attributed(linkTo("explorer", explore, "See the figures"), {
          "aria-label": `See the figures: ${title}`,
        })
      : null,
    command
      ? copyButton(
          "Run again",
          `Run again: copies the command ${command}`,
          () => command,
          { id: `again-${name}`, className: "link" },
          "Command copied",
        )
      : null,
  ];
  return attributed(
    element(
      "section",
      { className: "card finding", id: `finding-${name}` },
      element("h2", { id: `finding-${name}-title` }, title),
      element(
        "p",
        { className: "finding-sentence" },
        ...sentenceParts(sentence, (part) => explained(part, terms, seen)),
      ),
      newChart(drawn, asked, seen),
      element("p", { className: "finding-ways" }, ...ways),
    ),
    { "aria-labelledby": `finding-${name}-title` },
  );
}

function progressOf({ done, total, current, left_s }: Running): HTMLElement {
  const left =
    left_s === null
      ? ""
      : left_s < 90
        ? `, about ${Math.ceil(left_s)} s left`
        : `, about ${Math.round(left_s / 60)} min left`;
  return element(
    "div",
    { className: "card measuring" },
    element(
      "p",
      {},
      element("span", { className: "pulse", ariaHidden: "true" }),
      element("strong", {}, ` Measuring now: ${done} of ${total}`),
      `${left}. ${current}`,
    ),
    attributed(element("progress", { max: total, value: done }), {
      "aria-label": `${done} of ${total} done`,
    }),
  );
}

function headOf(overview: Overview): HTMLElement {
  const { machine, server, source, results, newest } = overview;
  return element(
    "div",
    { className: "overview-head" },
    element("h1", {}, "What this machine can do with neural networks"),
    element(
      "p",
      { className: "overview-machine" },
      element("strong", { title: server ?? "" }, machine || server || "This machine"),
      source === "shipped"
        ? element("span", { className: "badge" }, "measured elsewhere, shipped with prony")
        : null,
      element(
        "span",
        { className: "overview-count", title: newest ? moment(newest) : "" },
        results > 0
          ? `${many(results, "result")}${newest ? `, newest ${dayOf(newest)}` : ""}`
          : "the first results come soon",
      ),
    ),
  );
}

function othersOf(title: string, machines: MachineEntry[]): Child {
  if (machines.length === 0) return null;
  const links = machines.map((one) =>
    linkTo(
      HOME,
      { server: one.server, source: one.source },
      `${machineTitle(one)} · ${many(one.results, "result")} ▸`,
    ),
  );
  return element(
    "p",
    { className: "elsewhere" },
    `${title}: `,
    ...links.flatMap((link, at) => (at > 0 ? [", ", link] : [link])),
  );
}

// Results are there, and none of them carries a sentence yet.
function noSentence({ lacking, command }: Overview, asked: Asked): HTMLElement {
  return element(
    "section",
    { className: "card note" },
    element("h2", {}, "Nothing to conclude yet"),
    element("p", {}, lacking ?? ""),
    command ? commandToCopy(`${command} --store ${shellWord(asked.status.store)}`) : null,
  );
}

function mainOf(overview: Overview, drawn: Drawn[], live: Live, terms: Term[], asked: Asked): Child[] {
  const seen = new Set<string>();
  const cards = drawn.slice(0, CARDS).map((one) => cardOf(one, asked, terms, seen));
  const coming = live.running.length > 0 ? cardShapes(Math.max(0, COMING - cards.length)) : [];
  return [
    headOf(overview),
    ...live.running.map(progressOf),
    cards.length + coming.length > 0
      ? element("div", { className: "cards" }, ...cards, ...coming)
      : noSentence(overview, asked),
    element(
      "div",
      { className: "elsewhere-list" },
      othersOf(
        "Your other machines",
        overview.others.filter(({ source }) => source !== "shipped"),
      ),
      othersOf(
        ELSEWHERE,
        overview.others.filter(({ source }) => source === "shipped"),
      ),
    ),
  ];
}

// A chart that cannot be fetched leaves its sentence alone.
async function drawnOf(finding: Finding): Promise<Drawn> {
  return [finding, finding.chart ? await fetchChart(finding.chart).catch(() => null) : null];
}

export const overview: View = {
  name: HOME,
  title: "Overview",
  early: true,
  async show(asked: Asked): Promise<Content> {
    const server = asked.parameters.get("server");
    const source = asked.parameters.get("source");
    const [found, live, terms] = await Promise.all([
      fetchOverview({ ...(server ? { server } : {}), ...(source ? { source } : {}) }),
      fetchLive(Number.MAX_SAFE_INTEGER),
      glossary(),
    ]);
    if (found.server === null && live.running.length === 0) return emptyStore(asked.status);
    const drawn = await Promise.all(found.findings.map(drawnOf));
    return {
      title: `Overview of ${found.machine || found.server || "this machine"}`,
      main: mainOf(found, drawn, live, terms, asked),
      again_ms: live.running.length > 0 ? BUSY_MS : AGAIN_MS,
      stamp: JSON.stringify([found, drawn, live.running]),
    };
  },
};
