// The values' service: what is answered when, and what a refusal rests on.

import { describe, expect, it, vi } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import { VALUE_BYTES_MAX, VALUES_MAX, VALUES_PAGE_BYTES_MAX } from "../../core/kit/limits.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import type { ValueFence, ValuePut } from "../../ports/values.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { encodeRecord } from "../../core/state/index.ts";
import { RaftLeadership } from "../leadership/raft-leadership.ts";
import { leading, stageOn } from "../../sim/controller/test-scopes-stage.ts";
import { ALONE, drain, type ScopesStage, watch } from "../scopes/test-scopes.ts";
import { StateService } from "../state/state.ts";
import { VALUE_CHANGES_KEPT } from "./limits.ts";

const unwritten = new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed");

function putting(name: string, value: Json = 1, more: Partial<ValuePut> = {}): ValuePut {
  return { name, value, ifVersion: null, fence: null, ...more };
}

async function put(stage: ScopesStage, name: string, value: Json = 1, more: Partial<ValuePut> = {}): Promise<number> {
  return (await stage.state.values.put(putting(name, value, more))).version;
}

describe("a write", () => {
  it("is answered when it is committed, with the version that every node shows", async () => {
    const { stage, store } = await leading();
    stage.log.isHolding = true;
    const writing = watch(stage.state.values.put(putting("cursor", { b: 1, a: [null, "é"] })));
    await drain();
    expect([writing.state, stage.state.values.get("cursor")]).toEqual(["pending", null]);
    stage.log.release();
    await drain();
    expect(writing.value).toEqual({ version: 1 });
    const shown = { name: "cursor", value: { a: [null, "é"], b: 1 }, version: 1, fence: null };
    expect(stage.state.values.get("cursor")).toMatchObject(shown);
    expect(stageOn(store).state.values.get("cursor")).toMatchObject(shown);
  });

  it("with the epoch of a scope counts while that is held; then it is refused, and nothing was written", async () => {
    const { stage } = await leading();
    const fence: ValueFence = { scope: "s", epoch: await stage.granted("a") };
    const version = await put(stage, "cursor", 1, { fence });
    expect(stage.state.values.get("cursor")?.fence).toEqual(fence);
    await stage.service.resign("s", "a", fence.epoch);
    await expect(put(stage, "cursor", 2, { fence })).rejects.toMatchObject({ code: "STALE_EPOCH" });
    const next = await stage.granted("b");
    await expect(put(stage, "cursor", 2, { fence })).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(stage.state.values.delete({ name: "cursor", ifVersion: null, fence })).rejects.toMatchObject({
      code: "STALE_EPOCH",
    });
    expect(stage.state.values.get("cursor")).toMatchObject({ value: 1, version });
    expect(await put(stage, "cursor", 2, { fence: { scope: "s", epoch: next } })).toBeGreaterThan(version);
  });

  it("that is sent before the end of its epoch and decided after it is refused, also while that end is not committed", async () => {
    const { stage } = await leading();
    const fence: ValueFence = { scope: "s", epoch: await stage.granted("a") };
    stage.log.isHolding = true;
    const ending = watch(stage.service.askResign("s", true));
    const writing = watch(stage.state.values.put(putting("cursor", 1, { fence })));
    await drain();
    expect([ending.state, writing.state]).toEqual(["pending", "pending"]);
    stage.log.release();
    await drain();
    expect(writing.code).toBe("STALE_EPOCH");
    expect(stage.state.values.get("cursor")).toBeNull();
  });

  it("of a version is refused where the value has another one, with that; a delete says whether there was one", async () => {
    const { stage } = await leading();
    const first = await put(stage, "a", 1, { ifVersion: 0 });
    const conflict = { code: "VERSION_CONFLICT", version: first };
    await expect(put(stage, "a", 2, { ifVersion: 0 })).rejects.toMatchObject(conflict);
    const second = await put(stage, "a", 2, { ifVersion: first });
    await expect(put(stage, "a", 3, { ifVersion: first })).rejects.toMatchObject({ version: second });
    const remove = (ifVersion: number | null) => stage.state.values.delete({ name: "a", ifVersion, fence: null });
    await expect(remove(first)).rejects.toMatchObject({ version: second });
    expect(await remove(second)).toMatchObject({ deleted: true });
    expect(await remove(null)).toEqual({ deleted: false, version: null });
    await expect(remove(second)).rejects.toMatchObject({ code: "VERSION_CONFLICT", version: null });
  });

  it("two of one version, in one turn: one wins", async () => {
    const { stage } = await leading();
    const both = [1, 2].map((value) => watch(stage.state.values.put(putting("a", value, { ifVersion: 0 }))));
    await drain();
    expect(both.map(({ state, code }) => code ?? state)).toEqual(["resolved", "VERSION_CONFLICT"]);
    expect(stage.state.values.get("a")?.value).toBe(1);
  });

  it("is counted where it is decided, by what became of it; what there was nothing to delete for is none", async () => {
    const { stage, store } = await leading();
    const { values } = stage.state;
    const version = await put(stage, "a");
    const remove = (ifVersion: number | null) => values.delete({ name: "a", ifVersion, fence: null });
    await expect(remove(version + 1)).rejects.toMatchObject({ code: "VERSION_CONFLICT" });
    await expect(put(stage, "a", 1, { fence: { scope: "s", epoch: 1 } })).rejects.toMatchObject({
      code: "STALE_EPOCH",
    });
    await expect(put(stage, "")).rejects.toMatchObject({ code: "BAD_REQUEST" });
    await remove(version);
    await remove(null);
    stage.log.isHolding = true;
    const writing = watch(values.put(putting("a")));
    await drain();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(writing.code).toBe("OUTCOME_UNKNOWN");
    expect(values.stats.writes).toEqual({ committed: 2, stale: 1, conflict: 1, locked: 0, full: 0, unknown: 1 });
    const none = { committed: 0, stale: 0, conflict: 0, locked: 0, full: 0, unknown: 0 };
    expect(stageOn(store).state.values.stats.writes).toEqual(none);
  });

  it("whose fate is not known says so, and never that it failed (trap 66)", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const writing = watch(stage.state.values.put(putting("a")));
    await drain();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(writing.code).toBe("OUTCOME_UNKNOWN");
  });

  it("is refused as an error of the request where it is none", async () => {
    const { stage } = await leading();
    const bad = [
      putting(""),
      putting(".."),
      putting("a".repeat(257)),
      putting("a\0"),
      putting("\ud800"),
      putting("a", 1, { ifVersion: -1 }),
      putting("a", 1, { ifVersion: 1.5 }),
      putting("a", 1, { fence: { scope: "", epoch: 1 } }),
      putting("a", 1, { fence: { scope: "s", epoch: 0 } }),
    ];
    for (const one of bad) await expect(stage.state.values.put(one)).rejects.toMatchObject({ code: "BAD_REQUEST" });
    const largest = "x".repeat(VALUE_BYTES_MAX - 2);
    expect(await put(stage, "a", largest)).toBe(1);
    await expect(put(stage, "a", `${largest}x`)).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  });

  it("waits until every member can read such a record, and for nobody once there is one", async () => {
    const { stage } = await leading();
    let missing: readonly string[] = ["n2"];
    const { log, consensus, applied } = stage;
    stage.state.close();
    const state = new StateService({
      log,
      applied,
      leadership: new RaftLeadership(consensus),
      clock: new ManualClock(),
      random: seededRandom("values"),
      unready: () => missing,
      island: ALONE,
    });
    await drain();
    await expect(state.values.put(putting("a"))).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
    missing = [];
    await state.values.put(putting("a"));
    missing = ["n3"];
    await state.values.put(putting("b"));
    // A snapshot without values is one that older releases read: whoever joined since may be of one.
    for (const name of ["a", "b"]) await state.values.delete({ name, ifVersion: null, fence: null });
    await expect(state.values.put(putting("a"))).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
  });
});

