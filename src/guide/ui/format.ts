// format.ts: figures as people read them. One unit for a whole chart or column, chosen by its middle
// value, so that figures stand under each other in the same measure.

import type { Metric, Value } from "./api";

export interface Scale {
  unit: string;
  factor: number; // shown = figure × factor
}

type Step = [number, string];

const TIMES: Step[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];
const PREFIXES: Step[] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];
const PREFIXED = new Set(["FLOP/s", "FLOP", "B/s", "B"]);

function stepsOf(unit: string): Step[] {
  if (unit === "ns") return TIMES;
  return PREFIXED.has(unit) ? PREFIXES.map(([size, prefix]) => [size, prefix + unit]) : [];
}

export function scaleFor(unit: string, figures: number[]): Scale {
  const sorted = figures.map(Math.abs).sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const steps = stepsOf(unit);
  const step = steps.find(([size]) => middle >= size) ?? steps[steps.length - 1];
  if (step) return { unit: step[1], factor: 1 / step[0] };
  return { unit: unit === "x" ? "×" : unit, factor: 1 };
}

// Three significant digits, thousands grouped: 1,234,567 · 12.3 · 0.00123
export function figure(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return Math.round(value).toLocaleString("en");
  if (size < 1e-4) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}

// With the unit that suits it: 2.65 ms · 118 GFLOP/s; "–" for what is not known.
export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return "–";
  const scale = scaleFor(unit, [value]);
  const shown = figure(value * scale.factor);
  return scale.unit ? `${shown} ${scale.unit}` : shown;
}

// As memories are built: 32 KiB · 23.5 GiB
export function binarySize(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "–";
  const power = Math.max(0, Math.min(4, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

// For the marks of an axis: 1,200,000 → 1.2M
export function compact(value: number): string {
  const size = Math.abs(value);
  for (const [step, prefix] of PREFIXES)
    if (size >= step && step > 1) return Number((value / step).toPrecision(3)) + prefix;
  return String(Number(value.toPrecision(3)));
}

export function name(value: Value): string {
  return value === null || value === "" ? "not given" : String(value);
}

// Keys whose words, one after the other, are not what people say; those of metrics come from the server.
const titles = new Map<string, string>([
  ["server", "machine"],
  ["machine", "machine by name"],
]);

export function learnMetrics(metrics: Metric[]): void {
  for (const { key, title } of metrics) titles.set(key, title);
}

// unit_name → unit name
export function words(key: string): string {
  return key.replace(/_/g, " ");
}

// An axis or a metric as people call it.
export function label(key: string): string {
  return titles.get(key) ?? words(key);
}

export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function list(words: string[], last = "and"): string {
  return words.length < 2
    ? words.join("")
    : `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]}`;
}

export function many(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}

// In the reader's own time and words.
export function moment(stamp: string | null | undefined): string {
  return stamp ? new Date(stamp).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "–";
}

// As one says it: today 21:01 · yesterday 9:30 · 14 Nov 2026
export function dayOf(stamp: string, now = new Date()): string {
  const at = new Date(stamp);
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86400e3);
  const clock = at.toLocaleTimeString(undefined, { timeStyle: "short" });
  if (days === 0) return `today ${clock}`;
  if (days === 1) return `yesterday ${clock}`;
  return at.toLocaleDateString(undefined, { dateStyle: "medium" });
}

export function shapeText(shape: number[]): string {
  return shape.length > 0 ? shape.join("×") : "scalar";
}

// For a shell: quoted only where that is needed.
export function shellWord(text: string): string {
  return /^[\w./~:=,-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
