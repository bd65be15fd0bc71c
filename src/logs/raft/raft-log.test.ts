// What the conformance suite can't see: the state machine's side, refusals of consensus, and snapshots.

import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../../core/kit/errors.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import type { RaftStatus } from "../../core/raft/index.ts";
import type { ProposeOutcome } from "../../ports/consensus.ts";
import type { Fold, LogRecord } from "../../ports/log.ts";
import { encodeEntry, type LogEntry } from "./entry-codec.ts";
import { RaftLog } from "./raft-log.ts";

class ListFold implements Fold {
  texts: string[] = [];
  restored: number[] = [];

  apply({ data }: LogRecord): void {
    this.texts.push(new TextDecoder().decode(data));
  }

  snapshot(): Uint8Array {
    return new TextEncoder().encode(this.texts.join());
  }

  restore(data: Uint8Array, head: { position: number }): void {
    this.texts = new TextDecoder().decode(data).split(",");
    this.restored.push(head.position);
  }
}

/** A consensus of one that commits when it is told to. */
class Desk {
  readonly fold = new ListFold();
  readonly status = { role: "leader", term: 1, established: true } as {
    -readonly [Key in keyof RaftStatus]: RaftStatus[Key];
  };
  readonly log: RaftLog;
  refuse: ErrorCode | null = null;
  index = 0;
  readonly #waiting: { readonly data: Uint8Array; readonly settle: (outcome: ProposeOutcome) => void }[] = [];

