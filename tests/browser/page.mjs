// page.mjs: the guide's page in a real browser, over results whose figures are known.
//
//     node tests/browser/page.mjs PRONY CHROMIUM PICTURES
//
// PRONY is the program, CHROMIUM a browser, PICTURES a folder for pictures of the page. Prints one
// line a test, as tests/check.h does.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [prony, browserPath, pictures] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "prony-browser-"));
const store = join(folder, "store.db");

const IMPLEMENTATIONS = [
  // framework, backend, ns of a first sample, ns of each further one, checked
  ["prony", "ref", 9e6, 8e6, true],
  ["prony", "simd", 9e5, 2e5, true],
  ["numpy", "default", 2e6, 4e5, true],
  ["python-list", "default", 9e8, 9e8, false],
];
const BATCHES = [1, 3, 10, 64];
const timeOf = ([, , first, more], phase, batch) => (first + more * (batch - 1)) * (phase === "training" ? 3 : 1);

function resultLine(implementation, phase, batch) {
  const [framework, backend, , , checked] = implementation;
  const median = timeOf(implementation, phase, batch);
  const throughput = (batch / median) * 1e9;
  return JSON.stringify({
    prony: 1,
    kind: "result",
    point: {
      framework, backend, model: "large", phase, precision: "fp32", data: "synthetic", batch,
      unit: "cpu", threads: 1, workers: 1, nodes: 1, scenario: "iterate",
      ...(phase === "training" ? { optimiser: "sgd" } : {}),
    },
    status: "ok",
    kernels: [],
    result: {
      time_ns: { min: median * 0.9, median, mean: median, p90: null, p99: null, ci_low: median * 0.85, ci_high: median * 1.25, count: 9, per: 1 },
      throughput,
      check: checked ? { verdict: "right", against: "ref", difference: 0, tolerance: 1e-5 } : { verdict: "none", reason: "too slow" },
    },
    samples_ns: [median],
    at: "2026-11-15T10:03:58Z",
  });
}

function writeResults(path) {
  const lines = [];
  for (const phase of ["inference", "training"])
    for (const implementation of IMPLEMENTATIONS)
      for (const batch of BATCHES) lines.push(resultLine(implementation, phase, batch));
  writeFileSync(path, lines.join("\n") + "\n");
}

function startGuide(file) {
  const guide = spawn(prony, ["guide", "--port", "0", "--store", file], { stdio: ["ignore", "pipe", "inherit"] });
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

async function stopGuide(guide) {
  const ended = new Promise((resolve) => guide.once("exit", resolve));
  guide.kill("SIGINT");
  return ended;
}

const complaints = []; // console errors and requests to elsewhere, of all pages

async function openPage(browser, address, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(address + "/")) complaints.push(`request to ${request.url()}`);
  });
  await page.goto(address + path);
  return page;
}

