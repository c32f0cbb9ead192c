// profile.ts: one kept profile: its budget, what was found and what proofs said of it, when what ran, and
// the stacks.

import { Refused } from "../api";
import {
  fetchProfile,
  fetchTimeline,
  type NamedTime,
  type Profile,
  type ProfileFinding,
  type ThreadTime,
} from "../api_profiles";
import {
  budgetBar,
  boundOf,
  partsOf,
  percent,
  shareColumn,
  threadParts,
  timeColumn,
  type Part,
} from "../budget";
import { commandToCopy } from "../copy";
import { attributed, element, type Child } from "../dom";
import { figure, many, moment, quantity, sentence, shellWord } from "../format";
import { card, linkTo, type Asked, type Content } from "../page";
import { facts, type Fact } from "../record";
import { tableOf, type Column } from "../table";
import { flameCard } from "./profile_flame";
import { timelineCard } from "./profile_timeline";
import { gainText, times, usesGpu } from "./profile_rules";

const stepsOf = ({ steps = 0 }: Profile) => steps;

// Time of a step, or of all where no steps were found.
const perStep = (profile: Profile, ns: number) => (stepsOf(profile) > 0 ? ns / stepsOf(profile) : ns);

/* ---- budget and figures ---- */

function subtitleOf(profile: Profile): string {
  const window = profile.budget["window_ns"] ?? 0;
  const steps = stepsOf(profile);
  const watched = quantity(perStep(profile, window), "ns");
  const time = profile.unwatched ? `${quantity(profile.step_ns, "ns")} unwatched, ${watched} watched` : watched;
  return [
    profile.gpu ?? "",
    steps > 0 ? `${many(steps, "step")} of ${time}` : `a run of ${time}`,
    profile.format && profile.format !== "prony" ? `trace of ${profile.format}` : "",
    profile.at ? `kept ${moment(profile.at)}` : "",
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

// A table of its own: it is narrow enough to stay one on a phone.
function budgetTable(parts: Part[], steps: number): HTMLElement {
  const heading = (title: string, number: boolean) =>
    element("th", { scope: "col", className: number ? "number" : "" }, title);
  const cell = (className: string, ...content: Child[]) => element("td", { className }, ...content);
  const rows = parts.map((part) =>
    element(
      "tr",
      {},
      cell(
        "budget-name",
        element("span", { className: `budget-key tone-${part.tone}`, ariaHidden: "true" }),
        part.title,
      ),
      cell("number", quantity(part.ns, "ns")),
      cell("number", percent(part.share)),
      cell("number", boundOf(part)),
    ),
  );
  return element(
    "table",
    { id: "budget", className: "budget-table" },
    element("caption", { className: "unseen" }, "Where the time goes, each nanosecond once"),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        heading(steps > 0 ? "Of a step" : "Of the run", false),
        heading("Time", true),
        heading("Share", true),
        heading("Without it", true),
      ),
    ),
    element("tbody", {}, ...rows),
  );
}

// The figures of other profilers, each with what it is a share of.
function figureFacts(profile: Profile): Fact[] {
  const { figures = {}, budget } = profile;
  const of = (key: string) => figures[key] ?? 0;
  const window = budget["window_ns"] || 1;
  const pairs: Fact[] = [["compute utilisation", percent(of("compute_ns") / window)]];
  if (of("copy_ns") > 0) {
    const least = Math.min(of("compute_ns"), of("copy_ns"));
    const [compute, copy] = [of("compute_ns"), of("copy_ns")].map((ns) => quantity(perStep(profile, ns), "ns"));
    pairs.push(
      ["compute ÷ copy", `${compute} ÷ ${copy} = ${figure(of("compute_ns") / of("copy_ns"))}`],
      ["overlap of both", least > 0 ? percent(of("overlap_ns") / least) : "–"],
    );
  }
  if (of("up_ns") > 0) pairs.push(["copies to the GPU", quantity((of("up_bytes") / of("up_ns")) * 1e9, "B/s")]);
  if (of("down_ns") > 0)
    pairs.push(["copies from the GPU", quantity((of("down_bytes") / of("down_ns")) * 1e9, "B/s")]);
  if (of("compute_ns") > 0)
    pairs.push(["two kernels or more", percent(of("concurrent_ns") / of("compute_ns"))]);
  return pairs;
}

// Of a program without ops and GPU the thread that ran longest says most.
function headParts(profile: Profile, onGpu: boolean): { parts: Part[]; of: string } {
  const [first] = profile.threads ?? [];
  if (!first || onGpu || (profile.budget["compute"] ?? 0) > 0)
    return { parts: partsOf(profile.budget, stepsOf(profile), onGpu), of: "" };
  const several = (profile.threads?.length ?? 0) > 1 ? ", which ran longest" : "";
  return { parts: threadParts(first), of: `${first.name}${several}` };
}

