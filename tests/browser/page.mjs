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
import { takePictures } from "./pictures.mjs";
import { fillProfiles, profileTests } from "./profiles.mjs";
import { viewTests } from "./views.mjs";

const [prony, browserPath, pictures, shown] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "prony-browser-"));
const store = join(folder, "store.db");

const tests = {
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

  async nothing_complains_or_leaves_the_machine() {
    assert.deepEqual(complaints, []);
  },
};

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

async function runTests(browser, address) {
  let failed = 0;
  const context = {
    browser,
    prony,
    store,
    folder,
    pictures,
    open: (path, options) => openPage(browser, address, path, options),
    async picture(page, name) {
      if (!pictures) return;
      await settled(page);
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
    },
  };
  for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(process.env.PRONY_BROWSER ?? "")) continue;
    try {
      await test(context);
      console.log(`ok   slow_browser.${name}`);
    } catch (error) {
      failed++;
      console.log(`${error.message}\nFAIL slow_browser.${name}`);
    }
    for (const open of browser.contexts()) await open.close();
  }
  return failed;
}

async function main() {
  if (pictures) mkdirSync(join(pictures, "docs"), { recursive: true });
  fillStore();
  const { guide, address } = startGuide(prony, store);
  const browser = await chromium.launch({
    executablePath: browserPath,
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
