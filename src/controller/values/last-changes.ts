// The last changes of values on this node, for those who watch: bounded in number and in bytes.
// Invariant: every change with a version above `#floor` is here, in order.

import { type ValueEvent, valueBytes } from "../../core/values/index.ts";
import { VALUE_CHANGES_BYTES_KEPT, VALUE_CHANGES_KEPT } from "./limits.ts";

export interface MadeChange {
  readonly event: ValueEvent;
  readonly version: number;
}

export class LastChanges {
  #changes: MadeChange[] = [];
  #bytes = 0;
  /** Changes up to this version are not kept. */
  #floor: number;

  constructor(floor: number) {
    this.#floor = floor;
  }

  push(event: ValueEvent, version: number): void {
    this.#changes.push({ event, version });
    this.#bytes += bytesOf(event);
    const kept = this.#changes;
    if (kept.length <= VALUE_CHANGES_KEPT && this.#bytes <= VALUE_CHANGES_BYTES_KEPT) return;
    // Half of it at once, so that a change costs the same however many are kept.
    const dropped = kept.splice(0, Math.ceil(kept.length / 2));
    for (const one of dropped) this.#bytes -= bytesOf(one.event);
    this.#floor = dropped.at(-1)!.version;
    // Changes of one record have one version: what is left of it would look like all of it.
    while (kept[0]?.version === this.#floor) this.#bytes -= bytesOf(kept.shift()!.event);
  }

  /** In order, at most `limit`, and the others of the last one's version; null: some of them are not kept. */
  after(prefix: string, after: number, limit: number): { changes: readonly MadeChange[]; isAll: boolean } | null {
    if (after < this.#floor) return null;
    const changes: MadeChange[] = [];
    for (let at = this.#placeAfter(after); at < this.#changes.length; at++) {
      const change = this.#changes[at]!;
      if (!change.event.name.startsWith(prefix)) continue;
      if (changes.length >= limit && change.version > changes.at(-1)!.version) return { changes, isAll: false };
      changes.push(change);
    }
    return { changes, isAll: true };
  }

  /** Whether there is such a change, or may have been one. */
  hasAfter(prefix: string, after: number): boolean {
    const found = this.after(prefix, after, 1);
    return found === null || found.changes.length > 0;
  }

  #placeAfter(version: number): number {
    let from = 0;
    let to = this.#changes.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#changes[middle]!.version > version) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}

function bytesOf(event: ValueEvent): number {
  return event.kind === "value-put" ? valueBytes(event) : event.name.length;
}
