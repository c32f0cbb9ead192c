// pictures.mjs: the main views as the documentation shows them, from a store with something in it.

import { join } from "node:path";
import { openPage, settled } from "./guide.mjs";

const WINDOW = { width: 1280, height: 800 };

export async function takePictures(browser, address, folder) {
  const { values } = await (await fetch(`${address}/api/values?status=ok`)).json();
  const often = (axis) => [...values[axis]].sort((a, b) => b.count - a.count)[0]?.value ?? ""; // what the store knows most of
  const model = values.model.some(({ value }) => value === "large") ? "large" : often("model");
  const gpu = values.unit.some(({ value }) => value === "gpu"); // then others were measured beside it at most batches
  const plain = `model=${model}&${gpu ? "unit=gpu" : "threads=1"}&server=${encodeURIComponent(often("server"))}`;
  const [ours, theirs] = gpu ? ["backend%3Dcuda", "pytorch+backend%3Dgraph"] : ["backend%3Dsimd", "numpy"];
  // The explorer: the machine on whose CPU most was measured.
  const { values: onCpu } = await (await fetch(`${address}/api/values?status=ok&unit=cpu&model=${model}`)).json();
  const [server] = [...onCpu.server].sort((a, b) => b.count - a.count);
  const one = `unit=cpu&model=${model}&server=${encodeURIComponent(server.value)}`;
  const begin = `/?y=throughput&x=batch&group=framework,backend&log=xy&phase=training&threads=1&${one}`;
  const pictures = {
    overview: ["/", { viewport: { width: 1440, height: 900 } }],
    explorer: [begin],
    facets: [`/?y=throughput&x=batch&group=framework,backend&facet=phase&log=xy&threads=1&${one}`],
    dark: [begin, { colorScheme: "dark" }],
    phone: [begin, { viewport: { width: 390, height: 780 } }],
    compare: [`/?view=compare&a=framework%3Dprony+${ours}&b=framework%3D${theirs}&${plain}`],
    roofline: [`/?view=roofline&server=${encodeURIComponent(often("server"))}`],
    scaling: ["/?view=scaling"],
    machine: [`/?view=machines&server=${encodeURIComponent(often("server"))}`],
    network: [`/?view=networks&model=${model}`],
    gan_programs: ["/?view=networks&model=gan&phase=training", {}, ".card:has(#drawing)"],
    answers: [`/?view=answers&model=${model}`],
  };
  for (const [name, [path, options, part]] of Object.entries(pictures)) {
    const page = await openPage(browser, address, path, { viewport: WINDOW, ...options });
    await settled(page);
    await page.evaluate(() => document.querySelector(".foot").remove()); // it names this store's file
    await (part ? page.locator(part) : page).screenshot({ path: join(folder, `${name}.png`) });
    await page.context().close();
  }
}
