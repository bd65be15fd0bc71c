// The configurations of a log, oldest first. A server acts under the latest one in its log, committed or not
// (§6); the committed one is kept apart, because an entry that is replaced takes its configuration with it
// (trap 11). Why not when it is committed: docs/decisions/0003-configuration-on-append.md.
//
// Invariants: indexes grow; the first one is the snapshot's, and can't be replaced; at most the last one
// is uncommitted, because the next change waits for the one before (trap 10).

import { assert } from "../../kit/assert.ts";
import type { PeerKey } from "../../kit/ids.ts";
import { decodeConfChange } from "../codec.ts";
import { applyConfChange } from "./membership.ts";
import { isMember } from "./quorum.ts";
import type { Configuration, Entry } from "../types.ts";

interface Held {
  readonly index: number;
  readonly term: number;
  readonly configuration: Configuration;
}

export class Configurations {
  #held: Held[];

  constructor(index: number, term: number, configuration: Configuration) {
    this.#held = [{ index, term, configuration }];
  }

  get effective(): Configuration {
    return this.#held[this.#held.length - 1]!.configuration;
  }

  /** The index of the entry that brought the effective one. */
  get effectiveIndex(): number {
    return this.#held[this.#held.length - 1]!.index;
  }

  get oldestIndex(): number {
    return this.#held[0]!.index;
  }

  /** The one that holds for a log that ends at `index`. */
  at(index: number): Configuration {
    const known = this.#held.findLast((one) => one.index <= index);
    assert(known !== undefined, "the configuration of every kept index is known");
    return known.configuration;
  }

  /** The index of the entry that brought that one. */
  indexAt(index: number): number {
    return this.#held.findLast((one) => one.index <= index)!.index;
  }

  /** Whether a log that is committed up to `index` knows this peer as a member: in that configuration, or in a later one. */
  hasMember(peer: PeerKey, index: number): boolean {
    const from = this.indexAt(index);
    return this.#held.some((one) => one.index >= from && isMember(one.configuration, peer));
  }

  append(index: number, term: number, configuration: Configuration): void {
    assert(index > this.effectiveIndex, "configurations follow the log");
    this.#held.push({ index, term, configuration });
  }

  /** Forgets configurations whose entries are not in the log any more. */
  dropReplaced(termAt: (index: number) => number | undefined): void {
    while (this.#held.length > 1) {
      const last = this.#held[this.#held.length - 1]!;
      if (termAt(last.index) === last.term) return;
      this.#held.pop();
    }
  }

  /** Forgets what nobody can ask for once the log starts after `index`. */
  compact(index: number): void {
    while (this.#held.length > 1 && this.#held[1]!.index <= index) this.#held.shift();
  }
}

/** What an entry of the log makes of the configuration before it. */
export function configurationBehind(configuration: Configuration, entry: Entry): Configuration {
  if (entry.type !== "EntryConfChange") return configuration;
  const change = decodeConfChange(entry.data);
  assert(change !== null, "a configuration change in the log can be read");
  const outcome = applyConfChange(configuration, change);
  assert(outcome.ok, "a configuration change in the log is valid");
  return outcome.configuration;
}
