// theme.ts: light or dark, as the system says or as the reader chose, and the colours of that for what
// is drawn rather than styled.

import { attributed, element } from "./dom";

export interface Theme {
  text: string;
  faint: string;
  line: string;
  surface: string;
  accent: string;
  good: string;
  bad: string;
  series: string[];
  font: string;
}

const CHOICES = ["system", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];
const KEPT = "prony-theme"; // in the browser's local storage
const SIGNS: Record<Choice, string> = { system: "◐", light: "☀", dark: "☾" };

function chosen(): Choice {
  const kept = localStorage.getItem(KEPT);
  return CHOICES.find((choice) => choice === kept) ?? "system";
}

function apply(choice: Choice): void {
  if (choice === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", choice);
}

// style.css says each colour twice, with light-dark(): only a styled element knows which it is.
export function readTheme(): Theme {
  const probe = element("span", { hidden: true });
  document.body.append(probe);
  const read = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    text: read("text"),
    faint: read("faint"),
    line: read("line"),
    surface: read("surface"),
    accent: read("accent"),
    good: read("good"),
    bad: read("bad"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => read(`series-${number}`)),
    font: getComputedStyle(document.body).fontFamily.replace(/"/g, "'"), // it goes between quotes in SVG files
  };
  probe.remove();
  return theme;
}

// The switch of the header; `changed` is also called when the system changes its mind.
export function themeSwitch(changed: () => void): HTMLElement {
  const button = element("button", { type: "button", id: "theme", className: "icon-button" });
  const show = () => {
    const choice = chosen();
    button.textContent = SIGNS[choice];
    button.title = `Colours: ${choice}`;
    attributed(button, { "aria-label": `Colours: ${choice}. Change` });
  };
  button.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length] ?? "system";
    localStorage.setItem(KEPT, next);
    apply(next);
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply(chosen());
  show();
  return button;
}
