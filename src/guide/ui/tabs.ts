// tabs.ts: the way to every view: tabs as long as there is room, the others in the menu "More". Views that
// have nothing to show yet stand there too, apart: their pages say what fills them.

import type { Status } from "./api";
import { element, find } from "./dom";
import { addressOf, type View } from "./page";

interface Tab {
  view: View;
  link: HTMLAnchorElement; // in the bar
  entry: HTMLAnchorElement; // in the menu
  filled: boolean;
}

let tabs: Tab[] = [];
let shown = ""; // the view that is on the page
const filled = element("div");
const unfilled = element("div", { hidden: true });
const more = element("details", { id: "more-views" });

function makeTab(view: View): Tab {
  const [link, entry] = ["view", "more"].map((place) =>
    element("a", { id: `${place}-${view.name}`, href: addressOf(view.name) }, view.title),
  ) as [HTMLAnchorElement, HTMLAnchorElement];
  return { view, link, entry, filled: true };
}

// Tabs give way from the last on; that of the view on the page stays.
function fit(): void {
  const bar = find("views");
  const style = getComputedStyle(bar);
  const room = bar.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  more.hidden = false;
  for (const { link, filled: full } of tabs) link.hidden = !full;
  const widthOf = (one: HTMLElement) => (one.hidden ? 0 : one.getBoundingClientRect().width + 2);
  const all = tabs.every((tab) => tab.filled);
  const inBar = tabs.reduce((sum, { link }) => sum + widthOf(link), 0);
  let over = inBar + (all && inBar <= room ? 0 : widthOf(more)) - room;
  for (const { view, link } of [...tabs].reverse()) {
    if (over <= 0) break;
    if (view.name === shown || link.hidden) continue;
    over -= widthOf(link);
    link.hidden = true;
  }
  for (const { link, entry } of tabs) entry.hidden = !link.hidden;
  more.hidden = tabs.every(({ link }) => !link.hidden);
  more.classList.toggle("current", tabs.some(({ view, link }) => view.name === shown && link.hidden));
}

// Escape, a click elsewhere and leaving with the keyboard close the menu.
function followMenu(): void {
  more.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !more.open) return;
    more.open = false;
    find("more").focus();
  });
  document.addEventListener("click", ({ target }) => {
    if (!(target instanceof Element) || !target.closest("#more")) more.open = false;
  });
  more.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !more.contains(relatedTarget)) more.open = false;
  });
}

export function fillTabs(views: View[]): void {
  tabs = views.filter(({ title }) => title).map(makeTab);
  unfilled.append(element("p", { className: "hint" }, "Nothing to show yet"));
  filled.append(...tabs.map(({ entry }) => entry));
  more.append(element("summary", { id: "more" }, "More"), element("div", { className: "views-more" }, filled, unfilled));
  find("views").replaceChildren(...tabs.map(({ link }) => link), more);
  followMenu();
  new ResizeObserver(fit).observe(find("views"));
}

// Which views the store can fill.
export function showFilled({ records, views }: Status): void {
  for (const tab of tabs) {
    const full = (views[tab.view.name] ?? true) && (records > 0 || tab.view.early === true);
    if (full === tab.filled) continue;
    tab.filled = full;
    (full ? filled : unfilled).append(tab.entry);
  }
  filled.append(...tabs.filter((tab) => tab.filled).map(({ entry }) => entry)); // in order again
  unfilled.hidden = tabs.every((tab) => tab.filled);
  fit();
}

export function markView(name: string): void {
  shown = name;
  for (const { view, link, entry } of tabs)
    for (const one of [link, entry])
      if (view.name === name) one.setAttribute("aria-current", "page");
      else one.removeAttribute("aria-current");
  fit();
}
