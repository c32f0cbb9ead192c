// table.ts: the figures of the chart, for reading, copying and screen readers.

import { element } from "./dom";
import { figure, label, name, sentence } from "./format";
import { isChecked, seriesOf, type Sheet } from "./charts/chart";

export function showTable(table: HTMLElement, sheet: Sheet, group: string[]): void {
  const { points, x, y, scale } = sheet;
  const show = (value: number) => figure(value * scale.factor);
  const unit = scale.unit ? ` (${scale.unit})` : "";
  const titles = [...group.map(label), label(x.key), `${label(y.key)}${unit}`, "from", "to", "results", "check"];
  const xKind = x.kind === "number" ? "number" : "";
  const kinds = [...group.map(() => ""), xKind, "number", "number", "number", "number", "check-cell"];
  const head = element(
    "tr",
    {},
    ...titles.map((title, column) => element("th", { scope: "col", className: kinds[column] ?? "" }, sentence(title))),
  );
  const rows = seriesOf(points).flatMap((series) =>
    series.points.map((point) => {
      const cells = [
        ...point.group.map(name),
        name(point.x),
        show(point.y),
        show(point.low),
        show(point.high),
        String(point.count),
        isChecked(point) ? "right" : "not checked",
      ];
      return element(
        "tr",
        {},
        ...cells.map((cell, column) => element("td", { className: kinds[column] ?? "" }, cell)),
      );
    }),
  );
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}
