// page.mjs: the guide's page in a real browser.
//
//   node page.mjs PRONY CHROMIUM [PICTURES [STORE]]
//
// PRONY is the program, CHROMIUM a browser, PICTURES a folder for pictures of the page, if they are wanted:
// every view as the tests see it, and the main ones as the documentation shows them, from the STORE, or from a new one with
// the results that ship. PRONY_BROWSER, where it is set, is part of the names of the tests to run. Prints one
// line a test, as tools/run-tests reads them. No page may complain in its console, and no request may go
// anywhere but to the guide.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

import { exploreTests } from "./explore.mjs";
import { explorerTests } from "./explorer.mjs";
import { writeFixture } from "./fixture.mjs";
import { frameTests } from "./frame.mjs";
import { complaints, openPage, run, settled, startGuide, stopGuide } from "./guide.mjs";
import { overviewTests } from "./overview.mjs";
import { soundTests } from "./sound.mjs";
import { takePictures } from "./pictures.mjs";
import { fillProfiles, profileTests } from "./profiles.mjs";
import { viewTests } from "./views.mjs";

const [prony, browserPath, pictures, shown] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "prony-browser-"));
const store = join(folder, "store.db");
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1)); // ends the browser, too
const LANES = 3;

// The longest first, so that none of them ends alone.
const tests = {
  ...soundTests,
  ...overviewTests,
  ...frameTests,
  ...explorerTests,
  ...exploreTests,
  ...viewTests,
  ...profileTests,
  async the_zoo_is_there({ browser }) {
    const { guide, address } = startGuide(prony, shown ?? join(folder, "shipped.db"));
    const { records } = await (await fetch(`${await address}/api/status`)).json();
    if (pictures && records > 0) await takePictures(browser, await address, join(pictures, "docs"));
    const { networks } = await (await fetch(`${await address}/api/networks`)).json();
    const trained = ({ explained }) => explained.some(({ phase }) => phase === "training");
    const drawn = networks.filter(trained).map(({ model }) => model);
    for (const model of records > 0 ? ["autoencoder", "deconv", "vae", "cvae", "rbm", "dbn", "digits_dbn", "gan"] : [])
      assert.ok(drawn.includes(model), `${model} is not drawn as it is trained`);
    assert.equal(await stopGuide(guide), 0);
  },
};

async function nothingComplains() {
  assert.deepEqual(complaints, []);
}

function fillStore() {
  const results = join(folder, "results.jsonl");
  const networks = join(folder, "networks.jsonl");
  writeFixture(results);
  writeFileSync(
    networks,
    [
      ...["small", "large", "lenet", "rnn", "ptb_lstm"].map((model) => [model, "inference"]),
      ...["gan", "vae", "cvae", "rbm", "dbn", "deconv", "resnet18", "googlenet"].map((model) => [
        model,
        "training",
      ]),
    ]
      .map(([model, phase]) => run(prony, "explain", model, "--phase", phase, "--json"))
      .join(""),
  );
  run(prony, "store", "create", "--empty", "--store", store);
  run(prony, "store", "add", results, networks, "--store", store);
  fillProfiles(prony, store, folder);
}

// A test, with pages of its own; what fails is said in one piece.
async function passes(name, test, browser, address) {
  const pages = [];
  const context = {
    browser,
    prony,
    store,
    folder,
    pictures,
    async open(path, options) {
      const page = await openPage(browser, address, path, options);
      pages.push(page);
      return page;
    },
    async picture(page, title) {
      if (!pictures) return;
      await settled(page);
      await page.screenshot({ path: join(pictures, `${title}.png`), fullPage: true });
    },
  };
  const begun = Date.now();
  try {
    await test(context);
    console.log(`ok   slow_browser.${name}`);
    return true;
  } catch (error) {
    console.log(`${error.message}\nFAIL slow_browser.${name}`);
    return false;
  } finally {
    if (process.env.PRONY_TIMES) console.error(`${name}: ${Date.now() - begun} ms`);
    for (const page of pages) await page.context().close();
  }
}

// Several at once: a test waits for its page more than it computes.
async function runTests(browser, address) {
  const wanted = Object.entries(tests).filter(([name]) => name.includes(process.env.PRONY_BROWSER ?? ""));
  let failed = 0;
  const lane = async () => {
    for (let next = wanted.shift(); next; next = wanted.shift())
      if (!(await passes(...next, browser, address))) failed++;
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  if (!(await passes("nothing_complains_or_leaves_the_machine", nothingComplains, browser, address))) failed++;
  return failed;
}

async function main() {
  if (pictures) mkdirSync(join(pictures, "docs"), { recursive: true });
  fillStore();
  const { guide, address } = startGuide(prony, store);
  const browser = await chromium.launch({
    executablePath: browserPath,
    handleSIGTERM: false, // see above
    handleSIGINT: false,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const failed = await runTests(browser, await address);
  await browser.close();
  const code = await stopGuide(guide);
  console.log(
    code === 0
      ? "ok   slow_browser.stops_on_interrupt"
      : `exit status ${code}\nFAIL slow_browser.stops_on_interrupt`,
  );
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
process.exit(); // a guide that a failed test has left would keep this one waiting
