// api_profiles.ts: what the server says of kept profiles (docs/api-views.md), as types and functions.

import { asked, get, type JsonObject } from "./api";

// How often a rule of prony advise was right, by the proofs in the store.
export interface RuleRecord {
  rule: string; // "R1"
  title: string;
  word: string; // how sure its gain is: expected, up to, at least
  proofs: number;
  faster: number;
  held: number; // as much as was expected
}

export interface ProfileProof {
  at: string | null;
  change: string;
  measured: number | null;
  low: number | null;
  high: number | null;
  verdict: string;
  held: boolean;
}

export interface ProfileFinding {
  rule: string;
  title?: string;
  word?: string;
  gain: number; // of the whole program, ×
  low?: number | null;
  high?: number | null;
  line?: string | null;
  evidence?: string;
  action?: string;
  proofs: ProfileProof[];
}

export type Budget = Record<string, number>; // nanoseconds by part, and window_ns, their sum

export interface ProfileEntry {
  id: number;
  title: string;
  at: string | null;
  server: string | null;
  gpu: string | null;
  format: string | null;
  steps: number; // 0: none were found
  step_ns: number | null;
  unwatched: boolean;
  budget: Budget;
  findings: number;
  first: ProfileFinding | null;
}

export interface Profiles {
  profiles: ProfileEntry[];
  rules: RuleRecord[];
}

export interface NamedTime {
  name: string;
  title?: string; // the same as people write it
  count: number;
  ns: number;
}

// What a thread was seen doing; the three times sum to the window.
export interface ThreadTime {
  name: string;
  ran_ns: number;
  waited_ns: number;
  unseen_ns: number;
  call: string | null; // the system call that it waits in longest
  call_ns: number;
}

// One tree of all stacks: a node is [parent, function, file, own nanoseconds].
export interface FlameTree {
  of: string; // samples, gpu, ops
  names: string[];
  nodes: [number, number, number, number][];
}

export interface Profile {
  id: number;
  title: string;
  at: string | null;
  command?: string | null;
  advise?: string | null; // of a network: the command that tries what would be faster
  machine: JsonObject | null;
  gpu?: string | null;
  format?: string | null;
  on_gpu?: boolean;
  steps?: number;
  step_ns?: number | null;
  unwatched?: boolean;
  budget: Budget;
  figures?: Record<string, number>;
  kernels?: NamedTime[];
  functions?: NamedTime[];
  threads?: ThreadTime[];
  lines?: { line: string | null; ns: number }[];
  findings: ProfileFinding[];
  silent?: string | null;
  bound?: string | null;
  kept?: { spans: number; of_spans: number };
  flame?: FlameTree;
  rules: RuleRecord[];
}

// [lane, row, start, length, name, kind, spans, line]
export type TimelineBlock = [number, number, number, number, number, number, number, number];

export interface Timeline {
  from: number; // nanoseconds from the beginning
  to: number;
  end: number;
  left_out: number; // lanes that are not shown
  lanes: { name: string; kind: string; rows: number }[];
  blocks: TimelineBlock[];
  names: string[];
  kinds: string[];
}

export function fetchProfiles(): Promise<Profiles> {
  return get("/api/profiles");
}

export function fetchProfile(id: string): Promise<Profile> {
  return get(`/api/profile/${encodeURIComponent(id)}`);
}

// Of a stretch of it; "" and "": of all.
export function fetchTimeline(id: string, from: string, to: string): Promise<Timeline> {
  return get(`/api/timeline/${encodeURIComponent(id)}`, asked({ from, to }, {}));
}
