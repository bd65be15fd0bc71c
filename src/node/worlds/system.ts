// What every server on a real machine is made with, whatever its log is.

import { randomUUID } from "node:crypto";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { newJobId } from "../../drivers/system/ids.ts";
import { timeZone } from "../../drivers/system/time-zones.ts";
import { nextFireBy } from "../assembly/schedules.ts";

export const VIEWS_FILE = "views.sqlite";

// The first zone of a process loads the tables of all, which took 74 ms on a busy machine: while the program is loaded, and not in the turn in which
// a new leader looks at its first schedule.
timeZone("UTC");

/** By this machine's tables of time zones. */
export const nextFire = nextFireBy(timeZone);

export const SYSTEM = { clock: systemClock, digest: systemDigest, newId: randomUUID, newJobId, nextFire };
