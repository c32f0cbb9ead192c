// profile_timeline.ts: when what ran. The server gives a stretch of it as few blocks; the address says which
// stretch, so a zoom can be shared and undone.

import type { Profile, Timeline } from "../api_profiles";
import { timeColumn } from "../budget";
import { drawTimeline, KINDS, timelineHeight, timelineSheet } from "../charts/timeline";
import { attributed, element, type Child } from "../dom";
import { many, quantity } from "../format";
import type { Asked } from "../page";
import { plotCard } from "../plot";

interface Sum {
  name: string;
  kind: string;
  count: number;
  ns: number;
}

// What ran in the stretch, by name; blocks of several spans count for the longest in them.
function sumsOf({ blocks, names, kinds, from, to }: Timeline): Sum[] {
  const sums = new Map<string, Sum>();
  for (const [, , start, length, name, kind, spans] of blocks) {
    const ns = Math.min(start + length, to) - Math.max(start, from);
    const title = KINDS[kinds[kind] ?? ""] ?? "";
    const key = `${kind} ${name}`;
    const sum = sums.get(key) ?? { name: names[name] || title, kind: title, count: 0, ns: 0 };
    sum.count += spans;
    sum.ns += Math.max(ns, 0);
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

// The stretch after a button: within what there is, and never shorter than it can be seen.
function moved({ from, to, end }: Timeline, by: number, scale: number): [number, number] {
  const length = Math.min(Math.max((to - from) * scale, 10), end);
  const middle = (from + to) / 2 + (to - from) * by;
  const first = Math.min(Math.max(middle - length / 2, 0), end - length);
  return [first, first + length];
}

function zoomTools(timeline: Timeline, go: (from: number, to: number) => void): HTMLElement {
  const { from, to, end } = timeline;
  const all = from <= 0 && to >= end;
  const tools: [id: string, title: string, spoken: string, act: () => void, off: boolean][] = [
    ["in", "+", "Zoom in", () => go(...moved(timeline, 0, 0.5)), to - from <= 10],
    ["out", "−", "Zoom out", () => go(...moved(timeline, 0, 2)), all],
    ["earlier", "‹", "Earlier", () => go(...moved(timeline, -0.5, 1)), from <= 0],
    ["later", "›", "Later", () => go(...moved(timeline, 0.5, 1)), to >= end],
    ["all", "All", "All of it", () => go(0, 0), all],
  ];
  const buttons = tools.map(([id, title, spoken, act, disabled]) => {
    const button = element("button", { type: "button", id: `timeline-${id}`, title: spoken, disabled }, title);
    button.addEventListener("click", act);
    return attributed(button, { "aria-label": spoken });
  });
  return attributed(element("div", { className: "choice zoom" }, ...buttons), {
    role: "group",
    "aria-label": "Zoom of the timeline",
  });
}

function notesOf(profile: Profile, hidden: number): Child[] {
  const { spans = 0, of_spans = 0 } = profile.kept ?? {};
  const words = [
    "A click zooms to what it hits, a stretch drawn with the mouse to that.",
    spans < of_spans ? `Kept were ${spans.toLocaleString("en")} of ${many(of_spans, "span")}.` : "",
    hidden > 0 ? `${many(hidden, "thread or stream", "threads and streams")} did less and are not shown.` : "",
  ];
  return [element("p", { className: "hint key" }, words.filter((word) => word !== "").join(" "))];
}

export function timelineCard(profile: Profile, timeline: Timeline, asked: Asked): HTMLElement {
  const go = (from: number, to: number) =>
    asked.change(
      to > from ? { from: String(Math.floor(from)), to: String(Math.ceil(to)) } : { from: null, to: null },
    );
  const sheet = timelineSheet(timeline);
  const drawn = timeline.blocks.filter(([lane]) => lane < sheet.shown);
  const hidden = timeline.left_out + timeline.lanes.length - sheet.shown;
  const { from, to, end } = timeline;
  const rows = sumsOf(timeline);
  return plotCard<Sum>({
    key: "timeline",
    title: "Timeline",
    subtitle:
      from <= 0 && to >= end
        ? `all ${quantity(end, "ns")} that were kept`
        : `${quantity(to - from, "ns")} of ${quantity(end, "ns")}`,
    filters: profile.title,
    tools: [zoomTools(timeline, go)],
    notes: notesOf(profile, hidden),
    height: timelineHeight(sheet),
    onPick: (index) => {
      const [, , start = 0, length = 0] = drawn[index] ?? [];
      const room = Math.max(length * 0.1, 5);
      go(Math.max(start - room, 0), Math.min(start + length + room, end));
    },
    onStretch: (first, last) => go(Math.max(first, 0), Math.min(last, end)),
    draw: (theme, { width }) => drawTimeline(sheet, theme, width),
    folded: true,
    listing: {
      id: "timeline-table",
      caption: "Spans of this stretch, longest first",
      columns: [
        { key: "name", title: "name", wrap: true, value: (row) => row.name },
        { key: "kind", title: "kind", value: (row) => row.kind },
        { key: "count", title: "spans", number: true, value: (row) => row.count },
        timeColumn("time", ({ ns }) => ns),
      ],
      rows,
    },
  });
}
