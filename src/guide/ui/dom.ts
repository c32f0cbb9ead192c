// dom.ts: makes elements, and puts them in place without losing where the reader was. Text is always
// set as text, never as markup.

export type Child = Node | string | null | false;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== false));
  return made;
}

// The same element, with attributes that have no property of their own: aria-*, role.
export function attributed<T extends Element>(one: T, attributes: Record<string, string>): T {
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  return one;
}

export function drawn(
  tag: string,
  attributes: Record<string, string | number>,
  ...children: Child[]
): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children.filter((child) => child !== null && child !== false));
  return made;
}

// The page's own element of that id, which index.html promises.
export function find<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no element #${id}`);
  return found as T;
}

const USABLE = "a[href], button, select, input, summary, [tabindex='0']";

// Finds what has the focus now again later: by its id, or as the nth of what can be used around it.
function focusIn(place: HTMLElement): () => void {
  const one = document.activeElement;
  const around = one?.closest("[id]");
  if (!one || !around || one === place || !place.contains(one)) return () => {};
  const nth = [...around.querySelectorAll(USABLE)].indexOf(one);
  return () => {
    const again = document.getElementById(around.id);
    const found = nth < 0 ? again : again?.querySelectorAll<HTMLElement>(USABLE)[nth];
    found?.focus({ preventScroll: true });
  };
}

// Replaces what is in a place. What had the focus, was open, was scrolled or was searched is so again.
export function refill(place: HTMLElement, children: Child[]): void {
  const refocus = focusIn(place);
  const old = [...place.querySelectorAll<HTMLElement>("[id]")];
  const open = new Map(
    old
      .filter((one) => one instanceof HTMLDetailsElement)
      .map((one) => [one.id, (one as HTMLDetailsElement).open]),
  );
  const scrolled = old
    .filter((one) => one.scrollTop > 0 || one.scrollLeft > 0)
    .map((one) => [one.id, one.scrollTop, one.scrollLeft] as const);
  const searched = old
    .filter((one) => one instanceof HTMLInputElement && one.type === "search")
    .map((one) => [one.id, (one as HTMLInputElement).value] as const);
  place.replaceChildren(...children.filter((child) => child !== null && child !== false));
  for (const [id, was] of open) {
    const one = document.getElementById(id);
    if (one instanceof HTMLDetailsElement) one.open = was;
  }
  for (const [id, value] of searched) {
    const one = document.getElementById(id);
    if (!value || !(one instanceof HTMLInputElement)) continue;
    one.value = value;
    one.dispatchEvent(new Event("input"));
  }
  for (const [id, top, left] of scrolled) document.getElementById(id)?.scrollTo(left, top);
  refocus();
}
