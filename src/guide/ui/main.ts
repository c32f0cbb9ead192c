// main.ts: puts the page together. The address says which view is asked for; each change makes a new
// address, and the view is shown anew from it.

import {
  fetchCatalogue,
  fetchOverview,
  fetchStatus,
  Refused,
  Unreachable,
  type Catalogue,
  type Status,
} from "./api";
import { element, find, refill } from "./dom";
import { emptyStore } from "./empty";
import { fillHeader, guideCommand, showGone, showMachines, showStore, skeleton } from "./frame";
import { learnMetrics } from "./format";
import { addressOf, changed, HOME, note, type Asked, type Content, type View } from "./page";
import { drawPlots, resizePlots } from "./plot";
import { markView } from "./tabs";
import { explainPage, followTerms } from "./terms";
import { views } from "./views/index";

const RETRY_MS = 3000;
const WATCH_MS = 4000;
const SKELETON_MS = 200; // what comes sooner needs none
const STOPPED = "stopped"; // the stamp of what stands in for a view then
// Views whose addresses take server=
const BY_MACHINE = ["overview", "explorer", "compare", "roofline", "scaling", "machines", "answers"];

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

// What stands where a view cannot: why, and what to do.
function refused(error: Refused): Content {
  const passing = error.code >= 500; // the store is missing or busy: it may be back soon
  return {
    title: passing ? "No answer" : "Not found",
    main: [
      note(
        passing ? "The store does not answer" : "The store has no answer to that",
        element("p", { id: "message" }, error.message),
        element("p", {}, element("a", { href: "/" }, "Back to the overview")),
      ),
    ],
    ...(passing ? { again_ms: RETRY_MS, stamp: `refused ${error.message}` } : {}),
  };
}

function stopped(status: Status | null): Content {
  return {
    title: "The server has stopped",
    main: [
      note(
        "The server has stopped",
        element("p", { id: "message" }, "Start it again; this page reconnects by itself:"),
        guideCommand(status),
      ),
    ],
    again_ms: RETRY_MS,
    stamp: STOPPED,
  };
}

function broken(error: unknown): Content {
  const message = error instanceof Error ? error.message : String(error);
  return {
    title: "This view failed",
    main: [
      note(
        "This view failed",
        element("p", { id: "message" }, message),
        element("p", {}, element("a", { href: "/" }, "Back to the overview")),
      ),
    ],
  };
}

function readAddress(): { name: string; parameters: URLSearchParams } {
  const parameters = new URLSearchParams(location.search);
  // An address that says x and y is a chart, as addresses of the explorer always were.
  const name = parameters.get("view") ?? (parameters.has("x") && parameters.has("y") ? "explorer" : HOME);
  parameters.delete("view");
  return { name, parameters };
}

class Page {
  private turn = 0; // the newest request wins, whichever answer comes first
  private shown = ""; // the view that is on the page
  private stamp = "";
  private timer = 0;
  private begun = false; // something was shown before

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

  // null: the server has stopped, and what is on the page stays.
  private async contentOf(view: View, parameters: URLSearchParams): Promise<Content | null> {
    try {
      if (this.status.records === 0 || view.name === "live" || view.name === HOME || view.name !== this.shown)
        this.status = await fetchStatus();
      const content =
        this.status.records === 0 && !view.early
          ? emptyStore(this.status)
          : await view.show(this.asked(view, parameters));
      showStore(this.status);
      showGone(false, this.status);
      return content;
    } catch (error) {
      if (error instanceof Refused) return refused(error);
      if (!(error instanceof Unreachable)) return broken(error);
      return view.name === this.shown && this.stamp !== STOPPED ? null : stopped(this.status);
    }
  }

  async show(): Promise<void> {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    const { name, parameters } = readAddress();
    const view = views.find((one) => one.name === name);
    find("main").setAttribute("aria-busy", "true");
    const waiting = setTimeout(() => this.wait(name), SKELETON_MS);
    const content = view
      ? await this.contentOf(view, parameters)
      : refused(new Refused(`There is no view "${name}".`, 404));
    clearTimeout(waiting);
    if (turn !== this.turn) return;
    if (content) this.put(name, content);
    else this.keep();
  }

  // Another view takes its time: its shape comes first.
  private wait(name: string): void {
    if (name === this.shown) return;
    this.shown = "";
    markView(name);
    refill(find("aside"), []);
    refill(find("main"), skeleton());
  }

  // Says when the server stops while nothing is asked of it, and how much the store has by now.
  async watch(): Promise<void> {
    for (;;) {
      await pause(WATCH_MS);
      if (document.hidden) continue;
      try {
        this.status = await fetchStatus();
        showStore(this.status);
        showGone(false, this.status);
      } catch (error) {
        if (error instanceof Unreachable && this.stamp !== STOPPED) showGone(true, this.status);
      }
    }
  }

  private keep(): void {
    showGone(true, this.status);
    this.timer = setTimeout(() => void this.show(), RETRY_MS);
    find("main").setAttribute("aria-busy", "false");
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
    markView(name);
    void this.fillMachines(name);
    void explainPage([find("main"), find("aside")]);
    drawPlots();
    if (other && this.begun) {
      scrollTo(0, 0);
      find("main").focus({ preventScroll: true });
    }
    this.begun = true;
  }

  // The machines to choose from; another one shows the same view of it, or else its overview.
  private async fillMachines(name: string): Promise<void> {
    const overview = await fetchOverview({}).catch(() => null);
    if (!overview) return;
    const { parameters } = readAddress();
    const asked = { server: parameters.get("server"), source: parameters.get("source") };
    const found = asked.server === null && name === HOME ? overview : asked;
    showMachines(overview, found, (server, source) => {
      const now = readAddress();
      const target = BY_MACHINE.includes(now.name) ? now.name : HOME;
      const choice = { server, source };
      this.go(addressOf(target, target === HOME ? choice : changed(now.parameters, choice)));
    });
  }
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

// What every view needs. A page that a browser restored may be there before its server.
async function fetchFirst(): Promise<[Catalogue, Status]> {
  for (;;) {
    try {
      return await Promise.all([fetchCatalogue(), fetchStatus()]);
    } catch (error) {
      const { main } = error instanceof Refused ? refused(error) : stopped(null);
      refill(find("main"), main);
      find("main").setAttribute("aria-busy", "false");
      await pause(RETRY_MS);
    }
  }
}

async function start(): Promise<void> {
  fillHeader(views, drawPlots);
  refill(find("main"), skeleton());
  const [catalogue, status] = await fetchFirst();
  learnMetrics(catalogue.metrics);
  const page = new Page(catalogue, status);
  followLinks(page);
  followTerms();
  addEventListener("popstate", () => void page.show());
  addEventListener("resize", resizePlots);
  await page.show();
  await page.watch();
}

void start();