  constructor() {
    this.log = new RaftLog({
      fold: this.fold,
      proposals: { propose: (data) => this.#propose(data) },
      lead: { status: () => this.status },
    });
  }

  #propose(data: readonly Uint8Array[]): Promise<ProposeOutcome> {
    if (this.refuse !== null) return Promise.resolve({ outcome: "refused", code: this.refuse, message: "no" });
    return new Promise((settle) => this.#waiting.push({ data: data[0]!, settle }));
  }

  commit(): void {
    const { term } = this.status;
    for (const { data, settle } of this.#waiting.splice(0)) {
      settle({ outcome: "committed", index: this.index, term, result: this.apply(data) });
    }
  }

  lose(): void {
    this.status.role = "follower";
    for (const { settle } of this.#waiting.splice(0)) settle({ outcome: "unknown" });
  }

  apply(data: Uint8Array): number {
    return this.log.apply({ index: ++this.index, term: this.status.term, data });
  }

  async open(epoch = 1): Promise<void> {
    this.status.term = epoch;
    const opened = this.log.open(epoch);
    this.commit();
    expect((await opened).outcome).toBe("opened");
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const append = (epoch: number, after: number, ...texts: string[]): Uint8Array =>
  encodeEntry({ kind: "append", epoch, after, batch: texts.map(bytes) });
const open = (epoch: number, after = 0): Uint8Array => encodeEntry({ kind: "open", epoch, after } satisfies LogEntry);

describe("applying", () => {
  it("takes an append only of the open epoch and directly behind the head; all else is ignored and counted", () => {
    const { log, fold, ...desk } = new Desk();
    const apply = (data: Uint8Array): number => log.apply({ index: ++desk.index, term: 1, data });
    apply(append(1, 0, "too early"));
    apply(open(3));
    apply(append(3, 0, "a", "b"));
    apply(append(2, 2, "old epoch"));
    apply(append(4, 2, "not opened"));
    apply(append(3, 1, "again"));
    apply(append(3, 3, "gap"));
    apply(open(2));
    apply(append(3, 2, "c"));
    expect(fold.texts).toEqual(["a", "b", "c"]);
    expect(log.head()).toEqual({ position: 3, epoch: 3 });
    expect(log.counts).toEqual({ applied: 3, ignored: 6, malformed: 0 });
  });

  it("C10: does not go on where the leader opens the log behind another record than its own last one", () => {
    const broken = expect.objectContaining({ code: "CHAIN_BROKEN" });
    const behind = new Desk();
    // Records that this node does not have: its release did not know them, for instance.
    expect(() => behind.apply(open(4, 7))).toThrow(broken);
    expect(behind.log.head()).toEqual({ position: 0, epoch: 0 });
    const ahead = new Desk();
    ahead.apply(open(1));
    ahead.apply(append(1, 0, "a", "b"));
    expect(() => ahead.apply(open(2, 0))).toThrow(broken);
    ahead.apply(open(2, 2));
    // Opened again while appends of its own were under way: they are in front of it.
    ahead.apply(append(2, 2, "c"));
    ahead.apply(open(2, 2));
    expect(() => ahead.apply(open(2, 4))).toThrow(broken);
    // One that is over says nothing about anybody.
    ahead.apply(open(1, 9));
    expect(ahead.log.head()).toEqual({ position: 3, epoch: 2 });
  });

  it("ignores and counts what is no entry", () => {
    const desk = new Desk();
    desk.apply(Uint8Array.of());
    desk.apply(Uint8Array.of(1, 2, 3));
    desk.apply(append(1, 0, "x").subarray(0, 20));
    expect(desk.log.counts.malformed).toBe(3);
    expect(desk.log.head()).toEqual({ position: 0, epoch: 0 });
  });

  it("does not go on behind an entry of a later format: the others have applied it", () => {
    const desk = new Desk();
    const later = append(1, 0, "x").slice();
    later[1] = 2;
    expect(() => desk.apply(later)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
  });

  it("has folded a record before it tells of it", () => {
    const desk = new Desk();
    const seen: number[] = [];
    desk.log.subscribe(
      1,
      () => seen.push(desk.fold.texts.length),
      () => undefined,
    );
    desk.apply(open(1));
    desk.apply(append(1, 0, "a", "b"));
    expect(seen).toEqual([1, 2]);
  });

  it("keeps no view of the caller's buffer", async () => {
    const desk = new Desk();
    desk.apply(open(1));
    const entry = append(1, 0, "abc");
    desk.apply(entry);
    entry.fill(0);
    expect((await desk.log.read(1, 1))[0]?.data).toEqual(bytes("abc"));
  });
});

describe("appending", () => {
  it("checks leadership and proposes in one turn", async () => {
    const desk = new Desk();
    await desk.open();
    desk.status.role = "follower";
    expect(await desk.log.append(1, 0, [bytes("x")])).toEqual({ outcome: "fenced", epoch: null });
    desk.status.role = "leader";
    desk.status.term = 2;
    expect(await desk.log.append(1, 0, [bytes("x")])).toEqual({ outcome: "fenced", epoch: null });
    expect(desk.fold.texts).toEqual([]);
  });

  it("is fenced where consensus says that this node does not lead", async () => {
    const desk = new Desk();
    await desk.open();
    desk.refuse = "NOT_LEADER";
    expect(await desk.log.append(1, 0, [bytes("x")])).toEqual({ outcome: "fenced", epoch: null });
  });

  it("what consensus refuses unwritten is refused, with all that was sent behind it, and the epoch goes on", async () => {
    const desk = new Desk();
    await desk.open();
    desk.refuse = "UNCOMMITTED_LIMIT";
    const first = desk.log.append(1, 0, [bytes("a")]);
    desk.refuse = null;
    // Sent before the refusal could be heard: it names an end that never comes.
    const second = desk.log.append(1, 1, [bytes("b")]);
    await expect(first).rejects.toMatchObject({ code: "UNCOMMITTED_LIMIT" });
    const retried = desk.log.append(1, 0, [bytes("a")]);
    desk.commit();
    await expect(second).rejects.toMatchObject({ code: "BAD_REQUEST" });
    expect(await retried).toEqual({ outcome: "committed", position: 1 });
    expect(desk.fold.texts).toEqual(["a"]);
  });

  it("a late refusal does not take back what was appended since", async () => {
    const desk = new Desk();
    await desk.open();
    desk.refuse = "DISK_FULL";
    const refused = [desk.log.append(1, 0, [bytes("a")]), desk.log.append(1, 1, [bytes("b")])];
    for (const one of refused) await expect(one).rejects.toMatchObject({ code: "DISK_FULL" });
    desk.refuse = null;
    const going = [desk.log.append(1, 0, [bytes("c")]), desk.log.append(1, 1, [bytes("d")])];
    desk.commit();
    expect(await Promise.all(going)).toEqual([
      { outcome: "committed", position: 1 },
      { outcome: "committed", position: 2 },
    ]);
  });

  it("is unknown when leadership goes before the answer comes", async () => {
    const desk = new Desk();
    await desk.open();
    const lost = desk.log.append(1, 0, [bytes("a")]);
    desk.lose();
    expect(await lost).toEqual({ outcome: "unknown" });
    expect(await desk.log.append(1, 1, [bytes("b")])).toEqual({ outcome: "fenced", epoch: null });
  });

  it("opens no epoch that it does not lead in, and none before it is established", async () => {
    const desk = new Desk();
    await expect(desk.log.open(2)).rejects.toMatchObject({ code: "NOT_LEADER" });
    desk.status.established = false;
    await expect(desk.log.open(1)).rejects.toMatchObject({ code: "NOT_LEADER" });
    desk.status.established = true;
    const lost = desk.log.open(1);
    desk.lose();
    await expect(lost).rejects.toMatchObject({ code: "NOT_LEADER", retryable: true });
  });
});

describe("snapshots", () => {
  it("carry position, fence and state to another node, which goes on from there", async () => {
    const desk = new Desk();
    await desk.open(4);
    const appended = desk.log.append(4, 0, [bytes("a"), bytes("b")]);
    desk.commit();
    await appended;
    const other = new Desk();
    const told: string[] = [];
    other.log.subscribe(
      1,
      ({ position }) => told.push(String(position)),
      () => told.push("compacted"),
    );
    other.log.restore(wholeOf(desk.log.snapshot()));
    expect(other.fold.restored).toEqual([2]);
    expect(other.log.head()).toEqual({ position: 2, epoch: 4 });
    expect(told).toEqual(["compacted"]);
    await expect(other.log.read(2, 1)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    other.apply(append(3, 2, "old epoch"));
    other.apply(append(4, 2, "c"));
    expect(other.fold.texts).toEqual(["a", "b", "c"]);
    expect(other.log.snapshot()).not.toEqual(desk.log.snapshot());
    desk.apply(append(4, 2, "c"));
    expect(other.log.snapshot()).toEqual(desk.log.snapshot());
  });

  it("of nothing found a cluster", () => {
    const desk = new Desk();
    desk.log.restore(new Uint8Array(0));
    expect(desk.log.head()).toEqual({ position: 0, epoch: 0 });
    expect(desk.fold.restored).toEqual([]);
  });
});
