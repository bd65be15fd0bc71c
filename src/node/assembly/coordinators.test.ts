// A coordinator of production under its elector: who closes, ends and leaves in which order.

import { describe, expect, it } from "vitest";
import { Coordinator } from "../../controller/coordinators/coordinator.ts";
import { Bench } from "../../controller/coordinators/test-bench.ts";
import { LAST_CHANCE_MS } from "../../core/kit/limits.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { settled } from "../../loops/test-clock.ts";
import { assembleCoordination, type Coordination } from "./coordinators.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
/** As long as work needs to wind up, once its signal has aborted. */
const WIND_UP_MS = 300;

interface Rig {
  readonly bench: Bench;
  readonly coordination: Coordination;
  /** What happened, in order: the ends of gates and of work, and releases that leave. */
  readonly story: string[];
}

function rigged(): Rig {
  const bench = new Bench();
  const story: string[] = [];
  const coordination = assembleCoordination({
    self: bench.self,
    endpoint: "a",
    make: (hooks) => new Coordinator(bench.options(hooks)),
    clock: bench.clock,
    random: seededRandom(1),
    logger: SILENT,
  });
  bench.isLost = ({ to, request }) => {
    if (request.kind === "release") story.push(`release to ${to}`);
    return false;
  };
  coordination.coordinator.start();
  return { bench, coordination, story };
}

/** Work that runs until its signal aborts, and then for a while. */
function work({ bench, coordination, story }: Rig): Promise<unknown> {
  return coordination.lead(async (term) => {
    story.push(`begins ${term.check()}`);
    await new Promise((resolve) => void term.signal.addEventListener("abort", resolve));
    story.push(coordination.elector.gate.isLeader ? "aborts behind an open gate" : "aborts");
    await new Promise<void>((resolve) => void bench.clock.setTimer(bench.clock.nowMs + WIND_UP_MS, resolve));
    story.push("ends");
  });
}

describe("the coordinator's leadership and the work of `lead`", () => {
  it("campaigns only while the elector wants to lead", async () => {
    const { bench, coordination } = rigged();
    await bench.clock.advance(20_000);
    expect([coordination.coordinator.leads, bench.kinds("acquire")]).toEqual([null, []]);
    void work({ bench, coordination, story: [] });
    await bench.clock.advance(100);
    expect(coordination.coordinator.leads).toBe(1);
    expect(coordination.elector.gate.requireLeader()).toBe(1);
  });

  it("a release leaves when both gates are closed and the work has ended: of a coordinator that resigns or leaves", async () => {
    const rig = rigged();
    const { bench, coordination, story } = rig;
    void work(rig);
    await bench.clock.advance(100);
    const resigned = coordination.coordinator.resign();
    await settled();
    expect([coordination.coordinator.leads, coordination.elector.gate.isLeader]).toEqual([null, false]);
    await bench.clock.advance(WIND_UP_MS - 1);
    expect(story).toEqual(["begins 1", "aborts"]);
    await bench.clock.advance(1);
    await resigned;
    expect(story).toEqual(["begins 1", "aborts", "ends", "release to b", "release to c"]);
    // And then it campaigns again, for the elector has not stopped to want.
    await bench.clock.advance(3_000);
    expect(story.at(-1)).toBe("begins 2");
  });

  it("of an elector that is closed: the work winds up behind an open gate, and another can lead at once", async () => {
    const rig = rigged();
    const { bench, coordination, story } = rig;
    const led = work(rig);
    led.catch(() => {});
    await bench.clock.advance(100);
    const closed = coordination.close();
    await bench.clock.advance(WIND_UP_MS + 10);
    await closed;
    await expect(led).rejects.toMatchObject({ code: "ELECTOR_CLOSED" });
    expect(story).toEqual(["begins 1", "aborts behind an open gate", "ends", "release to b", "release to c"]);
    for (const voter of bench.others.values()) expect(voter.leaderAt(bench.clock.nowMs)).toBeNull();
    // The coordinator votes on, and does not campaign.
    await bench.clock.advance(20_000);
    expect(coordination.coordinator.leads).toBeNull();
  });

  it("of a leadership that is lost: no release before the work has ended, however long it takes (trap 48)", async () => {
    const rig = rigged();
    const { bench, coordination, story } = rig;
    void work(rig);
    await bench.clock.advance(100);
    const tell = bench.isLost;
    bench.isLost = (sent) => sent.request.kind === "renew" || tell(sent);
    await bench.clock.advance(LEASE_TTL_MS + LAST_CHANCE_MS);
    expect(story).toEqual(["begins 1", "aborts"]);
    expect(coordination.coordinator.leadership?.over).not.toBeNull();
    bench.isLost = tell;
    await bench.clock.advance(WIND_UP_MS);
    expect(story.slice(2)).toEqual(["ends", "release to b", "release to c"]);
  });

  it("a higher generation closes the elector's gate in the moment in which the coordinator hears of it", async () => {
    const rig = rigged();
    const { bench, coordination } = rig;
    void work(rig);
    await bench.clock.advance(100);
    expect(coordination.elector.gate.isLeader).toBe(true);
    const { roster } = coordination.coordinator.ledger;
    const term = 2 ** 20;
    const request = {
      kind: "acquire" as const,
      clusterId: "cluster-1",
      holder: bench.others.get("b")!.self,
      voter: bench.self,
      term: term + 1,
      ttlMs: LEASE_TTL_MS,
      roster: { ...roster!, term, recoveredBy: bench.others.get("b")!.self },
    };
    const answered = coordination.coordinator.answer("b", request);
    await settled();
    expect((await answered).outcome).toEqual({ kind: "refused", reason: "lease-active" });
    expect(coordination.elector.gate.isLeader).toBe(false);
  });

  it("nothing begins behind a closed gate: work that would start after the end of its term is not started", async () => {
    const { bench, coordination } = rigged();
    const begun: number[] = [];
    void coordination.lead((term) => void begun.push(term.epoch));
    // The leadership ends in the turn in which it was granted.
    const stop = coordination.coordinator.onChange(() => {
      if (coordination.coordinator.leads === null || begun.length > 0) return;
      stop();
      queueMicrotask(() => void coordination.coordinator.resign());
    });
    await bench.clock.advance(100);
    expect(bench.news).toContainEqual({ kind: "over", term: 1, because: "released" });
    expect(begun).toEqual([]);
    await bench.clock.advance(5_000);
    expect(begun).toEqual([2]);
  });

  it("observers see the node's id, term and endpoint", async () => {
    const rig = rigged();
    void work(rig);
    await rig.bench.clock.advance(100);
    expect(await rig.coordination.elector.leader()).toEqual({ epoch: 1, identity: "a", metadata: { endpoint: "a" } });
  });
});
