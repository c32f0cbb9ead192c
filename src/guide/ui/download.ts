// download.ts: hands the reader a file made in the page.

import { element } from "./dom";

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
