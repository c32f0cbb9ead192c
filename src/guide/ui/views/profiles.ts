// profiles.ts: the profiles that were kept, and how often each rule of the advice was right; one of them is
// profile.ts.

import { type Status } from "../api";
import { fetchProfiles, type ProfileEntry } from "../api_profiles";
import { budgetBar, partsOf } from "../budget";
import { commandToCopy } from "../copy";
import { element, type Child } from "../dom";
import { moment, name, quantity, shellWord } from "../format";
import { card, linkTo, note, type Asked, type Content, type View } from "../page";
import { tableOf, type Column } from "../table";
import { showProfile } from "./profile";
import { gainText, rulesCard, usesGpu } from "./profile_rules";

const listed: Column<ProfileEntry>[] = [
  {
    key: "title",
    title: "profile",
    wrap: true,
    value: (row) => row.title,
    show: (row) => linkTo("profiles", { id: String(row.id) }, row.title),
  },
  { key: "id", title: "number", number: true, value: (row) => row.id },
  {
    key: "unit",
    title: "machine",
    wrap: true,
    value: (row) => row.gpu ?? row.server,
    show: (row) => name(row.gpu ?? row.server),
  },
  {
    key: "step_ns",
    title: "time",
    unit: "ns",
    number: true,
    value: (row) => row.step_ns,
    show: (row) => `${quantity(row.step_ns, "ns")}${row.steps > 0 ? " a step" : ""}`,
  },
  {
    key: "budget",
    title: "where it goes",
    value: (row) => (row.budget["compute"] ?? 0) / (row.budget["window_ns"] || 1),
    show: (row) => budgetBar(partsOf(row.budget, row.steps, usesGpu(row.gpu, row.budget)), true),
  },
  {
    key: "finding",
    title: "first finding",
    wrap: true,
    value: (row) => row.first?.gain ?? null,
    show: (row) => (row.first ? `${row.first.title ?? row.first.rule}: ${gainText(row.first)}` : "–"),
  },
  { key: "at", title: "kept", value: (row) => row.at, show: (row) => moment(row.at) },
];

// Two that are worth comparing: of one program, else of one GPU, else the newest. The older comes first.
function pairOf(all: ProfileEntry[]): [ProfileEntry, ProfileEntry] | null {
  const alike: ((a: ProfileEntry, b: ProfileEntry) => boolean)[] = [
    (a, b) => a.title === b.title,
    (a, b) => a.gpu !== null && a.gpu === b.gpu,
    () => true,
  ];
  for (const same of alike)
    for (const [index, newer] of all.entries()) {
      const older = all.slice(index + 1).find((one) => same(newer, one));
      if (older) return [older, newer];
    }
  return null;
}

function emptyNote({ store }: Status): Child {
  const to = `--store ${shellWord(store)}`;
  return note(
    "No profiles yet",
    element("p", {}, "A profile shows where the time of a run goes. Keep one of a network:"),
    commandToCopy(`prony profile large --batch 10 ${to}`),
    element("p", {}, "Or of any program, which stays as it is:"),
    commandToCopy(`prony profile ${to} -- python3 train.py`),
    element("p", {}, "Or keep a trace that PyTorch, JAX, ONNX Runtime or Nsight Systems wrote:"),
    commandToCopy(`prony profile trace.json.gz ${to}`),
  );
}

export const profiles: View = {
  name: "profiles",
  title: "Profiles",
  early: true,
  async show(asked: Asked): Promise<Content> {
    const id = asked.parameters.get("id");
    if (id) return showProfile(id, asked);
    const { profiles: all, rules } = await fetchProfiles();
    if (all.length === 0) return { title: "Profiles", main: [emptyNote(asked.status)] };
    const pair = pairOf(all);
    return {
      title: "Profiles",
      main: [
        card(
          element("h1", {}, "Profiles"),
          tableOf({
            id: "profiles",
            caption: "The profiles of this store",
            columns: listed,
            rows: all,
            sort: asked.parameters.get("sort") ?? "",
            onSort: (sort) => asked.change({ sort }),
          }),
          pair
            ? element("p", { className: "hint" }, "Two of them, before and after a change, row by row:")
            : null,
          pair
            ? commandToCopy(
                `prony compare ${pair[0].id} ${pair[1].id} --store ${shellWord(asked.status.store)}`,
              )
            : null,
        ),
        rulesCard(rules, asked),
      ],
    };
  },
};