describe("a write that is decided again", () => {
  it("asks again whether every member can read it: the last value may have gone, and one of an older release come", async () => {
    const { stage } = await leading();
    let missing: readonly string[] = [];
    const { log, consensus, applied } = stage;
    stage.state.close();
    const [leadership, random] = [new RaftLeadership(consensus), seededRandom("values")];
    const unready = () => missing;
    const around = { log, applied, leadership, clock: new ManualClock(), random, unready };
    const state = new StateService({ ...around, island: ALONE });
    await drain();
    await state.values.put(putting("a"));
    consensus.holdReads = true;
    const writing = watch(state.values.put(putting("a", 2, { ifVersion: 0 })));
    await drain();
    await state.values.delete({ name: "a", ifVersion: null, fence: null });
    missing = ["n3"];
    consensus.answerReads(1);
    await drain();
    expect([writing.code, applied.values.size]).toEqual(["NOT_SUPPORTED", 0]);
  });
});

describe("a refusal", () => {
  it("is a confirmed leader's: one that was deposed, and does not know it, refuses nobody for what has changed since", async () => {
    const { stage } = await leading();
    const version = await put(stage, "a");
    stage.consensus.holdReads = true;
    const writing = watch(stage.state.values.put(putting("a", 2, { ifVersion: version + 5 })));
    await drain();
    expect(writing.state).toBe("pending");
    stage.consensus.depose();
    await drain();
    expect(writing.code).toBe("NOT_LEADER");
  });

  it("that rests on an append which is given up is no refusal: it is decided again", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const first = watch(stage.state.values.put(putting("a", 1)));
    const second = watch(stage.state.values.put(putting("a", 2, { ifVersion: 0 })));
    await drain();
    expect(second.state).toBe("pending");
    stage.log.answer(unwritten);
    await drain();
    expect([first.code, second.state]).toEqual(["UNCOMMITTED_LIMIT", "resolved"]);
    expect(stage.state.values.get("a")?.value).toBe(2);
  });
});

