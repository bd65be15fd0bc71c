// Histories for the checker's own tests: written down by hand in a few characters, or played on a real register by
// concurrent clients, each operation taking effect at a moment that is then forgotten.

import { assertNever } from "../../src/core/kit/assert.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import type { Action, Operation } from "./history.ts";

type Line = readonly [client: string, startedAt: number, endedAt: number | null, action: Action, key?: string];

export function history(...lines: readonly Line[]): Operation[] {
  return lines.map(([client, startedAt, endedAt, action, key = "k"], id) => ({
    id,
    client,
    key,
    startedAt,
    endedAt,
    action,
  }));
}

export const put = (value: string): Action => ({ kind: "put", value });
export const get = (value: string | null): Action => ({ kind: "get", value });
export const cas = (expected: string, value: string, succeeded = true): Action => ({
  kind: "cas",
  expected,
  value,
  succeeded,
});

export interface PlayOptions {
  readonly seed: number;
  readonly operations: number;
  readonly keys: number;
  readonly clients: number;
  /** The part of the writes whose answer is lost, whether or not they happened. */
  readonly unknown: number;
}

interface Started {
  readonly client: string;
  readonly key: string;
  readonly startedAt: number;
  readonly actsAt: number;
  readonly endedAt: number | null;
  readonly act: (registers: Map<string, string>) => Action;
}

/** A history that a real register has gone through, so it is linearizable by construction. */
export function playedHistory(options: PlayOptions): Operation[] {
  const random = seededRandom(options.seed);
  const freeAt = Array.from({ length: options.clients }, () => random.next());
  const started: Started[] = [];
  for (let n = 0; n < options.operations; n++) {
    const client = freeAt.indexOf(Math.min(...freeAt));
    const startedAt = freeAt[client]! + random.next() * 0.5;
    const isLost = random.chance(options.unknown);
    const tookMs = random.next() * 4;
    const endedAt = isLost ? null : startedAt + tookMs;
    // A lost one may act long after, or never.
    const lateMs = random.chance(0.5) ? Infinity : random.next() * 40;
    const actsAt = isLost ? startedAt + lateMs : startedAt + random.next() * tookMs;
    const key = `k${random.below(options.keys)}`;
    const act = actOf(random.next(), String(n), random.next(), random.fork(`cas${n}`).next());
    started.push({ client: `c${client}`, key, startedAt, actsAt, endedAt, act: (registers) => act(registers, key) });
    freeAt[client] = startedAt + tookMs;
  }
  const registers = new Map<string, string>();
  const acted = started.toSorted((a, b) => a.actsAt - b.actsAt).map((one) => ({ one, action: one.act(registers) }));
  return acted
    .filter(({ one, action }) => one.endedAt !== null || action.kind !== "get")
    .map(({ one: { client, key, startedAt, endedAt }, action }, id) => ({
      id,
      client,
      key,
      startedAt,
      endedAt,
      action,
    }));
}

function actOf(draw: number, fresh: string, guess: number, miss: number) {
  return (registers: Map<string, string>, key: string): Action => {
    const value = registers.get(key) ?? null;
    if (draw < 0.45) return get(value);
    if (draw < 0.8) {
      registers.set(key, fresh);
      return put(fresh);
    }
    // It expects what is there, or an old value: both answers come up.
    const expected = guess < 0.7 && value !== null ? value : String(Math.floor(miss * Number(fresh)));
    const succeeded = value === expected;
    if (succeeded) registers.set(key, fresh);
    return cas(expected, fresh, succeeded);
  };
}

export type Anomaly = "stale-read" | "lost-write" | "read-of-nothing-written" | "cas-succeeded-twice";

/** Changes one answer so that no register could have given it; undefined where the history has no place for it. */
export function plantAnomaly(
  operations: readonly Operation[],
  anomaly: Anomaly,
  seed: number,
): Operation[] | undefined {
  const random = seededRandom(seed);
  const endOfAll = Math.max(...operations.map(({ startedAt, endedAt }) => endedAt ?? startedAt)) + 1;
  const writes = operations.filter(({ action, endedAt }) => endedAt !== null && action.kind === "put");
  const late = (key: string, action: Action, after = 0): Operation => ({
    id: operations.length + after,
    client: "late",
    key,
    startedAt: endOfAll + after,
    endedAt: endOfAll + after + 0.5,
    action,
  });
  if (writes.length < 2) return undefined;
  const chosen = random.pick(writes);
  const { key } = chosen;
  const value = (chosen.action as { value: string }).value;
  switch (anomaly) {
    case "read-of-nothing-written":
      return [...operations, late(key, get("never written"))];
    case "lost-write":
      return [...operations, late(key, put("last")), late(key, get(value), 1)];
    case "stale-read":
      // The new value was read, and then the old one again.
      return [...operations, late(key, put("last")), late(key, get("last"), 1), late(key, get(value), 2)];
    case "cas-succeeded-twice":
      return [
        ...operations,
        late(key, put("last")),
        late(key, cas("last", "first winner"), 1),
        late(key, cas("last", "second winner"), 2),
      ];
    default:
      return assertNever(anomaly, "plantAnomaly");
  }
}
