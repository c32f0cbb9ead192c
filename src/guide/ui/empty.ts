// empty.ts: what stands on every page of a store without results: how to get some.

import type { Status } from "./api";
import { commandToCopy } from "./copy";
import { element } from "./dom";
import { shellWord } from "./format";
import { note, type Content } from "./page";

export function emptyStore(status: Status): Content {
  const store = shellWord(status.store);
  return {
    title: "No results yet",
    main: [
      note(
        "No results yet",
        element(
          "p",
          { id: "message" },
          "Measure this machine: a small and a large network. The results appear here as it runs.",
        ),
        commandToCopy(`prony suite demo --store ${store}`),
        element("p", {}, "Or measure one network:"),
        commandToCopy(`prony bench small --batch 1,8,64 --store ${store}`),
        element("p", {}, "Or file records that were measured elsewhere:"),
        commandToCopy(`prony store add results.jsonl --store ${store}`),
      ),
    ],
    again_ms: 3000,
    stamp: "empty",
  };
}
