// What the loop must stand: answers that come late, disks that hang, nodes with two disks, requests without end.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../../core/kit/ids.ts";
import { Voter, type VoterRequest } from "../../core/lease/index.ts";
import {
  GENERATION_TERMS,
  LEASE_BOOT_WAIT_MS,
  LEASE_TRUST_MS,
  LEASE_TTL_MS,
  REGISTRY_ENTRIES_MAX,
} from "../../core/lease/limits.ts";
import { acquire, asked, ledgerOf, release, renew, rosterOf } from "../../core/lease/test-lease.ts";
import { settled } from "../../loops/test-clock.ts";
import type { Coordinator } from "./coordinator.ts";
import { COORDINATOR_CALL_MS, DESK_REQUESTS_MAX, LEAVE_AT_STOP_MS, LEAVE_MS, REGISTRY_TURN_MS } from "./limits.ts";
import { Bench, type Sent } from "./test-bench.ts";

async function led(bench: Bench): Promise<Coordinator> {
  const coordinator = bench.start();
  await bench.clock.advance(10);
  expect(coordinator.leads).toBe(1);
  return coordinator;
}

describe("answers that are processed late (trap 29)", () => {
  test("time comes first: a stop that ended the leadership ends it before an answer can say anything else", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isKept = ({ request }) => request.kind === "renew";
    await bench.clock.advance(1_000);
    const leadership = coordinator.leadership!;
    const { committed } = leadership;
    leadership.changeRegistry(bench.clock.now, [{ backendHash: "h", endpoint: "e" }], []);
    coordinator.wake();
    await settled();
    // The process stops, and its answers wait in its sockets.
    bench.clock.stop(LEASE_TTL_MS);
    bench.deliver();
    await settled();
    expect(leadership.over).toBe("expired");
    expect(leadership.committed).toBe(committed);
  });

  test("trust counts from the sending, however late the answer is processed: the gate stays closed (trap 44)", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isKept = ({ request }) => request.kind === "renew";
    await bench.clock.advance(1_000);
    bench.clock.stop(LEASE_TRUST_MS);
    bench.deliver();
    await settled();
    expect(coordinator.leads).toBeNull();
  });
});

describe("a disk that hangs (trap 30)", () => {
  test("ends the leadership of its node, although a majority of the others answers", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isHung = true;
    coordinator.leadership!.changeRegistry(bench.clock.now, [{ backendHash: "h", endpoint: "e" }], []);
    coordinator.wake();
    await bench.clock.advance(LEASE_TRUST_MS + 50);
    expect(coordinator.leads).toBeNull();
    await bench.clock.advance(LEASE_TTL_MS - LEASE_TRUST_MS);
    expect(bench.news).toContainEqual({ kind: "over", term: 1, because: "expired" });
    // The others were released, and this node does not come back.
    expect(bench.kinds("release").map(({ to }) => to)).toEqual(["b", "c"]);
    await bench.clock.advance(60_000);
    expect(coordinator.leads).toBeNull();
    expect([...bench.others.values()].map((voter) => voter.leaderAt(bench.clock.nowMs))).toEqual([null, null]);
  });

  test("takes no more requests than it can keep: a node whose disk hangs for a day has no day's requests in memory", async () => {
    const bench = new Bench();
    const coordinator = bench.start({ isWanted: () => false });
    bench.isHung = true;
    const answered: string[] = [];
    const ask = (request: VoterRequest): void =>
      void coordinator.answer("b", request).then(({ outcome }) => answered.push(outcome.kind));
    ask(acquire("b@1", "a@1", 1, rosterOf(0, 1, "a@1", "b@1", "c@1")));
    for (let at = 0; at < 3 * DESK_REQUESTS_MAX; at++) ask(release("b@1", "a@1", 7));
    await settled();
    expect(answered).toEqual([]);
    bench.recover();
    for (let at = 0; at < DESK_REQUESTS_MAX; at++) await settled();
    // Whatever came above the bound is as if it had been lost on its way.
    expect(answered.length).toBe(DESK_REQUESTS_MAX);
    ask(release("b@1", "a@1", 7));
    await settled();
    expect(answered.length).toBe(DESK_REQUESTS_MAX + 1);
  });
});

