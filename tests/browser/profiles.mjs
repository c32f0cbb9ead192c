// profiles.mjs: the page Profiles, from recorded runs: budgets that sum, a timeline that zooms, a flame graph
// that is searched, findings with their proofs.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { changedTo, readCsv, rowsOf, run, saved, settled } from "./guide.mjs";
import { assertSound } from "./looks.mjs";

const RECORDED = "tests/trace/recorded";

const proofLine = (rule, command, measured, verdict) =>
  JSON.stringify({
    prony: 1,
    kind: "proof",
    proof: {
      rule,
      command,
      change: "pin_memory=True",
      expected: 4.55,
      low: 4.2,
      high: 4.91,
      measured,
      measured_low: measured * 0.98,
      measured_high: measured * 1.02,
      rounds: 8,
      verdict,
    },
    at: "2026-11-15T09:30:00Z",
  });

// Two threads that were looked at every 10 ms for 2 s: the first runs three quarters of the time, the other
// waits in read nine times of ten.
function looksOf() {
  const texts = ["python3 train.py", "main", "step", "read", "command", "train.py"].map((text) => `text\t${text}`);
  const sites = ["site\t6\t2\t3\t0", "site\t6\t3\t9\t1"];
  const lanes = ["lane\tthread\t0\t7\t1\t0", "lane\tthread\t0\t7\t2\t0"];
  const spans = Array.from({ length: 200 }, (_, look) => [
    `${look % 4 ? "sample" : "sleep"}\t0\t${look ? 10000000 : 0}\t10000000\t${look % 4 ? 3 : 4}\t2`,
    `${look % 10 ? "sleep" : "sample"}\t1\t0\t10000000\t${look % 10 ? 4 : 2}\t1`,
  ]);
  return ["prony trace 1", ...texts, "fact\tcommand\tpython3 train.py", ...sites, ...lanes, ...spans.flat(), ""].join("\n");
}

// Four profiles, the first with a proof of its own; the numbers that they have come last.
export function fillProfiles(prony, store, folder) {
  const looks = join(folder, "looks.trace");
  writeFileSync(looks, looksOf());
  for (const name of ["copy.pageable.trace.gz", "copy.pinned.trace.gz", "launch.single.trace.gz"])
    run(prony, "profile", join(RECORDED, name), "--store", store);
  run(prony, "profile", looks, "--store", store);
  const proofs = join(folder, "proofs.jsonl");
  writeFileSync(
    proofs,
    [
      proofLine("R1", "python train_gpu.py copy.pageable", 4.57, "faster"),
      proofLine("R1", "python other.py", 1.0, "same"),
    ].join("\n") + "\n",
  );
  run(prony, "store", "add", proofs, "--store", store);
}

// The address of the profile of that name.
async function addressOf(open, name) {
  const page = await open("/?view=profiles");
  const href = await page.getAttribute(`#profiles a:text("${name}")`, "href");
  await page.context().close();
  return href;
}

const stretchOf = (page) =>
  page.evaluate(() => ["from", "to"].map((key) => Number(new URLSearchParams(location.search).get(key))));

