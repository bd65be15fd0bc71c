// A site that writes a line, signs and cuts pages: what tests and simulators need of one, in memory and with nothing hidden.

import { Sealer } from "../events/chain.ts";
import type { EventDraft } from "../events/event.ts";
import { bytesOfHash, hexOf } from "../events/hex.ts";
import { type Hash, leafHash, MerkleFrontier } from "../events/merkle.ts";
import { consistencyProof, inclusionProof } from "../events/test-merkle.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Signer } from "../../ports/signatures.ts";
import type { Checkpoint, LineState, Page, PageItem, Ring } from "./model.ts";
import { emptyLine, isWithheld, NOTHING_WITHHELD, ringKeyOf, signCheckpoint, withheldHash } from "./proof/index.ts";
import { fakeSigner } from "./test-signatures.ts";

const START_MS = 1_790_000_000_000;
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type Draft = Partial<EventDraft>;

interface Written {
  readonly text: string;
  readonly hash: string;
  readonly eventType: string;
}

export function ringOf(
  controller: string,
  nodes: readonly string[],
  digest: Pick<Digest, "sha256">,
  generation = 1,
): Ring {
  const keys = nodes.toSorted().map((node) => ringKeyOf(node, fakeSigner(`${controller}/${node}`, digest).publicKey));
  return { controller, generation, author: `${controller}.${generation}`, keys };
}

export class TestSite {
  readonly digest: Digest;
  /** The first one. */
  readonly ring: Ring;
  /** Where the line begins. */
  readonly start: LineState;
  readonly #sealer: Sealer;
  readonly #written: Written[] = [];
  readonly #leaves: Hash[];

  /** `continued`: the state that a later generation begins with, and the leaves up to it. */
  constructor(ring: Ring, digest: Digest, continued?: { readonly state: LineState; readonly leaves: readonly Hash[] }) {
    this.digest = digest;
    this.ring = ring;
    this.start = continued?.state ?? emptyLine(ring, digest);
    this.#leaves = [...(continued?.leaves ?? [])];
    const { size: sequence, hash, timestamp } = this.start;
    const head = { sequence, hash, timestamp };
    this.#sealer = new Sealer({ head, sourceControllerId: ring.author, leaderEpoch: 1, digest });
  }

  get line(): string {
    return this.start.line;
  }

  get size(): number {
    return this.start.size + this.#written.length;
  }

  leaves(size: number): readonly Hash[] {
    return this.#leaves.slice(0, size);
  }

  write(draft: Draft = {}): string {
    const place = this.size + 1;
    const eventType = draft.eventType ?? "build:assigned";
    const { event, bytes } = this.#sealer.seal({
      id: `${this.ring.controller}-${place}`,
      eventType,
      entityType: eventType.slice(0, eventType.indexOf(":")),
      entityId: `job-${place}`,
      payload: { attempt: 1, text: 'x"\\\n😀é' },
      timestamp: START_MS + place,
      ...draft,
    });
    const text = textDecoder.decode(bytes);
    this.#written.push({ text, hash: event.eventHash, eventType });
    this.#leaves.push(leafHash(bytesOfHash(event.eventHash), this.digest));
    return text;
  }

  writeMany(count: number): void {
    for (let at = 0; at < count; at++) this.write();
  }

  /** The site's own registration, with these keys. */
  register(ring: Ring, more: Draft = {}): string {
    const { author, generation } = ring;
    const keys = ring.keys.map(({ node, key }) => ({ node, key }));
    const payload = { name: ring.controller, urls: [], line: this.line, generation, author, keys };
    return this.write({ eventType: "controller:registered", entityId: ring.controller, payload, ...more });
  }

  text(sequence: number): string {
    return this.#at(sequence).text;
  }

  hash(sequence: number): string {
    return this.#at(sequence).hash;
  }

  root(size: number): string {
    return hexOf(this.#tree(size).root());
  }

  frontier(size: number): Uint8Array {
    return size === 0 ? new Uint8Array(0) : this.#tree(size).encode();
  }

  item(sequence: number): PageItem {
    const { text, hash, eventType } = this.#at(sequence);
    return isWithheld(eventType) ? { hash } : text;
  }

  checkpoint(size: number, after = size): Checkpoint {
    const withheld = after === size ? NOTHING_WITHHELD : withheldHash(this.#withheld(after, size), this.digest);
    return { line: this.line, size, root: this.root(size), withheld: { after, hash: withheld } };
  }

  /** A head: a note that covers no items. */
  head(size = this.size, node = this.ring.keys[0]!.node): string {
    return this.sign(this.checkpoint(size), node);
  }

  sign(checkpoint: Checkpoint, node = this.ring.keys[0]!.node, signer: Signer = this.signer(node)): string {
    return signCheckpoint(checkpoint, { node, signer }, this.digest);
  }

  signer(node: string): Signer {
    return fakeSigner(`${this.ring.controller}/${node}`, this.digest);
  }

  page(after: number, size: number, node = this.ring.keys[0]!.node): Page {
    const items = Array.from({ length: size - after }, (_, at) => this.item(after + at + 1));
    return { line: this.line, after, items, checkpoint: this.sign(this.checkpoint(size, after), node) };
  }

  /** That the tree of `to` begins with that of `from`, as GET /v1/mesh/consistency gives it. */
  prefix(from: number, to: number): { readonly rootAt: string; readonly path: readonly string[] } {
    return { rootAt: this.root(from), path: consistencyProof(this.#leaves, from, to, this.digest).map(hexOf) };
  }

  inclusion(sequence: number, size: number): readonly string[] {
    return inclusionProof(this.#leaves, sequence - 1, size, this.digest).map(hexOf);
  }

  #withheld(after: number, size: number): readonly number[] {
    const sequences: number[] = [];
    for (let at = after + 1; at <= size; at++) if (isWithheld(this.#at(at).eventType)) sequences.push(at);
    return sequences;
  }

  #tree(size: number): MerkleFrontier {
    const tree = new MerkleFrontier(this.digest);
    for (const leaf of this.leaves(size)) tree.appendLeafHash(leaf);
    return tree;
  }

  #at(sequence: number): Written {
    const written = this.#written[sequence - this.start.size - 1];
    if (written === undefined) throw new Error(`nothing was written at ${sequence}`);
    return written;
  }
}
