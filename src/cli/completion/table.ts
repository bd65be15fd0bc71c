// The commands of `tenure`, each as its folder describes it: the first help page and what shells complete come of this list.

import { RUN } from "../run/help.ts";
import { SCOPE } from "../scope/help.ts";
import { DOCTOR } from "../doctor/help.ts";
import { SCHEMA } from "../schema/help.ts";
import { SERVER } from "../server/help.ts";
import { CLUSTER } from "../cluster/help.ts";
import { MEMBER } from "../member/help.ts";
import { KEY } from "../key/help.ts";
import { JOB } from "../job/help.ts";
import { AGENT } from "../agent/help.ts";
import { QUEUE } from "../queue/help.ts";
import { SCHEDULE } from "../schedule/help.ts";
import { VALUE } from "../value/help.ts";
import { EVENT } from "../event/help.ts";
import { MESH } from "../mesh/help.ts";
import { TC } from "../tc/help.ts";
import { TXN } from "../txn/help.ts";
import { CERT } from "../cert/help.ts";
import { CONFIG } from "../config/help.ts";
import { SUPPORT } from "../support/help.ts";
import { DEV } from "../dev/help.ts";
import { COMPLETION } from "./help.ts";
import { type Description, describe, flagsOf } from "../kit/description.ts";

/** In the order of the first help page. */
export const COMMANDS: readonly Description[] = [
  RUN,
  SCOPE,
  DOCTOR,
  SCHEMA,
  SERVER,
  CLUSTER,
  MEMBER,
  KEY,
  JOB,
  AGENT,
  QUEUE,
  SCHEDULE,
  VALUE,
  EVENT,
  MESH,
  TC,
  TXN,
  CERT,
  CONFIG,
  SUPPORT,
  DEV,
  COMPLETION,
  describe("version", "the version", ""),
];

/** What takes a value, whatever the command: a shell must skip it to find the next word. */
export function valueFlags(): string[] {
  const flags = COMMANDS.flatMap((command) => flagsOf(command).filter(({ offer }) => offer !== "none"));
  return [...new Set(flags.map(({ name }) => name))];
}
