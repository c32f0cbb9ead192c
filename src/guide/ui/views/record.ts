// record.ts (views): one result on a page of its own.

import { fetchRecord } from "../api";
import { sentence } from "../format";
import type { Asked, Content, View } from "../page";
import { recordSections } from "../record";

export const record: View = {
  name: "record",
  title: "",
  async show({ parameters }: Asked): Promise<Content> {
    const kept = await fetchRecord(Number(parameters.get("id")));
    return { title: sentence(kept.label), main: recordSections(kept, "h1") };
  },
};
