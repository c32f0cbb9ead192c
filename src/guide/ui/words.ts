// words.ts: filters in words, as the server and the command line read them: model=large batch=1,10
// unit_name='Xeon 8480'. Quotes keep blanks and commas.

import type { Filters } from "./api";

function wordOf(value: string): string {
  return /^[^\s,'"]*$/.test(value) ? value : `'${value.replace(/'/g, `'"'"'`)}'`;
}

export function wordsOf(filters: Filters): string {
  return Object.entries(filters)
    .map(([axis, values]) => `${axis}=${values.map(wordOf).join(",")}`)
    .join(" ");
}

export function readWords(words: string): Filters {
  const filters: Filters = {};
  for (const [, axis = "", values = ""] of words.matchAll(/([^=\s]+)(?:=((?:'[^']*'|"[^"]*"|\S)*))?/g))
    filters[axis] = [...`,${values}`.matchAll(/,((?:'[^']*'|"[^"]*"|[^,])*)/g)].map(([, value = ""]) =>
      value.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"),
    );
  return filters;
}
