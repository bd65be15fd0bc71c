// What islands answered to "do you act, and in which term", and what follows from that.
//
// An answer says of one moment between its request and its arrival that the island acted in a term. So two leases are known to have overlapped when an
// island acted in a term at a moment that is later than one at which another island acted in a higher one. No answer's time is taken for more than that.

import { LEASE_TTL_MS } from "../../src/core/lease/limits.ts";

export interface Sample {
  /** identity@incarnation. */
  readonly voter: string;
  /** Of its ledger. */
  readonly term: number;
  readonly actsIn: number | null;
  readonly sentMs: number;
  readonly arrivedMs: number;
}

interface Acted {
  readonly voter: string;
  /** At or before this it acted for the first time. */
  firstMs: number;
  /** At or after this it acted for the last time. */
  lastMs: number;
}

export class TcSamples {
  count = 0;
  termsFell = 0;
  actedAlone = 0;
  /** Since when fewer run than a leader needs; null: enough do. */
  noQuorumSinceMs: number | null = null;
  /** Terms in which two voters acted. */
  readonly twice = new Set<number>();
  readonly #acted = new Map<number, Acted>();
  readonly #terms = new Map<string, number>();

  /** Those of one voter in the order in which they were asked. */
  see({ voter, term, actsIn, sentMs, arrivedMs }: Sample): void {
    this.count++;
    if (term < (this.#terms.get(voter) ?? 0)) this.termsFell++;
    this.#terms.set(voter, term);
    if (actsIn === null) return;
    if (this.noQuorumSinceMs !== null && sentMs > this.noQuorumSinceMs + LEASE_TTL_MS) this.actedAlone++;
    const acted = this.#acted.get(actsIn);
    if (acted === undefined) this.#acted.set(actsIn, { voter, firstMs: arrivedMs, lastMs: sentMs });
    else if (acted.voter !== voter) this.twice.add(actsIn);
    else {
      acted.firstMs = Math.min(acted.firstMs, arrivedMs);
      acted.lastMs = Math.max(acted.lastMs, sentMs);
    }
  }

  /** Pairs of terms. */
  get overlaps(): number {
    const acted = [...this.#acted].toSorted(([a], [b]) => a - b).map(([, one]) => one);
    const pairs = acted.flatMap((one, at) =>
      acted.slice(at + 1).filter((later) => later.voter !== one.voter && one.lastMs > later.firstMs),
    );
    return pairs.length;
  }
}
