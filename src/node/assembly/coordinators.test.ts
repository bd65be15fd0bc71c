// A coordinator of production under its elector: who closes, ends and leaves in which order.

import { describe, expect, it } from "vitest";
import { Coordinator } from "../../controller/coordinators/coordinator.ts";
import { Bench } from "../../controller/coordinators/test-bench.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { acquire, asked, release } from "../../core/lease/test-lease.ts";
import { settled } from "../../loops/test-clock.ts";
import { assembleCoordination, type Coordination, CoordinatorQuorum } from "./coordinators.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
/** As long as work needs to wind up, once its signal has aborted. */
const WIND_UP_MS = 300;

interface Rig {
  readonly bench: Bench;
  readonly coordination: Coordination;
  /** What happened, in order: the ends of gates and of work, and releases that leave. */
  readonly story: string[];
}

function rigged(logged: (message: string, resign: () => void) => void = () => {}): Rig {
  const bench = new Bench();
  const story: string[] = [];
  const coordination: Coordination = assembleCoordination({
    self: bench.self,
    endpoint: "a",
    make: (hooks) => ({ coordinator: new Coordinator(bench.options(hooks)) }),
    clock: bench.clock,
    random: seededRandom(1),
    logger: { ...SILENT, info: (_, message) => logged(message, () => void coordination.service.coordinator.resign()) },
  });
  bench.isLost = ({ to, request }) => {
    if (request.kind === "release") story.push(`release to ${to}`);
    return false;
  };
  coordination.service.coordinator.start();
  return { bench, coordination, story };
}

/** Work that runs until its signal aborts, and then for a while. */
function work({ bench, coordination, story }: Rig): Promise<unknown> {
  return coordination.lead(async (term) => {
    story.push(`begins ${term.check()}`);
    await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
    story.push(coordination.elector.gate.isLeader ? "aborts behind an open gate" : "aborts");
    await new Promise<void>((resolve) => void bench.clock.setTimer(bench.clock.nowMs + WIND_UP_MS, resolve));
    story.push("ends");
  });
}

describe("the coordinator's leadership and the work of `lead`", () => {
  it("campaigns only while the elector wants to lead", async () => {
    const { bench, coordination } = rigged();
    await bench.clock.advance(20_000);
    expect([coordination.service.coordinator.leads, bench.kinds("acquire")]).toEqual([null, []]);
    void work({ bench, coordination, story: [] });
    await bench.clock.advance(100);
    expect(coordination.service.coordinator.leads).toBe(1);
    expect(coordination.elector.gate.requireLeader()).toBe(1);
  });

  it("a release leaves when both gates are closed and the work has ended: of a coordinator that resigns or leaves", async () => {
    const rig = rigged();
    const { bench, coordination, story } = rig;
    void work(rig);
    await bench.clock.advance(100);
    const resigned = coordination.service.coordinator.resign();
    await settled();
    expect([coordination.service.coordinator.leads, coordination.elector.gate.isLeader]).toEqual([null, false]);
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
    expect(coordination.service.coordinator.leads).toBeNull();
  });

  it("of a leadership that is lost: no release before the work has ended, however long it takes (trap 48)", async () => {
    const rig = rigged();
    const { bench, coordination, story } = rig;
    void work(rig);
    await bench.clock.advance(2_100);
    const { provedAt } = coordination.service.coordinator.leadership!;
    const tell = bench.isLost;
    bench.isLost = (sent) => sent.request.kind === "renew" || tell(sent);
    // The elector hears of the end from the coordinator, before its own patience with a silent backend is over.
    await bench.clock.advance(provedAt!.monotonicMs + LEASE_TTL_MS - bench.clock.nowMs);
    expect(coordination.service.coordinator.leadership?.over).toBe("expired");
    expect(story).toEqual(["begins 1", "aborts"]);
    bench.isLost = tell;
    await bench.clock.advance(WIND_UP_MS - 1);
    expect(story.length).toBe(2);
    await bench.clock.advance(1);
    expect(story.slice(2)).toEqual(["ends", "release to b", "release to c"]);
  });

  it("of a leadership that was outvoted: nothing is released, the coordinator leads on in a higher term when the work has wound up", async () => {
    const rig = rigged();
    const { bench, story } = rig;
    void work(rig);
    await bench.clock.advance(1_500);
    const tell = bench.isLost;
    bench.isLost = (sent) => tell(sent) || (sent.to === "b" && sent.request.kind === "renew");
    await bench.clock.advance(LEASE_TTL_MS);
    // The leader's lease at b is over, and c has asked for a term there, and given it up.
    const b = bench.others.get("b")!;
    for (const request of [acquire("c@1", "b@1", 2, b.ledger.roster), release("c@1", "b@1", 2)])
      expect(asked(b, bench.clock.nowMs, request)).toBe("accepted");
    bench.isLost = tell;
    await bench.clock.advance(1_000 + WIND_UP_MS + 50);
    expect(bench.news.at(-2)).toEqual({ kind: "over", term: 1, because: "higher-term" });
    expect(story).toEqual(["begins 1", "aborts", "ends", "begins 3"]);
  });

  it("a higher generation closes the elector's gate in the moment in which the coordinator hears of it", async () => {
    const rig = rigged();
    const { bench, coordination } = rig;
    void work(rig);
    await bench.clock.advance(100);
    expect(coordination.elector.gate.isLeader).toBe(true);
    const { roster } = coordination.service.coordinator.ledger;
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
    const gates: boolean[] = [];
    coordination.service.coordinator.onChange(() => gates.push(coordination.elector.gate.isLeader));
    const { outcome } = await coordination.service.coordinator.answer("b", request);
    expect(outcome).toEqual({ kind: "refused", reason: "lease-active" });
    expect([gates[0], coordination.elector.gate.isLeader]).toEqual([false, false]);
  });

  it("nothing begins behind a closed gate: work that would start after the end of its term is not started", async () => {
    const begun: number[] = [];
    let endings = 0;
    const { bench, coordination } = rigged((message, resign) => {
      // The elector has its term, and `lead` has not begun.
      if (message === "leading" && endings++ === 0) resign();
    });
    void coordination.lead((term) => void begun.push(term.epoch));
    await bench.clock.advance(100);
    expect(bench.news).toContainEqual({ kind: "over", term: 1, because: "released" });
    expect(begun).toEqual([]);
    await bench.clock.advance(5_000);
    expect(begun).toEqual([2]);
  });

  it("a leadership that was given up is nobody's afterwards, also where it is wanted again in the same turn", async () => {
    const bench = new Bench();
    const quorum = new CoordinatorQuorum({
      self: bench.self,
      endpoint: "a",
      make: (hooks) => ({ coordinator: new Coordinator(bench.options(hooks)) }),
    });
    quorum.coordinator.start();
    quorum.want(true);
    await bench.clock.advance(100);
    expect(quorum.held?.epoch).toBe(1);
    quorum.want(false);
    quorum.want(true);
    expect(quorum.held).toBeNull();
    await bench.clock.advance(5_000);
    expect(quorum.held?.epoch).toBe(2);
  });

  it("observers see the node's id, term and endpoint", async () => {
    const rig = rigged();
    void work(rig);
    await rig.bench.clock.advance(100);
    expect(await rig.coordination.elector.leader()).toEqual({ epoch: 1, identity: "a", metadata: { endpoint: "a" } });
  });
});
