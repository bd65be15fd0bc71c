// Who remembers how much: idempotency keys by their caller. Where there is no room for all, whoever takes most of it gives up
// its oldest key, so that one busy caller never costs another one its keys: with n callers each has at least an n-th of the
// room. An index over the records, and the same on every node.

import { Ranked } from "./ranked.ts";
import type { KeyRecord } from "./records.ts";

/** What a key takes next to the ids that it names: about what the limits of number and letters allow for each. */
const KEY_COST = 320;

interface Share {
  readonly caller: string;
  readonly byAge: Ranked<KeyRecord>;
  cost: number;
}

export class KeyShares {
  readonly #byCaller = new Map<string, Share>();
  /** The costliest first; of equals the one with the oldest key. */
  readonly #byCost = new Ranked<Share>((one, other) => other.cost - one.cost || oldest(one) - oldest(other));

  /** The next to go where there is no room. */
  get next(): KeyRecord | undefined {
    return this.#byCost.first?.byAge.first;
  }

  add(record: KeyRecord): void {
    const caller = callerOf(record.id);
    const known = this.#byCaller.get(caller);
    const share = known ?? { caller, byAge: new Ranked<KeyRecord>((a, b) => a.sequence - b.sequence), cost: 0 };
    if (known === undefined) this.#byCaller.set(caller, share);
    else this.#byCost.remove(share);
    share.byAge.add(record);
    share.cost += costOf(record);
    this.#byCost.add(share);
  }

  remove(record: KeyRecord): void {
    const share = this.#byCaller.get(callerOf(record.id)) as Share;
    this.#byCost.remove(share);
    share.byAge.remove(record);
    share.cost -= costOf(record);
    if (share.byAge.size === 0) this.#byCaller.delete(share.caller);
    else this.#byCost.add(share);
  }
}

/** With the caller's length, so that no two pairs have the same. */
export function keyIdOf(caller: string, key: string): string {
  return `${caller.length}:${caller}${key}`;
}

export function callerOf(id: string): string {
  const from = id.indexOf(":") + 1;
  return id.slice(from, from + Number(id.slice(0, from - 1)));
}

function costOf({ jobIds }: KeyRecord): number {
  return KEY_COST + jobIds.length;
}

function oldest({ byAge }: Share): number {
  return byAge.first?.sequence ?? 0;
}
