// terms.ts: words of the field, explained where they appear. A term is a button: pointed at, focused or
// tapped, it shows its explanation; Escape takes it away.

import { fetchGlossary, type Term } from "./api";
import { attributed, element, type Child } from "./dom";

let loading: Promise<Term[]> | null = null;

// Fetched once. A server without a glossary leaves words as they are.
export function glossary(): Promise<Term[]> {
  loading ??= fetchGlossary().catch(() => {
    loading = null;
    return [];
  });
  return loading;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function termButton(word: string, { text }: Term): HTMLElement {
  const button = element("button", { type: "button", className: "term" }, word);
  button.dataset["text"] = text;
  return button;
}

// Each way to write a term, the longest first: "limit, of the limit" has two.
function spellings(terms: Term[]): [string, Term][] {
  return terms
    .flatMap((term) => term.term.split(", ").map((word): [string, Term] => [word.toLowerCase(), term]))
    .sort(([a], [b]) => b.length - a.length);
}

// The text with its terms explained, each where it comes first: `seen` remembers which did.
export function explained(text: string, terms: Term[], seen: Set<string>): Child[] {
  if (terms.length === 0) return [text];
  const words = spellings(terms);
  const pattern = new RegExp(
    `(?<![\\w-])(${words.map(([word]) => escaped(word)).join("|")})(?![\\w-])`,
    "gi",
  );
  const parts: Child[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const term = words.find(([word]) => word === match[0].toLowerCase())?.[1];
    if (!term || seen.has(term.key)) continue;
    seen.add(term.key);
    parts.push(text.slice(from, match.index), termButton(match[0], term));
    from = match.index + match[0].length;
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
}

const PROSE = ".lead, .hint, .subtitle"; // where sentences stand
const USED = "a, button, label, summary, code"; // what is there to be used is left alone

// Explains the terms of what is on the page, each where it comes first.
export async function explainPage(places: HTMLElement[]): Promise<void> {
  const terms = await glossary();
  const seen = new Set<string>();
  for (const prose of places.flatMap((place) => [...place.querySelectorAll(PROSE)])) {
    const walker = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
    const texts: Text[] = [];
    while (walker.nextNode()) texts.push(walker.currentNode as Text);
    for (const text of texts) {
      if (text.parentElement?.closest(USED)) continue;
      const parts = explained(text.data, terms, seen).filter((part) => part !== null && part !== false);
      if (parts.length > 1) text.replaceWith(...parts);
    }
  }
}

// Below the word, or above it where there is no room, and within the window.
function place(note: HTMLElement, word: HTMLElement): void {
  const { left, top, bottom } = word.getBoundingClientRect();
  const { width, height } = note.getBoundingClientRect();
  const below = bottom + 6 + height < innerHeight;
  note.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  note.style.top = `${below ? bottom + 6 : Math.max(8, top - height - 6)}px`;
}

// One note serves all terms of the page.
export function followTerms(): void {
  const note = attributed(element("div", { id: "term-note", className: "term-note", hidden: true }), {
    role: "tooltip",
  });
  document.body.append(note);
  let word: HTMLElement | null = null;
  const hide = () => {
    word?.removeAttribute("aria-describedby");
    word = null;
    note.hidden = true;
  };
  const show = (event: Event) => {
    const found = event.target instanceof Element ? event.target.closest<HTMLElement>(".term") : null;
    if (!found || found === word) return;
    hide();
    word = found;
    note.textContent = found.dataset["text"] ?? "";
    note.hidden = false;
    found.setAttribute("aria-describedby", note.id);
    place(note, found);
  };
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, show);
  document.addEventListener("pointerout", (event) => {
    if (word && event.target === word && document.activeElement !== word) hide();
  });
  document.addEventListener("focusout", (event) => {
    if (event.target === word) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("scroll", hide, { passive: true });
}
