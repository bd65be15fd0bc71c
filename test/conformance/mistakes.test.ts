// The suite can fail: the backend in memory with one mistake at a time, and the case that must notice it.

import { describe, expect, it } from "vitest";
import type { Backend, Seat } from "../../src/entry/index.ts";
import { type ConformanceWorld, electorConformance, type TestBackend } from "../../src/entry/testing.ts";
import { memoryWorld } from "./test-worlds.ts";

interface Mistake {
  readonly name: string;
  /** The cases that are about exactly this. Others may fail too. */
  readonly found: readonly string[];
  readonly bend: (world: ConformanceWorld, backend: TestBackend) => ConformanceWorld;
}

/** Replaces methods of every seat. */
function seats(change: (seat: Seat, backend: Backend) => Partial<Seat>): Mistake["bend"] {
  return (world) => ({
    ...world,
    create: async (name) => {
      const backend = await world.create(name);
      return {
        ...backend,
        seat: (claim) => {
          const seat = backend.seat(claim);
          const changed = change(seat, backend);
          return new Proxy(seat, {
            get: (target, key) => {
              const method: unknown = Reflect.get(changed, key) ?? Reflect.get(target, key);
              return typeof method === "function" ? method.bind(target) : method;
            },
          });
        },
      };
    },
  });
}

let epochs = 0;

const MISTAKES: readonly Mistake[] = [
  {
    name: "it grants a scope that is held",
    found: [
      "of several that acquire at once exactly one leads",
      "a leader goes on leading while its heartbeats are answered",
    ],
    bend: seats((_seat, { clock }) => ({
      acquire: () => {
        const sentAt = { monotonicMs: clock?.monotonicMs() ?? 0, wallMs: clock?.wallMs() ?? 0 };
        return Promise.resolve({ epoch: ++epochs, sentAt });
      },
      beat: () => Promise.resolve({ sentAt: { monotonicMs: clock?.monotonicMs() ?? 0, wallMs: clock?.wallMs() ?? 0 } }),
    })),
  },
  {
    name: "it gives an epoch twice",
    found: [
      "epochs grow from term to term, whoever leads",
      "there is one leader for each epoch, as the resource sees it",
    ],
    bend: (world, backend) => ({
      ...seats((seat) => ({
        acquire: async (signal) => ({ ...(await seat.acquire(signal)), epoch: 1 }),
        beat: async (_epoch) => seat.beat((await seat.leader())?.epoch ?? 0),
      }))(world, backend),
      resource: { write: () => Promise.resolve() },
    }),
  },
  {
    name: "its release frees nothing",
    found: [
      "resign lets another go first",
      "lead: work returns while its term holds: resign, resolve",
      "lead: work throws: resign, reject",
    ],
    bend: seats(() => ({ release: () => Promise.resolve() })),
  },
  {
    name: "its watch never tells anything",
    found: [
      "observers learn the leader with its epoch and metadata, and null when it resigns",
      "an observer that comes later learns the present leader at once",
    ],
    bend: seats(() => ({ watch: () => () => undefined })),
  },
  {
    name: "its watch never tells that nobody leads",
    found: ["observers learn the leader with its epoch and metadata, and null when it resigns"],
    bend: seats((seat) => ({
      watch: (tell, failed) => seat.watch((leader) => leader !== null && tell(leader), failed),
    })),
  },
  {
    name: "its watch tells changes only, and not the present leader",
    found: ["an observer that comes later learns the present leader at once"],
    bend: seats((seat) => ({
      watch: (tell, failed) => {
        let told = 0;
        return seat.watch((leader) => told++ > 0 && tell(leader), failed);
      },
    })),
  },
  {
    name: "its watch tells a leader twice",
    found: ["observers learn the leader with its epoch and metadata, and null when it resigns"],
    bend: seats((seat, backend) => ({
      watch: (tell, failed) =>
        seat.watch((leader) => {
          tell(leader);
          backend.clock?.setTimer(backend.clock.monotonicMs() + 1, () => tell(leader));
        }, failed),
    })),
  },
  {
    name: "its watch gives up after a lost connection",
    found: ["an observer that was cut off learns what it has missed"],
    bend: (world, backend) => {
      const deaf = new Set<string>();
      const watched = seats((seat, { host }) => ({
        watch: (tell, failed) => seat.watch((leader) => !deaf.has(host) && tell(leader), failed),
      }))(world, backend);
      return { ...watched, cut: (name) => (deaf.add(name), backend.cut(name)) };
    },
  },
  {
    name: "it loses the metadata",
    found: [
      "observers learn the leader with its epoch and metadata, and null when it resigns",
      "the backend names the leader, and nobody when there is none",
    ],
    bend: seats((seat) => ({
      watch: (tell, failed) => seat.watch((leader) => tell(leader && { ...leader, metadata: {} }), failed),
      leader: async () => {
        const leader = await seat.leader();
        return leader && { ...leader, metadata: {} };
      },
    })),
  },
  {
    name: "its resource accepts every epoch",
    found: [
      "a leader that resigned can't act: its gate is closed and the resource refuses it",
      "a killed leader is followed, at once where that is promised, and its epoch is refused",
    ],
    bend: (world) => ({ ...world, resource: { write: () => Promise.resolve() } }),
  },
  {
    name: "its resource refuses with an error that says nothing",
    found: ["a leader that resigned can't act: its gate is closed and the resource refuses it"],
    bend: (world) => ({
      ...world,
      resource: {
        write: (scope, epoch, value) =>
          world.resource.write(scope, epoch, value).catch(() => Promise.reject(new Error("refused"))),
      },
    }),
  },
  {
    name: "an acquire goes on after it was given up",
    found: [
      "an acquire that is aborted while it waits leaves no stranded hold",
      "close while waiting rejects the acquire and leaves no stranded hold",
      "lead: an abort while it waits rejects and leaves no stranded hold",
    ],
    bend: seats(() => ({ abandon: () => undefined, close: () => Promise.resolve() })),
  },
  {
    name: "it promises more time than its server gives",
    found: ["a leader that is cut off closes its gate before another leads, and the resource refuses it"],
    bend: (world) => ({
      ...world,
      create: async (name) => {
        const backend = await world.create(name);
        return { ...backend, timing: { ...backend.timing, serverTimeoutMs: backend.timing.serverTimeoutMs * 2 } };
      },
    }),
  },
  {
    name: "it counts trust from the answer to a beat that was never answered",
    found: ["a leader that is cut off closes its gate before another leads, and the resource refuses it"],
    bend: seats((_seat, { clock }) => ({
      beat: () => Promise.resolve({ sentAt: { monotonicMs: clock?.monotonicMs() ?? 0, wallMs: clock?.wallMs() ?? 0 } }),
    })),
  },
  {
    name: "it does not extend the hold when it answers a beat",
    found: ["a leader goes on leading while its heartbeats are answered"],
    bend: seats((_seat, { clock }) => ({
      beat: () => Promise.resolve({ sentAt: { monotonicMs: clock?.monotonicMs() ?? 0, wallMs: clock?.wallMs() ?? 0 } }),
    })),
  },
  {
    name: "it frees a killed leader's scope only after the server timeout",
    found: ["a killed leader is followed, at once where that is promised, and its epoch is refused"],
    bend: (world, backend) => ({ ...world, kill: (name) => backend.freeze(name) }),
  },
  {
    name: "it takes a short silence for a loss",
    found: ["the gate closes and opens again inside a term, with the same epoch and without an abort"],
    bend: (world, backend) => ({
      ...world,
      freeze: async (name) => {
        await backend.freeze(name);
        await backend.advance(backend.timing.serverTimeoutMs);
      },
    }),
  },
  {
    name: "every scope is one scope",
    found: ["scopes do not disturb each other"],
    bend: (world) => ({
      ...world,
      create: async (name) => {
        const backend = await world.create(name);
        return { ...backend, seat: (claim) => backend.seat({ ...claim, scope: "one" }) };
      },
      resource: { write: (_scope, epoch, value) => world.resource.write("one", epoch, value) },
    }),
  },
];