describe("a term that is given up before this node's own grant of it", () => {
  const isVote = ({ request }: Sent): boolean => ["acquire", "renew", "release"].includes(request.kind);
  const isRelease = ({ request }: Sent): boolean => request.kind === "release";

  test("was never on the wire, not even in a release: the disk hung, the process was killed, and the same term is won after that", async () => {
    const bench = new Bench();
    bench.isLate = isRelease;
    bench.isHung = true;
    const killed = bench.start();
    await bench.clock.advance(COORDINATOR_CALL_MS + 50);
    expect(bench.sent.filter(isVote)).toEqual([]);
    void killed.stop();
    bench.isHung = false;
    const restarted = bench.start();
    await bench.clock.advance(100);
    bench.arrive();
    const votes = [...bench.others.values()].map((voter) =>
      asked(voter, bench.clock.nowMs, acquire("c@1", voter.self, 2, voter.ledger.roster)),
    );
    // With releases of the first attempt both would grant, and two leaders act.
    expect([restarted.leads, ...votes]).toEqual([1, "lease-active", "lease-active"]);
  });

  test("was never on the wire either where this node's own voter refused it, and may grant the same one later", async () => {
    const bench = new Bench();
    const roster = rosterOf(0, 1, "a@1", "b@1", "c@1");
    const grant = { term: 1, leader: "b@1" as PeerKey, released: false };
    // c knows of term 8: a's campaign is for 9.
    const c = bench.others.get("c")!;
    for (const request of [acquire("c@1", "c@1", 8, roster), release("c@1", "c@1", 8)])
      asked(c, bench.clock.nowMs, request);
    const coordinator = bench.start({ ledger: ledgerOf(roster, { term: 1, grant }) });
    await bench.clock.advance(LEASE_BOOT_WAIT_MS - 10);
    bench.isHung = true;
    void coordinator.answer("b", release("b@1", "a@1", 1));
    const granted = coordinator.answer("b", acquire("b@1", "a@1", 2, roster));
    await bench.clock.advance(200);
    bench.recover();
    await bench.clock.advance(100);
    expect((await granted).outcome.kind).toBe("accepted");
    expect(bench.sent.filter(isVote)).toEqual([]);
    expect(coordinator.ledger.term).toBe(2);
  });
});

describe("when a leadership has ended", () => {
  /** Until this node acts, since the end of the lease of a leader that has stopped. */
  const succession = async (leader: "b" | "c"): Promise<number> => {
    const bench = new Bench();
    bench.isLost = ({ to }) => to === leader;
    const coordinator = bench.start();
    const { nowMs } = bench.clock;
    const roster = rosterOf(0, 1, "a@1", "b@1", "c@1");
    for (const request of [acquire, renew]) {
      const of = (voter: string) => request(`${leader}@1`, voter, 1, { ...roster, term: request === renew ? 1 : 0 });
      await coordinator.answer(leader, of("a@1"));
      for (const voter of bench.others.values()) expect(asked(voter, nowMs, of(voter.self))).toBe("accepted");
    }
    await bench.clock.advance(2 * LEASE_TTL_MS);
    expect(coordinator.leads).toBe(2);
    return coordinator.electedMs! - (nowMs + LEASE_TTL_MS);
  };

  test("and whoever led answers nothing, the first of the others leads at once: nobody waits for answers that do not come", async () => {
    expect(await succession("b")).toBeLessThan(100);
    expect(await succession("c")).toBeLessThan(100);
  });

  test("and whoever is near has a newer roster and a disk that hangs, the others lead, however far they are", async () => {
    const bench = new Bench();
    const newer = ledgerOf(rosterOf(0, 2, "a@1", "b@1", "c@1"));
    bench.others.set("b", new Voter("b@1" as PeerKey, newer, bench.clock.nowMs));
    bench.isLost = ({ to, request }) => to === "b" && request.kind !== "status";
    bench.delayMs = ({ to }) => (to === "c" ? 200 : 1);
    const coordinator = bench.start();
    await bench.clock.advance(20_000);
    expect(coordinator.leads).toBe(1);
  });

  test("and all others take longer to answer than a campaign waits at first, one leads: a leader could go on with such answers", async () => {
    const bench = new Bench();
    bench.delayMs = () => 700;
    const coordinator = bench.start();
    await bench.clock.advance(20_000);
    expect(coordinator.leads).toBe(1);
    await bench.clock.advance(20_000);
    expect(coordinator.leads).toBe(1);
  });

  test("and a majority knows a leader that this node can't hear, it asks a few times in a second, not without end", async () => {
    const bench = new Bench();
    const roster = rosterOf(0, 1, "a@1", "b@1", "c@1");
    const coordinator = bench.start({ isWanted: () => true });
    const renewed = async (seconds: number): Promise<void> => {
      for (let at = 0; at < seconds; at++) {
        for (const voter of bench.others.values())
          asked(voter, bench.clock.nowMs, acquire("b@1", voter.self, 1, roster));
        await bench.clock.advance(1_000);
      }
    };
    await renewed(2);
    const before = bench.kinds("status").length;
    await renewed(20);
    expect(coordinator.leads).toBeNull();
    const each = (bench.kinds("status").length - before) / 20 / bench.others.size;
    expect(each).toBeGreaterThan(1);
    expect(each).toBeLessThan(8);
  });
});

