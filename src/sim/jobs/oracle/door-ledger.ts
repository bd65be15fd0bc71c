// Who is let in, by the committed events alone: API keys, and client certificates that were revoked.
//
// - At one position every node has the same keys and revocations, also after a snapshot: those that the events up to it make.
// - What a client was answered was so at some moment since it asked: a key that is there, a name that is taken, or one that is not
//   known; and a revocation that it was notified of is committed.

import type { SiteJournal } from "../../../controller/journal/site-journal.ts";
import { type JobsProbeCounts, reached } from "../probes.ts";
import type { SeenEvent } from "./history.ts";
import type { Asked } from "./oracle.ts";

/** As documented: a day later than it expired a revocation is dropped, with the next one. */
const KEPT_EXPIRED_MS = 24 * 3_600_000;

interface Doors {
  readonly sequence: number;
  /** Hashes by name. */
  readonly keys: ReadonlyMap<string, string>;
  /** Times at which they expire, by hash. */
  readonly revoked: ReadonlyMap<string, number>;
}

export type KeyAnswer = "there" | "taken" | "gone" | "unknown";

const decoder = new TextDecoder();

export class DoorLedger {
  readonly #probes: JobsProbeCounts;
  readonly #wrong: (node: string, what: string) => void;
  readonly #moments: Doors[] = [{ sequence: 0, keys: new Map(), revoked: new Map() }];
  /** Every key that ever was, by hash. */
  readonly #hashes = new Set<string>();

  constructor(probes: JobsProbeCounts, wrong: (node: string, what: string) => void) {
    this.#probes = probes;
    this.#wrong = wrong;
  }

  committed(sequence: number, data: Uint8Array): void {
    const event = JSON.parse(decoder.decode(data)) as SeenEvent & { readonly timestamp: number };
    const { eventType, entityId, payload, timestamp } = event;
    if (!/^(key|certificate):/.test(eventType)) return;
    const before = this.#moments.at(-1)!;
    const [keys, revoked] = [new Map(before.keys), new Map(before.revoked)];
    if (eventType === "key:created") {
      this.#hashes.add(String(payload["sha256"]));
      keys.set(entityId, String(payload["sha256"]));
    } else if (eventType === "key:revoked") {
      reached(this.#probes, "key-revoked");
      keys.delete(entityId);
    } else {
      reached(this.#probes, "certificate-revoked");
      for (const [sha256, notAfterMs] of revoked) if (timestamp >= notAfterMs + KEPT_EXPIRED_MS) revoked.delete(sha256);
      revoked.set(entityId, Number(payload["notAfterMs"]));
    }
    this.#moments.push({ sequence, keys, revoked });
  }

  /** An event was applied there. */
  folded(node: string, position: number, fold: SiteJournal): void {
    if (this.#moments.at(-1)?.sequence === position || this.#at(position).sequence === position)
      this.check(node, position, fold);
  }

  restored(node: string, position: number, fold: SiteJournal): void {
    if (this.#at(position).sequence > 0) reached(this.#probes, "doors-restored");
    this.check(node, position, fold);
  }

  check(node: string, position: number, { keys, certificates }: SiteJournal): void {
    const moment = this.#at(position);
    const is = keys.all().map(({ name, sha256 }) => `${name}=${sha256}`);
    const should = [...moment.keys].map(([name, sha256]) => `${name}=${sha256}`).toSorted();
    if (is.join() !== should.join())
      this.#wrong(
        node,
        `has the keys ${is.join()} at event ${position}; by what is committed they are ${should.join()}`,
      );
    for (const sha256 of this.#hashes) {
      const name = keys.byHash(sha256)?.name;
      if (name !== undefined && moment.keys.get(name) !== sha256)
        this.#wrong(node, `accepts ${sha256} at event ${position}, which is no key there`);
      else if (name === undefined && [...moment.keys.values()].includes(sha256))
        this.#wrong(node, `does not accept ${sha256} at event ${position}, which is a key there`);
      else if (name !== undefined) reached(this.#probes, "key-accepted");
    }
    const open = [...moment.revoked.keys()].find((sha256) => certificates.get(sha256) === undefined);
    if (open !== undefined) this.#wrong(node, `lets in certificate ${open} at event ${position}, which was revoked`);
    if (certificates.all().length !== moment.revoked.size)
      this.#wrong(node, `has ${certificates.all().length} revocations at event ${position}, of ${moment.revoked.size}`);
  }

  /** What a node has said of a key since it was asked. */
  answered({ node, from }: Asked, answer: KeyAnswer, name: string, sha256: string): void {
    const [first, ...later] = [this.#at(from), ...this.#moments.filter(({ sequence }) => sequence > from)];
    const isSo = ({ keys }: Doors): boolean => {
      const known = keys.get(name);
      if (answer === "there") return known === sha256;
      if (answer === "taken") return known === undefined ? [...keys.values()].includes(sha256) : known !== sha256;
      return known === undefined;
    };
    // That it is gone is by a revocation of its own.
    const moments = answer === "gone" ? later : [first, ...later];
    if (!moments.some(isSo))
      this.#wrong(node, `said that key ${name} is ${answer}, which it was not since event ${from}`);
  }

  certificateAnswered({ node }: Asked, sha256: string): void {
    if (!this.#moments.at(-1)!.revoked.has(sha256) && !this.#moments.some(({ revoked }) => revoked.has(sha256)))
      this.#wrong(node, `said that certificate ${sha256} is revoked, which is not committed`);
  }

  #at(position: number): Doors {
    return this.#moments.findLast(({ sequence }) => sequence <= position)!;
  }
}
