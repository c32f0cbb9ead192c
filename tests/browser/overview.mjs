// overview.mjs: the first view, and the words it explains: what a reader meets in the first minute.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { changedTo, openPage, run, startGuide, stopGuide, visit, withClipboard } from "./guide.mjs";
import { troublesOf } from "./looks.mjs";

const cardsOf = (page) =>
  page.$$eval(".finding", (cards) =>
    cards.map((card) => ({
      title: card.querySelector("h2").textContent,
      sentence: card.querySelector(".finding-sentence").textContent.replaceAll("\u00a0", " "),
      chart: card.querySelectorAll("figure").length,
      ways: [...card.querySelectorAll(".finding-ways > *")].map(({ textContent }) => textContent),
    })),
  );

export const overviewTests = {
  async the_overview_is_first_and_says_what_the_api_says({ open }) {
    const page = await open("/");
    assert.equal(await page.textContent("h1"), "What this machine can do with neural networks");
    assert.equal(await page.getAttribute("#view-overview", "aria-current"), "page");
    const told = await page.evaluate(() => fetch("/api/overview").then((answer) => answer.json()));
    assert.ok(told.findings.length >= 3 && told.findings.length <= 6, `${told.findings.length} findings`);
    const cards = await cardsOf(page);
    assert.deepEqual(
      cards.map(({ title, sentence }) => [title, sentence]),
      told.findings.map(({ title, sentence }) => [title, sentence.replaceAll("`", "")]),
    );
    assert.ok(cards.filter(({ chart }) => chart === 1).length >= 3, "charts are missing");
    const head = await page.textContent(".overview-machine");
    assert.ok(head.includes(told.machine) && head.includes(`${told.results} results`), head);
    assert.ok((await page.textContent("#machine option:checked")).includes(told.machine));
  },

  async a_card_leads_to_its_figures_and_its_command({ open }) {
    const page = await open("/");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const [finding] = await page.evaluate(async () => (await (await fetch("/api/overview")).json()).findings);
    await withClipboard(async () => {
      await page.click(`#again-${finding.name}`);
      await page.waitForSelector(`#again-${finding.name}:has-text("Command copied")`);
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), finding.command);
    });
    await page.click(`#finding-${finding.name} a`);
    await changedTo(page, "x=");
    assert.equal(await page.getAttribute("#view-explorer", "aria-current"), "page");
    const address = new URL(page.url()).searchParams;
    for (const [key, value] of new URLSearchParams(finding.chart))
      assert.ok(address.getAll(key).includes(value), `${key}=${value} is not in ${address}`);
    await page.goBack();
    await page.waitForSelector(".finding");
  },

  async another_machine_can_be_chosen({ open }) {
    const page = await open("/");
    await page.waitForSelector("#machine option[value='own/tower']", { state: "attached" });
    const names = await page.$$eval("#machine option", (all) => all.map(({ value }) => value));
    assert.deepEqual(names.sort(), ["own/box", "own/tower"]);
    await page.selectOption("#machine", "own/tower");
    await changedTo(page, "server=tower");
    await page.waitForFunction(() => document.querySelector(".overview-machine strong").title === "tower");
    await page.click("#view-scaling");
    await changedTo(page, "view=scaling");
    await page.selectOption("#machine", "own/box");
    await changedTo(page, "server=box");
    assert.ok(page.url().includes("view=scaling"));
  },

  async the_keyboard_reaches_every_card({ open }) {
    const page = await open("/");
    await page.focus("#view-overview");
    const reached = new Set();
    for (let step = 0; step < 80; step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        const { outlineStyle, outlineWidth } = getComputedStyle(one);
        return {
          key: one.id || one.outerHTML.slice(0, 90),
          card: one.closest(".finding")?.id,
          ring: one === document.body || (outlineStyle !== "none" && parseFloat(outlineWidth) > 0),
        };
      });
      assert.ok(at.ring, `the focus cannot be seen on ${at.key}`);
      if (reached.has(at.key)) break;
      reached.add(at.key);
      if (at.card) reached.add(at.card);
    }
    for (const id of await page.$$eval(".finding", (cards) => cards.map((card) => card.id)))
      assert.ok(reached.has(id), `the keyboard does not reach ${id}`);
    for (const id of ["machine", "copy-link", "theme"])
      assert.ok(reached.has(id), `the keyboard does not reach ${id}`);
  },

  async terms_are_explained_where_they_appear({ open }) {
    const page = await open("/");
    const term = page.locator(".term").first();
    await term.focus();
    const said = await page.textContent("#term-note");
    assert.ok(said.length > 20, "a term says nothing");
    assert.equal(await term.getAttribute("aria-describedby"), "term-note");
    await page.keyboard.press("Escape");
    assert.ok(await page.isHidden("#term-note"));
    await term.hover();
    assert.ok(await page.isVisible("#term-note"));
    await (await open("/?view=explorer")).waitForSelector(".hint .term");
    const learn = await open("/?view=learn");
    const terms = await learn.$$eval(".glossary:not(.reading) dt", (all) =>
      all.map(({ textContent }) => textContent),
    );
    assert.ok(terms.length >= 30, `${terms.length} terms`);
    await learn.fill("#find", "roofline");
    const left = await learn.$$eval(".glossary:not(.reading) > :not([hidden])", (all) => all.length);
    assert.ok(left > 0 && left < terms.length, `${left} terms are left`);
  },

  // What `make start` does: the page is there before its results are.
  async cards_come_by_themselves({ browser, prony, folder }) {
    const filling = join(folder, "filling.db");
    run(prony, "store", "create", "--empty", "--store", filling);
    const { guide, address } = startGuide(prony, filling);
    const page = await openPage(browser, await address, "/");
    assert.match(await page.textContent("main"), /No results yet/);
    run(prony, "store", "add", join(folder, "results.jsonl"), "--store", filling);
    await page.waitForSelector(".finding", { timeout: 15000 });
    assert.ok((await page.$$(".finding")).length >= 3);
    await page.context().close();
    assert.equal(await stopGuide(guide), 0);
  },

  async a_bench_is_seen_before_its_first_result({ browser, prony, folder, picture }) {
    const filling = join(folder, "begun.db");
    run(prony, "store", "create", "--empty", "--store", filling);
    const { guide, address } = startGuide(prony, filling);
    const page = await openPage(browser, await address, "/");
    const words = ["bench", "large", "--batch", "64", "--backend", "ref", "--store", filling];
    const bench = spawn(prony, words, { stdio: "ignore" });
    const ended = new Promise((resolve) => bench.once("exit", resolve));
    await page.waitForSelector(".measuring", { timeout: 30000 });
    assert.match(await page.textContent(".measuring"), /Measuring now: 0 of 1.*large training, batch 64/);
    assert.equal((await page.$$(".cards > *")).length, 3);
    assert.deepEqual(await troublesOf(page), []);
    await picture(page, "overview-begun");
    bench.kill("SIGINT");
    await ended;
    await page.context().close();
    assert.equal(await stopGuide(guide), 0);
  },

  async own_results_come_before_those_that_ship({ browser, prony, folder }) {
    const both = join(folder, "both.db");
    run(prony, "store", "create", "--store", both);
    run(prony, "store", "add", join(folder, "results.jsonl"), "--store", both);
    const { guide, address } = startGuide(prony, both);
    const page = await openPage(browser, await address, "/");
    assert.equal(await page.$(".overview-machine .badge"), null);
    assert.equal(await page.getAttribute(".overview-machine strong", "title"), "box");
    await page.waitForSelector("#machine optgroup", { state: "attached" });
    const groups = await page.$$eval("#machine optgroup", (all) => all.map(({ label }) => label));
    assert.deepEqual(groups, ["Your machines", "Measured elsewhere (shipped with prony)"]);
    const marked = await page.$$eval("#machine optgroup:last-child option", (all) =>
      all.map(({ textContent }) => textContent.startsWith("Shipped: ")),
    );
    assert.ok(marked.length > 0 && marked.every(Boolean), "a shipped machine is not marked");
    await page.click(".elsewhere:last-child a");
    await changedTo(page, "source=shipped");
    await page.waitForSelector(".overview-machine .badge");
    assert.deepEqual(await troublesOf(page), []);
    await visit(page, "/?view=scaling&source=shipped"); // names no machine: one network on one of them
    assert.match(page.url(), /source=shipped&model=[^&]+&server=[^&]+$/);
    await page.context().close();
    assert.equal(await stopGuide(guide), 0);
  },
};