describe("a refusal for want of room", () => {
  it("rests on nothing that may be given up: what else waits to be committed has its outcome first", async () => {
    const { stage } = await leading();
    for (let at = 1; at < VALUES_MAX; at++)
      stage.applied.values.evolve(
        { kind: "value-put", name: `v${at}`, data: Uint8Array.of(0x31), fence: null, atMs: 1 },
        1,
      );
    stage.log.isHolding = true;
    const last = watch(stage.state.values.put(putting("last")));
    const more = watch(stage.state.values.put(putting("more")));
    await drain();
    expect([last.state, more.state]).toEqual(["pending", "pending"]);
    stage.log.answer(unwritten);
    await drain();
    expect([last.code, more.state]).toEqual(["UNCOMMITTED_LIMIT", "resolved"]);
    await expect(put(stage, "one too many")).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
  });
});

describe("a content", () => {
  it("is read as it was written, whatever was parsed before it (nodejs/node #63785)", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    await put(stage, "first", { A: 1, "a\\": 2 });
    await put(stage, "second", { A: 1, 'a"': 2 });
    expect(values.get("first")?.value).toEqual({ A: 1, "a\\": 2 });
    expect(values.get("second")?.value).toEqual({ A: 1, 'a"': 2 });
    expect(values.list({ prefix: "second", after: null, limit: 1 }).values[0]?.value).toEqual({ A: 1, 'a"': 2 });
  });

  it("is parsed by who looks at it: not for each of those who watch, and not to say as of which version a list is", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    await put(stage, "a", { at: 1 });
    const parse = vi.spyOn(JSON, "parse");
    try {
      const seen = Array.from({ length: 1_000 }, () => values.changes("", 0, 9)!.changes[0]!);
      values.list({ prefix: "", after: null, limit: 1 });
      expect(parse).not.toHaveBeenCalled();
      expect(seen[0]).toEqual({
        kind: "put",
        name: "a",
        pendingTxn: null,
        value: { at: 1 },
        version: 1,
        updatedAtMs: 1_000,
        fence: null,
      });
      expect(JSON.stringify(seen[0])).toContain('"value":{"at":1}');
      expect(parse).toHaveBeenCalledTimes(1);
    } finally {
      parse.mockRestore();
    }
  });
});

describe("a list", () => {
  it("is of a prefix, in pages, each as of a version", async () => {
    const { stage } = await leading();
    for (const name of ["q/2", "q/1", "p", "q/3"]) await put(stage, name, name);
    const first = stage.state.values.list({ prefix: "q/", after: null, limit: 2 });
    expect([first.values.map(({ name }) => name), first.next, first.asOf]).toEqual([["q/1", "q/2"], "q/2", 4]);
    const last = stage.state.values.list({ prefix: "q/", after: first.next, limit: 2 });
    expect([last.values.map(({ name }) => name), last.next]).toEqual([["q/3"], null]);
  });

  it("ends a page before it is too large, with one value at least", async () => {
    const { stage } = await leading();
    const large = "x".repeat(VALUE_BYTES_MAX - 2);
    const count = VALUES_PAGE_BYTES_MAX / VALUE_BYTES_MAX + 2;
    for (let at = 0; at < count; at++) await put(stage, `${10 + at}`, large);
    const page = stage.state.values.list({ prefix: "", after: null, limit: 256 });
    expect(page.values).toHaveLength(VALUES_PAGE_BYTES_MAX / VALUE_BYTES_MAX);
    expect(page.next).toBe(page.values.at(-1)!.name);
  });
});

