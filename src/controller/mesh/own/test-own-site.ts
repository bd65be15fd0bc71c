// A site's own history for tests: sealed events in memory, the lines that they make, and an own line over them.

import {
  EMPTY_CHAIN,
  type ChainHead,
  MerkleFrontier,
  bytesOfHash,
  Sealer,
  type SealedEvent,
} from "../../../core/events/index.ts";
import type { EventPayload } from "../../../core/events/index.ts";
import type { Ring } from "../../../core/mesh/model.ts";
import { lineIdOf, recoveredPayload, ringKeyOf } from "../../../core/mesh/proof/index.ts";
import { fakeSigner, fakeVerify } from "../../../core/mesh/test-signatures.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Signer } from "../../../ports/signatures.ts";
import { EventsService } from "../../journal/events.ts";
import { OwnLine, type OwnLineOptions } from "./own-line.ts";
import { OwnLineFold } from "./own-line-fold.ts";

const CONTROLLER = "alpha";

/** Whose timers fire as soon as nothing else is done. */
const SOON: Clock = {
  monotonicMs: () => 0,
  wallMs: () => 0,
  setTimer: (_atMs, fire) => {
    void Promise.resolve().then(fire);
    return { cancel: () => undefined };
  },
};

export class OwnSiteStage {
  readonly all: SealedEvent[] = [];
  readonly fold = new OwnLineFold();
  readonly signed: string[] = [];
  startSequence = 0;
  author = "c-one";
  generation = 1;
  readonly #followers = new Set<(sealed: SealedEvent) => void>();
  readonly #restored = new Set<() => void>();
  readonly #digest: Digest;
  #sealer: Sealer;
  readonly events: EventsService;

  constructor(digest: Digest) {
    this.#digest = digest;
    this.#sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "c-one", leaderEpoch: 1, digest });
    const { all } = this;
    const chain = (): ChainHead => this.#sealer.head;
    this.events = new EventsService({
      journal: {
        get chain() {
          return chain();
        },
        follow: (tell) => {
          this.#followers.add(tell);
          return () => void this.#followers.delete(tell);
        },
        onRestored: (tell) => {
          this.#restored.add(tell);
          return () => void this.#restored.delete(tell);
        },
      },
      history: {
        stats: () => ({ startSequence: this.startSequence, lastSequence: all.length }),
        read: async function* (from, max = Infinity) {
          const batch = all.slice(from - 1, from - 1 + max);
          yield batch.map(({ event: { sequence, eventHash }, bytes }) => ({ sequence, eventHash, bytes }));
        },
        verify: () => {
          throw new Error("not asked for here");
        },
      },
      digest,
    });
  }

  write(eventType: `${string}:${string}`, payload: EventPayload = {}, entityId = "one"): number {
    const timestamp = 1_000 + this.all.length;
    const entityType = eventType.slice(0, eventType.indexOf(":"));
    const sealed = this.#sealer.seal({
      id: `id-${this.all.length}`,
      eventType,
      entityId,
      entityType,
      payload,
      timestamp,
    });
    this.all.push(sealed);
    this.fold.apply(sealed.event);
    for (const tell of this.#followers) tell(sealed);
    return sealed.event.sequence;
  }

  grow(count: number, payload: EventPayload = {}): void {
    for (let n = 0; n < count; n++) this.write(n % 5 === 3 ? "key:created" : "queue:paused", payload);
  }

  /** The ring of these nodes is written. */
  ring(...nodes: string[]): number {
    const ring = this.ringOf(...nodes);
    const last = this.fold.lines?.generations.at(-1);
    const line = last === undefined || last.end !== null ? lineIdOf(ring, this.#digest) : last.line;
    const { generation, author } = ring;
    const keys = ring.keys.map(({ node, key }) => ({ node, key }));
    return this.write("controller:registered", { name: "A", urls: [], line, generation, author, keys }, CONTROLLER);
  }

  ringOf(...nodes: string[]): Ring {
    const keys = nodes.toSorted().map((node) => ringKeyOf(node, fakeSigner(node, this.#digest).publicKey));
    return { controller: CONTROLLER, generation: this.generation, author: this.author, keys };
  }

  /** Another cluster, of what this one had; or the same, which goes on from an earlier place. */
  recover(from?: ReturnType<OwnSiteStage["point"]>): number {
    const { generations } = this.fold.lines!;
    const { line, rings } = generations.at(-1)!;
    const old = from ?? this.point(this.all.length);
    const state = { line, ring: rings.at(-1)!.ring, checkpoint: null, ...old };
    this.generation++;
    this.writeAs(`c-${this.generation}`);
    return this.write("controller:recovered", recoveredPayload(state), CONTROLLER);
  }

  /** What is written next is another author's. */
  writeAs(author: string): void {
    this.author = author;
    const { head } = this.#sealer;
    this.#sealer = new Sealer({ head, sourceControllerId: author, leaderEpoch: 2, digest: this.#digest });
  }

  point(size: number): { size: number; hash: string | null; timestamp: number; frontier: Uint8Array } {
    const tree = new MerkleFrontier(this.#digest);
    for (const { event } of this.all.slice(0, size)) tree.append(bytesOfHash(event.eventHash));
    const last = this.all[size - 1]?.event;
    return { size, hash: last?.eventHash ?? null, timestamp: last?.timestamp ?? 0, frontier: tree.encode() };
  }

  /** As a node shows it. */
  lineAt(node: string, options: Partial<OwnLineOptions> = {}): OwnLine {
    const signer = fakeSigner(node, this.#digest);
    const counted: Signer = {
      publicKey: signer.publicKey,
      sign: (message) => {
        this.signed.push(new TextDecoder().decode(message));
        return signer.sign(message);
      },
    };
    return new OwnLine({
      fold: this.fold,
      events: this.events,
      history: { pointAt: (size) => Promise.resolve(this.point(size)) },
      key: { node, signer: counted },
      verify: fakeVerify(this.#digest),
      clock: SOON,
      digest: this.#digest,
      askNote: () => Promise.resolve(null),
      askProof: () => Promise.resolve(null),
      ringWaits: () => null,
      ...options,
    });
  }
}