async function failures(bend: Mistake["bend"]): Promise<Map<string, string>> {
  const failed = new Map<string, string>();
  for (const { name, run } of electorConformance(() => memoryWorld({}, bend))) {
    await run().catch((error: unknown) => failed.set(name, String(error)));
  }
  return failed;
}

describe("a mistake is found by the case that is about it", () => {
  for (const { name, found, bend } of MISTAKES) {
    it(name, async () => {
      const failed = await failures(bend);
      const names = electorConformance(() => memoryWorld()).map((one) => one.name);
      for (const one of found) {
        expect(names, "a case was renamed").toContain(one);
        expect([...failed.keys()], `nothing was found by: ${one}`).toContain(one);
        expect(failed.get(one)).toMatch(/^ConformanceFailure|^TenureError|^StaleEpochError|^NotLeaderError/);
      }
    });
  }

  it("none is found where there is none", async () => {
    expect([...(await failures((world) => world))]).toEqual([]);
  });
});

describe("a case that a world can't play", () => {
  const limited = (): ConformanceWorld => {
    const { create, resource, advance, dispose } = memoryWorld();
    return { create, resource, advance, dispose };
  };
  const cases = electorConformance(limited).filter(({ needs }) => needs.length > 0);

  it("is marked as skipped through the runner's context", async () => {
    expect(cases.length).toBeGreaterThan(5);
    for (const { needs, run } of cases) {
      const reasons: string[] = [];
      await run({ skip: (reason) => reasons.push(reason) });
      expect(reasons).toEqual([`this world can't ${needs.join(", ")}`]);
    }
  });

  it("never passes in a runner that can't skip", async () => {
    for (const { run } of cases) await expect(run()).rejects.toThrow(/^skipped: this world can't/);
  });

  it("takes no parameter that a runner could mistake for a callback", () => {
    for (const { run } of cases) expect(run.length).toBe(0);
  });
});
