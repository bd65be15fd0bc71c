// The harness' own book of what workers were told, and what it must find in the resource afterwards.
//
// The counter has lanes, so that one leader has as many transactions open at once. Each lane is a number that its leader
// keeps in memory and overwrites with the next one: nothing in it is safe for two writers. An increment is also a row of
// its own, written in the same transaction, so that what became of it can be seen:
//
//   begun ──▶ acknowledged: there, exactly once, and counted
//         ├─▶ refused:      not there
//         └─▶ unknown:      either, but if it is there, it is counted
//
// A lane that holds n increments is at n, and they are numbered 1 to n. A number that was written twice, and a lane
// that stands lower than that, is an update that was lost.
//
// Terms overlap where a write of a newer epoch could not see one of an older epoch that was committed all the same, or
// where two workers wrote in one epoch. This is asked of the resource's own order (snapshots in Postgres, revisions in
// etcd), not of clocks.

import type { Report } from "./messages.ts";

/** A write that the resource holds. Lane −1: a stale attempt of the harness that was in time after all. */
export interface Row {
  readonly worker: string;
  readonly seq: number;
  readonly lane: number;
  readonly value: number;
  readonly epoch: number;
  readonly order: Order;
}

/** Where a write stands among others. */
export type Order =
  | { readonly kind: "revision"; readonly revision: number }
  | { readonly kind: "snapshot"; readonly xid: number; readonly snapshot: Snapshot };

/** What a Postgres transaction could see: all below xmin, and what is below xmax and not listed. */
export interface Snapshot {
  readonly xmin: number;
  readonly xmax: number;
  readonly running: ReadonlySet<number>;
}

export interface Resource {
  readonly rows: readonly Row[];
  /** Where each lane stands. */
  readonly lanes: readonly number[];
  /** Where each lane stood when the ledger was opened. */
  readonly base: readonly number[];
}

export interface Verdict {
  readonly increments: number;
  readonly lostUpdates: number;
  readonly overlappingTerms: number;
  readonly unknown: number;
  /** Each is a reason to fail, for people. */
  readonly findings: readonly string[];
}

type Outcome = "begun" | "ack" | "refused" | "unknown";

interface Attempt {
  readonly lane: number;
  readonly value: number;
  readonly epoch: number;
  outcome: Outcome;
}

const FINDINGS_MAX = 20;

export class Ledger {
  readonly #attempts = new Map<string, Attempt>();
  readonly #open = new Map<string, number>();
  /** The most increments that one worker had begun and not ended. */
  openMax = 0;

