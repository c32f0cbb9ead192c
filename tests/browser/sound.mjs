// sound.mjs: every view at every width, in light and dark: nothing overlaps, is cut, faint or without a name.

import assert from "node:assert/strict";
import { assertSound } from "./looks.mjs";

export const VIEWS = [
  "overview",
  "explorer",
  "compare",
  "roofline",
  "precision",
  "scaling",
  "machines",
  "networks",
  "profiles",
  "answers",
  "live",
  "learn",
];
const PAGES = {
  ...Object.fromEntries(VIEWS.map((view) => [view, view === "overview" ? "/" : `/?view=${view}`])),
  network: "/?view=networks&model=lenet",
  machine: "/?view=machines&server=box",
  answer: "/?view=answers&name=batch",
  record: "/?view=record&id=3",
};

const soundTest =
  (name, path) =>
  ({ open, picture, pictures }) =>
    assertSound(open, path, { look: pictures && ((page, look) => picture(page, `${name}-${look}`)) });

export const soundTests = {
  ...Object.fromEntries(Object.entries(PAGES).map(([name, path]) => [`${name}_is_sound`, soundTest(name, path)])),

  async every_tab_is_looked_at({ open }) {
    const page = await open("/?view=live");
    const tabs = await page.$$eval("#views > a", (links) => links.map(({ id }) => id.replace("view-", "")));
    assert.deepEqual(tabs.sort(), [...VIEWS].sort());
  },
};
