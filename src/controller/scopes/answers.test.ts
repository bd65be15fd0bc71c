import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import type { RaftStatus } from "../../core/raft/index.ts";
import { encodeEvent, type ScopeEvent } from "../../core/scopes/index.ts";
import { StateFold } from "../../core/state/index.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { RaftLog } from "../../logs/index.ts";
import { encodeEntry } from "../../logs/raft/entry-codec.ts";
import { leading, stageOn } from "../../sim/controller/test-scopes-stage.ts";
import { advance, drain, ScopesStage, watch } from "./test-scopes.ts";

/** A node that follows: entries come from elsewhere. */
function raftLogOn(fold: StateFold): RaftLog {
  const log = new RaftLog({
    fold,
    proposals: { propose: () => Promise.reject(new Error("a follower proposes nothing")) },
    lead: { status: () => ({ role: "follower" }) as RaftStatus },
  });
  log.apply({ index: 1, term: 1, data: encodeEntry({ kind: "open", epoch: 1, after: 0 }) });
  return log;
}

function applyEvents(log: RaftLog, after: number, ...events: ScopeEvent[]): void {
  const batch = events.map(encodeEvent);
  log.apply({ index: after + 2, term: 1, data: encodeEntry({ kind: "append", epoch: 1, after, batch }) });
}

function grantOf(scope: string): ScopeEvent {
  return { kind: "granted", scope, session: scope, identity: `id-${scope}`, metadata: {}, ttlMs: 1_000, atMs: 1 };
}

const unwritten = new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed");

describe("the head", () => {
  it("trap 56a: what rests on an append that is not committed is answered when it is", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    stage.log.isHolding = true;
    const first = watch(stage.service.resign("s", "a", epoch));
    const second = watch(stage.service.resign("s", "a", epoch));
    const stale = watch(stage.service.renew("s", "a", epoch));
    const b = watch(stage.acquire("b"));
    const c = watch(stage.acquire("c"));
    await drain();
    expect([first, second, stale, b, c].map(({ state }) => state)).toEqual(Array(5).fill("pending"));
    stage.log.release();
    await drain();
    expect([first.state, second.state, stale.code]).toEqual(["resolved", "resolved", "STALE_EPOCH"]);
    expect(b.value).toMatchObject({ granted: true, epoch: 3 });
    expect(c.value).toMatchObject({ granted: false, holder: { epoch: 3 } });
  });

  it("trap 56a: and is not answered as a fact when the append's fate is unknown", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    stage.log.isHolding = true;
    const outcomes = [
      watch(stage.service.resign("s", "a", epoch)),
      watch(stage.service.resign("s", "a", epoch)),
      watch(stage.service.renew("s", "a", epoch)),
      watch(stage.acquire("b")),
      watch(stage.acquire("c")),
    ];
    await drain();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(outcomes.map(({ code }) => code)).toEqual(Array(5).fill("OUTCOME_UNKNOWN"));
  });

  it("trap 66: with leadership, who waits gets NOT_LEADER, and what was under way OUTCOME_UNKNOWN", async () => {
    const { stage } = await leading();
    await stage.granted("a");
    const waiting = watch(stage.acquire("b", { waitMs: 60_000 }));
    stage.log.isHolding = true;
    const underWay = watch(stage.acquire("c", { scope: "t" }));
    stage.consensus.depose();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(waiting.code).toBe("NOT_LEADER");
    expect(underWay.code).toBe("OUTCOME_UNKNOWN");
    expect(stage.service.get("s")?.holder?.identity).toBe("id-a");
  });

  it("what the log refuses unwritten takes along what was decided on top of it, and the leader goes on", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    const patient = watch(stage.acquire("p", { waitMs: 60_000 }));
    stage.log.isHolding = true;
    const resigned = watch(stage.service.resign("s", "a", epoch));
    const other = watch(stage.acquire("x", { scope: "t" }));
    stage.log.answer(unwritten);
    await drain();
    expect([resigned.code, patient.code, other.code]).toEqual(Array(3).fill("UNCOMMITTED_LIMIT"));
    expect((await stage.service.renew("s", "a", epoch)).epoch).toBe(epoch);
    expect(await stage.granted("x", { scope: "t" })).toBe(2);
  });

  it("those who wait behind a grant that was refused are granted a little later", async () => {
    const { stage, clock } = await leading();
    stage.log.isHolding = true;
    const first = watch(stage.acquire("a"));
    const [b, c] = [watch(stage.acquire("b", { waitMs: 60_000 })), watch(stage.acquire("c", { waitMs: 60_000 }))];
    stage.log.answer(unwritten);
    await drain();
    expect([first.code, b.state, c.state]).toEqual(["UNCOMMITTED_LIMIT", "pending", "pending"]);
    await advance(clock, 1_000);
    expect(b.value).toMatchObject({ granted: true, epoch: 1 });
    expect(c.state).toBe("pending");
  });
});

describe("watching", () => {
  it("resolves when the scope's epoch or holder differs, or the signal aborts", async () => {
    const { stage } = await leading();
    const none = { epoch: 0, held: false };
    const signal = new AbortController();
    const first = watch(stage.service.changed("s", none, signal.signal));
    const other = watch(stage.service.changed("t", none, signal.signal));
    await drain();
    const epoch = await stage.granted("a");
    await drain();
    expect(first.value).toMatchObject({ epoch, holder: { identity: "id-a" } });
    expect(other.state).toBe("pending");
    const resigned = watch(stage.service.changed("s", { epoch, held: true }, signal.signal));
    await stage.service.resign("s", "a", epoch);
    await drain();
    expect(resigned.value).toMatchObject({ epoch, holder: null });
    signal.abort();
    await drain();
    expect(other.value).toBeNull();
    expect(stage.service.stats.watching).toBe(0);
  });

  it("answers at once where it differs already, on a node that does not lead too", async () => {
    const { stage, store } = await leading();
    const epoch = await stage.granted("a");
    const follower = stageOn(store);
    const signal = new AbortController().signal;
    expect(await follower.service.changed("s", { epoch: 0, held: false }, signal)).toMatchObject({ epoch });
  });

  it("trap 67: behind a restored snapshot nobody misses what follows, nor what the snapshot changed", async () => {
    const ahead = raftLogOn(new StateFold());
    applyEvents(ahead, 0, grantOf("s"), grantOf("t"));
    const applied = new StateFold();
    const log = raftLogOn(applied);
    const { service } = new ScopesStage(new ManualClock(), log, applied);
    const signal = new AbortController().signal;
    const jumped = watch(service.changed("t", { epoch: 0, held: false }, signal));
    log.restore(wholeOf(ahead.snapshot()));
    await drain();
    expect(jumped.value).toMatchObject({ epoch: 2, holder: { identity: "id-t" } });
    const next = watch(service.changed("t", { epoch: 2, held: true }, signal));
    await drain();
    applyEvents(log, 2, { kind: "forced", scope: "t", epoch: 2, atMs: 1 });
    await drain();
    expect(next.value).toMatchObject({ epoch: 2, holder: null });
  });

  it("closing answers everybody", async () => {
    const { stage } = await leading();
    await stage.granted("a");
    const waiting = watch(stage.acquire("b", { waitMs: 60_000 }));
    const watching = watch(stage.service.changed("s", { epoch: 1, held: true }, new AbortController().signal));
    await drain();
    stage.state.close();
    stage.state.close();
    await drain();
    expect(waiting.code).toBe("NOT_LEADER");
    expect(watching.state).toBe("resolved");
  });
});
