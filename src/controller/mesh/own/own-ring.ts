// The ring of keys of this site's line, kept up to date by the leader: one key of each member, asked of the members themselves. The ring is
// an own event, `controller:registered` with `keys`; a change of it counts from the next event on.
//
//   no ring ── every member's key is known, or RING_WAIT_MS are over ──▶ written ── a key is new, or a member is gone ──▶ written
//                                                                          │ the site was recovered
//                                                                          └──▶ no ring of the next generation
//
// Invariants:
// - Nothing is written before every member reads it.
// - A change of the ring keeps a key of a node that answers: that key signs the page which the change ends, or nobody could go on from it.
// - A member that does not answer keeps the key that the ring has of it.

import { TenureError } from "../../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../../core/kit/ids.ts";
import type { EventDraft, EventPayload } from "../../../core/events/index.ts";
import type { Ring, RingKey } from "../../../core/mesh/model.ts";
import { lineIdOf, ringProblem } from "../../../core/mesh/proof/index.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Moment } from "../../journal/journal-reign.ts";
import type { JournalService } from "../../journal/service.ts";
import { OWN_URLS_MAX, RING_CHECK_MS, RING_WAIT_MS, RINGS_MAX } from "../limits.ts";
import { NO_PLACE } from "./signing-gate.ts";
import { type OwnGeneration, type OwnLineFold, ringOf } from "./own-line-fold.ts";

export interface OwnRingOptions {
  readonly journal: Pick<JournalService, "change">;
  readonly fold: Pick<OwnLineFold, "lines">;
  readonly leads: () => boolean;
  /** Of the events that are written now. */
  readonly author: () => string;
  /** Where the site has written no ring yet. */
  readonly controller: string;
  readonly name: string;
  /** Of all nodes, this one's first. */
  readonly urls: () => readonly string[];
  readonly own: RingKey;
  /** Of the cluster, without this node. */
  readonly others: () => readonly PeerKey[];
  /** Nodes that were invited and have not joined yet. */
  readonly expected: () => readonly string[];
  /** Members that are not known to read it: see CertificatesServiceOptions. */
  readonly unready: () => readonly string[];
  readonly askKey: (peer: PeerKey) => Promise<string | null>;
  /** Nothing of what this leader found is known to be common with anybody (signing-gate.ts). */
  readonly isPlaceDue: () => boolean;
  readonly digest: Digest;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What the members say: keys of those that answer, and who does not. */
interface Answers {
  readonly keys: ReadonlyMap<string, RingKey>;
  readonly silent: readonly string[];
}

export class OwnRing {
  readonly #options: OwnRingOptions;
  #timer: Timer | null = null;
  #isStopped = false;
  /** Since when this leader has wanted to write a ring; null: it does not. */
  #wantsSinceMs: number | null = null;
  #why: string | null = null;

  constructor(options: OwnRingOptions) {
    this.#options = options;
    this.#again(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Why the ring is not the one that it should be, as far as this node is concerned; null: nothing is wrong. */
  get waits(): string | null {
    return this.#why;
  }

  #again(afterMs: number): void {
    const { clock, logger } = this.#options;
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + afterMs, () => {
      this.#check()
        .catch((error: unknown) => {
          const why = error instanceof Error ? error.message : String(error);
          if (!TenureError.is(error)) logger.error({ event: "mesh-ring" }, `the ring of keys was not written: ${why}`);
          this.#why = why;
        })
        .finally(() => this.#again(RING_CHECK_MS));
    });
  }

  async #check(): Promise<void> {
    const { leads, unready } = this.#options;
    if (!leads()) {
      this.#wantsSinceMs = null;
      this.#why = null;
      return;
    }
    const missing = unready();
    if (missing.length > 0) {
      this.#why = `${missing.join(", ")}: of another release, or not connected since this leader started. The ring of keys waits for every member`;
      return;
    }
    const answers = await this.#ask();
    const wanted = this.#wanted(answers);
    if (wanted === null) return;
    const { generation, keys } = wanted;
    await this.#options.journal.change((moment) => this.#drafts(moment, generation, keys));
    this.#wantsSinceMs = null;
    this.#why = null;
  }

