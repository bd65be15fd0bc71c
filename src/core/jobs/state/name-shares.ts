// Who has how many agents' names, by their owners: no owner gets all the names that the book has room for, nor all their bytes,
// so that others can always register. An index over the records.

import type { AgentRecord } from "./records.ts";

/** Of all names, and of their bytes; as of a node's connections and requests: a fleet may share one key. */
const OWNER_SHARE = 0.9;

interface Share {
  names: number;
  bytes: number;
}

const NONE: Readonly<Share> = { names: 0, bytes: 0 };

export class NameShares {
  readonly #byOwner = new Map<string, Share>();

  /** Nobody has none. */
  of(owner: string | null): Readonly<Share> {
    return (owner === null ? undefined : this.#byOwner.get(owner)) ?? NONE;
  }

  add({ owner }: AgentRecord, bytes: number): void {
    this.#change(owner, 1, bytes);
  }

  remove({ owner }: AgentRecord, bytes: number): void {
    this.#change(owner, -1, -bytes);
  }

  #change(owner: string | null, names: number, bytes: number): void {
    if (owner === null) return;
    const share = this.#byOwner.get(owner) ?? { names: 0, bytes: 0 };
    share.names += names;
    share.bytes += bytes;
    if (share.names === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, share);
  }
}

/** What one owner may have of so much. */
export function ownerShare(max: number): number {
  return Math.ceil(max * OWNER_SHARE);
}
