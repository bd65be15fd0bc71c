// The history of events as readers and nodes have it, next to what is committed.
//
// - A page, a stream's frame and a proof show the committed events, byte for byte; the root of a tree is the same on all nodes.
// - In the end every node has all events in its archive, in the same segments, and finds its chain whole.

import type { Digest } from "../../../ports/digest.ts";
import {
  eventHashOf,
  hexOf,
  bytesOfHash,
  leafHash,
  verifyConsistency,
  verifyInclusion,
} from "../../../core/events/index.ts";
import { eventText, eventWire } from "../../../contract/index.ts";
import type { ConsistencyProof, InclusionProof } from "../../../ports/events.ts";
import type { JobsCluster } from "../cluster.ts";
import type { SeenEvent } from "./history.ts";
import { isSame } from "./kit.ts";

/** Longer than a fetcher rests at most, several times over. */
const WITHIN_MS = 300_000;

const decoder = new TextDecoder();

export class Chronicle {
  readonly #record: (sequence: number) => Uint8Array;
  readonly #digest: Digest;
  readonly #hashes = new Map<number, string>();
  readonly #events = new Map<number, SeenEvent>();
  readonly #roots = new Map<number, string>();

  constructor(record: (sequence: number) => Uint8Array, digest: Digest) {
    this.#record = record;
    this.#digest = digest;
  }

  hash(sequence: number): string {
    const hash = this.#hashes.get(sequence) ?? eventHashOf(this.#record(sequence), this.#digest);
    this.#hashes.set(sequence, hash);
    return hash;
  }

  event(sequence: number): SeenEvent {
    const event = this.#events.get(sequence) ?? (JSON.parse(decoder.decode(this.#record(sequence))) as SeenEvent);
    this.#events.set(sequence, event);
    return event;
  }

  /** As a page has it. */
  text(sequence: number): string {
    return eventText(this.#record(sequence), this.hash(sequence));
  }

  /** As a stream has it. */
  wire(sequence: number): string {
    return JSON.stringify(eventWire(this.#record(sequence), this.hash(sequence)));
  }

  /** Null: no other node has told of another root. */
  rootProblem(size: number, root: string): string | null {
    const known = this.#roots.get(size) ?? root;
    this.#roots.set(size, known);
    return known === root ? null : `the tree of ${size} events has the root ${root}, and ${known} elsewhere`;
  }

  inclusionProblem({ sequence, treeSize: size, leafHash: leaf, root, path }: InclusionProof): string | null {
    const own = leafHash(bytesOfHash(this.hash(sequence)), this.#digest);
    const claim = { leafHash: own, index: sequence - 1, size, root: bytesOfHash(root), proof: path.map(bytesOfHash) };
    if (leaf !== hexOf(own) || !verifyInclusion(claim, this.#digest))
      return `event ${sequence} is not proved in ${size}`;
    return this.rootProblem(size, root);
  }

  consistencyProblem({ fromSize: first, treeSize: second, fromRoot, root, path }: ConsistencyProof): string | null {
    const roots = { firstRoot: bytesOfHash(fromRoot), secondRoot: bytesOfHash(root) };
    if (!verifyConsistency({ first, second, ...roots, proof: path.map(bytesOfHash) }, this.#digest))
      return `the tree of ${first} events is not proved to go on in that of ${second}`;
    return this.rootProblem(first, fromRoot) ?? this.rootProblem(second, root);
  }
}

/** When nothing fails any more. Null: all of it held. */
export async function historiesProblem(cluster: JobsCluster, stepsMax: number): Promise<string | null> {
  const { world, names, oracle } = cluster;
  if (world.findings.length > 0) return null;
  const limits = { untilMs: world.nowMs + WITHIN_MS, stepsMax };
  const missing = (): string | undefined => names.find((name) => cluster.server(name)?.archive.isComplete !== true);
  const areLevel = (): boolean => names.every((name) => oracle.positionOf(name) === oracle.head);
  await world.run(() => missing() === undefined && areLevel(), limits);
  const lacking = missing();
  if (lacking !== undefined) {
    const ranges = cluster
      .server(lacking)
      ?.archive.missing()
      .map(({ first, last }) => `${first}-${last}`);
    return `${lacking} still lacks events ${ranges?.join()} ${WITHIN_MS} ms after the last fault`;
  }
  for (const name of names) {
    let end: string | null | undefined;
    world.call(name, () => {
      historyProblem(cluster, name).then(
        (problem) => (end = problem),
        (error: unknown) => (end = `${name} can't read its history: ${String(error)}`),
      );
    });
    await world.run(() => end !== undefined || world.findings.length > 0, limits);
    if (end !== null) return end ?? `${name} does not come to the end of its history`;
  }
  return null;
}

async function historyProblem(cluster: JobsCluster, name: string): Promise<string | null> {
  const { oracle, chronicle, names, doors } = cluster;
  const { archive, following, fold } = cluster.server(name)!;
  const head = oracle.positionOf(name);
  let next = 1;
  for await (const batch of archive.read(1, head)) {
    for (const { sequence, bytes } of batch) {
      if (sequence !== next) return `${name} has event ${sequence} in its history where ${next} belongs`;
      if (!isSame(bytes, oracle.record(next))) return `${name} has another event ${next} in its history`;
      next++;
    }
  }
  if (next <= head) return `${name} has events up to ${next - 1} of ${head} in its history`;
  const verified = await following.verify();
  if (!verified.valid) return `${name} finds event ${verified.firstBrokenSequence} broken: ${verified.reason}`;
  if (verified.through > 0 && verified.headHash !== chronicle.hash(verified.through))
    return `${name} verifies another event ${verified.through}`;
  const cuts = (one: string): string =>
    cluster
      .server(one)!
      .archive.manifest()
      .segments.map(({ last }) => last)
      .join();
  if (!cuts(names[0]!).startsWith(cuts(name)) && !cuts(name).startsWith(cuts(names[0]!)))
    return `${name} has other segments than ${names[0]}: ${cuts(name)}`;
  doors.check(name, oracle.positionOf(name), fold);
  return chronicle.rootProblem(verified.through, verified.root);
}
