// Events as jobs make them, three for each: submitted, assigned, completed. Sealed one after the other, from a counter: the same
// every time.

import { EMPTY_CHAIN, type EventDraft, type SealedEvent, Sealer } from "../src/core/events/index.ts";
import { systemDigest } from "../src/drivers/system/digest.ts";

const START_MS = 1_790_000_000_000;
const SPEC = {
  attemptsMax: 3,
  backoff: { baseMs: 1_000, maxMs: 300_000 },
  concurrency: null,
  kind: "bench",
  labels: {},
  lossesMax: 10,
  notBeforeMs: null,
  payload: { repository: "a/b", revision: "0123456789abcdef" },
  platform: null,
  priority: 0,
  queue: "default",
  retentionMs: 604_800_000,
  timeoutMs: null,
};

export class EventSource {
  readonly #sealer = new Sealer({
    head: EMPTY_CHAIN,
    sourceControllerId: "bench",
    leaderEpoch: 1,
    digest: systemDigest,
  });
  #made = 0;

  next(): SealedEvent {
    const n = this.#made++;
    const job = Math.floor(n / 3);
    const about = { id: idOf(n), entityId: idOf(job), entityType: "build", timestamp: START_MS + job } as const;
    return this.#sealer.seal({ ...about, ...WHAT[n % 3]! });
  }
}

const WHAT: readonly Pick<EventDraft, "eventType" | "payload">[] = [
  { eventType: "build:submitted", payload: { spec: SPEC, submittedBy: "bench" } },
  {
    eventType: "build:assigned",
    payload: { agent: "agent-1", attempt: 1, jobEpoch: 1, leaseId: idOf(7), session: idOf(8), ttlMs: 15_000 },
  },
  { eventType: "build:completed", payload: { jobEpoch: 1, leaseId: idOf(7), result: null } },
];

/** Of the form of a UUID. */
function idOf(n: number): string {
  return `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
}
