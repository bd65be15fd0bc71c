// When a schedule fires next, by tables of time zones: what every server's jobs are made with.

import { type Cron, nextAfter, parseCron } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { CRONS_KEPT_MAX } from "./limits.ts";

const crons = new Map<string, Cron>();

/**
 * Throws SCHEDULE_INVALID for what can't be read, and for what never comes: whoever puts such a schedule is refused, and one
 * that is there already (of an older release, or of a zone that this node does not know) does not fire.
 */
export function nextFireBy(
  zoneOf: (name: string) => Parameters<typeof nextAfter>[2],
): (cron: string, zone: string, afterMs: number) => number {
  return (cron, zone, afterMs) => nextAfter(cronOf(cron), afterMs, zoneOf(zone)) ?? never(cron);
}

function never(cron: string): never {
  throw new TenureError(
    "SCHEDULE_INVALID",
    `the cron expression ${JSON.stringify(cron)} never fires: within the next eight years no day is what its day of the month, month and day of the week ask for. "0 0 30 2 *" waits for the 30th of February; check those three fields.`,
  );
}

function cronOf(line: string): Cron {
  const known = crons.get(line);
  if (known !== undefined) return known;
  const cron = parseCron(line);
  if (crons.size >= CRONS_KEPT_MAX) crons.delete(crons.keys().next().value!);
  crons.set(line, cron);
  return cron;
}
