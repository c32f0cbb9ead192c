// copy.ts: puts text into the clipboard and says so where the reader looks.

import { attributed, element, find } from "./dom";
import { commandLine } from "./page";

const SAID_MS = 1800; // how long a button says what it did

// Beyond this machine the page comes by plain HTTP, where browsers keep navigator.clipboard back.
function copyByHand(text: string): boolean {
  const field = element("textarea", { value: text, className: "unseen" });
  document.body.append(field);
  const focused = document.activeElement;
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return copied;
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByHand(text);
  }
}

// A button that copies what `text` gives when it is pressed.
export function copyButton(
  title: string,
  spoken: string,
  text: () => string,
  properties: Partial<HTMLButtonElement> = {},
  done = "Copied",
): HTMLButtonElement {
  const words = element("span", {}, title);
  const button = element("button", { type: "button", title: spoken, ...properties }, words);
  button.addEventListener("click", () => {
    void copyText(text()).then((copied) => {
      words.textContent = copied ? done : "Not copied";
      find("said").textContent = copied ? done : "The browser did not allow copying";
      button.classList.toggle("done", copied);
      setTimeout(() => {
        words.textContent = title;
        button.classList.remove("done");
      }, SAID_MS);
    });
  });
  return attributed(button, { "aria-label": spoken });
}

// A command with the button that copies it.
export function commandToCopy(command: string): HTMLElement {
  return element(
    "div",
    { className: "command-row" },
    commandLine(command),
    copyButton("Copy", `Copy the command ${command}`, () => command, { className: "bar-button" }),
  );
}
