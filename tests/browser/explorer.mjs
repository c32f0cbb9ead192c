// explorer.mjs: the explorer: its figures are those SQL gives, and everything shown has an address.

import assert from "node:assert/strict";
import {
  askSql,
  changedTo,
  pixelsOf,
  readCsv,
  rowCount,
  rowsOf,
  saved,
  settled,
  visit,
} from "./guide.mjs";

const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.abs(b);
const BOX = "of box, 2 cores"; // what people call the machine, whose CPU is a "CPU of box"
const PLAIN = "threads=1&workers=1&server=box"; // one configuration at each point

export const explorerTests = {
  async first_view_is_one_machine_that_mixes_nothing({ open }) {
    const page = await open("/?view=explorer");
    await settled(page);
    assert.equal(await page.textContent("h1"), `Throughput by batch: large, training, 1 thread, CPU, ${BOX}`);
    assert.match(await page.textContent(".subtitle"), /^20 results, median at each point · higher is better$/);
    assert.equal(await page.$("#warning"), null);
    for (const axis of ["server", "model", "phase", "threads", "workers"])
      assert.ok(await page.$(`#active-${axis}`), `${axis} is not held still`);
    for (const series of [1, 2, 3, 4])
      assert.ok((await pixelsOf(page, `--series-${series}`)) > 200, `series ${series} is not drawn`);
    assert.ok(page.url().includes("y=throughput&x=batch"), "the address does not say what is shown");
  },

  async figures_are_those_sql_gives({ open, store }) {
    const cases = [
      ["throughput", "batch", ["framework", "backend"], "max", { phase: ["training"] }],
      ["time_median", "batch", ["backend"], "min", { framework: ["prony"], phase: ["inference"] }],
      ["times_floor", "threads", ["framework", "phase"], "mean", { batch: ["64"], server: ["box"] }],
      ["cpu_utilisation", "phase", ["framework"], "mean", {}],
      ["forward", "model", [], "min", { batch: ["1", "3"], backend: ["simd"] }],
    ];
    for (const [y, x, group, aggregate, filters] of cases) {
      const given = Object.entries(filters)
        .flatMap(([axis, values]) => values.map((value) => `&${axis}=${value}`))
        .join("");
      const page = await open(`/?y=${y}&x=${x}&group=${group}&aggregate=${aggregate}&source=own${given}`);
      const where = Object.entries(filters)
        .map(([axis, values]) => ` AND "${axis}" IN (${values.map((value) => `'${value}'`)})`)
        .join("");
      const keys = [...group, x].map((axis) => `"${axis}"`);
      const how = { mean: "AVG", max: "MAX", min: "MIN" }[aggregate];
      const wanted = askSql(
        store,
        `SELECT ${keys}, ${how}("${y}"), COUNT("${y}") FROM result WHERE status = 'ok' AND source = 'own' AND "${y}" IS NOT NULL ${where} GROUP BY ${keys}`,
      );
      const got = readCsv((await saved(page, "#chart-csv")).bytes);
      assert.equal(got.length, wanted.length, `${y} by ${x}`);
      const found = new Map(got.map((row) => [[...group, x].map((axis) => row[axis]).join("|"), row]));
      for (const row of wanted) {
        const mark = found.get(row.slice(0, -2).join("|"));
        assert.ok(mark, `${y} by ${x}: no point ${row}`);
        assert.ok(near(Number(mark[y]), row[row.length - 2]), `${y} at ${row}: ${mark[y]}`);
        assert.equal(Number(mark.results), row[row.length - 1]);
      }
    }
  },

  async filters_show_what_exists_and_how_often({ open, store }) {
    const page = await open(
      "/?y=throughput&x=batch&group=framework,backend&model=large&phase=training&source=own",
    );
    const counts = (axis) =>
      page.$$eval(`input[id^="filter-${axis}-"]`, (boxes) =>
        boxes.map((box) => box.parentElement.textContent),
      );
    const wanted = (axis, where) =>
      askSql(
        store,
        `SELECT "${axis}", COUNT(*) FROM result WHERE status = 'ok' AND source = 'own' AND model = 'large' AND ${where} GROUP BY 1 ORDER BY 1`,
      ).map(([value, count]) => `${value ?? "not given"}${count}`);
    assert.deepEqual(await counts("framework"), wanted("framework", "phase = 'training'"));
    const before = await rowsOf(page);
    await page.check("#filter-framework-prony");
    await rowCount(page, 8);
    assert.deepEqual(await counts("framework"), wanted("framework", "phase = 'training'"));
    assert.deepEqual(
      await counts("backend"),
      wanted("backend", "phase = 'training' AND framework = 'prony'"),
    );
    await page.check("#filter-batch-64");
    await rowCount(page, 2);
    await page.goBack();
    await rowCount(page, 8);
    await page.goBack();
    await rowCount(page, before.length);
    await page.click("#filter-clear");
    await changedTo(page, "y=throughput");
    assert.ok(!page.url().includes("model=large"));
  },

  async a_shared_address_restores_the_view({ open }) {
    const first = await open("/?view=explorer");
    await first.selectOption("#y", "time_median");
    await first.waitForFunction(() => document.title.startsWith("Median time"));
    await first.check("#filter-framework-prony");
    await changedTo(first, "framework=prony");
    await first.click("#kind-bar");
    await changedTo(first, "chart=bar");
    await first.uncheck("#log-y");
    await first.waitForFunction(() => !location.search.includes("log=xy"));
    await first.click("#table-sort-time_median");
    await changedTo(first, "sort=time_median");
    const second = await open(first.url().replace(/^http:\/\/[^/]+/, ""));
    assert.deepEqual(await rowsOf(second), await rowsOf(first));
    assert.equal(await second.title(), await first.title());
    assert.equal(await second.getAttribute("#kind-bar", "aria-pressed"), "true");
    assert.equal(await second.isChecked("#log-y"), false);
    assert.equal(await second.isChecked("#filter-framework-prony"), true);
    assert.equal(second.url(), first.url());
  },

  async every_chart_draws_with_and_without_logarithms({ open }) {
    const page = await open(`/?y=time_median&x=batch&group=framework,backend&phase=training&${PLAIN}&log=xy`);
    const kinds = await page.$$eval("#kind button", (buttons) => buttons.map(({ id }) => id));
    assert.deepEqual(kinds, ["kind-line", "kind-dot", "kind-bar", "kind-box"]);
    for (const kind of kinds) {
      await page.click(`#${kind}`);
      await changedTo(page, `chart=${kind.replace("kind-", "")}`);
      for (const log of ["xy", "x"]) {
        await page.setChecked("#log-y", log === "xy");
        await page.waitForFunction((now) => new URLSearchParams(location.search).get("log") === now, log);
        await changedTo(page, "log=");
        await settled(page);
        assert.ok((await pixelsOf(page, "--series-4")) > 50, `${kind} draws nothing with log=${log}`); // the largest
        const dots = kind === "kind-bar" && log === "xy"; // bars have nothing to stand on there
        assert.equal(await page.getAttribute(`#${dots ? "kind-dot" : kind}`, "aria-pressed"), "true");
      }
    }
  },

  async saves_what_is_shown({ open }) {
    const page = await open(`/?y=throughput&x=batch&group=framework,backend&phase=training&${PLAIN}&log=xy`);
    await settled(page);
    const png = await saved(page, "#chart-png");
    assert.equal(png.name, "throughput-by-batch-large-training-1-thread-cpu-of-box-2-cores.png");
    assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
    assert.ok(png.bytes.readUInt32BE(16) >= 2 * 960, "too small to be shown");
    const svg = (await saved(page, "#chart-svg")).bytes.toString("utf8");
    const elsewhere = await page.context().newPage(); // where no policy forbids the file its styles
    const drawn = await elsewhere.evaluate((text) => {
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
      return {
        wrong: parsed.querySelector("parsererror") !== null,
        words: [...parsed.querySelectorAll("text")].map((one) => one.textContent),
        paths: parsed.querySelectorAll("path").length,
      };
    }, svg);
    assert.equal(drawn.wrong, false);
    assert.ok(drawn.paths > 20, "too little is drawn");
    for (const words of [
      `Throughput by batch: large, training, 1 thread, CPU, ${BOX}`,
      `Filters: phase training · threads 1 · workers 1 · machine ${BOX}`,
      "throughput (samples/s)",
      "prony, simd",
      "prony, ref",
      "numpy",
      "python-list",
    ])
      assert.ok(drawn.words.includes(words), `the file lacks "${words}": ${drawn.words}`);
    assert.ok(drawn.words.some((words) => /^Source: prony \d.*store\.db, 20 results/.test(words)));
    const csv = readCsv((await saved(page, "#chart-csv")).bytes);
    assert.equal(csv.length, (await rowsOf(page)).length);
    assert.deepEqual(Object.keys(csv[0]), [
      "framework",
      "backend",
      "batch",
      "throughput",
      "low",
      "high",
      "check",
      "results",
    ]);
  },

  async a_point_opens_its_record({ open }) {
    const page = await open(
      `/?y=throughput&x=phase&phase=training&framework=numpy&batch=64&chart=bar&${PLAIN}`,
    );
    await settled(page);
    const box = await (await page.$(".chart canvas")).boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height * 0.42]; // the one bar, which lies
    await page.mouse.move(x, y);
    await page.mouse.move(x + 4, y);
    await page.waitForSelector(".tip");
    assert.match(await page.textContent(".tip"), /phase training.*784 samples\/s.*1 result/);
    await page.mouse.click(x + 4, y);
    await page.waitForSelector("#histogram-title");
    const said = await page.textContent("main");
    assert.match(said, /prony bench large .*--framework numpy/);
    assert.match(said, /differs by 3.00e-7/);
    assert.match(said, /44.1 a second/);
    assert.match(said, /CPU of box/);
    await settled(page);
    assert.equal((await rowsOf(page, "time-line-table")).length, 31);
    const bins = await rowsOf(page, "histogram-table");
    assert.equal(
      bins.reduce((sum, row) => sum + Number(row[2]), 0),
      31,
    );
    const again = await open(page.url().replace(/^http:\/\/[^/]+/, ""));
    await again.waitForSelector("#histogram-title");
  },

  async unlike_configurations_are_pointed_out({ open }) {
    const page = await open("/?y=throughput&x=batch&group=framework,backend&phase=training&framework=numpy");
    assert.match(
      await page.textContent("#warning"),
      /^One point mixes unlike configurations, which differ in threads/,
    );
    await page.click("#mixed-threads");
    await page.waitForSelector("#warning", { state: "detached" });
    assert.ok(page.url().includes("threads"));
  },

  async speedup_and_efficiency_are_against_the_baseline({ open, store }) {
    const page = await open(
      "/?y=time_median&x=threads&group=framework,backend&batch=64&phase=inference&server=box&backend=simd&show=speedup&baseline=first",
    );
    const times = askSql(
      store,
      "SELECT threads, time_median FROM result WHERE phase = 'inference' AND backend = 'simd' AND batch = 64 AND server = 'box' AND source = 'own' ORDER BY 1",
    );
    const csv = readCsv((await saved(page, "#chart-csv")).bytes);
    for (const [threads, time] of times)
      assert.ok(
        near(Number(csv.find((row) => Number(row.threads) === threads)["speed-up"]), times[0][1] / time),
        `speed-up at ${threads}`,
      );
    await page.click("#show-efficiency");
    await changedTo(page, "show=efficiency");
    const shares = readCsv((await saved(page, "#chart-csv")).bytes);
    for (const [threads, time] of times)
      assert.ok(
        near(
          Number(shares.find((row) => Number(row.threads) === threads).efficiency),
          (100 * times[0][1]) / time / threads,
        ),
      );
    await page.selectOption("#x", "batch");
    await page.waitForFunction(() =>
      document.querySelector("main").textContent.includes("No efficiency to show"),
    );
    await page.click("#show-speedup");
    await changedTo(page, "show=speedup");
    await page.selectOption("#baseline", "batch=64");
    await changedTo(page, "baseline=batch");
  },

  async named_series_have_filters_of_their_own({ open }) {
    const page = await open(`/?y=throughput&x=batch&phase=training&${PLAIN}&log=xy`);
    await page.click("#series-add");
    await changedTo(page, "series=");
    await page.fill("#series-0-name", "ours");
    await page.press("#series-0-name", "Enter");
    await changedTo(page, "ours");
    await page.check("#filter-backend-simd");
    await changedTo(page, "simd");
    await page.click("#series-add");
    await changedTo(page, "edit=1");
    await page.check("#filter-framework-numpy");
    await rowCount(page, 8);
    assert.deepEqual([...new Set((await rowsOf(page)).map(([series]) => series))], ["ours", "series 2"]);
    await page.click("#show-speedup");
    await changedTo(page, "show=speedup");
    await page.selectOption("#baseline", "series:series 2");
    await changedTo(page, "baseline=series");
    const own = (await rowsOf(page)).filter(([series]) => series === "series 2");
    assert.ok(
      own.every((row) => row[2] === "1"),
      "a series is as fast as itself",
    );
    const second = await open(page.url().replace(/^http:\/\/[^/]+/, ""));
    assert.deepEqual(await rowsOf(second), await rowsOf(page));
  },

  // Whoever is quicker than the server changes what an address says that is not on the page yet.
  async quick_changes_are_all_kept({ open }) {
    const page = await open(`/?y=throughput&x=batch&group=framework,backend&${PLAIN}&log=xy`);
    await page.evaluate(() => {
      const use = (id) => document.getElementById(id).click();
      const choose = (id, value) => {
        const control = document.getElementById(id);
        control.value = value;
        control.dispatchEvent(new Event("change"));
      };
      ["filter-framework-prony", "filter-phase-training", "filter-batch-64", "filter-batch-1"].forEach(use);
      ["group-phase", "group-threads", "group-phase", "log-y", "kind-bar", "series-add"].forEach(use);
      choose("y", "time_median");
      choose("aggregate", "max");
    });
    const wanted = {
      framework: ["prony"],
      phase: ["training"],
      batch: ["64", "1"],
      group: ["framework,backend,threads"],
      log: ["x"],
      chart: ["bar"],
      series: ["name=series+1"],
      y: ["time_median"],
      aggregate: ["max"],
    };
    const address = new URL(page.url()).searchParams;
    for (const [key, values] of Object.entries(wanted)) assert.deepEqual(address.getAll(key), values, key);
    await page.waitForFunction(() => document.title.startsWith("Median time"));
    assert.equal(await page.inputValue("#aggregate"), "max");
    assert.equal(await page.getAttribute("#kind-bar", "aria-pressed"), "true");
  },

  async scaling_decides_what_the_batch_filter_means({ open }) {
    const weak = await open(
      "/?y=throughput&x=workers&group=backend&backend=simd&scaling=weak&batch=64&server=box&threads=1&phase=training",
    );
    assert.deepEqual(
      (await rowsOf(weak)).map((row) => row[1]),
      ["1", "2", "4"],
    );
    await weak.click("#filter-scaling-strong");
    await weak.waitForFunction(
      () =>
        document.querySelector("main").getAttribute("aria-busy") === "false" &&
        location.search.includes("strong"),
    );
    assert.deepEqual(
      (await rowsOf(weak)).map((row) => row[1]),
      ["1"],
    ); // 64 in all: one worker only
    assert.match(await weak.textContent("#filter-batch > summary"), /Batch of all workers/);
  },

  async says_what_is_wrong_with_an_address({ open }) {
    const page = await open("/?y=throughput&x=bacth", { bears: /status of 40[04]/ }); // the browser notes them
    assert.match(
      await page.textContent("#message"),
      /x: found "bacth", expected an axis; did you mean "batch"\?/,
    );
    await visit(page, "/?y=gpu_memory&x=batch");
    assert.match(await page.textContent("main"), /GPU memory/);
    await visit(page, "/?view=nothing");
    assert.match(await page.textContent("#message"), /no view "nothing"/);
    await visit(page, "/?view=record&id=999999");
    assert.match(await page.textContent("#message"), /no record 999999/);
  },
};
