// looks.mjs: what a reader would stumble over on a page, at the widths of a phone, a tablet and a desk, in
// light and dark: words on words, words that are cut, a page that scrolls sideways, no title, too little
// contrast, controls that nobody can name. Words on a canvas are looked at too: watchCanvas notes them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { settled } from "./guide.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const WIDTHS = { phone: [390, 844], tablet: [820, 1180], desk: [1440, 900] };
export const COLOURS = ["light", "dark"];

// Before a page's own scripts: every canvas keeps what was written on it since it was cleared.
export function watchCanvas() {
  const texts = new WeakMap();
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  globalThis.canvasTexts = (canvas) => texts.get(canvas) ?? [];
  CanvasRenderingContext2D.prototype.clearRect = function (x, y, width, height) {
    const { a, d } = this.getTransform();
    if (width * a >= this.canvas.width - 1 && height * d >= this.canvas.height - 1)
      texts.set(this.canvas, []);
    return clearRect.call(this, x, y, width, height);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
    const size = this.measureText(text);
    const corners = [
      [x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent],
      [x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent],
    ].map(([left, top]) => this.getTransform().transformPoint({ x: left, y: top }));
    const noted = texts.get(this.canvas) ?? [];
    if (text.trim() && this.globalAlpha > 0.1)
      noted.push({
        text,
        colour: this.fillStyle,
        left: Math.min(corners[0].x, corners[1].x),
        right: Math.max(corners[0].x, corners[1].x),
        top: Math.min(corners[0].y, corners[1].y),
        bottom: Math.max(corners[0].y, corners[1].y),
      });
    texts.set(this.canvas, noted);
    return fillText.call(this, text, x, y, ...most);
  };
}

// In the page: every line of text that can be seen, with its place on the page.
function troublesInPage() {
  const troubles = [];
  const shorten = (text) => text.trim().replace(/\s+/g, " ").slice(0, 40);
  const seen = (one) =>
    one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !one.closest(".unseen, .skip");
  const words = [];
  // What is left of a rectangle within everything that clips it; text that is clipped for good is cut.
  function visible(rect, one, text) {
    const box = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };
    for (let around = one; around && around !== document.documentElement; around = around.parentElement) {
      const style = getComputedStyle(around);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const frame = around.getBoundingClientRect();
      // Where no bar shows that a box scrolls, what is beyond its edge is as good as cut.
      const scrolls =
        /auto|scroll/.test(style.overflowX + style.overflowY) && style.scrollbarWidth !== "none";
      if (
        !scrolls &&
        !around.title &&
        !one.title &&
        (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 2)
      )
        troubles.push(`cut: ${text}`);
      box.left = Math.max(box.left, frame.left);
      box.right = Math.min(box.right, frame.right);
      box.top = Math.max(box.top, frame.top);
      box.bottom = Math.min(box.bottom, frame.bottom);
    }
    return box;
  }
  function addText(node) {
    const one = node.parentElement;
    if (!node.data.trim() || !one || !seen(one)) return;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const text = shorten(node.data);
      const box = visible(rect, one, text);
      if (box.right - box.left < 1 || box.bottom - box.top < 1) continue;
      if (box.right > innerWidth + 1 || box.left < -1) troubles.push(`beyond the window: ${text}`);
      words.push({ ...box, text, node });
    }
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest("option, script, noscript")) addText(walker.currentNode);
  for (const canvas of document.querySelectorAll("canvas")) {
    const frame = canvas.getBoundingClientRect();
    const by = frame.width / canvas.width;
    for (const { text, left, right, top, bottom } of globalThis.canvasTexts?.(canvas) ?? []) {
      if (left < -1.5 || right * by > frame.width + 1.5 || top < -1.5 || bottom * by > frame.height + 1.5)
        troubles.push(`cut in a chart: ${shorten(text)}`);
      words.push({
        left: frame.left + left * by,
        right: frame.left + right * by,
        top: frame.top + top * by,
        bottom: frame.top + bottom * by,
        text: `chart ${shorten(text)}`,
        node: {},
      });
    }
  }
  const SLACK = 2.5; // pixels: the boxes of letters are higher than what is drawn
  words.sort((a, b) => a.top - b.top);
  words.forEach((a, index) => {
    for (let next = index + 1; next < words.length && words[next].top < a.bottom - SLACK; next++) {
      const b = words[next];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (a.node !== b.node && wide > SLACK && high > SLACK) troubles.push(`overlap: ${a.text} on ${b.text}`);
    }
  });
  if (document.scrollingElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("body *")].find(
      (one) => one.getBoundingClientRect().right > innerWidth + 1,
    );
    troubles.push(`scrolls sideways: ${wide?.outerHTML.slice(0, 80)}`);
  }
  const headings = [...document.querySelectorAll("main h1")].filter(seen);
  if (headings.length !== 1) troubles.push(`${headings.length} main headings`);
  if (!/ – prony guide$/.test(document.title)) troubles.push(`title: ${document.title}`);
  return [...new Set(troubles)];
}