export const profileTests = {
  async profiles_are_listed_with_their_first_finding({ open }) {
    const page = await open("/?view=profiles");
    const rows = await rowsOf(page, "profiles");
    assert.equal(rows.length, 4);
    const [title, , unit, time, , finding] = rows.find(([name]) => name.includes("pageable"));
    assert.equal(title, "python train_gpu.py copy.pageable");
    assert.equal(unit, "NVIDIA H200");
    assert.equal(time, "16.4 ms a step");
    assert.match(finding, /copies of pageable memory: expected 4\.55\u00a0×/);
    assert.match(await page.textContent("main"), /prony compare \d+ \d+ --store/);
    assert.deepEqual(await rowsOf(page, "rules"), [["R1", "copies of pageable memory", "2", "1", "1"]]);
  },

  async a_budget_has_each_nanosecond_once({ open }) {
    const page = await open(await addressOf(open, "copy.pageable"));
    const label = await page.getAttribute("#profile-head .budget", "aria-label");
    const shares = [...label.matchAll(/([\d.]+) %/g)].map(([, share]) => Number(share));
    assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 0.3, label);
    const widths = await page.$$eval("#profile-head .budget-part", (parts) =>
      parts.map((part) => part.getBoundingClientRect().width),
    );
    assert.equal(widths.length, shares.length);
    assert.ok(widths[1] > 0.8 * widths.reduce((sum, width) => sum + width), "copies are 83.6 %");
    assert.deepEqual((await rowsOf(page, "budget"))[1], ["exposed copy", "14.1 ms", "83.6 %", "6.11 ×"]);
    assert.match(await page.textContent("#profile-head"), /11 steps of 16\.4 ms unwatched, 16\.9 ms watched/);
  },

  async threads_run_and_wait({ open }) {
    const page = await open(await addressOf(open, "python3 train.py"));
    const label = await page.getAttribute("#profile-head .budget", "aria-label");
    assert.equal(label, "running 75.0 %, waiting, most in read 25.0 %");
    assert.deepEqual(
      (await rowsOf(page, "threads")).map(([, , ran, waited, call]) => [ran, waited, call]),
      [
        ["75.0 %", "25.0 %", "read"],
        ["10.0 %", "90.0 %", "read"],
      ],
    );
    assert.deepEqual((await rowsOf(page, "lines"))[0], ["train.py:9", "1.5 s", "88.2 %"]);
  },

  async findings_have_gain_and_proof({ open }) {
    const page = await open(await addressOf(open, "copy.pageable"));
    const findings = await page.$$eval("#findings > li", (all) => all.map((one) => one.textContent));
    assert.equal(findings.length, 2);
    assert.match(findings[0], /R1 Copies of pageable memory: expected 4\.55.×, between 4\.2.× and 4\.91.×/);
    assert.match(findings[0], /train_gpu\.py:58.*proved measured 4\.57.×.*with pin_memory=True/);
    assert.match(findings[0], /right in 1 of 2 proofs/);
    assert.match(findings[1], /not proved yet.*prony advise --prove --store .* -- python train_gpu\.py/);
  },

  async a_timeline_zooms({ open }) {
    const page = await open(await addressOf(open, "launch.single"));
    const asked = [];
    page.on("response", async (answer) => {
      if (answer.url().includes("/api/timeline/")) asked.push((await answer.json()).blocks.length);
    });
    const [, end] = (await page.textContent("#timeline-title + .subtitle")).match(/all ([\d.]+) ms/);
    await page.focus("#timeline-in");
    await page.keyboard.press("Enter");
    await changedTo(page, "from=");
    assert.equal(await page.evaluate(() => document.activeElement.id), "timeline-in");
    const [from, to] = await stretchOf(page);
    assert.ok(Math.abs((to - from) / (Number(end) * 1e6) - 0.5) < 0.01, `${from} to ${to} of ${end} ms`);
    await page.click("#timeline-later");
    await page.waitForFunction((was) => !location.search.includes(`from=${was}&`), String(from));
    await settled(page);
    const box = await page.locator('.chart[aria-label^="Timeline"]').boundingBox();
    const before = await stretchOf(page);
    await page.mouse.move(box.x + 0.4 * box.width, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 40, { steps: 3 });
    await page.mouse.up();
    await page.waitForFunction((was) => !location.search.includes(`from=${was}&`), String(before[0]));
    const drawn = await stretchOf(page);
    assert.ok(Math.abs((drawn[1] - drawn[0]) / (before[1] - before[0]) - 0.1) < 0.01, "a tenth was drawn");
    const csv = readCsv((await saved(page, "#timeline-csv")).bytes);
    assert.ok(csv.some(({ kind }) => kind === "kernel") && csv.length > 4);
    await page.goBack();
    await page.waitForFunction((was) => location.search.includes(`from=${was}&`), String(before[0]));
    await page.click("#timeline-all");
    await page.waitForFunction(() => !location.search.includes("from="));
    assert.ok(asked.length >= 4 && asked.every((blocks) => blocks <= 2000), `blocks: ${asked}`);
  },

  async a_flame_graph_zooms_and_finds({ open }) {
    const page = await open(await addressOf(open, "launch.single"));
    await page.waitForSelector('.chart[aria-label^="Flame graph"] canvas');
    const texts = () =>
      page.$eval('.chart[aria-label^="Flame graph"] canvas', (canvas) =>
        globalThis.canvasTexts(canvas).map(({ text }) => text),
      );
    assert.ok((await texts()).includes("main"));
    await page.fill("#flame-find", "Linear");
    await page.press("#flame-find", "Enter");
    await changedTo(page, "find=Linear");
    assert.match(await page.textContent("#flame-found"), /Frames with “Linear” have \d+\.\d % of the time/);
    await page.click("#flame-figures summary");
    await page.click('#flame-table a:text("sm90_xmma_gemm")');
    await changedTo(page, "frame=");
    await settled(page);
    assert.match(await page.textContent("#flame-way"), /^all › <module> › .*sm90_xmma_gemm/);
    const box = await page.locator('.chart[aria-label^="Flame graph"]').boundingBox();
    await page.mouse.click(box.x + 0.5 * box.width, box.y + 12);
    await page.waitForFunction(() => !location.search.includes("frame="));
    await page.fill("#flame-find", "nowhere at all");
    await page.press("#flame-find", "Enter");
    await changedTo(page, "nowhere");
    assert.match(await page.textContent("#flame-found"), /No frame has/);
  },

  async a_profile_that_is_not_there_is_said({ open }) {
    const page = await open("/?view=profiles&id=1", { bears: /404/ }); // browsers say it too
    assert.match(await page.textContent("#message"), /record 1 is no profile/);
  },

  async a_profile_is_sound_at_every_width({ open, picture, pictures }) {
    const path = await addressOf(open, "copy.pageable");
    const ready = (page) => page.waitForSelector('.chart[aria-label^="Flame graph"] canvas');
    const look = (page, name) => picture(page, `profile-${name}`);
    await assertSound(open, path, { ready, look: pictures && look });
    if (!pictures) return;
    const page = await open(path, { viewport: { width: 1280, height: 1610 } });
    await ready(page);
    await settled(page);
    await page.$$eval("code", (all) => {
      for (const code of all) code.textContent = code.textContent.replace(/--store \S+/, "--store results.db");
    });
    await page.screenshot({ path: join(pictures, "docs", "profile.png") });
  },
};
