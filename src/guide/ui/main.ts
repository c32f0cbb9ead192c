// main.ts: puts the page together. The address says which view is asked for; each change makes a new
// address, and the view is shown anew from it.

import { fetchCatalogue, fetchStatus, Refused, type Catalogue, type Status } from "./api";
import { attributed, element, find, refill } from "./dom";
import { many, moment, shellWord } from "./format";
import {
  addressOf,
  benchLine,
  changed,
  commandLine,
  note,
  type Asked,
  type Content,
  type View,
} from "./page";
import { drawPlots, resizePlots } from "./plot";
import { themeSwitch } from "./theme";
import { views } from "./views/index";

// What stands where a view cannot: why, and what to do.
function trouble(error: unknown): Content {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Refused)
    return {
      title: "Not found",
      main: [
        note(
          "The store has no answer to that",
          element("p", { id: "message" }, message),
          element("p", {}, element("a", { href: "/" }, "Begin at the explorer")),
        ),
      ],
    };
  return {
    title: "No answer",
    main: [
      note(
        "The guide does not answer",
        element("p", { id: "message" }, message),
        element("p", {}, "Is it still running? Start it again; this page tries again by itself:"),
        commandLine("prony guide"),
      ),
    ],
    again_ms: 3000,
    stamp: "trouble",
  };
}

function emptyStore(status: Status): Content {
  const store = shellWord(status.store);
  return {
    title: "No results yet",
    main: [
      note(
        "No results yet",
        element(
          "p",
          { id: "message" },
          "Measure a network on this machine; results appear here as they come:",
        ),
        benchLine("small --batch 1,8,64", status),
        element("p", {}, "or file records that were measured elsewhere:"),
        commandLine(`prony store add results.jsonl --store ${store}`),
      ),
    ],
    again_ms: 3000,
  };
}

function readAddress(): { name: string; parameters: URLSearchParams } {
  const parameters = new URLSearchParams(location.search);
  const name = parameters.get("view") ?? "explorer";
  parameters.delete("view");
  return { name, parameters };
}

class Page {
  private turn = 0; // the newest request wins, whichever answer comes first
  private shown = ""; // the view that is on the page
  private stamp = "";
  private timer = 0;

  constructor(
    private readonly catalogue: Catalogue,
    private status: Status,
  ) {}

  go(address: string): void {
    history.pushState(null, "", address);
    void this.show();
  }

  private asked(view: View, parameters: URLSearchParams): Asked {
    const edit: Asked["edit"] = (make) => {
      const now = readAddress();
      const next = make(now.name === view.name ? now.parameters : parameters);
      this.go(addressOf(view.name, next));
    };
    return {
      parameters,
      catalogue: this.catalogue,
      status: this.status,
      edit,
      change: (changes) => edit((now) => changed(now, changes)),
      open: (name, next) => this.go(addressOf(name, next)),
    };
  }

  private async contentOf(view: View, parameters: URLSearchParams): Promise<Content> {
    try {
      if (this.status.records === 0 || view.name === "live" || view.name !== this.shown)
        this.status = await fetchStatus();
      showStore(this.status);
      if (this.status.records === 0 && !view.early) return emptyStore(this.status);
      return await view.show(this.asked(view, parameters));
    } catch (error) {
      return trouble(error);
    }
  }

  async show(): Promise<void> {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    const { name, parameters } = readAddress();
    const view = views.find((one) => one.name === name);
    find("main").setAttribute("aria-busy", "true");
    const content = view
      ? await this.contentOf(view, parameters)
      : trouble(new Refused(`There is no view "${name}".`, 404));
    if (turn !== this.turn) return;
    this.put(name, content);
  }

  private put(name: string, content: Content): void {
    const other = name !== this.shown;
    if (content.again_ms) this.timer = setTimeout(() => void this.show(), content.again_ms);
    if (other || !content.stamp || content.stamp !== this.stamp) this.fill(name, content, other);
    this.stamp = content.stamp ?? "";
    this.shown = name;
    find("main").setAttribute("aria-busy", "false");
  }

  private fill(name: string, content: Content, other: boolean): void {
    if (content.address) history.replaceState(null, "", addressOf(name, content.address));
    document.title = `${content.title} – prony guide`;
    find("said").textContent = content.title;
    find("layout").classList.toggle("with-aside", (content.aside ?? []).length > 0);
    refill(find("aside"), content.aside ?? []);
    refill(find("main"), content.main);
    for (const link of document.querySelectorAll("nav a")) {
      if (link.id === `view-${name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    drawPlots();
    if (other && this.shown) {
      scrollTo(0, 0);
      find("main").focus();
    }
  }
}

function showStore(status: Status): void {
  const store = find("store");
  store.textContent = `${many(status.records, "result")}${status.newest ? ` · newest ${moment(status.newest.at)}` : ""}`;
  store.title = status.store;
}

function fillHeader(): void {
  const links = views
    .filter(({ title }) => title)
    .map(({ name, title }) => element("a", { id: `view-${name}`, href: addressOf(name) }, title));
  find("views").replaceChildren(...links);
  find("switch").replaceWith(themeSwitch(drawPlots));
}

// Links within the guide change the view and load nothing.
function followLinks(page: Page): void {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (
      !link ||
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    if (
      link.hasAttribute("download") ||
      link.origin !== location.origin ||
      link.pathname !== "/" ||
      link.hash
    )
      return;
    event.preventDefault();
    page.go(link.pathname + link.search);
  });
}

async function start(): Promise<void> {
  fillHeader();
  try {
    const [catalogue, status] = await Promise.all([fetchCatalogue(), fetchStatus()]);
    const page = new Page(catalogue, status);
    followLinks(page);
    addEventListener("popstate", () => void page.show());
    addEventListener("resize", resizePlots);
    await page.show();
  } catch (error) {
    refill(find("main"), trouble(error).main);
    attributed(find("main"), { "aria-busy": "false" });
  }
}

void start();
