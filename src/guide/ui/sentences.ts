// sentences.ts: the sentences of findings as the page shows them.

import { element, type Child } from "./dom";

// The figures of a sentence are what the eye looks for: 83 % · 1.6 ×; how sure they are comes second: (± 2 %)
function withFigures(text: string): Child[] {
  return text.split(/(\(± [^)]*\)|\d[\d.,]* [%×])/).map((part, index): Child => {
    if (index % 2 === 0) return part;
    if (part.startsWith("(")) return element("span", { className: "spread" }, part);
    return element("strong", {}, part.replace(" ", "\u00a0"));
  });
}

// Texts between back quotes are names, as `large`. `explain` may make elements of the others' words.
export function sentenceParts(
  sentence: string,
  explain: (text: string) => Child[] = (text) => [text],
): Child[] {
  return sentence.split("`").flatMap((part, index): Child[] => {
    if (index % 2 === 1) return [element("code", {}, part)];
    return explain(part).flatMap((child) => (typeof child === "string" ? withFigures(child) : [child]));
  });
}
