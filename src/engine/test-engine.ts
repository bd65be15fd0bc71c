// What the tests of the engine share: engines on hand-made ports that do nothing by themselves. Time passes when
// a test says so, a message arrives when it is delivered, and a disk call with a held label waits for its release.

import { incarnationOf, nodeIdOf, peerKey, type PeerKey } from "../core/kit/ids.ts";
import { seededRandom } from "../core/kit/random.ts";
import { configurationOf, decodeMessage, type Message, type RaftEvent } from "../core/raft/index.ts";
import { ManualClock } from "../loops/test-clock.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";
import type { StateMachine } from "../ports/state-machine.ts";
import type { Wire, WireHandlers } from "../ports/peers/wire.ts";
import { Engine } from "./engine.ts";
import type { EngineOptions } from "./engine-options.ts";
import { ENVELOPE_HEADER_BYTES, sealEnvelope } from "./envelope.ts";
import { TestDisk } from "./test-disk.ts";
import { bytesOf, digest } from "./test-storage.ts";

export { ManualClock, WorkedClock } from "../loops/test-clock.ts";

export const CLUSTER = "c";
export const [n1, n2, n3] = [peerKey("n1", "a1"), peerKey("n2", "a2"), peerKey("n3", "a3")];

// ---- ports -----------------------------------------------------------------------------------------

/** Passes everything to a TestDisk, but a call with a held label only after its release. */
export class HeldDisk implements Disk {
  readonly inner: TestDisk;
  readonly #held = new Map<string, (() => void)[]>();

  constructor(inner = new TestDisk()) {
    this.inner = inner;
  }

  hold(label: string): void {
    this.#held.set(label, []);
  }

  release(label: string): void {
    const waiting = this.#held.get(label) ?? [];
    this.#held.delete(label);
    for (const go of waiting) go();
  }

  waiting(label: string): number {
    return this.#held.get(label)?.length ?? 0;
  }

  /** The calls with this label that were carried out. */
  count(label: string): number {
    return this.inner.calls.filter((call) => call.split(" ")[0] === label).length;
  }

  readonly list: Disk["list"] = (label) => this.inner.list(label);
  readonly read: Disk["read"] = (name, label) => this.inner.read(name, label);
  readonly sizeBytes: Disk["sizeBytes"] = (name, label) => this.inner.sizeBytes(name, label);
  readonly open: Disk["open"] = async (name, label) => this.#file(await this.inner.open(name, label));
  readonly create: Disk["create"] = async (name, label) =>
    this.#file(await this.#after(label, () => this.inner.create(name, label)));
  readonly rename: Disk["rename"] = (from, to, label) => this.#after(label, () => this.inner.rename(from, to, label));
  readonly remove: Disk["remove"] = (name, label) => this.#after(label, () => this.inner.remove(name, label));
  readonly syncDirectory: Disk["syncDirectory"] = (label) => this.#after(label, () => this.inner.syncDirectory(label));

  #file(file: DiskFile): DiskFile {
    return {
      name: file.name,
      append: (bytes, label) => this.#after(label, () => file.append(bytes, label)),
      reserve: (sizeBytes, label) => file.reserve(sizeBytes, label),
      truncate: (sizeBytes, label) => file.truncate(sizeBytes, label),
      fdatasync: (label) => this.#after(label, () => file.fdatasync(label)),
      close: async () => {
        this.inner.calls.push(`close ${file.name}`);
        await file.close();
      },
    };
  }

  async #after<T>(label: string, act: () => Promise<T>): Promise<T> {
    const waiting = this.#held.get(label);
    if (waiting !== undefined) await new Promise<void>((go) => waiting.push(go));
    return act();
  }
}

/** Remembers what was applied, in order, as text. */
export class ListMachine implements StateMachine {
  applied: string[] = [];
  snapshots = 0;

  apply(entry: { readonly index: number; readonly data: Uint8Array }): void {
    this.applied.push(new TextDecoder().decode(entry.data));
  }

  snapshot(): Uint8Array | Promise<Uint8Array> {
    this.snapshots++;
    return bytesOf(JSON.stringify(this.applied));
  }

  restore(data: Uint8Array): void {
    this.applied = data.length === 0 ? [] : (JSON.parse(new TextDecoder().decode(data)) as string[]);
  }
}

// ---- a stage ---------------------------------------------------------------------------------------

interface Packet {
  readonly from: PeerKey;
  readonly to: PeerKey;
  readonly bytes: Uint8Array;
  readonly message: Message;
}

export interface Actor {
  readonly engine: Engine;
  readonly disk: HeldDisk;
  readonly machine: ListMachine;
  readonly events: RaftEvent[];
  readonly fatal: unknown[];
}