function headCard(profile: Profile, onGpu: boolean): HTMLElement {
  const { parts, of } = headParts(profile, onGpu);
  const head = card(
    element(
      "div",
      { className: "heading" },
      element(
        "div",
        {},
        element("h1", {}, profile.title),
        element("p", { className: "subtitle" }, subtitleOf(profile)),
      ),
      element("div", { className: "tools" }, linkTo("profiles", {}, "All profiles")),
    ),
    of ? element("p", { className: "hint key" }, sentence(of)) : null,
    budgetBar(parts),
    element(
      "div",
      { className: onGpu ? "budget-pair" : "" },
      budgetTable(parts, stepsOf(profile)),
      onGpu
        ? element(
            "div",
            { className: "fact-group" },
            element("h2", {}, "Figures"),
            facts(figureFacts(profile)),
          )
        : null,
    ),
  );
  return attributed(head, { id: "profile-head" });
}

/* ---- findings ---- */

function proofText({ measured, low, high, verdict, held }: ProfileFinding["proofs"][number]): string {
  const range = low !== null && high !== null ? `, between ${times(low)} and ${times(high)}` : "";
  const said = verdict !== "faster" ? `: ${verdict}` : held ? "" : ", which is not as expected";
  return `measured ${measured === null ? "nothing" : times(measured)}${range}${said}`;
}

// "so far right in 2 of 3 proofs"
function recordText(profile: Profile, id: string): string {
  const rule = profile.rules.find((one) => one.rule === id);
  if (!rule || rule.proofs === 0) return "No proof of this rule is in the store.";
  const { held, faster, proofs } = rule;
  return `So far the rule was right in ${held} of ${many(proofs, "proof")}; faster in ${faster}.`;
}

function findingItem(profile: Profile, finding: ProfileFinding, asked: Asked): HTMLElement {
  const { rule, title = rule, line, evidence = "", action = "", low, high, proofs } = finding;
  const ranged = finding.word === "expected" && low && high;
  const between = ranged ? `, between ${times(low)} and ${times(high)}` : "";
  const seen = [line ?? "", evidence].filter((part) => part !== "").join(": ");
  const [best] = [...proofs].reverse();
  const command = profile.command ?? "";
  const good = best?.verdict === "faster";
  return element(
    "li",
    { className: "profile-finding" },
    element(
      "h3",
      {},
      element("span", { className: "faint" }, `${rule} `),
      `${sentence(title)}: `,
      element("span", { className: "gain" }, gainText(finding)),
      between,
    ),
    facts([
      ["seen", seen || "–"],
      ["do", action || "–"],
      [
        "proof",
        best
          ? element(
              "span",
              {},
              element(
                "span",
                { className: `verdict ${good ? "good" : "open"}` },
                good ? "proved" : "not proved",
              ),
              ` ${proofText(best)}${best.change ? `, with ${best.change}` : ""}`,
            )
          : "not proved yet",
      ],
      ["the rule", recordText(profile, rule)],
    ]),
    best || command === "" || command.startsWith("prony ")
      ? null
      : commandToCopy(
          `prony advise --prove --store ${shellWord(asked.status.store)} -- ${command}`,
        ),
  );
}

function findingsCard(profile: Profile, asked: Asked): HTMLElement {
  const { findings, silent, bound, advise } = profile;
  if (advise && findings.length === 0)
    return card(
      element("h2", {}, "How to make it faster"),
      element(
        "p",
        { className: "lead", id: "findings" },
        "Other batches, threads, types and backends may gain time. This command measures them:",
      ),
      commandToCopy(advise),
    );
  const none = silent
    ? `Nothing is advised: ${silent}.`
    : "The rules were asked, and found nothing worth more than 5 %.";
  return card(
    element("h2", {}, "How to make it faster"),
    findings.length > 0
      ? element(
          "ol",
          { className: "profile-findings", id: "findings" },
          ...findings.map((finding) => findingItem(profile, finding, asked)),
        )
      : element("p", { className: "lead", id: "findings" }, none),
    bound ? element("p", { className: "hint" }, `${sentence(bound)}.`) : null,
  );
}

/* ---- tables ---- */

const ROWS = 20; // that are shown

