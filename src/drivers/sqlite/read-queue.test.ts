// Reads that wait for the thread of the views: none is refused for being many, pages are shared, single reads come through.

import { describe, expect, it } from "vitest";
import { READ_WAIT_MS_MAX, READS_POSTED_MAX, READS_WAITING_MAX } from "./limits.ts";
import type { Answers, ReaderRequest } from "./messages.ts";
import { ReadQueue, type ReadThread } from "./read-queue.ts";

type ReadKind = "reached" | "get" | "expired" | "list" | "log";
type Asked = Extract<ReaderRequest, { kind: ReadKind }>;

/** Answers what it is asked when the test says so, in order. */
class TestThread implements ReadThread<Asked, Answers> {
  readonly asked: Asked[] = [];
  readonly #open: PromiseWithResolvers<never>[] = [];

  ask<K extends ReadKind>(request: Extract<ReaderRequest, { kind: K }>): Promise<Answers[K]> {
    this.asked.push(request);
    const answer = Promise.withResolvers<never>();
    this.#open.push(answer);
    return answer.promise;
  }

  get open(): number {
    return this.#open.length;
  }

  async answer(value: unknown = { jobs: [], next: null, position: 1 }): Promise<void> {
    this.#open.shift()?.resolve(value as never);
    await settled();
  }

  async refuse(error: Error): Promise<void> {
    this.#open.shift()?.reject(error);
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let n = 0; n < 10; n++) await Promise.resolve();
}

const list = (kind: string) => ({ kind: "list", query: { kind, limit: 50 } }) as const;

describe("reads of the views", () => {
  it("256 callers that list jobs at once are all answered, in order, with few of them at the thread", async () => {
    const thread = new TestThread();
    const queue = new ReadQueue(thread, () => 0);
    const answered: number[] = [];
    const reads = Array.from({ length: 256 }, (_, n) => queue.ask(list(`k${n}`)).then(() => answered.push(n)));
    expect([thread.open, queue.waiting]).toEqual([READS_POSTED_MAX, 256]);
    while (thread.open > 0) await thread.answer();
    await Promise.all(reads);
    expect(answered).toEqual(Array.from({ length: 256 }, (_, n) => n));
    expect(queue.waiting).toBe(0);
  });

  it("the same page is read once for all who wait for it, and never for one who asks when it is being read", async () => {
    const thread = new TestThread();
    const queue = new ReadQueue(thread, () => 0);
    const before = Array.from({ length: READS_POSTED_MAX }, (_, n) => queue.ask(list(`before-${n}`)));
    const same = Array.from({ length: 100 }, () => queue.ask(list("same")));
    await thread.answer();
    expect(thread.asked.at(-1)).toEqual(list("same"));
    const late = queue.ask(list("same"));
    while (thread.open > 0) await thread.answer({ jobs: [], next: null, position: thread.asked.length });
    expect(new Set(await Promise.all(same)).size).toBe(1);
    expect(await late).not.toBe(await same[0]!);
    await Promise.all(before);
    expect(thread.asked.filter((asked) => asked.kind === "list" && asked.query.kind === "same")).toHaveLength(2);
  });

  it("a read of one job does not wait for all the searches before it", async () => {
    const thread = new TestThread();
    const queue = new ReadQueue(thread, () => 0);
    const reads = Array.from({ length: 100 }, (_, n): Promise<unknown> => queue.ask(list(`k${n}`)));
    reads.push(queue.ask({ kind: "get", jobId: "j" }));
    for (let n = 0; n < 2; n++) await thread.answer();
    expect(thread.asked.map(({ kind }) => kind)).toContain("get");
    while (thread.open > 0) await thread.answer();
    await Promise.all(reads);
  });

  it("who has waited for too long is refused, and those after it are not", async () => {
    const thread = new TestThread();
    let nowMs = 0;
    const queue = new ReadQueue(thread, () => nowMs);
    const posted = Array.from({ length: READS_POSTED_MAX }, (_, n) => queue.ask(list(`posted-${n}`)));
    const early = queue.ask(list("early"));
    nowMs = READ_WAIT_MS_MAX - 1;
    const later = queue.ask(list("later"));
    nowMs = READ_WAIT_MS_MAX;
    const last = queue.ask(list("last"));
    await expect(early).rejects.toMatchObject({ code: "OVERLOADED" });
    while (thread.open > 0) await thread.answer();
    await Promise.all([...posted, later, last]);
  });

  it("their number is bounded, and a failure of one is that of its callers alone", async () => {
    const thread = new TestThread();
    const queue = new ReadQueue(thread, () => 0);
    const reads = Array.from({ length: READS_WAITING_MAX }, () => queue.ask(list("same")));
    await expect(queue.ask(list("one more"))).rejects.toMatchObject({ code: "OVERLOADED" });
    await thread.refuse(new Error("a bad page"));
    await expect(reads[0]).rejects.toThrow("a bad page");
    while (thread.open > 0) await thread.answer();
    await Promise.all(reads.slice(1));
    expect(queue.waiting).toBe(0);
  });
});
