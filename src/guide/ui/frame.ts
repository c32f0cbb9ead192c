// frame.ts: what stands around every view: the machine, the link to copy, the colours, and the
// words that take a view's place while it loads or when the server has stopped.

import type { Overview, Status } from "./api";
import { machineChooser, type Named } from "./chooser";
import { copyButton } from "./copy";
import { attributed, drawn, element, find, refill, type Child } from "./dom";
import { many, moment, shellWord } from "./format";
import { commandLine, type View } from "./page";
import { fillTabs, showFilled } from "./tabs";
import { themeSwitch } from "./theme";

// Two links of a chain; on a narrow screen it stands for the words.
function linkIcon(): SVGElement {
  return drawn(
    "svg",
    { viewBox: "0 0 24 24", width: 16, height: 16, "aria-hidden": "true" },
    drawn("path", { d: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1.5 1.5" }),
    drawn("path", { d: "M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.5-1.5" }),
  );
}

export function fillHeader(views: View[], redraw: () => void): void {
  fillTabs(views);
  const link = copyButton("Copy link", "Copy the link to this view", () => location.href, {
    id: "copy-link",
    className: "bar-button",
  });
  link.prepend(linkIcon());
  find("link-place").replaceWith(link);
  find("switch").replaceWith(themeSwitch(redraw));
}

export function showMachines(
  overview: Overview,
  asked: Named,
  onChoose: (server: string, source: string) => void,
): void {
  refill(find("machine-place"), machineChooser(overview, asked, onChoose));
}

export function showStore(status: Status): void {
  showFilled(status);
  const newest = status.newest ? ` · newest ${moment(status.newest.at)}` : "";
  find("store").textContent =
    `${many(status.records, "result")}${newest} · ${status.store} · prony ${status.version}`;
}

const shape = (kind: string) => element("div", { className: `shape ${kind}` });

// Grey shapes where cards will be.
export function cardShapes(count: number): HTMLElement[] {
  return Array.from({ length: count }, () =>
    attributed(element("div", { className: "card" }, shape("short"), shape("long"), shape("picture")), {
      "aria-hidden": "true",
    }),
  );
}

// The same where a whole view will be.
export function skeleton(): Child[] {
  const cards = cardShapes(3);
  const all = element(
    "div",
    { className: "skeleton" },
    shape("title"),
    element("div", { className: "cards" }, ...cards),
  );
  return [attributed(all, { "aria-hidden": "true" })];
}

export function guideCommand(status: Status | null): HTMLElement {
  return commandLine(status ? `prony guide --store ${shellWord(status.store)}` : "prony guide");
}

// Above what was shown before, which stays readable.
export function showGone(gone: boolean, status: Status | null): void {
  const place = find("gone");
  if (gone === !place.hidden) return;
  place.hidden = !gone;
  place.replaceChildren(
    ...(gone
      ? [
          element("strong", {}, "The server has stopped. "),
          "These are the figures it gave last. Start it again with ",
          guideCommand(status),
          " and this page reconnects by itself.",
        ]
      : []),
  );
}
