// The writer's order, groups and verdicts, against a server whose answers the test gives.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { Fold, LogAppended, LogRecord } from "../../ports/log.ts";
import { Applied } from "./applied.ts";
import { LogReader } from "./log-reader.ts";
import { logStatements } from "./log-sql.ts";
import { settled, TestDesk } from "./test-desk.ts";
import { Writer } from "./writer.ts";

type Answer = LogAppended | { readonly outcome: "rejected"; readonly code: string };

async function stage(options: { ungrouped?: boolean } = {}) {
  const desk = new TestDesk();
  const told: string[] = [];
  const failures: string[] = [];
  const fold: Fold = {
    apply: ({ position, data }: LogRecord) => {
      const text = new TextDecoder().decode(data);
      if (text === "bad") throw new Error("can't be applied");
      told.push(`${position}:${text}`);
    },
    snapshot: () => new Uint8Array(0),
    restore: () => undefined,
  };
  const applied = new Applied(fold, undefined, (error) => void failures.push(error.code));
  const sql = logStatements("public");
  const reader = new LogReader("jobs", sql, applied, (error) => void failures.push(error.code));
  let unknowns = 0;
  const writer = new Writer({
    log: "jobs",
    desk,
    sql,
    reader,
    applied,
    ungrouped: options.ungrouped ?? false,
    onCommitted: () => undefined,
    onUnknown: () => void unknowns++,
  });
  const answers: Answer[] = [];
  let end = 0;
  const append = (text: string, epoch = 1, after = end): void => {
    if (after === end) end++;
    const at = answers.push({ outcome: "rejected", code: "none yet" }) - 1;
    writer.append(epoch, after, [new TextEncoder().encode(text)]).then(
      (answer) => (answers[at] = answer),
      (error: unknown) =>
        (answers[at] = { outcome: "rejected", code: TenureError.is(error) ? error.code : String(error) }),
    );
  };
  await writer.open(1);
  return {
    desk,
    writer,
    applied,
    told,
    failures,
    answers,
    append,
    unknowns: () => unknowns,
    back: (to: number) => (end = to),
  };
}

const sqlError = (sqlstate: string): Error => Object.assign(new Error("said no"), { sqlstate });

describe("grouping", () => {
  it("sends what is appended in one turn as one transaction, and what comes meanwhile as the next", async () => {
    const { desk, append, answers, told } = await stage();
    for (const text of ["a", "b", "c"]) append(text);
    await settled();
    for (const text of ["d", "e"]) append(text);
    await settled();
    expect(desk.sent).toHaveLength(1);
    expect(desk.sent[0]?.values.slice(1, 4)).toEqual([1, 1, 0]);
    expect(desk.sent[0]?.values[5]).toEqual([1, 1, 1]);
    expect(told).toEqual([]);
    await desk.sent[0]?.answer();
    expect(told).toEqual(["1:a", "2:b", "3:c"]);
    expect(desk.sent[1]?.values[3]).toBe(3);
    await desk.sent[1]?.answer();
    expect(answers).toEqual([1, 2, 3, 4, 5].map((position) => ({ outcome: "committed", position })));
  });

  it("sends each alone where it is told to", async () => {
    const { desk, append } = await stage({ ungrouped: true });
    for (const text of ["a", "b"]) append(text);
    await settled();
    expect(desk.sent[0]?.values[5]).toEqual([1]);
  });

  it("bounds what waits, and takes more once there is room", async () => {
    const { desk, writer } = await stage();
    const large = new Uint8Array(1024 * 1024);
    const answers = Array.from({ length: 16 }, (_, at) => writer.append(1, at, [large]));
    await expect(writer.append(1, 16, [new Uint8Array(1)])).rejects.toMatchObject({ code: "UNCOMMITTED_LIMIT" });
    await settled();
    // Two at a time: a group has its own bound.
    expect(desk.sent[0]?.values[5]).toEqual([large.length, large.length]);
    const more = writer.append(1, 16, [new Uint8Array(1)]);
    for (let at = 0; at < desk.sent.length; at++) await desk.sent[at]?.answer();
    expect(await Promise.all([...answers, more])).toHaveLength(17);
    expect(desk.position).toBe(17);
  });
});

