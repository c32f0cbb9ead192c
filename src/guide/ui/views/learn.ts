// learn.ts: how to read the figures, and the words of the field, each in a sentence or two.

import type { Term } from "../api";
import { element } from "../dom";
import { card, note, type Asked, type Content, type View } from "../page";
import { glossary } from "../terms";

const READING: [string, string][] = [
  [
    "of the limit",
    "The share of this machine's measured best that a result reached. No program can pass 100 % here.",
  ],
  ["± 2 %", "The true time lies this close to the figure, 95 times in 100."],
  ["correct", "The outputs were compared with a slow, simple reference and agree."],
  ["hollow marks", "The outputs were not checked: the time is real, the result may be wrong."],
];

function listOf(terms: Term[], chosen: string | null): HTMLElement {
  const rows = terms.map(({ key, term, text }) =>
    element(
      "div",
      { id: `term-${key}`, className: key === chosen ? "chosen" : "" },
      element("dt", {}, term),
      element("dd", {}, text),
    ),
  );
  return element("dl", { className: "glossary" }, ...rows);
}

// The list narrows as one types.
function finder(list: HTMLElement): HTMLElement {
  const field = element("input", { id: "find", type: "search", placeholder: "Find a term" });
  const none = element("p", { className: "hint", hidden: true }, "No term has these words.");
  field.setAttribute("aria-label", "Find a term");
  const narrow = () => {
    const words = field.value.trim().toLowerCase();
    let left = 0;
    for (const term of list.querySelectorAll<HTMLElement>(":scope > div")) {
      term.hidden = !term.textContent?.toLowerCase().includes(words);
      left += term.hidden ? 0 : 1;
    }
    none.hidden = left > 0;
  };
  field.addEventListener("input", narrow);
  return element("div", { className: "finder" }, field, none);
}

export const learn: View = {
  name: "learn",
  title: "Learn",
  early: true,
  async show(asked: Asked): Promise<Content> {
    const terms = [...(await glossary())].sort((a, b) => a.term.localeCompare(b.term, "en"));
    const reading = card(
      element("h1", {}, "How to read the figures"),
      element(
        "dl",
        { className: "glossary reading" },
        ...READING.map(([term, text]) =>
          element("div", {}, element("dt", {}, term), element("dd", {}, text)),
        ),
      ),
    );
    const list = listOf(terms, asked.parameters.get("term"));
    const words = card(element("h2", {}, "Words of the field"), finder(list), list);
    const main = [
      reading,
      terms.length > 0 ? words : note("No glossary", element("p", {}, "The server has none.")),
    ];
    return { title: "Learn", main };
  },
};
