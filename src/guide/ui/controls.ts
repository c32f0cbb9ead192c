// controls.ts: the parts forms are made of. Each has a name that is seen and heard, and an id, so that it
// keeps the focus when the form is made anew.

import { attributed, element, type Child } from "./dom";
import { label, sentence } from "./format";

export type Option = string | [value: string, title: string];

export interface OptionGroup {
  title: string;
  options: Option[];
}

const valueOf = (option: Option) => (typeof option === "string" ? option : option[0]);
const titleOf = (option: Option) => (typeof option === "string" ? label(option) : option[1]);

export function field(id: string, title: string, control: HTMLElement, hint = ""): HTMLElement {
  const parts: HTMLElement[] = [element("label", { htmlFor: id }, title), control];
  if (hint) {
    parts.push(element("p", { className: "hint", id: `${id}-hint` }, hint));
    control.setAttribute("aria-describedby", `${id}-hint`);
  }
  return element("div", { className: "field" }, ...parts);
}

function optionsOf(options: Option[], chosen: string): HTMLOptionElement[] {
  return options.map((option) =>
    element("option", { value: valueOf(option), selected: valueOf(option) === chosen }, titleOf(option)),
  );
}

export function select(
  id: string,
  options: Option[],
  chosen: string,
  onChoose: (value: string) => void,
): HTMLSelectElement {
  return groupedSelect(id, [{ title: "", options }], chosen, onChoose);
}

// The same with headings between the options; a group without a title has none.
export function groupedSelect(
  id: string,
  groups: OptionGroup[],
  chosen: string,
  onChoose: (value: string) => void,
): HTMLSelectElement {
  // What the address asks for is shown even where this version does not know it.
  const known = groups.some(({ options }) => options.some((option) => valueOf(option) === chosen));
  const made = element(
    "select",
    { id },
    ...(known ? [] : optionsOf([chosen], chosen)),
    ...groups.flatMap(({ title, options }): HTMLElement[] =>
      title
        ? [element("optgroup", { label: sentence(title) }, ...optionsOf(options, chosen))]
        : optionsOf(options, chosen),
    ),
  );
  made.addEventListener("change", () => onChoose(made.value));
  return made;
}

export function check(
  id: string,
  title: string,
  on: boolean,
  onChange: (on: boolean) => void,
  count?: number,
): HTMLElement {
  const box = element("input", { type: "checkbox", id, checked: on });
  box.addEventListener("change", () => onChange(box.checked));
  const row = element(
    "label",
    { className: "check", htmlFor: id },
    box,
    element("span", { className: "check-name", title }, title),
  );
  if (count !== undefined) row.append(element("span", { className: "count" }, count.toLocaleString("en")));
  return row;
}

// One of a few, side by side.
export function choice(
  id: string,
  title: string,
  options: Option[],
  chosen: string,
  onChoose: (value: string) => void,
): HTMLElement {
  const buttons = options.map((option) => {
    const value = valueOf(option);
    const button = element("button", { type: "button", id: `${id}-${value || "none"}` }, titleOf(option));
    button.addEventListener("click", () => onChoose(value));
    return attributed(button, { "aria-pressed": String(value === chosen) });
  });
  return attributed(element("div", { className: "choice", id }, ...buttons), {
    role: "group",
    "aria-label": title,
  });
}

// Any of several.
export function chips(
  id: string,
  title: string,
  options: Option[],
  chosen: string[],
  onToggle: (value: string) => void,
): HTMLElement {
  const all = options.map((option) => {
    const on = chosen.includes(valueOf(option));
    const chip = element(
      "button",
      { type: "button", className: "chip", id: `${id}-${valueOf(option)}` },
      titleOf(option),
    );
    chip.addEventListener("click", () => onToggle(valueOf(option)));
    return attributed(chip, { "aria-pressed": String(on) });
  });
  const row = attributed(element("div", { className: "chips" }, ...all), {
    role: "group",
    "aria-label": title,
  });
  return element("div", { className: "field" }, element("span", { className: "label" }, title), row);
}

export function linkButton(id: string, title: string, act: () => void, spoken = title): HTMLButtonElement {
  const button = element("button", { type: "button", className: "link", id }, title);
  button.addEventListener("click", act);
  return attributed(button, { "aria-label": spoken });
}

export function toggled(all: string[], one: string, on = !all.includes(one)): string[] {
  const others = all.filter((other) => other !== one);
  return on ? [...others, one] : others;
}

// The column of controls; on a narrow screen it folds away.
export function panel(...content: Child[]): HTMLElement {
  const form = element("form", { id: "form" }, ...content);
  form.addEventListener("submit", (event) => event.preventDefault());
  return element(
    "details",
    { id: "controls", className: "controls", open: !matchMedia("(max-width: 52rem)").matches },
    element("summary", {}, "What to show"),
    form,
  );
}
