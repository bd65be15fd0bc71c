import { expect, it } from "vitest";
import { chainOf } from "./test-events.ts";
import { eventHashOf } from "./index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { calculateEventHash, type HashedEvent } from "./calculate-hash.ts";

const texts = chainOf(20, systemDigest);

function reversed(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, one]) => [key, reversed(one)]),
  );
}

it("is the hash of the sealed bytes, whatever the order of keys, and whatever else the object has", () => {
  for (const bytes of texts) {
    const event = JSON.parse(new TextDecoder().decode(bytes)) as HashedEvent;
    const hash = eventHashOf(bytes, systemDigest);
    expect(calculateEventHash(event)).toBe(hash);
    const shuffled = reversed({ ...event, eventHash: "of no account", arrival: 7 }) as HashedEvent;
    expect(calculateEventHash(shuffled)).toBe(hash);
    // As a site of a mesh shows it: by arrival.
    expect(calculateEventHash({ ...event, sequence: 1_000, lineSequence: event.sequence })).toBe(hash);
  }
});

it("is another one for any other field", () => {
  const event = JSON.parse(new TextDecoder().decode(texts[3])) as HashedEvent;
  const hash = calculateEventHash(event);
  const changes: Partial<HashedEvent>[] = [
    { id: "x" },
    { sequence: 9 },
    { timestamp: event.timestamp + 1 },
    { eventType: "build:failed" },
    { entityId: "x" },
    { entityType: "x" },
    { payload: { ...event.payload, x: 1 } },
    { sourceControllerId: "x" },
    { leaderEpoch: event.leaderEpoch + 1 },
    { previousHash: null },
  ];
  for (const change of changes) expect(calculateEventHash({ ...event, ...change })).not.toBe(hash);
});
