// download.ts: hands the reader files made in the page.

import { attributed, element } from "./dom";

export function download(file: string, type: string, content: BlobPart): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", { href: address, download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000); // the browser has begun to read it by then
}

// "Throughput by batch" → throughput-by-batch.png
export function fileName(title: string, suffix: string): string {
  const stem = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  return `${stem.slice(0, 80) || "prony"}.${suffix}`;
}

export type Way = [name: string, help: string, save: () => void];

// One button for each kind of file.
export function saveButtons(key: string, ways: Way[]): HTMLElement {
  const buttons = ways.map(([name, help, save]) => {
    const id = `${key}-${name.toLowerCase()}`;
    const button = element("button", { type: "button", id, title: help }, name);
    button.addEventListener("click", save);
    return attributed(button, { "aria-label": help });
  });
  return attributed(element("div", { className: "choice quiet" }, ...buttons), {
    role: "group",
    "aria-label": "Save",
  });
}
