// views.mjs: what each view besides the explorer does, and the keyboard.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  askSql,
  changedTo,
  openPage,
  pixelsOf,
  readCsv,
  rowCount,
  rowsOf,
  run,
  saved,
  settled,
  shown,
  startGuide,
  stopGuide,
  visit,
} from "./guide.mjs";

// In the page: how many lines its drawings have, and which boxes have one behind them, or another box, or
// a title that is longer than they are.
function linesBehindBoxes() {
  const wrong = [];
  let lines = 0;
  for (const image of document.querySelectorAll("svg.network")) {
    const boxes = [...image.querySelectorAll("g.box")].map((box) => {
      const { e: left, f: top } = box.transform.baseVal.consolidate().matrix;
      const frame = box.querySelector(".frame").getBBox();
      const title = box.querySelector(".box-title");
      if (title.getBBox().x + title.getBBox().width > frame.width) wrong.push(`long: ${title.textContent}`);
      return { name: title.textContent, left, top, right: left + frame.width, bottom: top + frame.height };
    });
    boxes.forEach((a, index) => {
      for (const b of boxes.slice(index + 1))
        if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          wrong.push(`${a.name} on ${b.name}`);
    });
    for (const line of image.querySelectorAll("path.arrow")) {
      lines++;
      const length = line.getTotalLength();
      for (let along = 2; along < length - 2; along += 2) {
        const { x, y } = line.getPointAtLength(along);
        const over = boxes.find((box) => x > box.left && x < box.right && y > box.top && y < box.bottom);
        if (over) wrong.push(`a line behind ${over.name}`);
      }
    }
  }
  return { lines, wrong };
}

