// index.ts (views): every view, in the order of the navigation. A new view is a file of this folder and a
// line here.

import type { View } from "../page";
import { answers } from "./answers";
import { compare } from "./compare";
import { explorer } from "./explorer";
import { learn } from "./learn";
import { live } from "./live";
import { machines } from "./machines";
import { networks } from "./networks";
import { overview } from "./overview";
import { profiles } from "./profiles";
import { precision } from "./precision";
import { record } from "./record";
import { roofline } from "./roofline";
import { scaling } from "./scaling";

export const views: View[] = [
  overview,
  explorer,
  compare,
  scaling,
  roofline,
  precision,
  machines,
  networks,
  profiles,
  answers,
  live,
  learn,
  record,
];