describe("changes", () => {
  const names = (of: { readonly changes: readonly { kind: string; name: string }[] } | null) =>
    of?.changes.map(({ kind, name }) => `${kind} ${name}`);

  it("are all of a prefix, in order; deletions too, and none twice", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    const { asOf } = values.list({ prefix: "", after: null, limit: 1 });
    for (const name of ["q/1", "p", "q/2"]) await put(stage, name, name);
    await values.delete({ name: "q/1", ifVersion: null, fence: null });
    const first = values.changes("q/", asOf, 1)!;
    expect([names(first), first.through]).toEqual([["put q/1"], 1]);
    const rest = values.changes("q/", first.through, 9)!;
    expect([names(rest), rest.through]).toEqual([["put q/2", "deleted q/1"], 4]);
    expect(names(values.changes("q/", rest.through, 9))).toEqual([]);
  });

  it("wake whoever waits for one of them, and nobody else", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    const { signal } = new AbortController();
    const gone = new AbortController();
    const [one, other, left] = [
      watch(values.changed("q/", 0, signal)),
      watch(values.changed("r/", 0, signal)),
      watch(values.changed("q/", 0, gone.signal)),
    ];
    gone.abort();
    await put(stage, "q/1");
    await drain();
    expect([one.state, other.state, left.state, values.stats.watching]).toEqual(["resolved", "pending", "resolved", 1]);
    stage.state.close();
    await drain();
    expect(other.state).toBe("resolved");
  });

  it("that are not kept any more are null: who was away for long lists again", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    const late = watch(values.changed("nothing/", 0, new AbortController().signal));
    for (let at = 0; at <= VALUE_CHANGES_KEPT; at++) await put(stage, "a", at);
    expect(values.changes("", 0, 9)).toBeNull();
    expect(late.state).toBe("pending");
    const { asOf } = values.list({ prefix: "", after: null, limit: 1 });
    expect(values.changes("", asOf - 10, 99)?.changes).toHaveLength(10);
    // Nothing of its prefix was among what is gone.
    const version = await put(stage, "nothing/at all");
    await drain();
    expect(names(values.changes("nothing/", late.value!, 9))).toEqual(["put nothing/at all"]);
    expect(late.value).toBe(version - 1);
  });

  it("of others push nobody out who has missed nothing: who ends to wait, as for a heartbeat, goes on from what there was none up to", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    const over = new AbortController();
    const waiting = watch(values.changed("quiet/", 0, over.signal));
    for (let at = 0; at <= VALUE_CHANGES_KEPT; at++) await put(stage, "a", at);
    over.abort();
    await drain();
    expect(waiting.value).toBe(VALUE_CHANGES_KEPT + 1);
    expect(names(values.changes("quiet/", waiting.value!, 9))).toEqual([]);
  });

  it("are of records that were applied: of one that does not fit nothing is shown, and nobody is woken", async () => {
    const { stage } = await leading();
    const { values } = stage.state;
    const fence = { scope: "s", epoch: 1 };
    const put = { kind: "value-put", name: "a", data: Uint8Array.of(0x31), fence, atMs: 1 } as const;
    const waiting = watch(values.changed("", 0, new AbortController().signal));
    // As of a release that decides by other rules: the scope is not held, so the record changes nothing.
    const resigned = { kind: "resigned", scope: "s", epoch: 1, atMs: 1 } as const;
    await stage.log.append(1, 0, [encodeRecord([put, resigned])]);
    await drain();
    expect([stage.applied.counts.unfit, values.get("a")]).toEqual([1, null]);
    expect(names(values.changes("", 0, 9))).toEqual([]);
    expect(waiting.state).toBe("pending");
  });

  it("of before a snapshot was restored, or the node was started, are not kept either (trap 67)", async () => {
    const { stage, store } = await leading();
    await put(stage, "a");
    await put(stage, "b");
    const bytes = wholeOf(stage.applied.snapshot() as Uint8Array);
    expect(bytes.length).toBeGreaterThan(0);
    const later = stageOn(store).state.values;
    expect(later.changes("", 1, 9)).toBeNull();
    expect(names(later.changes("", 2, 9))).toEqual([]);
  });
});
