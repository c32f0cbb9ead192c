// frame.mjs: what stands around every view: tabs, the link to copy, and what is said while a view loads or
// when the server has stopped.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { changedTo, openPage, run, settled, shown, startGuide, stopGuide, withClipboard } from "./guide.mjs";
import { WIDTHS } from "./looks.mjs";
import { VIEWS } from "./sound.mjs";

export const frameTests = {
  async the_link_to_a_view_is_copied({ open }) {
    const page = await open("/?view=machines");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await withClipboard(async () => {
      await page.click("#copy-link");
      await page.waitForSelector('#copy-link:has-text("Copied")');
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
    });
    await page.waitForSelector('#copy-link:has-text("Copy link")');
  },

  // At every width each view has a tab that is seen whole, or an entry of the menu that is.
  async every_view_is_reached_and_seen({ open }) {
    for (const [width, height] of Object.values(WIDTHS)) {
      const page = await open("/?view=machines", { viewport: { width, height } });
      await settled(page);
      await page.focus("#more");
      await page.keyboard.press("Enter");
      const places = await page.$$eval("#views a", (links) =>
        links
          .filter((link) => link.checkVisibility({ visibilityProperty: true }))
          .map((link) => {
            const { left, right, top, bottom } = link.getBoundingClientRect();
            const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
            return {
              view: link.id.replace(/^(view|more)-/, ""),
              whole: left >= 0 && right <= innerWidth && bottom <= innerHeight && over === link,
            };
          }),
      );
      assert.deepEqual(places.map(({ view }) => view).sort(), [...VIEWS].sort(), `at ${width}`);
      assert.deepEqual(places.filter(({ whole }) => !whole), [], `at ${width}`);
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => document.activeElement.id), "more");
      assert.equal(await page.$eval("#more-views", ({ open: shows }) => shows), false);
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      const chosen = await page.evaluate(() => document.activeElement.id.replace("more-", ""));
      await page.keyboard.press("Enter");
      await changedTo(page, `view=${chosen}`);
      assert.equal(await page.$eval("#more-views", ({ open: shows }) => shows), false);
    }
  },

  async views_that_nothing_fills_stand_apart({ browser, prony, folder, open }) {
    const apart = (page) => page.$$eval(".views-more div + div a", (links) => links.map(({ id }) => id));
    assert.deepEqual(await apart(await open("/")), ["more-precision"]);
    const empty = join(folder, "nothing.db");
    run(prony, "store", "create", "--empty", "--store", empty);
    const { guide, address } = startGuide(prony, empty);
    const page = await openPage(browser, await address, "/");
    assert.deepEqual(
      await apart(page),
      ["explorer", "compare", "scaling", "roofline", "precision", "machines", "profiles", "answers"].map(
        (view) => `more-${view}`,
      ),
    );
    await page.click("#more");
    await page.click("#more-profiles");
    assert.match(await page.textContent("main"), /No profiles yet.*prony profile/s);
    await page.context().close();
    await stopGuide(guide);
  },

  async the_tab_of_a_view_is_seen_on_a_phone({ open }) {
    const page = await open("/?view=live", { viewport: { width: 390, height: 844 } });
    const inside = await page.$eval("#view-live", (tab) => {
      const { left, right } = tab.getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    });
    assert.ok(inside, "the tab is beyond the edge");
  },

  async a_stopped_server_is_said_and_found_again({ browser, prony, store }) {
    const first = startGuide(prony, store);
    const address = await first.address;
    const page = await openPage(browser, address, "/?view=networks", {
      bears: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/,
    });
    await stopGuide(first.guide);
    await page.waitForSelector("#gone:not([hidden])", { timeout: 15000 });
    assert.match(await page.textContent("#gone"), /The server has stopped.*prony guide --store/s);
    assert.ok(await page.isVisible("#networks"), "what was shown is gone");
    await page.click("#view-machines");
    await page.waitForSelector('main h1:text("The server has stopped")');
    const again = spawn(prony, ["guide", "--port", new URL(address).port, "--store", store], {
      stdio: "ignore",
    });
    await page.waitForSelector("#machines", { timeout: 15000 });
    assert.ok(await page.isHidden("#gone"));
    await stopGuide(again);
    await page.context().close();
  },

  async shapes_stand_where_a_slow_view_will_be({ open }) {
    const page = await open("/?view=machines");
    await page.route("**/api/networks", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 900));
      await route.continue();
    });
    await page.click("#view-networks");
    await page.waitForSelector(".skeleton");
    await page.waitForSelector("#networks");
    assert.equal(await page.$(".skeleton"), null);
    await shown(page);
  },
};