describe("a voter that leaves while another one begins to lead", () => {
  test("hears that it was removed, however many rounds the grants of the others cause before that is stored", async () => {
    const names = Array.from({ length: 15 }, (_, at) => `${String.fromCodePoint(97 + at)}@1`);
    const bench = new Bench(...names);
    bench.delayMs = ({ to }) => to.codePointAt(0)! - 96;
    const leaver = bench.others.get("b")!;
    leaver.isLeaving = true;
    const coordinator = bench.start();
    bench.announce(coordinator);
    await coordinator.answer("b", { kind: "leave" });
    await bench.clock.advance(3_000);
    expect(coordinator.leads).toBe(1);
    for (const { roster } of [coordinator.ledger, leaver.ledger])
      expect(roster!.voters.map(({ peer }) => peer)).toEqual(names.filter((name) => name !== "b@1"));
  });
});

describe("a candidate that is about to leave", () => {
  test("and wins what it had begun gives that up at once: no leader removes itself, and its lease would outlast it", async () => {
    const bench = new Bench();
    const coordinator = bench.start();
    bench.isKept = ({ request }) => request.kind === "acquire";
    await bench.clock.advance(10);
    expect(bench.kinds("acquire").map(({ to }) => to)).toEqual(["b", "c"]);
    const left = coordinator.leaveWithin(LEAVE_AT_STOP_MS);
    bench.isKept = () => false;
    bench.deliver();
    await bench.clock.advance(10);
    expect(coordinator.leads).toBeNull();
    expect([...bench.others.values()].map((voter) => voter.leaderAt(bench.clock.nowMs))).toEqual([null, null]);
    await bench.clock.advance(LEAVE_AT_STOP_MS);
    expect(await left).toMatchObject({ kind: "refused" });
  });
});

describe("a voter that has heard of a higher generation, and stored nothing of it yet", () => {
  test("ends the leadership once, and not again and again at the speed of the network: who was refused waits to be admitted", async () => {
    const bench = new Bench("a@1", "b@1", "c@1", "d@1", "e@1");
    const coordinator = await led(bench);
    bench.others.get("b")!.noteTerm(GENERATION_TERMS);
    await bench.clock.advance(60_000);
    expect(bench.news.filter(({ kind }) => kind === "elected")).toHaveLength(1);
    expect([coordinator.leads, coordinator.ledger.term]).toEqual([null, 1]);
    // Whoever was recovered admits it.
    const { roster } = coordinator.ledger;
    const recovered = { ...rosterOf(GENERATION_TERMS, 1, "e@1"), recoveredBy: "e@1" as PeerKey };
    const { outcome } = await coordinator.answer("e", acquire("e@1", "a@1", GENERATION_TERMS + 1, recovered));
    expect([roster?.term, outcome.kind]).toEqual([1, "accepted"]);
  });
});

describe("an identity with two disks", () => {
  const replaced = async (bench: Bench, coordinator: Coordinator, by: string): Promise<void> => {
    bench.seat(by);
    for (let second = 0; second < 10; second++) {
      bench.announce(coordinator);
      await bench.clock.advance(1_000);
    }
  };
  const voters = ({ leadership }: Coordinator): string => leadership!.roster.voters.map(({ peer }) => peer).join(" ");

  test("its last disk votes: a former one that comes back is admitted once, and not removed and admitted for ever", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    await replaced(bench, coordinator, "c@2");
    expect(voters(coordinator)).toBe("a@1 b@1 c@2");
    await replaced(bench, coordinator, "c@1");
    expect(voters(coordinator)).toBe("a@1 b@1 c@1");
    const { version } = coordinator.leadership!.roster;
    await bench.clock.advance(5_000);
    expect(coordinator.leadership!.roster.version).toBe(version);
  });
});

describe("the registry", () => {
  const entries = Array.from({ length: REGISTRY_ENTRIES_MAX }, (_, at) => ({
    backendHash: `hash-${at}`,
    endpoint: `https://island-${at}`,
  }));
  const more = { backendHash: "hash-more", endpoint: "https://island-more" };

  test("that is full takes no more, and what comes after that is written as ever: one server's entries end nobody's process", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    coordinator.leadership!.changeRegistry(bench.clock.now, entries, []);
    coordinator.wake();
    await bench.clock.advance(100);
    const ask = async (change: "register" | "unregister", entry: typeof more): Promise<string> => {
      let kind = "none";
      const asked = coordinator.answer("b", { kind: "registry", change, entry, isForwarded: true });
      asked.then(
        (answer) => (kind = answer.kind),
        (error: unknown) => (kind = String(error)),
      );
      await bench.clock.advance(5_000);
      return kind;
    };
    expect(await ask("register", more)).toBe("full");
    expect(await ask("unregister", entries[0]!)).toBe("done");
    expect(await ask("register", more)).toBe("done");
    expect(bench.fatals).toEqual([]);
  });
});

