// frame.mjs: what stands around every view: tabs, the link to copy, and what is said while a view loads or
// when the server has stopped.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { openPage, shown, startGuide, stopGuide, withClipboard } from "./guide.mjs";

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
