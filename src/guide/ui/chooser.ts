// chooser.ts: the machine whose results are shown, and the others to choose from: one's own first, then
// those that came with prony.

import type { MachineEntry, Overview } from "./api";
import { attributed, element, type Child } from "./dom";
import { name } from "./format";

export const ELSEWHERE = "Measured elsewhere (shipped with prony)";
const NONE = ""; // the address names no machine

const keyOf = ({ server, source }: Pick<MachineEntry, "server" | "source">) => `${source}/${server}`;

// The machine that the server chose by itself, and the others.
export function machinesOf(overview: Overview): MachineEntry[] {
  const { server, machine, source, results, others } = overview;
  const chosen = server === null ? [] : [{ server, machine: machine ?? server, source, results }];
  return [...chosen, ...others];
}

export function machineTitle({ machine, server }: Pick<MachineEntry, "machine" | "server">): string {
  return machine || name(server);
}

function group(title: string, machines: MachineEntry[], chosen: string): Child {
  const options = machines.map((one) =>
    element(
      "option",
      { value: keyOf(one), selected: keyOf(one) === chosen },
      (one.source === "shipped" ? "Shipped: " : "") + machineTitle(one),
    ),
  );
  return options.length > 0 ? element("optgroup", { label: title }, ...options) : null;
}

// What an address names; null where it names none.
export interface Named {
  server: string | null;
  source: string | null;
}

export function machineChooser(
  overview: Overview,
  { server, source }: Named,
  onChoose: (server: string, source: string) => void,
): Child[] {
  const machines = machinesOf(overview);
  if (machines.length === 0) return [];
  const found =
    machines.find((one) => one.server === server && one.source === source) ??
    machines.find((one) => one.server === server && source === null);
  const own = machines.filter(({ source }) => source !== "shipped");
  const shipped = machines.filter(({ source }) => source === "shipped");
  const chosen = found ? keyOf(found) : NONE;
  const select = element(
    "select",
    { id: "machine", className: "machine" },
    found ? null : element("option", { value: NONE, selected: true }, "Choose a machine"),
    group(own.length > 1 ? "Your machines" : "This machine", own, chosen),
    group(ELSEWHERE, shipped, chosen),
  );
  select.addEventListener("change", () => {
    const one = machines.find((each) => keyOf(each) === select.value);
    if (one) onChoose(one.server, one.source);
  });
  return [attributed(select, { "aria-label": "Machine" })];
}
