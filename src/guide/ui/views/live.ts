// live.ts: what is being measured now: how far each bench is, and results as they come.

import { fetchLive, fetchPoints, type CurvePoint, type Live, type LiveRecord, type Running } from "../api";
import { drawLearning, LOSSES } from "../charts/learning";
import { attributed, element, type Child } from "../dom";
import { figure, many, moment, name, quantity } from "../format";
import { benchLine, card, linkTo, remark, type Asked, type Content, type View } from "../page";
import { plotCard } from "../plot";
import { verdictBadge } from "../record";
import { defaultState } from "../state";
import { tableOf, type Column } from "../table";
import { queryCard, sheetOf } from "./query_card";

const AGAIN_MS = 1500;
const KEPT = 40; // results in the table, the newest

const columns: Column<LiveRecord>[] = [
  {
    key: "id",
    title: "record",
    value: ({ id }) => id,
    show: ({ id }) => linkTo("record", { id: String(id) }, String(id)),
  },
  {
    key: "at",
    title: "measured",
    value: ({ at }) => at,
    show: ({ at }) => new Date(at).toLocaleTimeString(),
  },
  { key: "label", title: "configuration", wrap: true, value: ({ label }) => label },
  { key: "status", title: "status", value: ({ status }) => status },
  {
    key: "time",
    title: "time, median",
    unit: "ns",
    number: true,
    value: ({ time_median }) => time_median,
    show: ({ time_median }) => quantity(time_median, "ns"),
  },
  {
    key: "throughput",
    title: "throughput",
    unit: "samples/s",
    number: true,
    value: ({ throughput }) => throughput,
    show: ({ throughput }) => quantity(throughput, "samples/s"),
  },
  {
    key: "floor",
    title: "× floor",
    number: true,
    value: ({ times_floor }) => times_floor,
    show: ({ times_floor }) => quantity(times_floor, "x"),
  },
  { key: "check", title: "check", value: ({ check }) => check, show: ({ check }) => verdictBadge(check) },
];

function runningRow({ server, process, done, total, current, started, left_s }: Running): HTMLElement {
  const left =
    left_s === null
      ? ""
      : left_s < 90
        ? `, about ${Math.ceil(left_s)} s left`
        : `, about ${Math.round(left_s / 60)} min left`;
  const bar = attributed(element("progress", { max: total, value: done }), {
    "aria-label": `${done} of ${total} done`,
  });
  return element(
    "li",
    {},
    element(
      "div",
      { className: "running-row" },
      element("strong", {}, current || "starting"),
      element("span", { className: "faint" }, `${done} of ${total}${left}`),
    ),
    bar,
    element("p", { className: "hint" }, `${name(server)}, process ${process}, since ${moment(started)}`),
  );
}

function runningCard(live: Live, asked: Asked): HTMLElement {
  const title = element(
    "h1",
    {},
    "Live",
    live.running.length > 0 ? element("span", { className: "pulse", ariaHidden: "true" }) : null,
  );
  const idle = [
    element(
      "p",
      {},
      "Nothing is being measured into this store now. Start something; it appears here as it runs:",
    ),
    benchLine("large --batch 1,3,10 --backend simd,ref", asked.status),
  ];
  return card(
    title,
    ...(live.running.length > 0
      ? [element("ul", { className: "running" }, ...live.running.map(runningRow))]
      : idle),
  );
}

const lossColumn = (key: string, title: string, at: 1 | 2): Column<CurvePoint> => ({
  key,
  title,
  number: true,
  value: (point) => point[at],
  show: (point) => (point[at] === null ? "–" : figure(point[at])),
});

// The curve of a training, once it has two epochs.
function curveCard({ process, current, curve }: Running, asked: Asked): Child {
  if (!curve || curve.length < 2) return null;
  const known = LOSSES.filter((_, at) => curve.some((point) => point[at === 0 ? 1 : 2] !== null));
  return plotCard<CurvePoint>({
    key: `learning-${process}`,
    title: "Loss by epoch",
    constants: current.split(":")[0] ?? "",
    source: `Source: prony ${asked.status.version}`,
    legend: known.map((name) => ({ key: name, name })),
    draw: (theme, _size, hidden) =>
      drawLearning(
        curve,
        known.filter((name) => !hidden.has(name)),
        theme,
      ),
    folded: true,
    listing: {
      id: `learning-${process}-table`,
      caption: "Loss by epoch",
      columns: [
        { key: "epoch", title: "epoch", number: true, value: ([epoch]) => epoch },
        lossColumn("loss", "loss", 1),
        lossColumn("held_out", "held-out loss", 2),
      ],
      rows: curve,
      sort: "",
    },
  });
}

// The network of the newest result by batch, its points appearing as they are filed.
async function chart(newest: LiveRecord | undefined, asked: Asked): Promise<Child[]> {
  if (!newest) return [];
  const state = defaultState(asked.catalogue, { ...asked.status, newest });
  const answered = await fetchPoints(state);
  const sheet = sheetOf(asked.catalogue, state, answered);
  return sheet ? [queryCard(sheet, state, { results: answered.results })] : [];
}

export const live: View = {
  name: "live",
  early: true,
  title: "Live",
  async show(asked: Asked): Promise<Content> {
    const newest = (await fetchLive(Number.MAX_SAFE_INTEGER)).newest;
    const now = await fetchLive(Math.max(0, newest - KEPT));
    const records = [...now.records].reverse();
    const arrived = card(
      element("h2", {}, `The newest ${many(records.length, "result")}`),
      tableOf({ id: "live-table", caption: "Results, the newest first", columns, rows: records }),
    );
    const main = [
      runningCard(now, asked),
      ...now.running.map((one) => curveCard(one, asked)),
      ...(await chart(
        records.find(({ status }) => status === "ok"),
        asked,
      )),
      records.length > 0 ? arrived : remark("No results yet", element("p", {}, "They will be listed here.")),
    ];
    return { title: "Live", main, again_ms: AGAIN_MS, stamp: JSON.stringify(now) };
  },
};
