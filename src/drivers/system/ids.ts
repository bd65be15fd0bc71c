// Ids of jobs that are made here: UUIDs of version 7 (RFC 9562). The time is in front, so jobs that were submitted together
// lie side by side in an index, and a batch touches few of its pages. Nothing rests on the order; what it shows, the job shows too.

import { randomUUID } from "node:crypto";

const TIME_DIGITS = 12;
/** Of a version 4, from after its version on: all of it random but the two bits of the variant. */
const RANDOM_FROM = 15;

export function newJobId(): string {
  const time = Date.now().toString(16).padStart(TIME_DIGITS, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(RANDOM_FROM)}`;
}
