// A backend that nobody else knows, in this file alone, by the steps of ARCHITECTURE.md ("A backend"): `Backend` and `Seat` of
// ports/backends/backend.ts, held to the conformance suite of `tenure/testing`. Scopes are rows with a holder and an end; who waits
// polls. It can play no fault, so the cases that need one run for the other backends only.

import { describe, expect, it } from "vitest";
import {
  type Backend,
  type Claim,
  type Grant,
  type Leader,
  type Seat,
  StaleEpochError,
  TenureError,
} from "../../src/entry/index.ts";
import { type ConformanceWorld, electorConformance } from "../../src/entry/testing.ts";
import { HandClock } from "../../src/loops/test-clock.ts";

const TIMING = {
  serverTimeoutMs: 6_000,
  marginMs: 1_500,
  heartbeatMs: 1_000,
  retryMinMs: 200,
  retryMaxMs: 800,
  holdBackMs: 500,
  releaseTimeoutMs: 1_000,
};
const POLL_MS = 50;

interface Row {
  epoch: number;
  holder: RowSeat | null;
  untilMs: number;
}

class Rows {
  readonly clock = new HandClock();
  readonly #rows = new Map<string, Row>();

  at(scope: string): Row {
    const row = this.#rows.get(scope) ?? { epoch: 0, holder: null, untilMs: 0 };
    this.#rows.set(scope, row);
    if (row.holder !== null && row.untilMs <= this.clock.nowMs) row.holder = null;
    return row;
  }
}

class RowSeat implements Seat {
  readonly #rows: Rows;
  readonly #claim: Claim;
  readonly #stops = new Set<() => void>();
  #giveUp: (() => void) | null = null;

  constructor(rows: Rows, claim: Claim) {
    this.#rows = rows;
    this.#claim = claim;
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    return new Promise((resolve, reject) => {
      const stop = this.#every(() => {
        const row = this.#row;
        if (row.holder !== null) return;
        row.epoch++;
        this.#hold(row);
        stop();
        this.#giveUp = null;
        resolve({ epoch: row.epoch, sentAt: this.#rows.clock.now });
      });
      this.#giveUp = () => {
        stop();
        reject(new TenureError("BACKEND_UNAVAILABLE", "abandoned"));
      };
      if (signal.aborted) this.abandon();
    });
  }

  async beat(epoch: number): Promise<{ sentAt: Grant["sentAt"] }> {
    const row = this.#row;
    if (row.holder === this && row.epoch === epoch) this.#hold(row);
    else this.#claim.lost(epoch, "lease-gone");
    if (row.holder !== this) throw new StaleEpochError(this.#claim.scope, epoch);
    return { sentAt: this.#rows.clock.now };
  }

  async release(): Promise<void> {
    if (this.#row.holder === this) this.#row.holder = null;
  }

  abandon(): void {
    this.#giveUp?.();
    this.#giveUp = null;
    if (this.#row.holder === this) this.#row.holder = null;
  }

  watch(tell: (leader: Leader | null) => void): () => void {
    let last: number | null | undefined;
    return this.#every(() => {
      const leader = this.#leader();
      if (last !== undefined && last === (leader?.epoch ?? null)) return;
      last = leader?.epoch ?? null;
      tell(leader);
    });
  }

  async leader(): Promise<Leader | null> {
    return this.#leader();
  }

  extras(): object {
    return {};
  }

  async close(): Promise<void> {
    this.abandon();
    for (const stop of this.#stops) stop();
  }

  get #row(): Row {
    return this.#rows.at(this.#claim.scope);
  }

  #hold(row: Row): void {
    row.holder = this;
    row.untilMs = this.#rows.clock.nowMs + TIMING.serverTimeoutMs;
  }

  #leader(): Leader | null {
    const { holder, epoch } = this.#row;
    if (holder === null) return null;
    const { identity, metadata } = holder.#claim;
    return { epoch, identity, metadata };
  }

  /** Now, and every POLL_MS. */
  #every(poll: () => void): () => void {
    let isStopped = false;
    const { clock } = this.#rows;
    const run = (): void => {
      if (isStopped) return;
      poll();
      clock.setTimer(clock.nowMs + POLL_MS, run);
    };
    const stop = (): void => {
      isStopped = true;
      this.#stops.delete(stop);
    };
    this.#stops.add(stop);
    void Promise.resolve().then(run);
    return stop;
  }
}

function rowsWorld(): ConformanceWorld {
  const rows = new Rows();
  return {
    create: (name): Backend => ({
      kind: "rows",
      host: name,
      timing: TIMING,
      clock: rows.clock,
      seat: (claim) => new RowSeat(rows, claim),
    }),
    resource: {
      write: async (scope, epoch) => {
        const row = rows.at(scope);
        if (row.epoch !== epoch || row.holder === null) throw new StaleEpochError(scope, epoch);
      },
    },
    advance: (ms) => rows.clock.advance(ms),
    dispose: () => Promise.resolve(),
  };
}

describe("a backend of a third party", () => {
  const all = electorConformance(rowsWorld);
  const cases = all.filter(({ needs }) => needs.length === 0);
  for (const { name, run } of cases) it(name, run);

  it("is held to most of the suite although it can play no fault", () => {
    expect(cases.length).toBeGreaterThan(all.length / 2);
  });
});
