// table.ts: figures to read, sort, copy and hear. On a narrow screen rows become stacks of named cells; the
// roles keep them a table then. A column knows the value, which goes into the CSV file
// as it is, and how it is shown.

import { attributed, element, type Child } from "./dom";
import { download, fileName } from "./download";
import { name, sentence } from "./format";
import { compareValues } from "./order";
import type { Value } from "./api";

export interface Column<Row> {
  key: string; // in the address when sorted by it
  title: string;
  unit?: string; // of the value, in the CSV's heading
  number?: boolean;
  wrap?: boolean; // long texts may take several lines
  value(row: Row): Value;
  show?(row: Row): Child; // name(value) when left out
}

export interface Listing<Row> {
  id: string;
  caption: string; // for who cannot see what stands around it
  columns: Column<Row>[];
  rows: Row[];
  sort?: string; // a column's key, after "-" downwards
  onSort?(sort: string): void;
  isChosen?(row: Row): boolean;
}

const ROWS_SHOWN = 300;

export function sorted<Row>({ rows, columns, sort = "" }: Listing<Row>): Row[] {
  const down = sort.startsWith("-");
  const column = columns.find(({ key }) => key === sort.replace(/^-/, ""));
  if (!column) return rows;
  const ordered = [...rows].sort((a, b) => compareValues(column.value(a), column.value(b), column.key));
  return down ? ordered.reverse() : ordered;
}

function heading<Row>(column: Column<Row>, { id, sort = "", onSort }: Listing<Row>): HTMLElement {
  const cell = element("th", { scope: "col", className: column.number ? "number" : "" });
  const title = sentence(column.title);
  if (!onSort) {
    cell.append(title);
    return cell;
  }
  const up = sort === column.key;
  const down = sort === `-${column.key}`;
  const button = element(
    "button",
    { type: "button", id: `${id}-sort-${column.key}`, className: "sort" },
    title,
    up || down ? element("span", { className: "sort-sign", ariaHidden: "true" }, up ? "▲" : "▼") : null,
  );
  button.addEventListener("click", () => onSort(up ? `-${column.key}` : column.key));
  if (up || down) attributed(cell, { "aria-sort": up ? "ascending" : "descending" });
  cell.append(button);
  return cell;
}

export function tableOf<Row>(listing: Listing<Row>): HTMLElement {
  const { id, caption, columns, isChosen } = listing;
  const all = sorted(listing);
  const rows = all.slice(0, ROWS_SHOWN).map((row) => {
    const cells = columns.map((column) =>
      attributed(
        element(
          "td",
          { className: column.number ? "number" : column.wrap ? "wrap" : "" },
          column.show ? column.show(row) : name(column.value(row)),
        ),
        { "data-title": sentence(column.title), role: "cell" },
      ),
    );
    const line = element("tr", { className: isChosen?.(row) ? "chosen" : "" }, ...cells);
    return attributed(line, { role: "row" });
  });
  const table = element(
    "table",
    { id, className: listing.onSort ? "stacks sorts" : "stacks" },
    element("caption", { className: "unseen" }, caption),
    element("thead", {}, element("tr", {}, ...columns.map((column) => heading(column, listing)))),
    element("tbody", {}, ...rows),
  );
  attributed(table, { role: "table" });
  const scroll = attributed(element("div", { className: "scroll", id: `${id}-scroll`, tabIndex: 0 }, table), {
    role: "region",
    "aria-label": caption,
  });
  if (all.length <= ROWS_SHOWN) return scroll;
  return element(
    "div",
    {},
    scroll,
    element(
      "p",
      { className: "hint" },
      `The first ${ROWS_SHOWN} of ${all.length} rows; the CSV file has all of them.`,
    ),
  );
}

function csvField(value: Value): string {
  const plain = value === null ? "" : String(value);
  // A spreadsheet computes text that begins like this; behind an apostrophe it does not.
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

// As RFC 4180 says, figures unrounded and in the units the headings name.
function csvOf<Row>(listing: Listing<Row>): string {
  const { columns } = listing;
  const head = columns.map(({ key, unit }) => csvField(unit ? `${key} (${unit})` : key));
  const rows = sorted(listing).map((row) => columns.map((column) => csvField(column.value(row))));
  return [head, ...rows].map((fields) => fields.join(",") + "\r\n").join("");
}

export function saveCsv<Row>(title: string, listing: Listing<Row>): void {
  download(fileName(title, "csv"), "text/csv", csvOf(listing));
}