export class Stage {
  readonly clock = new ManualClock();
  /** Everything that was ever sent. */
  readonly sent: Packet[] = [];
  /** What is under way; a test may hold it back, lose it or repeat it. */
  readonly underWay: Packet[] = [];
  readonly cut = new Set<PeerKey>();
  wiresStopped = 0;
  readonly #voters: readonly PeerKey[];
  readonly #handlers = new Map<PeerKey, WireHandlers>();
  readonly #drain: () => Promise<void>;
  #lives = 0;

  /** `drain` resolves when no promise is left that could go on by itself. */
  constructor(voters: readonly PeerKey[], drain: () => Promise<void>) {
    this.#voters = voters;
    this.#drain = drain;
  }

  async start(peer: PeerKey, options: Partial<EngineOptions> = {}, disk = new HeldDisk()): Promise<Actor> {
    const machine = new ListMachine();
    const events: RaftEvent[] = [];
    const fatal: unknown[] = [];
    const engine = await Engine.start({
      clusterId: CLUSTER,
      nodeId: nodeIdOf(peer),
      disk,
      clock: this.clock,
      digest,
      random: seededRandom(`${peer}/${++this.#lives}`),
      connect: (self) => this.#wire(self),
      stateMachine: machine,
      newIncarnation: () => (0xb000 + this.#lives).toString(16),
      bootstrap: { incarnation: incarnationOf(peer), configuration: configurationOf(this.#voters, []) },
      // Compaction holds nothing back: these tests are about what was compacted.
      limits: { compactionHoldEntriesMax: 0 },
      reserveBytes: 500,
      onEvent: (event) => events.push(event),
      onFatal: (error) => fatal.push(error),
      ...options,
    });
    await this.#drain();
    return { engine, disk, machine, events, fatal };
  }

  /** Nothing is delivered, and no time passes: only what can go on by itself does. */
  drain(): Promise<void> {
    return this.#drain();
  }

  /** Delivers everything, and what follows from it, until all is quiet. */
  async settle(): Promise<void> {
    await this.#drain();
    while (this.underWay.length > 0) {
      const { from, to, bytes } = this.underWay.shift()!;
      if (!this.cut.has(from) && !this.cut.has(to)) this.#handlers.get(to)?.message(from, bytes);
      await this.#drain();
    }
  }

  /** Time passes; timers fire when they are due, and everything arrives at once. */
  async advance(forMs: number): Promise<void> {
    const untilMs = this.clock.nowMs + forMs;
    await this.settle();
    while (this.clock.nextMs <= untilMs) {
      this.clock.nowMs = Math.max(this.clock.nowMs, this.clock.nextMs);
      this.clock.fireNext();
      await this.settle();
    }
    this.clock.nowMs = untilMs;
  }

  async lead(actor: Actor): Promise<void> {
    actor.engine.campaign();
    await this.settle();
  }

  /** A message of a peer that is no engine. */
  async say(message: Message, attachment: Uint8Array | null = null): Promise<void> {
    await this.deliver(message.to, message.from, sealEnvelope(message, CLUSTER, attachment, digest));
  }

  /** As `say`, very often: sealed once, and each time it waits for the loop's next turn alone, which is one promise away. */
  async sayOften(message: Message, times: number): Promise<void> {
    const bytes = sealEnvelope(message, CLUSTER, null, digest);
    const handler = this.#handlers.get(message.to);
    for (let said = 0; said < times; said++) {
      handler?.message(message.from, bytes);
      await Promise.resolve();
    }
  }

  async deliver(to: PeerKey, from: PeerKey, bytes: Uint8Array): Promise<void> {
    this.#handlers.get(to)?.message(from, bytes);
    await this.#drain();
  }

  sentBy(peer: PeerKey): Message[] {
    return this.sent.filter(({ from }) => from === peer).map(({ message }) => message);
  }

  #wire(self: PeerKey): Wire {
    return {
      start: (handlers) => void this.#handlers.set(self, handlers),
      send: (to, bytes) => {
        const decoded = decodeMessage(messageBytesOf(bytes), CLUSTER);
        if (!decoded.ok) throw new Error(`an engine sent what can't be read: ${decoded.reason}`);
        const packet = { from: self, to, bytes, message: decoded.message };
        this.sent.push(packet);
        this.underWay.push(packet);
      },
      stop: () => {
        this.wiresStopped++;
        this.#handlers.delete(self);
      },
    };
  }
}

function messageBytesOf(envelope: Uint8Array): Uint8Array {
  const length = new DataView(envelope.buffer, envelope.byteOffset).getUint32(ENVELOPE_HEADER_BYTES / 2);
  return envelope.subarray(ENVELOPE_HEADER_BYTES, ENVELOPE_HEADER_BYTES + length);
}
