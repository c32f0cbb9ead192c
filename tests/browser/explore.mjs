// explore.mjs: what the explorer offers, line by line: one machine at first, few series, names at line ends,
// a crosshair, chips, search, charts side by side, natural orders, trends; and how Explore, Compare and
// Scaling look at every width.

import assert from "node:assert/strict";
import { askSql, changedTo, pixelsOf, rowsOf, saved, settled } from "./guide.mjs";

const PLAIN = "threads=1&workers=1&server=box";
const BY_BATCH = `/?y=throughput&x=batch&group=framework,backend&log=xy&phase=training&${PLAIN}`;

// The words that a saved drawing has in it, with their places.
async function wordsIn(page, button = "#chart-svg") {
  const svg = (await saved(page, button)).bytes.toString("utf8");
  const elsewhere = await page.context().newPage();
  const words = await elsewhere.evaluate((text) => {
    const place = document.createElement("div");
    place.innerHTML = text;
    document.body.append(place);
    return [...place.querySelectorAll("text")].map((one) => {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      return { text: one.textContent, left, right, top, bottom };
    });
  }, svg);
  await elsewhere.close();
  return words;
}

const pressed = (page, id) => page.getAttribute(`#${id}`, "aria-pressed");

async function pointAt(page, across, down, chart = ".chart canvas") {
  const box = await (await page.$(chart)).boundingBox();
  await page.mouse.move(box.x + box.width * across, box.y + box.height * down);
  await page.mouse.move(box.x + box.width * across + 2, box.y + box.height * down);
  await page.waitForSelector(".tip");
}