export const viewTests = {
  async the_keyboard_is_enough({ open }) {
    const page = await open("/?view=explorer");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the results");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await page.evaluate(() => document.activeElement.blur());
    await page.focus("#view-explorer");
    const seen = new Set();
    let hidden = 0;
    for (let step = 0; step < 400; step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return null;
        const outline = getComputedStyle(one);
        return {
          key: one.id || one.outerHTML.slice(0, 100),
          ring: outline.outlineStyle !== "none" && parseFloat(outline.outlineWidth) > 0,
        };
      });
      if (at === null || seen.has(at.key)) break; // round once
      seen.add(at.key);
      if (!at.ring) hidden++;
    }
    assert.equal(hidden, 0, "the focus cannot be seen everywhere");
    for (const id of [
      "theme",
      "y",
      "x",
      "group-framework",
      "aggregate",
      "show-speedup",
      "log-y",
      "series-add",
      "filter-framework-prony",
      "kind-bar",
      "chart-png",
      "chart-csv",
      "table-scroll",
      "table-sort-batch",
    ])
      assert.ok(seen.has(id), `the keyboard does not reach #${id}`);
    await page.focus("#filter-framework-prony");
    await page.keyboard.press("Space");
    await changedTo(page, "framework=prony");
    assert.equal(await page.evaluate(() => document.activeElement.id), "filter-framework-prony");
    await page.focus('[id^="point-"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector("#histogram-title");
    await page.focus("#view-machines");
    await page.keyboard.press("Enter");
    await changedTo(page, "view=machines");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    assert.equal(await page.getAttribute("#view-machines", "aria-current"), "page");
  },

  async colours_are_the_readers_choice({ open }) {
    const page = await open("/?view=explorer");
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.click("#theme"); // light
    assert.equal(await ground(), light);
    await page.click("#theme"); // dark
    assert.notEqual(await ground(), light);
    await settled(page);
    assert.ok((await pixelsOf(page, "--series-1")) > 200, "the chart is not in the colours of the dark");
    await page.reload();
    await shown(page);
    assert.notEqual(await ground(), light);
  },

  async compare_gives_ratio_and_verdict({ open, store }) {
    const page = await open(
      "/?view=compare&a=framework%3Dprony+backend%3Dsimd&b=framework%3Dnumpy&phase=training&threads=1&workers=1&server=box&source=own",
    );
    const csv = readCsv((await saved(page, "#compare-csv")).bytes);
    assert.deepEqual(csv.map(({ batch }) => batch).sort(), ["1", "10", "3", "64"]);
    for (const row of csv) {
      const [[ours]] = askSql(
        store,
        `SELECT time_median FROM result WHERE backend = 'simd' AND phase = 'training' AND threads = 1 AND workers = 1 AND server = 'box' AND source = 'own' AND batch = ${row.batch} ORDER BY time DESC LIMIT 1`,
      );
      const [[theirs]] = askSql(
        store,
        `SELECT time_median FROM result WHERE framework = 'numpy' AND phase = 'training' AND threads = 1 AND source = 'own' AND batch = ${row.batch}`,
      );
      assert.ok(Math.abs(Number(row.ratio) - ours / theirs) < 1e-9);
      assert.equal(row.verdict, "faster");
    }
    assert.match(await page.textContent("#summary"), /4 configurations matched\. A takes 0\.\d+ of B's time/);
    await page.click("#compare-table-sort-ratio");
    await changedTo(page, "sort=ratio");
    const ratios = (await rowsOf(page, "compare-table")).map((row) => Number(row[3]));
    assert.deepEqual(
      ratios,
      [...ratios].sort((a, b) => a - b),
    );
    await page.selectOption("#b-framework", "python-list");
    await changedTo(page, "python-list");
    await rowCount(page, 4, "compare-table");
    const bare = await open("/?view=compare");
    assert.ok((await rowsOf(bare, "compare-table")).length > 0, "nothing is compared unasked");
  },

  async compare_takes_values_with_blanks_and_quick_changes({ open }) {
    const page = await open("/?view=compare&a=backend%3Dsimd&b=backend%3Dsimd&source=own");
    await page.click("#apart-unit_name");
    await changedTo(page, "unit_name");
    await page.selectOption("#b-unit_name", "CPU of tower");
    await changedTo(page, "tower");
    assert.equal((await rowsOf(page, "compare-table")).length, 4);
    const again = await open(page.url().replace(/^http:\/\/[^/]+/, ""));
    assert.equal(await again.inputValue("#b-unit_name"), "CPU of tower");
    assert.deepEqual(await rowsOf(again, "compare-table"), await rowsOf(page, "compare-table"));
    await again.evaluate(() => {
      for (const [id, value] of [
        ["a-unit_name", "CPU of tower"],
        ["b-unit_name", "CPU of box"],
        ["y", "throughput"],
      ]) {
        const control = document.getElementById(id);
        control.value = value;
        control.dispatchEvent(new Event("change"));
      }
    });
    await changedTo(again, "y=throughput");
    assert.equal(await again.inputValue("#a-unit_name"), "CPU of tower");
    assert.equal(await again.inputValue("#b-unit_name"), "CPU of box");
  },

  async roofline_has_every_record_of_the_machine({ open, store }) {
    const page = await open("/?view=roofline&server=box&source=own");
    const [[count]] = askSql(
      store,
      "SELECT COUNT(*) FROM result WHERE server = 'box' AND status = 'ok' AND flop_rate IS NOT NULL AND source = 'own'",
    );
    const csv = readCsv((await saved(page, "#roofline-csv")).bytes);
    assert.equal(csv.length, count);
    await settled(page);
    assert.ok((await pixelsOf(page, "--faint")) > 100, "no roof is drawn");
    await page.check("#filter-phase-training");
    await changedTo(page, "phase=training");
    assert.ok((await rowsOf(page, "roofline-table")).every(([label]) => label.includes("training")));
  },

  async scaling_is_measured_against_ideal({ open }) {
    const page = await open("/?view=scaling&phase=inference&backend=simd&source=own");
    const rows = await rowsOf(page, "scaling-table");
    assert.deepEqual(
      rows.map((row) => row.slice(5)),
      [
        ["1", "1", "1", "100"],
        ["2", "1.85", "2", "92.5"],
        ["4", "3.55", "4", "88.7"],
      ],
    );
    await page.click("#show-efficiency");
    await changedTo(page, "show=efficiency");
    const offered = await page.$$eval("#over option", (all) => all.map(({ value }) => value));
    assert.deepEqual(offered, ["threads"], "no result has several workers");
  },

  async machines_and_networks_show_what_is_known({ open }) {
    const all = await open("/?view=machines");
    await all.click('#machines a:text-is("box")');
    await changedTo(all, "server=box");
    assert.match(await all.textContent("main"), /CPU of box.*32 MiB.*Debian/s);
    assert.equal((await rowsOf(all, "calibration-table")).length, 42);
    const networks = await open("/?view=networks");
    await networks.click('#networks a:text-is("lenet")');
    await changedTo(networks, "model=lenet");
    assert.ok((await networks.$$("svg.network g.box")).length >= 8, "layers are not drawn");
    assert.match(await networks.textContent("svg.network"), /conv1.*dense3/s);
    assert.match(await networks.textContent("main"), /61,706 parameters/);
    const drawing = await saved(networks, "#layers-svg");
    assert.equal(drawing.name, "lenet.svg");
    assert.match(drawing.bytes.toString("utf8"), /<rect[^>]*fill="rgb.*conv1/s);
    const ops = readCsv((await saved(networks, "#ops-csv")).bytes);
    assert.equal(ops.length, (await rowsOf(networks, "ops")).length);
    assert.ok(
      (await rowsOf(networks, "ops")).some((row) =>
        row.join(" ").includes("conv(x, conv1.weight, conv1.bias)"),
      ),
    );
    const unknown = await open("/?view=networks&model=nothing");
    assert.match(await unknown.textContent("main"), /This store has no result of it/);
  },

  async networks_are_drawn_program_by_program({ open }) {
    const training = { gan: 2, vae: 1, cvae: 1, rbm: 1, dbn: 7, deconv: 1, resnet18: 1, googlenet: 1 }; // programs
    const page = await open("/?view=networks");
    for (const [model, count] of Object.entries(training)) {
      await visit(page, `/?view=networks&model=${model}`);
      assert.equal((await page.$$("svg.network")).length, count, `drawings of ${model}`);
      assert.equal((await page.$$("main table")).length, count, `tables of ${model}`);
      const { lines, wrong } = await page.evaluate(linesBehindBoxes);
      assert.ok(lines >= 12, `${model}: ${lines} lines`);
      assert.deepEqual(wrong, [], model);
    }
    for (const model of ["rnn", "ptb_lstm"]) {
      await visit(page, `/?view=networks&model=${model}&phase=inference`);
      const { lines, wrong } = await page.evaluate(linesBehindBoxes);
      assert.ok(lines >= 3, `${model}: ${lines} lines`);
      assert.deepEqual(wrong, [], model);
    }
    await visit(page, "/?view=networks&model=gan");
    assert.match(await page.textContent("main"), /gan: discriminator.*gan: generator/s);
    assert.equal((await saved(page, "#layers-2-svg")).name, "gan-generator.svg");
  },

  async answers_have_sentence_chart_and_command({ open }) {
    const page = await open("/?view=answers&model=large");
    const links = await page.$$eval(".answer h2 a", (all) => all.map((link) => link.getAttribute("href")));
    assert.ok(links.length >= 6, "questions are missing");
    let commands = 0; // where nothing here can ask a machine, none is offered
    for (const path of links) {
      await visit(page, path);
      assert.ok((await page.textContent("#answer")).length > 20);
      for (const command of await page.$$(".command")) {
        assert.match(await command.textContent(), /^prony /);
        commands++;
      }
    }
    assert.ok(commands >= 5, `${commands} commands`);
    const batch = await open("/?view=answers&name=batch&model=large");
    await batch.waitForSelector(".chart canvas");
    await batch.click('a:text("Open this chart in the explorer")');
    await changedTo(batch, "x=batch");
    assert.equal(await batch.getAttribute("#view-explorer", "aria-current"), "page");
  },

  async live_shows_a_bench_as_it_runs({ browser, prony, folder }) {
    const measured = join(folder, "measured.db");
    run(prony, "store", "create", "--empty", "--store", measured);
    const { guide, address } = startGuide(prony, measured);
    const page = await openPage(browser, await address, "/?view=live");
    const bench = spawn(
      prony,
      ["bench", "fcn", "--batch", "1,2", "--backend", "ref", "--seconds", "1", "--store", measured],
      { stdio: "ignore" },
    );
    const ended = new Promise((resolve) => bench.once("exit", resolve));
    await page.waitForSelector("progress", { timeout: 60000 });
    assert.equal(await ended, 0);
    await page.waitForFunction(
      () => /fcn training, batch 2, .*ref/.test(document.querySelector("#live-table tbody tr").textContent),
      undefined,
      { timeout: 30000 },
    );
    await page.waitForSelector("progress", { state: "detached", timeout: 30000 });
    await page.context().close();
    assert.equal(await stopGuide(guide), 0);
  },

  async live_draws_the_curve_of_a_training({ browser, prony, folder }) {
    const learnt = join(folder, "learnt.db");
    run(prony, "store", "create", "--empty", "--store", learnt);
    const { guide, address } = startGuide(prony, learnt);
    const page = await openPage(browser, await address, "/?view=live");
    const words = ["train", "small", "iris", "--epochs", "100000000", "--validate", "0.2", "--store", learnt];
    const training = spawn(prony, words, { stdio: "ignore" });
    const ended = new Promise((resolve) => training.once("exit", resolve));
    await page.waitForSelector('h2:has-text("Loss by epoch: small on iris")', { timeout: 30000 });
    assert.match(await page.textContent(".legend"), /training rows.*held-out rows/);
    assert.ok((await pixelsOf(page, "--series-1")) > 50, "no curve is drawn");
    training.kill("SIGINT");
    await ended;
    await page.waitForSelector(".chart", { state: "detached", timeout: 30000 });
    await page.context().close();
    assert.equal(await stopGuide(guide), 0);
  },

  // Another program's model cannot be opened: views say what would fill them, and no command names it.
  async anothers_results_suggest_what_works({ browser, prony, folder }) {
    const store = join(folder, "foreign.db");
    const log = join(folder, "llama.json");
    writeFileSync(
      log,
      '[{"model_type":"llama 7B","n_threads":4,"n_prompt":512,"n_gen":0,"avg_ns":100,"samples_ns":[90,100,110]}]',
    );
    run(prony, "store", "create", "--empty", "--store", store);
    run(prony, "store", "add", log, "--store", store);
    const { guide, address } = startGuide(prony, store);
    const found = {};
    const page = await openPage(browser, await address, "/?view=live");
    for (const view of ["compare", "roofline", "scaling", "networks", "networks&model=llama%207B", "answers"]) {
      await visit(page, `/?view=${view}`);
      found[view] = await page.$$eval("code.command", (lines) => lines.map(({ textContent }) => textContent));
      assert.ok(!found[view].some((line) => line.includes("llama")), `${view}: ${found[view]}`);
    }
    await page.context().close();
    for (const view of ["roofline", "scaling"])
      assert.match(found[view].join("\n"), /^prony bench /, `${view} does not say what fills it`);
    await stopGuide(guide);
  },

  async an_empty_store_says_what_to_run({ browser, prony, folder, picture }) {
    const empty = join(folder, "empty.db");
    run(prony, "store", "create", "--empty", "--store", empty);
    const { guide, address } = startGuide(prony, empty);
    const page = await openPage(browser, await address, "/");
    assert.match(await page.textContent("main"), /No results yet.*prony bench small/s);
    await picture(page, "empty-light");
    await visit(page, "/?view=networks");
    assert.match(await page.textContent("main"), /No networks yet.*prony explain lenet/s);
    await visit(page, "/?view=profiles");
    assert.match(await page.textContent("main"), /No profiles yet.*prony profile large --batch 10 --store .*empty\.db/s);
    await page.context().close(); // or it misses the server
    assert.equal(await stopGuide(guide), 0);
  },
};