// Kernels that differ in the arguments of a template only are one row.
function merged(rows: NamedTime[]): NamedTime[] {
  const sums = new Map<string, NamedTime>();
  for (const row of rows) {
    const name = row.title || row.name || "without a name";
    const sum = sums.get(name) ?? { name, count: 0, ns: 0 };
    sums.set(name, { name, count: sum.count + row.count, ns: sum.ns + row.ns });
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

// A long table begins closed where rows are stacks.
function folded(count: number, table: HTMLElement, id: string): HTMLElement {
  if (!matchMedia("(max-width: 40rem)").matches) return table;
  return element(
    "details",
    { className: "figures", id },
    element("summary", {}, `Figures: ${many(count, "row")}`),
    table,
  );
}

function timesCard(profile: Profile, onGpu: boolean): Child {
  const { kernels = [], functions = [] } = profile;
  const rows = merged(kernels.length > 0 ? kernels : functions);
  if (rows.length === 0) return null;
  const what = kernels.length > 0 ? (onGpu ? "Kernels" : "Ops") : "Ops and functions";
  const summed = rows.reduce((sum, { ns }) => sum + ns, 0);
  const all = kernels.length > 0 ? (profile.budget["window_ns"] ?? 1) : summed;
  const columns: Column<NamedTime>[] = [
    { key: "name", title: what.toLowerCase(), wrap: true, value: (row) => row.name },
    {
      key: "count",
      title: kernels.length > 0 ? (stepsOf(profile) > 0 ? "a step" : "times") : "samples",
      number: true,
      value: (row) => (kernels.length > 0 ? perStep(profile, row.count) : row.count),
      show: (row) => figure(kernels.length > 0 ? perStep(profile, row.count) : row.count),
    },
    timeColumn("time", ({ ns }) => (kernels.length > 0 ? perStep(profile, ns) : ns)),
    shareColumn(({ ns }) => ns, all),
  ];
  return card(
    element("h2", {}, `${what}, longest first`),
    folded(
      Math.min(rows.length, ROWS),
      tableOf({ id: "longest", caption: `${what}, longest first`, columns, rows: rows.slice(0, ROWS) }),
      "longest-figures",
    ),
  );
}

function threadsCard(profile: Profile): Child {
  const rows = profile.threads ?? [];
  const window = profile.budget["window_ns"] ?? 1;
  if (rows.length < 2) return null;
  const share = (key: string, title: string, timeOf: (row: ThreadTime) => number) => ({
    ...shareColumn(timeOf, window),
    key,
    title,
  });
  const columns: Column<ThreadTime>[] = [
    { key: "name", title: "thread", wrap: true, value: (row) => row.name },
    {
      key: "bar",
      title: "of the window",
      value: (row) => row.ran_ns / window,
      show: (row) => budgetBar(threadParts(row), true),
    },
    share("ran", "running", (row) => row.ran_ns),
    share("waited", "waiting", (row) => row.waited_ns),
    { key: "call", title: "most in", value: (row) => row.call, show: (row) => row.call ?? "–" },
  ];
  return card(
    element("h2", {}, "Threads"),
    folded(
      rows.length,
      tableOf({ id: "threads", caption: "Threads, by the time they ran", columns, rows }),
      "threads-figures",
    ),
  );
}

function linesCard(profile: Profile, onGpu: boolean): Child {
  const rows = profile.lines ?? [];
  const all = rows.reduce((sum, { ns }) => sum + ns, 0) || 1;
  if (rows.length === 0) return null;
  const title = onGpu ? "Lines of the host while the GPU idles" : "Lines of the program";
  return card(
    element("h2", {}, title),
    tableOf<{ line: string | null; ns: number }>({
      id: "lines",
      caption: title,
      columns: [
        { key: "line", title: "line", wrap: true, value: (row) => row.line ?? "no line of the user" },
        timeColumn("time", ({ ns }) => ns),
        shareColumn(({ ns }) => ns, all),
      ],
      rows: rows.slice(0, ROWS),
    }),
  );
}

/* ---- the page ---- */

// A zoom shows the view anew, and the profile is the same.
const KEPT_MS = 60000;
let kept: { id: string; at: number; profile: Promise<Profile> } | null = null;

function profileOf(id: string): Promise<Profile> {
  if (kept?.id !== id || Date.now() - kept.at > KEPT_MS) {
    const profile = fetchProfile(id);
    profile.catch(() => (kept = null));
    kept = { id, at: Date.now(), profile };
  }
  return kept.profile;
}

export async function showProfile(id: string, asked: Asked): Promise<Content> {
  const text = (key: string) => asked.parameters.get(key) ?? "";
  const [profile, timeline] = await Promise.all([
    profileOf(id),
    fetchTimeline(id, text("from"), text("to")).catch((error: unknown) => {
      if (error instanceof Refused && error.code === 404) return null; // it was kept without one
      throw error;
    }),
  ]);
  const onGpu = profile.on_gpu ?? usesGpu(profile.gpu, profile.budget);
  const kernels = timesCard(profile, onGpu);
  const lines = linesCard(profile, onGpu);
  return {
    title: profile.title,
    main: [
      headCard(profile, onGpu),
      findingsCard(profile, asked),
      timeline && timeline.blocks.length > 0 ? timelineCard(profile, timeline, asked) : null,
      profile.flame && profile.flame.nodes.length > 1 ? flameCard(profile, profile.flame, asked) : null,
      threadsCard(profile),
      kernels && lines ? element("div", { className: "pair" }, kernels, lines) : (kernels ?? lines),
    ],
  };
}