export const exploreTests = {
  async names_stand_at_line_ends_and_not_on_each_other({ open }) {
    const page = await open(
      `/?y=throughput&x=batch&group=phase,framework,backend,threads&log=xy&server=box&workers=1&all=yes`,
    );
    await settled(page);
    const names = (await wordsIn(page)).filter(({ text }) => /, (numpy|prony|python-list)/.test(text));
    assert.equal(names.length, new Set((await rowsOf(page)).map((row) => row.slice(0, 4).join())).size);
    assert.equal(new Set(names.map(({ left }) => Math.round(left))).size, 1, "names are not in one column");
    const sorted = names.sort((a, b) => a.top - b.top);
    sorted
      .slice(1)
      .forEach(({ text, top }, at) =>
        assert.ok(top >= sorted[at].bottom - 3, `${sorted[at].text} on ${text}`),
      );
    assert.equal(await page.$eval("#chart-legend", (one) => getComputedStyle(one).opacity), "0");
  },

  async legend_entries_hide_and_show_their_series({ open }) {
    const page = await open(
      `/?y=throughput&x=phase&group=batch&chart=bar&server=box&workers=1&threads=1&backend=simd`,
    );
    await settled(page);
    assert.ok((await pixelsOf(page, "--series-2")) > 100, "nothing to hide");
    await page.focus("#chart-legend li:nth-child(2) button");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal(await page.getAttribute("#chart-legend li:nth-child(2) button", "aria-pressed"), "false");
    assert.equal(await pixelsOf(page, "--series-2", ".chart"), 0);
    assert.ok(!(await wordsIn(page)).some(({ text }) => text === "batch 3"), "the file has what is hidden");
    await page.click("#chart-legend li:nth-child(2) button");
    await settled(page);
    assert.ok((await pixelsOf(page, "--series-2")) > 100, "it does not come back");
  },

  async names_at_line_ends_hide_their_series({ open }) {
    const page = await open(BY_BATCH);
    await settled(page);
    const names = () =>
      page.$eval(".chart canvas", (canvas) =>
        globalThis.canvasTexts(canvas).filter(({ text }) => /numpy/i.test(text)),
      );
    const [name] = await names();
    const box = await (await page.$(".chart canvas")).boundingBox();
    const by = box.width / (await page.$eval(".chart canvas", ({ width }) => width));
    await page.mouse.click(box.x + (name.left + 6) * by, box.y + ((name.top + name.bottom) / 2) * by);
    await page.waitForSelector('#chart-legend.in-use button[aria-pressed="false"]');
    await settled(page);
    assert.deepEqual(await names(), []);
    await page.click('#chart-legend button[aria-pressed="false"]');
    await settled(page);
    assert.equal((await names()).length, 1);
  },

  async six_series_are_drawn_at_first({ open }) {
    const page = await open(
      "/?y=throughput&x=batch&group=phase,framework,backend&log=xy&server=box&workers=1&threads=1",
    );
    assert.equal(await page.textContent("#left-out"), "6 of 8 series are drawn; the table has all. +2 more");
    assert.equal((await page.$$("#chart-legend li")).length, 6);
    await page.click("#more-series");
    await changedTo(page, "all=yes");
    assert.equal((await page.$$("#chart-legend li")).length, 8);
    await page.click("#more-series");
    await page.waitForFunction(() => !location.search.includes("all="));
  },

  async series_are_named_by_what_differs({ open }) {
    const names = async (group, more) => {
      const page = await open(`/?y=throughput&x=batch&group=${group}&log=xy&server=box&${more}`);
      const all = await page.$$eval("#chart-legend li", (items) =>
        items.map(({ firstChild }) => firstChild.lastChild.textContent),
      );
      await page.context().close();
      return all;
    };
    assert.deepEqual(await names("framework,backend,threads", "framework=numpy&phase=training"), [
      "1 thread",
      "2 threads",
      "4 threads",
    ]);
    assert.deepEqual(
      await names("framework,threads", "phase=training&backend=simd&backend=default&threads=1&threads=2"),
      ["numpy, 1 thread", "numpy, 2 threads", "prony, 1 thread", "prony, 2 threads", "python-list, 1 thread"],
    );
  },

  async the_crosshair_has_every_series_sorted({ open }) {
    const page = await open(BY_BATCH);
    await settled(page);
    await pointAt(page, 0.1, 0.4);
    const rows = await page.$$eval(".tip tr", (all) =>
      all.map((row) => row.cells[0].textContent.replace(/^\W/, "")),
    );
    assert.deepEqual(rows, ["prony, simd", "numpy", "prony, ref", "python-list"]);
    assert.match(await page.textContent(".tip"), /^batch 1/);
  },

  async filters_that_hold_are_chips_to_take_off({ open }) {
    const page = await open(`${BY_BATCH}&framework=prony&framework=numpy`);
    assert.match(await page.textContent("#active-framework"), /framework prony or numpy ×/);
    await page.click("#active-framework");
    await page.waitForFunction(() => !location.search.includes("framework="));
    await changedTo(page, "phase=training");
    await page.click("#active-clear");
    await page.waitForFunction(() => !location.search.includes("phase="));
    assert.equal(await page.$("#active"), null);
  },

  async filters_can_be_searched_and_chosen_all_or_none({ open }) {
    const page = await open(BY_BATCH);
    await page.fill("#filter-search", "pyth");
    assert.ok(await page.isVisible("#filter-framework-python-list"));
    assert.ok(await page.isHidden("#filter-framework-numpy"));
    assert.ok(await page.isHidden("#filter-batch"));
    await page.click("#filter-framework-all"); // what the search leaves
    await changedTo(page, "framework=python-list");
    assert.ok(!page.url().includes("framework=numpy"));
    assert.equal(await page.inputValue("#filter-search"), "pyth", "the search is forgotten");
    await page.fill("#filter-search", "");
    await page.click("#filter-framework-all");
    await changedTo(page, "framework=numpy");
    await page.click("#filter-framework-none");
    await page.waitForFunction(() => !location.search.includes("framework="));
  },

  async measures_come_in_groups({ open }) {
    const page = await open(BY_BATCH);
    const groups = await page.$$eval("#y optgroup", (all) =>
      Object.fromEntries(all.map((group) => [group.label, [...group.children].map(({ value }) => value)])),
    );
    for (const [group, metric] of Object.entries({
      Time: "time_median",
      Rate: "throughput",
      Limit: "times_floor",
      Memory: "peak_memory",
      Energy: "energy",
      Learning: "accuracy",
    }))
      assert.ok(groups[group]?.includes(metric), `${metric} is not under ${group}`);
    const { metrics } = await page.evaluate(async () => (await fetch("/api/axes")).json());
    assert.equal(Object.values(groups).flat().length, metrics.length);
  },

  async one_chart_per_value_in_one_step({ open }) {
    const page = await open(`/?y=throughput&x=batch&group=framework,backend&log=xy&${PLAIN}`);
    const rows = await rowsOf(page);
    await page.selectOption("#facet", "phase");
    await changedTo(page, "facet=phase");
    await settled(page);
    assert.deepEqual(
      await page.$$eval(".panel-figure figcaption", (all) => all.map((one) => one.textContent)),
      ["training", "inference"],
    );
    assert.equal((await page.$$(".panel canvas")).length, 2);
    assert.equal((await page.$$("#chart-legend li")).length, 4);
    assert.ok(rows.length < (await rowsOf(page)).length, "the table does not tell the charts apart");
    const marks = (await wordsIn(page)).filter(({ text }) => /^[\d.]+k?$/.test(text)).map(({ text }) => text);
    const count = (mark) => marks.filter((text) => text === mark).length;
    for (const mark of new Set(marks)) assert.equal(count(mark) % 2, 0, `the charts do not share ${mark}`);
    await pointAt(page, 0.5, 0.5, ".panel-figure:nth-child(2) canvas");
  },

  async values_stand_in_their_natural_order({ open }) {
    const page = await open(
      `/?y=throughput&x=phase&group=batch&chart=bar&server=box&workers=1&threads=1&backend=simd`,
    );
    const batches = await page.$$eval('input[id^="filter-batch-"]', (all) =>
      all.map(({ id }) => id.split("-").pop()),
    );
    assert.deepEqual(batches, ["1", "3", "10", "64"]);
    assert.deepEqual(
      await page.$$eval("#chart-legend button", (all) => all.map(({ lastChild }) => lastChild.textContent)),
      ["batch 1", "batch 3", "batch 10", "batch 64"],
    );
    const phases = (await wordsIn(page)).filter(({ text }) => ["training", "inference"].includes(text));
    assert.ok(
      phases[0].top < phases[1].top === (phases[0].text === "training"),
      "inference is above training",
    );
  },

  async names_on_a_logarithmic_scale_are_dots({ open }) {
    const page = await open(
      `/?y=throughput&x=framework&group=backend&log=y&phase=training&batch=64&${PLAIN}`,
    );
    assert.equal(await pressed(page, "kind-dot"), "true");
    await page.click("#kind-bar");
    await changedTo(page, "chart=bar");
    assert.equal(await page.isChecked("#log-y"), false);
    await page.check("#log-y");
    await changedTo(page, "log=y");
    assert.equal(await pressed(page, "kind-dot"), "true");
  },

  async a_trend_follows_time({ open, store }) {
    const page = await open(
      "/?y=throughput&x=commit&group=backend&log=y&backend=simd&phase=training&batch=1&threads=1",
    );
    assert.match(await page.textContent("h1"), /^Throughput over commit/);
    assert.equal(await pressed(page, "kind-line"), "true");
    const wanted = askSql(
      store,
      'SELECT "commit" FROM result WHERE "commit" IS NOT NULL GROUP BY 1 ORDER BY MIN(time)',
    ).flat();
    const found = (await wordsIn(page))
      .filter(({ text }) => wanted.includes(text))
      .sort((a, b) => a.left - b.left);
    assert.deepEqual(
      found.map(({ text }) => text),
      wanted,
    );
    await page.selectOption("#x", "time");
    await changedTo(page, "x=time");
    assert.equal(await pressed(page, "kind-line"), "true");
  },

  async what_changes_along_a_line_is_told({ open }) {
    const page = await open(
      "/?y=throughput&x=time&group=framework,backend&log=y&server=box&workers=1&backend=simd",
    );
    assert.match(
      await page.textContent("#warning"),
      /^From point to point phase, batch and threads differ, too\./,
    );
    await page.click("#mixed-phase");
    await changedTo(page, "backend%2Cphase");
    assert.match(await page.textContent("#warning"), /^From point to point batch and threads differ, too\./);
  },

  async the_table_sorts_by_a_click({ open }) {
    const page = await open(BY_BATCH);
    const figures = async () => (await rowsOf(page)).map((row) => Number(row[3].replaceAll(",", "")));
    for (const sort of ["throughput", "-throughput"]) {
      await page.click("#table-sort-throughput");
      await changedTo(page, `sort=${sort}`);
      const sorted = [...(await figures())].sort((a, b) => (sort.startsWith("-") ? b - a : a - b));
      assert.deepEqual(await figures(), sorted);
    }
    assert.equal(await page.getAttribute("th:has(#table-sort-throughput)", "aria-sort"), "descending");
  },

  async scaling_begins_with_one_network({ open }) {
    const page = await open("/?view=scaling");
    await changedTo(page, "model=large");
    assert.match(page.url(), /server=box/);
    assert.match(await page.textContent("h1"), /^Speed-up over threads: large, /);
  },
};