  async #ask(): Promise<Answers> {
    const { own, others, askKey } = this.#options;
    const keys = new Map<string, RingKey>([[own.node, own]]);
    const silent: string[] = [];
    const asked = others().map(async (peer) => {
      const [node, key] = [nodeIdOf(peer), await askKey(peer)];
      if (key === null) silent.push(node);
      else keys.set(node, { node, key });
    });
    await Promise.all(asked);
    return { keys, silent: silent.filter((node) => !keys.has(node)) };
  }

  /** What has to be written; null: nothing, or not now. */
  #wanted({ keys, silent }: Answers): { readonly generation: number; readonly keys: readonly RingKey[] } | null {
    const { fold, author, expected } = this.#options;
    const last = fold.lines?.generations.at(-1);
    const ring = last === undefined ? null : ringOf(last);
    if (last === undefined || last.end !== null || ring?.author !== author()) {
      const waitsFor = [...silent, ...expected()];
      if (waitsFor.length > 0 && !this.#hasWaited()) {
        this.#why = `waiting for the keys of ${waitsFor.join(", ")}`;
        return null;
      }
      return { generation: (ring?.generation ?? 0) + 1, keys: sorted(keys.values()) };
    }
    const kept = ring.keys.filter(({ node }) => silent.includes(node));
    const wanted = sorted([...keys.values(), ...kept]);
    this.#why = this.#refusal(last, wanted, keys);
    if (this.#why !== null || isSame(wanted, ring.keys)) return null;
    return { generation: ring.generation, keys: wanted };
  }

  #hasWaited(): boolean {
    const { clock } = this.#options;
    this.#wantsSinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - this.#wantsSinceMs >= RING_WAIT_MS;
  }

  #refusal(last: OwnGeneration, wanted: readonly RingKey[], answered: ReadonlyMap<string, RingKey>): string | null {
    const ring = ringOf(last);
    if (isSame(wanted, ring.keys)) return null;
    if (!ring.keys.some(({ node, key }) => answered.get(node)?.key === key)) {
      return `no member has a key of the ring in force (${ring.keys.map(({ node }) => node).join(", ")}), so nobody can sign the change to another one. Put mesh.key back on one of them; without any, \`tenure mesh resume --new-line\` begins the next generation with the keys that there are, and each peer approves its ring`;
    }
    return last.rings.length < RINGS_MAX ? null : `this line has had ${RINGS_MAX} rings of keys, and takes no more`;
  }

  /** Decided once more on what is applied now: another leader may have written it. */
  #drafts({ newId, nowMs }: Moment, generation: number, keys: readonly RingKey[]): readonly EventDraft[] {
    const { fold, author, name, urls, digest } = this.#options;
    const own = fold.lines;
    const last = own?.generations.at(-1);
    const controller = own?.controller ?? this.#options.controller;
    const ring: Ring = { controller, generation, author: author(), keys };
    const problem = ringProblem(ring);
    if (problem !== null) throw new TenureError("CONFIG_INVALID", `The ring of keys can't be written: ${problem}.`);
    const isNext = last === undefined || (last.end !== null && ringOf(last).generation + 1 === generation);
    if (!isNext && (ringOf(last).generation !== generation || last.end !== null)) return [];
    const line = isNext ? lineIdOf(ring, digest) : last.line;
    const shown = keys.map(({ node, key }) => ({ node, key }));
    const draftOf = (eventType: EventDraft["eventType"], payload: EventPayload): EventDraft => ({
      id: newId(),
      eventType,
      entityType: "controller",
      entityId: controller,
      payload,
      timestamp: nowMs,
    });
    const stated = { name, urls: urls().slice(0, OWN_URLS_MAX), line, generation, author: ring.author, keys: shown };
    const registered = draftOf("controller:registered", stated);
    // With the first ring, in one record: from then on there is a line, and the next leader would take its end for the place.
    const isMarked = last === undefined && this.#options.isPlaceDue();
    return isMarked ? [registered, draftOf("controller:gated", { ...NO_PLACE })] : [registered];
  }
}

function sorted(keys: Iterable<RingKey>): readonly RingKey[] {
  return [...keys].toSorted((a, b) => (a.node < b.node ? -1 : 1));
}

function isSame(one: readonly RingKey[], other: readonly RingKey[]): boolean {
  return (
    one.length === other.length && one.every(({ node, key }, at) => other[at]?.node === node && other[at].key === key)
  );
}
