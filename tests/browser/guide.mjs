// guide.mjs: a guide to test, pages of it in a browser, and what SQL says about the same store.

import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { watchCanvas } from "./looks.mjs";

const guides = new Set(); // that run
process.on("exit", () => {
  for (const guide of guides) guide.kill("SIGKILL");
});

export function startGuide(prony, store) {
  const guide = spawn(prony, ["guide", "--port", "0", "--store", store], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  guides.add(guide);
  guide.once("exit", () => guides.delete(guide));
  const address = new Promise((resolve, reject) => {
    let said = "";
    guide.stdout.on("data", (piece) => {
      said += piece;
      const found = said.match(/http:\/\/localhost:\d+/);
      if (found) resolve(found[0]);
    });
    guide.on("exit", (code) => reject(new Error(`prony guide ended with ${code}: ${said}`)));
  });
  return { guide, address };
}

export async function stopGuide(guide) {
  const ended = new Promise((resolve) => guide.once("exit", resolve));
  guide.kill("SIGINT");
  return ended;
}

export function run(prony, ...words) {
  const ended = spawnSync(prony, words, { encoding: "utf8" });
  if (ended.status !== 0) throw new Error(`prony ${words.join(" ")}: ${ended.stderr}`);
  return ended.stdout;
}

// Rows as arrays, from SQLite itself rather than from prony.
export function askSql(store, query) {
  const script =
    "import json,sqlite3,sys\nprint(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))";
  const ended = spawnSync("python3", ["-c", script, store, query], { encoding: "utf8" });
  if (ended.status !== 0) throw new Error(`${query}: ${ended.stderr || ended.error}`);
  return JSON.parse(ended.stdout);
}

export const complaints = []; // console errors and requests to elsewhere, of all pages

// `bears`: what this page may complain of. Charts stand still at once: readers can ask for that.
export async function openPage(browser, address, path, { bears = /^$/, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
    timezoneId: "UTC",
    acceptDownloads: true,
    reducedMotion: "reduce",
    ...options,
  });
  await context.addInitScript(watchCanvas);
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !bears.test(message.text()))
      complaints.push(`${path}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`${path}: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address + "/") && !url.startsWith(`blob:${address}/`))
      complaints.push(`request to ${url}`);
  });
  await page.goto(address + path);
  await shown(page);
  return page;
}

export const shown = (page) => page.waitForSelector('main[aria-busy="false"] h1, main[aria-busy="false"] h2');
export const settled = (page) =>
  page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));

// Another address in the same page: less work than a page of its own.
export async function visit(page, path) {
  await page.goto(new URL(path, page.url()).href);
  await shown(page);
}

// The clipboard is one for all pages: who uses it waits for who does.
let clipboard = Promise.resolve();
export function withClipboard(act) {
  const mine = clipboard.then(act);
  clipboard = mine.catch(() => {});
  return mine;
}
export const rowsOf = (page, table = "table") =>
  page.$$eval(`#${table} tbody tr`, (rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
  );
export const rowCount = (page, count, table = "table") =>
  page.waitForFunction(
    ([id, n]) => document.querySelectorAll(`#${id} tbody tr`).length === n,
    [table, count],
  );
export const changedTo = (page, part) =>
  page.waitForFunction(
    (text) =>
      location.search.includes(text) && document.querySelector("main").getAttribute("aria-busy") === "false",
    part,
  );

// What a button saves.
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

// CSV as objects by column; of fields in quotes, those without line breaks are enough here.
export function readCsv(bytes) {
  const fields = (line) =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain,
    );
  const [head, ...rows] = bytes.toString("utf8").trimEnd().split("\r\n").map(fields);
  return rows.map((row) =>
    Object.fromEntries(row.map((value, column) => [head[column].replace(/ \(.*\)/, ""), value])),
  );
}

// How many pixels of a canvas have this colour of style.css, or nearly.
export function pixelsOf(page, colour, chart = ".chart") {
  return page.evaluate(
    ([name, place]) => {
      const probe = document.createElement("span");
      document.body.append(probe);
      probe.style.color = `var(${name})`;
      const [red, green, blue] = getComputedStyle(probe)
        .color.match(/[\d.]+/g)
        .map(Number);
      probe.remove();
      const drawn = document.querySelector(`${place} canvas`);
      const copy = Object.assign(document.createElement("canvas"), {
        width: drawn.width,
        height: drawn.height,
      });
      const context = copy.getContext("2d", { willReadFrequently: true });
      context.drawImage(drawn, 0, 0);
      const { data } = context.getImageData(0, 0, copy.width, copy.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4)
        if (
          Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue) < 12 &&
          data[i + 3] > 200
        )
          count++;
      return count;
    },
    [colour, chart],
  );
}