describe("an endpoint that is registered", () => {
  test("for another island than its server says is refused, where it is a listed member's or this node's; nothing has changed", async () => {
    const bench = new Bench();
    const coordinator = bench.start({ backendHash: "island-a" });
    bench.announce(coordinator);
    await bench.clock.advance(30_000);
    bench.backends.set("b", "island-b");
    const ask = async (change: "register" | "unregister", endpoint: string, backendHash: string): Promise<string> => {
      let kind = "none";
      const entry = { backendHash, endpoint };
      void coordinator.answer("b", { kind: "registry", change, entry, isForwarded: true }).then((answer) => {
        kind = answer.kind;
      });
      bench.announce(coordinator);
      await bench.clock.advance(5_000);
      return kind;
    };
    const before = coordinator.ledger.shown?.registry;
    expect(await ask("register", "b/", "island-c")).toBe("other-backend");
    expect(await ask("register", "a", "island-b")).toBe("other-backend");
    expect(coordinator.ledger.shown?.registry).toEqual(before);
    // Its own, one that says nothing, and one that is no member. What is wrong already can be taken out.
    expect(await ask("register", "b", "island-b")).toBe("done");
    expect(await ask("register", "c", "island-x")).toBe("done");
    expect(await ask("register", "elsewhere", "island-y")).toBe("done");
    bench.backends.set("c", "island-c");
    expect(await ask("unregister", "c", "island-x")).toBe("done");
    expect(bench.fatals).toEqual([]);
  });
});

describe("changes of the registry that wait for a member which answers nothing", () => {
  test("are refused after a while, and not made when whoever asked has long given up", async () => {
    const bench = new Bench();
    const coordinator = await led(bench);
    bench.isLost = ({ to, request }) => to === "c" && request.kind === "status";
    const answers: { at: number; kind: string; tookMs: number }[] = [];
    for (let at = 0; at < 60; at++) {
      bench.announce(coordinator);
      const sinceMs = bench.clock.nowMs;
      const entry = { backendHash: `hash-${at}`, endpoint: `https://island-${at}` };
      const asked = coordinator.answer("b", { kind: "registry", change: "register", entry, isForwarded: true });
      void asked.then(({ kind }) => answers.push({ at, kind, tookMs: bench.clock.nowMs - sinceMs }));
      await bench.clock.advance(300);
    }
    bench.isLost = () => false;
    await bench.clock.advance(5_000);
    expect(answers.map(({ at }) => at)).toEqual(Array.from({ length: 60 }, (_, at) => at));
    expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(
      REGISTRY_TURN_MS + COORDINATOR_CALL_MS + 50,
    );
    expect(answers.at(-1)!.kind).toBe("done");
  });
});

describe("who leads, as another node sees it", () => {
  test("is whoever has a roster of its own term: a candidate that has this voter's grant may lose", async () => {
    const bench = new Bench();
    const coordinator = bench.start({ isWanted: () => false });
    const roster = rosterOf(0, 1, "a@1", "b@1", "c@1");
    await coordinator.answer("b", acquire("b@1", "a@1", 1, roster));
    expect(coordinator.observed).toBeNull();
    await coordinator.answer("b", renew("b@1", "a@1", 1, { ...roster, term: 1 }));
    const { nowMs } = bench.clock;
    expect(coordinator.observed).toEqual({ peer: "b@1", endpoint: "b", term: 1, untilMs: nowMs + LEASE_TTL_MS });
    await bench.clock.advance(LEASE_TTL_MS);
    expect(coordinator.observed).toBeNull();
  });
});

describe("work that does not end", () => {
  test("does not keep a leave from its end: the node is a member as before, and says why", async () => {
    const bench = new Bench();
    const coordinator = bench.start({ work: { begins: () => {}, ends: () => new Promise(() => {}) } });
    await bench.clock.advance(10);
    expect(coordinator.leads).toBe(1);
    const left = coordinator.leave();
    await bench.clock.advance(LEAVE_MS + 1_000);
    expect(await Promise.race([left, settled()])).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("work") as string,
    });
    expect([coordinator.members.isAnnouncing, coordinator.status.isLeaving]).toEqual([true, false]);
    // No release has left, and nobody leads here: what still runs is for a term that is over.
    expect([coordinator.leads, bench.kinds("release")]).toEqual([null, []]);
  });
});
