// profile_rules.ts: what findings promise, and how often each rule was right.

import type { ProfileFinding, RuleRecord } from "../api_profiles";
import { commandToCopy } from "../copy";
import { element } from "../dom";
import { figure, shellWord } from "../format";
import { card, type Asked } from "../page";
import { tableOf, type Column } from "../table";

export const times = (gain: number) => `${figure(gain)}\u00a0×`;

// "expected 4.6 ×"
export function gainText({ word, gain }: ProfileFinding): string {
  return `${word ?? "expected"} ${times(gain)}`;
}

// A budget has copies, launches and waits only where there is a GPU.
export function usesGpu(gpu: string | null | undefined, budget: Record<string, number>): boolean {
  const only = ["window_ns", "compute", "host code"];
  return Boolean(gpu) || Object.entries(budget).some(([key, ns]) => ns > 0 && !only.includes(key));
}

const ruled: Column<RuleRecord>[] = [
  { key: "rule", title: "rule", value: (row) => row.rule },
  { key: "title", title: "looks for", wrap: true, value: (row) => row.title },
  { key: "proofs", title: "proofs", number: true, value: (row) => row.proofs },
  {
    key: "faster",
    title: "faster",
    number: true,
    value: (row) => row.faster,
    show: (row) => (row.proofs > 0 ? String(row.faster) : "–"),
  },
  {
    key: "held",
    title: "as expected",
    number: true,
    value: (row) => row.held,
    show: (row) => (row.proofs > 0 ? String(row.held) : "–"),
  },
];

export function rulesCard(rules: RuleRecord[], asked: Asked): HTMLElement {
  const proofs = rules.reduce((sum, rule) => sum + rule.proofs, 0);
  const rows = rules.filter((rule) => rule.proofs > 0);
  return card(
    element("h2", {}, "How often each rule was right"),
    element(
      "p",
      { className: "hint" },
      proofs > 0
        ? "A proof runs a program with and without the change, in turns, and this store keeps what came out."
        : "No finding was proved yet. A proof runs a program with and without the change, in turns:",
    ),
    proofs > 0
      ? tableOf({ id: "rules", caption: "Rules and their proofs", columns: ruled, rows })
      : commandToCopy(`prony advise --prove --store ${shellWord(asked.status.store)} -- python3 train.py`),
  );
}