describe("verdicts", () => {
  it.each([
    ["a broken connection", new Error("gone"), "lives"],
    ["a server that shuts down", sqlError("57P01"), "lives"],
    ["an error while the session ends", sqlError("55P03"), "has ended"],
    ["an error after which the session answers no more", sqlError("53100"), "answers no more"],
    ["a connection error that the server names", sqlError("08006"), "lives"],
    ["a commit that the server does not know of", sqlError("40003"), "lives"],
    ["an error of the system", sqlError("58030"), "lives"],
    ["an internal error", sqlError("XX000"), "lives"],
  ])(
    "trap 66: %s is unknown; what waits behind is refused, and so is all until it is opened again",
    async (_, error, session) => {
      const { desk, append, answers, writer, unknowns } = await stage();
      append("a");
      await settled();
      append("b");
      desk.lanes[0]!.hasEnded = session === "has ended";
      desk.lanes[0]!.isLast = session === "answers no more";
      await desk.sent[0]?.reject(error);
      append("c");
      await settled();
      const refused = { outcome: "rejected", code: "NOT_LEADER" };
      expect(answers).toEqual([{ outcome: "unknown" }, refused, refused]);
      expect([desk.sent.length, unknowns(), writer.end]).toEqual([1, 1, 0]);
      expect(desk.lanes[0]?.hasEnded).toBe(true);
      expect(await writer.open(1)).toEqual({ outcome: "opened", head: { position: 0, epoch: 1 } });
      append("d", 1, 0);
      await settled();
      expect(desk.sent[1]?.values.slice(1, 4)).toEqual([1, 2, 0]);
    },
  );

  it.each([
    ["a refusal of the server", sqlError("55P03")],
    ["a statement that never left", Object.assign(new Error("not queryable"), { unsent: true })],
  ])("%s has written nothing: it and what waits behind is refused, and the epoch goes on", async (_, error) => {
    const { desk, append, answers, back } = await stage();
    append("a");
    await settled();
    append("b");
    await desk.sent[0]?.reject(error);
    expect(answers.map((answer) => ("code" in answer ? answer.code : answer.outcome))).toEqual([
      "BACKEND_UNAVAILABLE",
      "BACKEND_UNAVAILABLE",
    ]);
    back(0);
    append("c");
    await settled();
    await desk.sent[1]?.answer();
    expect(answers[2]).toEqual({ outcome: "committed", position: 1 });
  });

  it("a session that can't be had has written nothing", async () => {
    const { desk, append, answers, back } = await stage();
    desk.lanes[0]!.hasEnded = true;
    desk.refuse = new TenureError("BACKEND_READ_ONLY", "a standby");
    append("a");
    await settled();
    expect(answers).toEqual([{ outcome: "rejected", code: "BACKEND_READ_ONLY" }]);
    desk.refuse = null;
    back(0);
    append("b");
    await settled();
    await desk.sent[0]?.answer();
    expect(answers[1]).toEqual({ outcome: "committed", position: 1 });
  });

  it("a higher epoch fences what was sent and what waits", async () => {
    const { desk, append, answers, applied } = await stage();
    append("a");
    await settled();
    append("b");
    desk.open(5);
    await desk.sent[0]?.answer();
    append("c");
    await settled();
    const fenced = { outcome: "fenced", epoch: 5 };
    expect(answers).toEqual([fenced, fenced, fenced]);
    expect([desk.sent.length, applied.epoch]).toEqual([1, 5]);
  });

  it("an epoch that somebody else has opened too must be opened again", async () => {
    const { desk, append, answers } = await stage();
    append("a");
    await settled();
    desk.open(1);
    await desk.sent[0]?.answer();
    expect(answers).toEqual([{ outcome: "rejected", code: "NOT_LEADER" }]);
  });

  it("opened again while appends wait, they go on behind each other", async () => {
    const { desk, append, answers, writer } = await stage();
    append("a");
    await settled();
    const again = writer.open(1);
    append("b");
    await desk.sent[0]?.answer();
    expect(await again).toEqual({ outcome: "opened", head: { position: 1, epoch: 1 } });
    await settled();
    await desk.sent[1]?.answer();
    expect(answers).toEqual([1, 2].map((position) => ({ outcome: "committed", position })));
  });

  it("what the fold can't apply is told as fatal, called unknown, and nothing is applied behind it", async () => {
    const { desk, append, answers, told, failures } = await stage();
    for (const text of ["a", "bad", "c"]) append(text);
    await settled();
    await desk.sent[0]?.answer();
    const unknown = { outcome: "unknown" };
    expect(answers).toEqual([{ outcome: "committed", position: 1 }, unknown, unknown]);
    expect([told, failures]).toEqual([["1:a"], ["INTERNAL"]]);
  });

  it("closing refuses what was not sent", async () => {
    const { append, answers, writer } = await stage();
    append("a");
    append("b");
    await settled(() => void writer.close());
    expect(answers.every((answer) => "code" in answer && answer.code === "BACKEND_UNAVAILABLE")).toBe(true);
  });
});