  /** Returns the attempt that was acknowledged by it, if any. */
  note(worker: string, report: Report): { readonly epoch: number } | undefined {
    if (report.is === "begin") {
      const { lane, value, epoch } = report;
      this.#attempts.set(keyOf(worker, report.seq), { lane, value, epoch, outcome: "begun" });
      const open = (this.#open.get(worker) ?? 0) + 1;
      this.#open.set(worker, open);
      this.openMax = Math.max(this.openMax, open);
      return undefined;
    }
    if (report.is !== "ack" && report.is !== "refused" && report.is !== "unknown") return undefined;
    const attempt = this.#attempts.get(keyOf(worker, report.seq));
    if (attempt === undefined) throw new Error(`${worker} tells the outcome of ${report.seq}, which it never began`);
    attempt.outcome = report.is;
    this.#open.set(worker, (this.#open.get(worker) ?? 0) - 1);
    return report.is === "ack" ? attempt : undefined;
  }

  /** Called when no worker runs any more. */
  compare(resource: Resource): Verdict {
    const findings: string[] = [];
    const find = (text: string): void => {
      if (findings.length < FINDINGS_MAX) findings.push(text);
    };
    const increments = resource.rows.filter((row) => row.lane >= 0);
    const missing = this.#missing(increments, find);
    const lost = lostInLanes(increments, resource, find);
    const overlaps = overlappingTerms(resource.rows, find);
    const unknown = [...this.#attempts.values()].filter(({ outcome }) => outcome === "unknown" || outcome === "begun");
    return {
      increments: increments.length,
      lostUpdates: missing + lost,
      overlappingTerms: overlaps,
      unknown: unknown.length,
      findings,
    };
  }

  #missing(rows: readonly Row[], find: (text: string) => void): number {
    const there = new Map<string, number>();
    for (const row of rows) {
      const key = keyOf(row.worker, row.seq);
      there.set(key, (there.get(key) ?? 0) + 1);
      const attempt = this.#attempts.get(key);
      if (attempt === undefined) find(`increment ${key} is there, and nobody began it`);
      else if (attempt.outcome === "refused")
        find(`increment ${key} of epoch ${attempt.epoch} was refused, and is there`);
    }
    let missing = 0;
    for (const [key, { outcome, epoch, lane, value }] of this.#attempts) {
      const count = there.get(key) ?? 0;
      if (count > 1) find(`increment ${key} is there ${count} times`);
      if (outcome !== "ack" || count > 0) continue;
      missing++;
      find(`increment ${key} (epoch ${epoch}, lane ${lane}, value ${value}) was acknowledged, and is not there`);
    }
    return missing;
  }
}

function keyOf(worker: string, seq: number): string {
  return `${worker}/${seq}`;
}

function lostInLanes(rows: readonly Row[], { lanes, base }: Resource, find: (text: string) => void): number {
  let lost = 0;
  for (const [lane, stands] of lanes.entries()) {
    const from = base[lane] ?? 0;
    const values = rows.filter((row) => row.lane === lane);
    const byValue = Map.groupBy(values, (row) => row.value);
    for (const [value, twice] of byValue) {
      if (twice.length > 1) {
        const who = twice.map((row) => `${row.worker}/${row.seq} in epoch ${row.epoch}`).join(" and ");
        find(`lane ${lane} was set to ${value} by ${who}`);
      }
    }
    const counted = stands - from;
    if (counted !== values.length) find(`lane ${lane} stands at ${counted} after ${values.length} increments`);
    lost += Math.max(0, values.length - counted, values.length - byValue.size);
  }
  return lost;
}

/** Counts pairs of epochs that were seen to overlap, and epochs with two workers. */
export function overlappingTerms(rows: readonly Row[], find: (text: string) => void): number {
  let overlaps = 0;
  const byEpoch = Map.groupBy(rows, (row) => row.epoch);
  for (const [epoch, ofEpoch] of byEpoch) {
    const workers = new Set(ofEpoch.filter((row) => row.lane >= 0).map((row) => row.worker));
    if (workers.size <= 1) continue;
    overlaps++;
    find(`epoch ${epoch} was written in by ${[...workers].join(" and ")}`);
  }
  const epochs = [...byEpoch.keys()].toSorted((a, b) => a - b);
  for (const [at, newer] of epochs.entries()) {
    // Whoever overlaps an epoch further back would have to be seen by, or overlap, those between.
    for (const older of epochs.slice(Math.max(0, at - 3), at)) {
      const pair = firstUnseen(byEpoch.get(older) ?? [], byEpoch.get(newer) ?? []);
      if (pair === undefined) continue;
      overlaps++;
      find(`${nameOf(pair.older)} was committed without being seen by ${nameOf(pair.newer)}`);
    }
  }
  return overlaps;
}

function nameOf(row: Row): string {
  return `${row.worker}/${row.seq} of epoch ${row.epoch}`;
}

function firstUnseen(older: readonly Row[], newer: readonly Row[]): { older: Row; newer: Row } | undefined {
  for (const late of newer) {
    for (const early of older) if (!sees(late.order, early.order)) return { older: early, newer: late };
  }
  return undefined;
}

function sees(late: Order, early: Order): boolean {
  if (late.kind === "revision" && early.kind === "revision") return early.revision < late.revision;
  if (late.kind === "snapshot" && early.kind === "snapshot") {
    const { xmin, xmax, running } = late.snapshot;
    return early.xid < xmin || (early.xid < xmax && !running.has(early.xid));
  }
  throw new Error("writes of two kinds of resource have no order");
}

/** `xmin:xmax:xip,xip,…`, as Postgres prints a pg_snapshot. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin, xmax, running = ""] = text.split(":");
  const snapshot = {
    xmin: Number(xmin),
    xmax: Number(xmax),
    running: new Set(running === "" ? [] : running.split(",").map(Number)),
  };
  if (!Number.isSafeInteger(snapshot.xmin) || !Number.isSafeInteger(snapshot.xmax)) {
    throw new Error(`not a snapshot: ${text}`);
  }
  return snapshot;
}
