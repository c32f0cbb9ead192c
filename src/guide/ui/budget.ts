// budget.ts: where the time of a run went, as one bar in which each nanosecond stands once; and columns of
// times and shares.

import type { Budget, ThreadTime } from "./api_profiles";
import { attributed, element } from "./dom";
import { quantity } from "./format";
import type { Column } from "./table";

export interface Part {
  key: string;
  title: string;
  ns: number; // of a step, or of all where there are none
  share: number; // of the window, 0 … 1
  tone: number; // of the palette
}

// Of a run that uses no GPU there is only what is in its ops, and what is not.
const TITLES: Record<string, [title: string, tone: number]> = {
  compute: ["compute", 3],
  "exposed copy": ["exposed copy", 2],
  fill: ["fill", 7],
  allocation: ["idle, in an allocation", 4],
  "copy call": ["idle, in the call of a copy", 6],
  launch: ["idle, in a launch", 1],
  "waiting for GPU": ["idle, host waits", 5],
  "host code": ["idle, host runs its own code", 8],
};

export function partsOf(budget: Budget, steps: number, onGpu: boolean): Part[] {
  const window = budget["window_ns"] || 1;
  const entries = Object.entries(budget).filter(([key, ns]) => key !== "window_ns" && ns > 0);
  const ops = budget["compute"] ?? 0;
  return entries.map(([key, ns], index): Part => {
    const [title, tone] = TITLES[key] ?? [key, (index % 8) + 1];
    const outside = ops > 0 ? "outside of ops" : "the program's own code";
    const own = onGpu ? title : key === "compute" ? "in ops" : outside;
    return { key, title: own, ns: steps > 0 ? ns / steps : ns, share: ns / window, tone };
  });
}

export function percent(share: number): string {
  return share >= 0.9995 ? "100 %" : `${(100 * share).toFixed(1)} %`;
}

// The same of one thread of a program that was watched.
export function threadParts({ ran_ns, waited_ns, unseen_ns, call }: ThreadTime): Part[] {
  const window = ran_ns + waited_ns + unseen_ns || 1;
  const parts: [key: string, title: string, ns: number, tone: number][] = [
    ["compute", "running", ran_ns, 3],
    ["wait", call ? `waiting, most in ${call}` : "waiting", waited_ns, 5],
    ["unseen", "not seen: without a core, or not there", unseen_ns, 8],
  ];
  return parts
    .filter(([, , ns]) => ns > 0)
    .map(([key, title, ns, tone]) => ({ key, title, ns, share: ns / window, tone }));
}

// How much faster the run would be at most if this took no time.
export function boundOf({ key, share }: Part): string {
  if (["compute", "wait", "unseen"].includes(key)) return "–"; // a thread may wait for others
  return share < 0.999 ? `${(1 / (1 - share)).toFixed(2)} ×` : "–";
}

export function budgetBar(parts: Part[], small = false): HTMLElement {
  const bar = element("div", { className: small ? "budget small-budget" : "budget" });
  for (const { title, ns, share, tone } of parts) {
    const piece = element("span", {
      className: `budget-part tone-${tone}`,
      title: `${title}: ${quantity(ns, "ns")}, ${percent(share)}`,
    });
    piece.style.flexGrow = String(share);
    if (!small && share >= 0.18)
      piece.append(
        element(
          "span",
          { className: "budget-share" },
          share >= 0.4 ? element("span", { className: "budget-title" }, `${title} `) : null,
          percent(share),
        ),
      );
    bar.append(piece);
  }
  const words = parts.map(({ title, share }) => `${title} ${percent(share)}`).join(", ");
  return attributed(bar, { role: "img", "aria-label": words || "no time" });
}

// Columns of a time and of its share of all, for rows that have one.
export function timeColumn<Row>(title: string, timeOf: (row: Row) => number): Column<Row> {
  return {
    key: "time",
    title,
    unit: "ns",
    number: true,
    value: timeOf,
    show: (row) => quantity(timeOf(row), "ns"),
  };
}

export function shareColumn<Row>(timeOf: (row: Row) => number, all: number): Column<Row> {
  const shareOf = (row: Row) => timeOf(row) / (all || 1);
  return {
    key: "share",
    title: "share",
    number: true,
    value: shareOf,
    show: (row) => percent(shareOf(row)),
  };
}
