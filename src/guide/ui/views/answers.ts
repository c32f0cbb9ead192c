// answers.ts: the questions people come with. Each is a page: the answer in a sentence, the chart it can
// be seen in, and the command that asks one's own machine.

import { fetchAnswers, fetchPoints, fetchValues, type Answer, type Answers } from "../api";
import { field, panel, select } from "../controls";
import { element, type Child } from "../dom";
import { filterFields, withoutEchoes } from "../filters";
import {
  commandLine,
  editFilters,
  filtersOf,
  linkTo,
  remark,
  type Asked,
  type Content,
  type View,
} from "../page";
import { sentenceParts } from "../sentences";
import { fromParameters, toParameters, type State } from "../state";
import { queryCard, sheetOf } from "./query_card";

const OWN = ["name"];
const RECORDS = 12; // named at most

function answerLink(answer: Answer, asked: Asked, ...text: Child[]): HTMLAnchorElement {
  const parameters = new URLSearchParams(asked.parameters);
  parameters.set("name", answer.name);
  return linkTo("answers", parameters, ...text);
}

function shortCard(answer: Answer, asked: Asked): HTMLElement {
  return element(
    "section",
    { className: "card answer" },
    element("h2", {}, answerLink(answer, asked, answer.question)),
    element("p", { className: answer.known ? "lead" : "lead faint" }, ...sentenceParts(answer.sentence)),
    answer.known || !answer.command ? null : commandLine(answer.command),
  );
}

async function chartOf(answer: Answer, asked: Asked): Promise<Child[]> {
  const read = fromParameters(new URLSearchParams(answer.chart), asked.catalogue, asked.status);
  const state: State = {
    ...read,
    logX: true,
    logY: !read.baseline,
    show: read.baseline ? "speedup" : "figures",
  };
  const sheet = sheetOf(asked.catalogue, state, await fetchPoints(state));
  if (!sheet)
    return [remark("No chart yet", element("p", {}, "There are no results to draw for this question."))];
  return [
    queryCard(sheet, state, { results: sheet.points.reduce((sum, { count }) => sum + count, 0) }),
    element("p", {}, linkTo("explorer", toParameters(state), "Open this chart in the explorer")),
  ];
}

async function onePage(answer: Answer, found: Answers, asked: Asked): Promise<Child[]> {
  const ids = [...new Set(answer.ids)];
  const records = ids
    .slice(0, RECORDS)
    .flatMap((id, index) => [index > 0 ? ", " : "", linkTo("record", { id: String(id) }, String(id))]);
  return [
    element(
      "section",
      { className: "card answer" },
      element("h1", {}, answer.question),
      element("p", { className: "lead", id: "answer" }, ...sentenceParts(answer.sentence)),
      records.length > 0
        ? element("p", { className: "hint" }, "From records ", ...records, ids.length > RECORDS ? " …" : "")
        : null,
      ...(answer.command
        ? [element("h2", {}, "Ask your own machine"), commandLine(answer.command)]
        : []),
    ),
    ...(answer.chart ? await chartOf(answer, asked) : []),
    element(
      "nav",
      { className: "others", ariaLabel: "Other questions" },
      ...found.answers
        .filter(({ name }) => name !== answer.name)
        .map((other) => answerLink(other, asked, other.question)),
    ),
  ];
}

export const answers: View = {
  name: "answers",
  title: "Answers",
  async show(asked: Asked): Promise<Content> {
    const { catalogue, parameters } = asked;
    const filters = filtersOf(parameters, OWN);
    const [values, found] = await Promise.all([fetchValues(filters), fetchAnswers(filters)]);
    const models = (values.model ?? []).map(({ value }) => String(value ?? ""));
    const { model: _, ...others } = filters;
    const { model: __, ...rest } = values;
    const aside = [
      panel(
        field(
          "model",
          "Network",
          select(
            "model",
            models.map((model): [string, string] => [model, model]),
            found.model ?? "",
            (model) => asked.change({ model }),
          ),
        ),
        ...filterFields({
          id: "filter",
          catalogue,
          values: withoutEchoes(rest, catalogue),
          filters: others,
          change: (edit) => editFilters(asked, [...OWN, "model"], edit),
        }),
      ),
    ];
    const answer = found.answers.find(({ name }) => name === parameters.get("name"));
    if (answer) return { title: answer.question, aside, main: await onePage(answer, found, asked) };
    return {
      title: "Answers",
      aside,
      main: [
        element("h1", { className: "page-title" }, `Answers for ${found.model ?? "your network"}`),
        found.machine === null
          ? null
          : element("p", { className: "hint" }, `Measured on ${found.machine}${found.shipped ? ", shipped with prony" : ""}.`),
        ...found.answers.map((one) => shortCard(one, asked)),
      ],
    };
  },
};
