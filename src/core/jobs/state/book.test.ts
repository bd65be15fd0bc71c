// What a book says of single jobs: why one is pending, and who knows of one that has left the book.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, Desk, REQUEST, spec } from "../test-desk.ts";

describe("why a job is pending", () => {
  it("is the first reason that holds", () => {
    const desk = new Desk(newBook());
    const [jobId, later, keyedJob, special] = desk.submit(
      spec(),
      spec({ notBeforeMs: desk.nowMs + 50 }),
      spec({ concurrency: { key: "k", limit: 1 }, priority: 5 }),
      spec({ labels: { gpu: "yes" } }),
    );
    const why = (id = jobId!, isDraining = false): unknown =>
      desk.book.applied.whyPending(id, { nowMs: desk.nowMs, wallMs: desk.nowMs }, isDraining);
    expect(why("nobody")).toBeNull();
    expect(why()).toEqual({ reason: "no-agent", kind: "build", missing: "any agent" });
    desk.lease(agent("a0", { kinds: ["test"] }), 0);
    expect(why()).toEqual({ reason: "no-agent", kind: "build", missing: "kind build" });
    desk.lease(agent("a1", { capacity: 1 }), 0);
    expect(why()).toEqual({ reason: "next" });
    expect(why(jobId, true)).toEqual({ reason: "draining" });
    expect(why(special)).toEqual({ reason: "no-agent", kind: "build", missing: "label gpu=yes" });
    expect(desk.lease(agent("a1", { capacity: 1 })).leases).toMatchObject([{ jobId: keyedJob }]);
    expect(why(keyedJob)).toBeNull();
    expect(why()).toEqual({ reason: "agents-busy", agents: 1 });
    expect(why(later)).toEqual({ reason: "not-before", readyAtMs: desk.nowMs + 50 });
    const [second] = desk.submit(spec({ concurrency: { key: "k", limit: 1 } }));
    expect(why(second)).toEqual({ reason: "concurrency", key: "k", limit: 1 });
    desk.do<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue: "default", paused: true });
    expect(why(second)).toEqual({ reason: "paused", queue: "default" });
  });
});

describe("a job that has left the book", () => {
  it("is known to views that have its end, and its forgetting, and to no others", () => {
    const book = newBook({ finishedMax: 1 });
    const desk = new Desk(book);
    const [first, second, third] = desk.submit(spec(), spec(), spec());
    const cancel = (jobId: string) => desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect([book.leftUpTo("applied"), book.loggedUpTo(first!)]).toEqual([0, 0]);
    cancel(first!);
    const firstEnd = book.appliedSequence;
    expect([book.leftUpTo("applied"), book.loggedUpTo(first!)]).toEqual([firstEnd - 1, firstEnd]);
    cancel(second!);
    expect([book.known(first!), book.leftUpTo("applied") >= firstEnd]).toEqual([false, true]);
    desk.do<"forget">({ kind: "forget", jobIds: [first!] });
    expect(book.leftUpTo("applied")).toBe(book.appliedSequence);
    // What is proposed and taken back: views never come to it.
    desk.propose<"cancel">({ kind: "cancel", request: REQUEST, jobId: third! });
    expect([book.leftUpTo("head"), book.leftUpTo("applied")].map((at) => at - book.appliedSequence)).toEqual([0, 0]);
    desk.propose<"forget">({ kind: "forget", jobIds: ["old"] });
    expect(book.leftUpTo("head")).toBe(book.headSequence);
    expect(book.leftUpTo("applied")).toBe(book.appliedSequence);
    book.rollback();
    expect(book.leftUpTo("head")).toBe(book.appliedSequence);
  });
});