// In the page: words on a canvas against what is behind it.
function faintInCharts() {
  const lightness = (colour) => {
    const channels = colour
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map((value) => Number(value) / 255);
    const [red, green, blue] = channels.map((value) =>
      value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const probe = document.createElement("canvas").getContext("2d");
  const rgb = (colour) => {
    probe.fillStyle = colour;
    const [, red, green, blue] = probe.fillStyle.match(/^#(..)(..)(..)$/) ?? [];
    return red ? `${parseInt(red, 16)} ${parseInt(green, 16)} ${parseInt(blue, 16)}` : probe.fillStyle;
  };
  const found = new Set();
  for (const canvas of document.querySelectorAll("canvas")) {
    let around = canvas;
    while (around.parentElement && /, 0\)$|transparent/.test(getComputedStyle(around).backgroundColor))
      around = around.parentElement;
    const ground = lightness(getComputedStyle(around).backgroundColor);
    for (const { text, colour } of globalThis.canvasTexts?.(canvas) ?? []) {
      if (typeof colour !== "string") continue;
      const ink = lightness(rgb(colour));
      const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      if (contrast < 4.5) found.add(`faint in a chart (${contrast.toFixed(1)}): ${text.slice(0, 40)}`);
    }
  }
  return [...found];
}

const WCAG = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] };
const CONTRAST = { type: "rule", values: ["color-contrast"] };

// What axe-core finds against WCAG 2 at level AA: contrast, names, roles, order of headings.
async function axeTroubles(page, runOnly = WCAG) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const violations = await page.evaluate(async (only) => {
    const { violations: found } = await globalThis.axe.run(document, {
      runOnly: only,
      resultTypes: ["violations"],
    });
    return found.flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(({ target, any }) => `${id}: ${target.join(" ")} ${any[0]?.message ?? ""}`.slice(0, 200)),
    );
  }, runOnly);
  return violations;
}

// What a screen reader needs: names for what can be used, a table for each drawing, one main heading.
function unsoundInPage() {
  const nameOf = (one) =>
    one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent.trim() || one.title;
  const usable = [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")];
  const charts = [...document.querySelectorAll(".chart, svg.network")];
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  const shorten = (one) => one.outerHTML.slice(0, 120);
  return [
    ...usable.filter((one) => !nameOf(one)).map((one) => `no name: ${shorten(one)}`),
    ...charts
      .filter(
        (one) =>
          one.getAttribute("role") !== "img" ||
          !one.getAttribute("aria-label") ||
          !one.closest("main").querySelector("table"),
      )
      .map((one) => `a drawing without words or table: ${shorten(one)}`),
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `twice: #${id}`),
  ];
}

async function plainTroubles(page) {
  await settled(page);
  return [
    ...(await page.evaluate(troublesInPage)),
    ...(await page.evaluate(unsoundInPage)),
    ...(await page.evaluate(faintInCharts)),
  ];
}

export async function troublesOf(page) {
  return [...(await plainTroubles(page)), ...(await axeTroubles(page))];
}

const sizeOf = ([width, height]) => ({ width, height });

// Every width of one address in light; in the dark what colours change, on a desk. axe-core, whose rules
// know of colours but hardly of widths, looks once at each colour: it takes seconds a page. `open` is that
// of the tests' context; `ready` waits for what the page draws; `look` saves a picture: (page, "phone-dark").
export async function assertSound(open, path, { ready = async () => {}, look } = {}) {
  const all = {};
  const note = (where, troubles) => troubles.length > 0 && (all[where] = troubles);
  const lookAt = async (page, width) => {
    for (const colorScheme of look ? COLOURS : []) {
      await page.emulateMedia({ colorScheme });
      await look(page, `${width}-${colorScheme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
  };
  const desk = await open(path, { viewport: sizeOf(WIDTHS.desk) });
  await ready(desk);
  note("desk, light", await troublesOf(desk));
  await lookAt(desk, "desk");
  await desk.emulateMedia({ colorScheme: "dark" });
  await settled(desk);
  note("desk, dark", [...(await desk.evaluate(faintInCharts)), ...(await axeTroubles(desk, CONTRAST))]);
  await desk.emulateMedia({ colorScheme: "light" });
  await desk.setViewportSize(sizeOf(WIDTHS.tablet)); // as a window that is made narrower
  note("tablet", await plainTroubles(desk));
  await lookAt(desk, "tablet");
  await desk.context().close();
  const phone = await open(path, { viewport: sizeOf(WIDTHS.phone) }); // tables are closed at first there
  await ready(phone);
  note("phone", await plainTroubles(phone));
  await lookAt(phone, "phone");
  await phone.setViewportSize({ width: 360, height: 740 });
  note("a narrow phone", await plainTroubles(phone));
  await phone.context().close();
  assert.deepEqual(all, {}, `${path}: ${JSON.stringify(all, null, 1)}`);
}
