// profile_flame.ts: the stacks of a profile as a flame graph. The address says which frame is as wide as
// all, and which words are looked for.

import type { FlameTree, Profile } from "../api_profiles";
import { percent, shareColumn, timeColumn } from "../budget";
import { drawFlame, flameHeight, Stacks } from "../charts/flame";
import { attributed, element, type Child } from "../dom";
import { many, quantity } from "../format";
import { addressOf, changed, type Asked } from "../page";
import { plotCard } from "../plot";

interface Own {
  node: number; // where it has most time
  name: string;
  file: string;
  self: number;
  most: number;
}

const SHOWN = 60; // functions in the table

// Functions by their own time, wherever they were called from.
function ownTimes(stacks: Stacks): Own[] {
  const sums = new Map<string, Own>();
  stacks.tree.nodes.forEach(([, named, file, self], node) => {
    if (node === 0) return;
    const key = `${named} ${file}`;
    const fresh = { node, name: stacks.nameOf(node), file: stacks.fileOf(node), self: 0, most: -1 };
    const sum = sums.get(key) ?? fresh;
    sum.self += self;
    if ((stacks.all[node] ?? 0) > sum.most) Object.assign(sum, { node, most: stacks.all[node] ?? 0 });
    sums.set(key, sum);
  });
  return [...sums.values()]
    .filter(({ self }) => self > 0)
    .sort((a, b) => b.self - a.self)
    .slice(0, SHOWN);
}

function frameLink(asked: Asked, node: number, title: string): HTMLElement {
  const address = changed(asked.parameters, { frame: node > 0 ? String(node) : null });
  return element("a", { href: addressOf("profiles", address) }, title);
}

// The callers of what is shown, each a way back.
function wayOf(stacks: Stacks, root: number, asked: Asked): Child {
  if (root === 0) return null;
  const way = stacks.way(root);
  const shown = way.length > 6 ? [...way.slice(0, 2), -1, ...way.slice(-3)] : way;
  const parts = shown.flatMap((node, index): Child[] => [
    index > 0 ? " › " : null,
    node < 0
      ? "…"
      : node === root
        ? element("strong", {}, stacks.nameOf(node))
        : frameLink(asked, node, stacks.nameOf(node)),
  ]);
  return attributed(element("p", { className: "hint key flame-way", id: "flame-way" }, ...parts), {
    "aria-label": "Callers",
  });
}

function finderOf(words: string, asked: Asked): HTMLElement {
  const field = element("input", {
    id: "flame-find",
    type: "text",
    placeholder: "Find a function",
    value: words,
  });
  field.addEventListener("change", () => asked.change({ find: field.value.trim() || null }));
  return attributed(field, { "aria-label": "Find a function in the flame graph" });
}

const SUMMED: Record<string, string> = {
  samples: "Samples of the host: what ran, and who called it",
  gpu: "Time on the GPU, below the lines that asked for it",
  ops: "Time of ops, below what they belong to",
};

export function flameCard(profile: Profile, tree: FlameTree, asked: Asked): HTMLElement {
  const stacks = new Stacks(tree);
  const asks = Number(asked.parameters.get("frame") ?? 0);
  const root = Number.isInteger(asks) && asks > 0 && asks < tree.nodes.length ? asks : 0;
  const find = asked.parameters.get("find") ?? "";
  const words = find.toLowerCase();
  const frames = stacks.frames(root);
  const rows = ownTimes(stacks);
  const found = words ? stacks.foundTime(words) : 0;
  const share = percent(found / (stacks.total || 1));
  return plotCard<Own>({
    key: "flame",
    title: "Flame graph",
    subtitle: `${SUMMED[tree.of] ?? "All stacks"}. ${quantity(stacks.total, "ns")} in all`,
    filters: profile.title,
    tools: [finderOf(find, asked)],
    notes: [
      words
        ? element(
            "p",
            { className: "hint key", id: "flame-found" },
            found > 0
              ? `Frames with “${find}” have ${share} of the time, ${quantity(found, "ns")}.`
              : `No frame has “${find}” in its name or file.`,
          )
        : element(
            "p",
            { className: "hint key" },
            "A click makes a frame as wide as all; the uppermost one shows all again.",
          ),
      wayOf(stacks, root, asked),
    ],
    height: flameHeight(frames),
    onPick: (index) => asked.change({ frame: frames[index]?.node ? String(frames[index]?.node) : null }),
    draw: (theme) => drawFlame(stacks, frames, words, theme),
    folded: true,
    listing: {
      id: "flame-table",
      caption: `${many(rows.length, "function")} by their own time, without what they call`,
      columns: [
        {
          key: "function",
          title: "function",
          wrap: true,
          value: (row) => row.name,
          show: (row) => frameLink(asked, row.node, row.name),
        },
        { key: "file", title: "file", wrap: true, value: (row) => row.file },
        timeColumn("own time", ({ self }) => self),
        shareColumn(({ self }) => self, stacks.total),
      ],
      rows,
    },
  });
}
