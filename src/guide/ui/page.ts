// page.ts: what a view is. A view turns an address into what is on the page; it keeps nothing itself, so
// that every view can be shared, kept as a bookmark and reached again with the browser's back button.

import { addFilters, type Catalogue, type Filters, type Status } from "./api";
import { element, type Child } from "./dom";
import { shellWord } from "./format";

export interface Asked {
  parameters: URLSearchParams; // of the address, without the view's name
  catalogue: Catalogue;
  status: Status;
  // Another showing of the same view. What is on the page may be older than the address, which a control
  // has changed since, so an edit is made of the parameters as they are when it is made.
  edit(edit: (now: URLSearchParams) => URLSearchParams): void;
  change(changes: Changes): void; // the same, saying only what is other
  open(view: string, parameters: Record<string, string>): void;
}

export type Changes = Record<string, string | string[] | null>; // null and "" take a parameter away

export interface Content {
  title: string;
  aside?: Child[]; // controls beside the page
  main: Child[];
  address?: URLSearchParams; // the parameters that say all of it, where those asked for left it open
  again_ms?: number; // to be shown anew after so long
  stamp?: string; // what it was made from: while that is the same the page stays as it is
}

export interface View {
  name: string; // in the address: /?view=NAME
  title: string; // in the navigation; "" keeps it out of there
  early?: boolean; // it has something to show before there are results
  show(asked: Asked): Promise<Content>;
}

export function changed(parameters: URLSearchParams, changes: Changes): URLSearchParams {
  const made = new URLSearchParams(parameters);
  for (const [key, value] of Object.entries(changes)) {
    made.delete(key);
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== "") made.append(key, one);
  }
  return made;
}

export const HOME = "overview"; // what "/" shows

// The address of a view. The overview needs no name, nor does a chart, which says x and y.
export function addressOf(view: string, parameters: URLSearchParams | Record<string, string> = {}): string {
  const given = new URLSearchParams(parameters);
  const clear = view === HOME || (view === "explorer" && given.has("x") && given.has("y"));
  const all = new URLSearchParams(clear ? {} : { view });
  for (const [key, value] of given) all.append(key, value);
  const text = String(all);
  return text ? `/?${text}` : "/";
}

export function linkTo(
  view: string,
  parameters: URLSearchParams | Record<string, string>,
  ...text: Child[]
): HTMLAnchorElement {
  return element("a", { href: addressOf(view, parameters) }, ...text);
}

// What the address filters by: all that is not the view's own. A name that is no axis is left to the
// server, which says so.
export function filtersOf(parameters: URLSearchParams, own: string[]): Filters {
  const filters: Filters = {};
  for (const [key, value] of parameters) if (!own.includes(key)) (filters[key] ??= []).push(value);
  return filters;
}

// Edits the filters of the address; the view's own parameters stay.
export function editFilters(asked: Asked, own: string[], edit: (now: Filters) => Filters): void {
  asked.edit((now) => {
    const kept = new URLSearchParams([...now].filter(([key]) => own.includes(key)));
    return addFilters(kept, edit(filtersOf(now, own)));
  });
}

export function card(...content: Child[]): HTMLElement {
  return element("section", { className: "card" }, ...content);
}

// What stands on the page instead of results: why there are none, and what to do.
export function note(title: string, ...rest: Child[]): HTMLElement {
  return element("section", { className: "card note" }, element("h1", {}, title), ...rest);
}

// The same below something else.
export function remark(title: string, ...rest: Child[]): HTMLElement {
  return element("section", { className: "card note" }, element("h2", {}, title), ...rest);
}

export function commandLine(command: string): HTMLElement {
  return element("code", { className: "command" }, command);
}

// A bench that files its results in the store that is shown.
export function benchLine(words: string, { store }: Status): HTMLElement {
  return commandLine(`prony bench ${words} --store ${shellWord(store)}`);
}