const shown = (page) => page.waitForSelector("#view:not([hidden]) canvas");
const rowsOf = (page) => page.$$eval("#table tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const rowCount = (page, count) => page.waitForFunction((n) => document.querySelectorAll("#table tbody tr").length === n, count);

// How many of the canvas's pixels have this colour, or nearly.
function pixelsOf(page, variable) {
  return page.evaluate((name) => {
    const wanted = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
    const drawn = document.querySelector("#chart canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(drawn, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4)
      if (Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue) < 12 && data[i + 3] > 200) count++;
    return count;
  }, variable);
}

const settled = (page) => page.waitForTimeout(600); // the chart's short animation

const tests = {
  async first_view_draws_a_chart({ open }) {
    const page = await open("/");
    await shown(page);
    await settled(page);
    assert.equal(await page.textContent("#title"), "Throughput by batch, per framework and backend");
    assert.equal(await page.textContent("#subtitle"), "model large · phase training");
    assert.match(await page.textContent("#store"), /^32 results · newest 15 Nov 2026/);
    for (const series of [1, 2, 3, 4]) assert.ok((await pixelsOf(page, `--series-${series}`)) > 200, `series ${series} is not drawn`);
    await page.screenshot({ path: join(pictures, "explorer-light.png"), fullPage: true });
  },

  async figures_are_those_of_the_records({ open }) {
    const page = await open("/?y=time_median&x=batch&group=framework,backend&phase=inference");
    await shown(page);
    const expected = [...IMPLEMENTATIONS].sort().flatMap((implementation) =>
      BATCHES.map((batch) => {
        const ms = timeOf(implementation, "inference", batch) / 1e6;
        const show = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3))));
        const check = implementation[4] ? "right" : "not checked";
        return [implementation[0], implementation[1], String(batch), show(ms), show(ms * 0.85), show(ms * 1.25), "1", check];
      }),
    );
    assert.deepEqual(await rowsOf(page), expected);
  },

  async filters_narrow_and_count({ open }) {
    const page = await open("/");
    await shown(page);
    const counts = (axis) => page.$$eval(`input[id^="filter-${axis}-"]`, (boxes) => boxes.map((box) => box.parentElement.textContent));
    assert.deepEqual(await counts("framework"), ["numpy4", "prony8", "python-list4"]);
    await page.check("#filter-framework-prony");
    await rowCount(page, 8);
    assert.deepEqual(await counts("framework"), ["numpy4", "prony8", "python-list4"]);
    assert.deepEqual(await counts("backend"), ["ref4", "simd4"]);
    assert.ok(page.url().includes("framework=prony"));
    await page.check("#filter-batch-64");
    await rowCount(page, 2);
    await page.goBack();
    await rowCount(page, 8);
    await page.click("#clear");
    await rowCount(page, 16);
  },

  async a_shared_address_restores_the_view({ open }) {
    const first = await open("/");
    await shown(first);
    await first.selectOption("#y", "time_median");
    await first.waitForFunction(() => document.title.startsWith("Time median"));
    await first.check("#filter-backend-simd");
    await first.check("#filter-backend-default");
    await rowCount(first, 12);
    await first.click("#chart-bar");
    await first.uncheck("#log-y");
    await first.waitForFunction(() => !location.search.includes("log=xy"));
    const second = await open(first.url().replace(/^http:\/\/[^/]+/, ""));
    await shown(second);
    assert.deepEqual(await rowsOf(second), await rowsOf(first));
    assert.equal(await second.title(), await first.title());
    assert.equal(await second.getAttribute("#chart-bar", "aria-pressed"), "true");
    assert.equal(await second.isChecked("#log-y"), false);
    await settled(second);
    await second.screenshot({ path: join(pictures, "bars-light.png"), fullPage: true });
  },

  async a_point_tells_its_figures({ open }) {
    const page = await open("/?y=throughput&x=phase&phase=training&framework=numpy&batch=64&chart=bar");
    await shown(page);
    await settled(page);
    const box = await (await page.$("#chart canvas")).boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.7);
    await page.mouse.move(box.x + box.width / 2 + 4, box.y + box.height * 0.7);
    await page.waitForSelector(".tip");
    const said = await page.textContent(".tip");
    assert.match(said, /phase training/);
    assert.match(said, /784 samples\/s/);
    assert.match(said, /1 result/);
  },

  async unlike_configurations_are_pointed_out({ open }) {
    const page = await open("/?y=throughput&x=batch&group=framework&phase=training");
    await shown(page);
    assert.match(await page.textContent("#warning"), /^4 points mix unlike configurations\. They differ in backend/);
    await page.click("#group-backend");
    await page.waitForSelector("#warning", { state: "hidden" });
  },

  async works_by_keyboard({ open }) {
    const page = await open("/");
    await shown(page);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the results");
    await page.focus("#filter-framework-prony");
    await page.keyboard.press("Space");
    await rowCount(page, 8);
    assert.equal(await page.evaluate(() => document.activeElement.id), "filter-framework-prony");
    await page.focus("#group-backend");
    await page.keyboard.press("Enter");
    await rowCount(page, 4);
    const unnamed = await page.$$eval("select, input, button", (all) => all.filter((one) => !one.labels?.length && !one.textContent.trim()).length);
    assert.equal(unnamed, 0);
    assert.match(await page.getAttribute("#chart", "aria-label"), /^Throughput by batch/);
  },

  async fits_a_phone_and_the_dark({ open }) {
    const phone = await open("/", { viewport: { width: 360, height: 740 }, colorScheme: "dark" });
    await shown(phone);
    await settled(phone);
    assert.ok(await phone.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), "wider than the screen");
    assert.equal(await phone.isVisible("#y"), false);
    await phone.click("#controls > summary");
    assert.equal(await phone.isVisible("#y"), true);
    await phone.click("#controls > summary");
    await phone.screenshot({ path: join(pictures, "phone-dark.png") });
    const dark = await open("/", { colorScheme: "dark" });
    await shown(dark);
    await settled(dark);
    await dark.screenshot({ path: join(pictures, "explorer-dark.png"), fullPage: true });
    assert.ok((await pixelsOf(dark, "--series-1")) > 200, "not in the colours of the dark");
  },

  async says_what_is_wrong_with_an_address({ open }) {
    const page = await open("/?y=throughput&x=bacth");
    await page.waitForSelector("#message:not([hidden])");
    assert.match(await page.textContent("#message"), /x: found "bacth", expected an axis; did you mean "batch"\?/);
    complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("400"))); // the browser notes the answer
    const none = await open("/?y=gpu_memory&x=batch");
    await none.waitForSelector("#message:not([hidden])");
    assert.match(await none.textContent("#message"), /gpu memory/);
  },

  async an_empty_store_says_what_to_run({ browser }) {
    const { guide, address } = startGuide(join(folder, "none.db"));
    const page = await openPage(browser, await address, "/");
    await page.waitForSelector("#message:not([hidden])");
    assert.match(await page.textContent("#message"), /No results yet.*prony bench small/);
    await page.screenshot({ path: join(pictures, "empty-light.png") });
    assert.equal(await stopGuide(guide), 0);
  },

  async nothing_complains_or_leaves_the_machine() {
    assert.deepEqual(complaints, []);
  },
};

async function runTests(browser, address) {
  let failed = 0;
  const open = (path, options) => openPage(browser, address, path, options);
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test({ browser, open });
      console.log(`ok   slow_browser.${name}`);
    } catch (error) {
      failed++;
      console.log(`${error.message}\nFAIL slow_browser.${name}`);
    }
    for (const context of browser.contexts()) await context.close();
  }
  return failed;
}

async function main() {
  mkdirSync(pictures, { recursive: true });
  const results = join(folder, "results.jsonl");
  writeResults(results);
  const added = spawnSync(prony, ["store", "add", results, "--store", store], { encoding: "utf8" });
  if (added.status !== 0) throw new Error(`prony store add: ${added.stderr}`);
  const { guide, address } = startGuide(store);
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  let failed = await runTests(browser, await address);
  await browser.close();
  const code = await stopGuide(guide);
  console.log(code === 0 ? "ok   slow_browser.stops_on_interrupt" : `exit status ${code}\nFAIL slow_browser.stops_on_interrupt`);
  return failed + (code === 0 ? 0 : 1);
}

try {
  process.exitCode = (await main()) === 0 ? 0 : 1;
} catch (error) {
  console.log(`${error.message}\nFAIL slow_browser.page`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
