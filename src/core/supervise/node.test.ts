import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTIED, type Exit, type NodeEffect, type NodeInput, type NodePlan, NodeSupervision } from "./node.ts";

const PLAN: NodePlan = { moonlights: true, hangMs: 10_000, startMs: 60_000, stopMs: 30_000 };
const KILLED: Exit = { code: null, signal: "SIGKILL" };
const exit = (code: number): Exit => ({ code, signal: null });

/** Inputs in, effects out, without what is only told. */
class Told {
  readonly node: NodeSupervision;
  constructor(plan: Partial<NodePlan> = {}) {
    this.node = new NodeSupervision({ ...PLAN, ...plan });
  }
  at(nowMs: number, input: NodeInput): NodeEffect[] {
    return this.node.step(nowMs, input).filter(({ kind }) => kind !== "tell");
  }
}

/** A standby with its agent: the controller is run 1, the agent run 3. */
function standby(): Told {
  const told = new Told();
  expect(told.at(0, { kind: "start" })).toEqual([{ kind: "spawn", part: "controller", run: 1 }]);
  expect(told.at(1, { kind: "released", run: 1 })).toEqual([]);
  expect(told.at(1, { kind: "up", part: "controller", run: 1 })).toEqual([{ kind: "end-agent", run: 2 }]);
  expect(told.at(2, { kind: "agent-gone", run: 2, survivors: 0 })).toEqual([{ kind: "spawn", part: "agent", run: 3 }]);
  return told;
}

describe("a node that an operator has taken out", () => {
  it("gets no worker when it does not lead any more, until it is taken in again", () => {
    const told = standby();
    told.at(10, { kind: "clear", run: 1, epoch: 7 });
    told.at(11, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(20, { kind: "drained", run: 1, isDrained: true })).toEqual([]);
    expect(told.at(21, { kind: "released", run: 1 })).toEqual([]);
    expect(told.at(60_000, { kind: "tick" })).toEqual([]);
    expect(told.at(60_001, { kind: "drained", run: 1, isDrained: false })).toEqual([
      { kind: "spawn", part: "agent", run: 4 },
    ]);
  });

  it("keeps one that runs, and gets no other when that ends", () => {
    const told = standby();
    expect(told.at(10, { kind: "drained", run: 1, isDrained: true })).toEqual([]);
    told.at(20_000, { kind: "exited", part: "agent", run: 3, how: exit(70) });
    told.at(20_001, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(80_000, { kind: "tick" })).toEqual([]);
  });

  it("is in again with a new controller, which knows nothing of it", () => {
    const told = standby();
    told.at(10, { kind: "drained", run: 1, isDrained: true });
    told.at(20_000, { kind: "exited", part: "agent", run: 3, how: exit(70) });
    told.at(20_001, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(30_000, { kind: "exited", part: "controller", run: 1, how: exit(70) })).toEqual([
      { kind: "spawn", part: "agent", run: 4 },
    ]);
  });
});

describe("promotion", () => {
  it("kills the agent and its jobs first, and only then says that the node is cleared", () => {
    const told = standby();
    expect(told.at(10, { kind: "clear", run: 1, epoch: 7 })).toEqual([{ kind: "end-agent", run: 3 }]);
    expect(told.at(11, { kind: "exited", part: "agent", run: 3, how: KILLED })).toEqual([]);
    expect(told.at(12, { kind: "tick" })).toEqual([]);
    expect(told.at(13, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([{ kind: "cleared", epoch: 7 }]);
    expect(told.at(60_000, { kind: "tick" })).toEqual([]);
    expect(told.at(60_001, { kind: "released", run: 1 })).toEqual([{ kind: "spawn", part: "agent", run: 4 }]);
  });

  it("is answered at once where no agent runs", () => {
    const told = new Told({ moonlights: false });
    told.at(0, { kind: "start" });
    // Somebody may be left of a supervisor before.
    expect(told.at(1, { kind: "clear", run: 1, epoch: 1 })).toEqual([{ kind: "end-agent", run: 2 }]);
    expect(told.at(1, { kind: "agent-gone", run: 2, survivors: 0 })).toEqual([{ kind: "cleared", epoch: 1 }]);
    expect(told.at(2, { kind: "released", run: 1 })).toEqual([]);
  });

  it("is not confirmed while somebody of the agent's outlives SIGKILL", () => {
    const told = standby();
    told.at(10, { kind: "clear", run: 1, epoch: 7 });
    expect(told.at(20, { kind: "agent-gone", run: 3, survivors: 1 })).toEqual([{ kind: "end-agent", run: 3 }]);
    expect(told.at(30, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([{ kind: "cleared", epoch: 7 }]);
  });

  it("that came too late leaves the node without a worker for a while: the next election is to find none", () => {
    const told = standby();
    told.at(10, { kind: "clear", run: 1, epoch: 7 });
    told.at(170, { kind: "released", run: 1, holdMs: 5_000 });
    expect(told.at(180, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([]);
    expect(told.at(300, { kind: "clear", run: 1, epoch: 9 })).toEqual([{ kind: "cleared", epoch: 9 }]);
    expect(told.at(10_000, { kind: "released", run: 1 })).toEqual([{ kind: "spawn", part: "agent", run: 4 }]);
  });

  it("of a controller that died meanwhile is nobody's: the next one asks for itself", () => {
    const told = standby();
    told.at(10, { kind: "clear", run: 1, epoch: 7 });
    told.at(11, { kind: "exited", part: "controller", run: 1, how: KILLED });
    expect(told.at(12, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([]);
    expect(told.at(111, { kind: "tick" })).toEqual([{ kind: "spawn", part: "controller", run: 4 }]);
    expect(told.at(112, { kind: "clear", run: 1, epoch: 7 })).toEqual([]);
    expect(told.at(113, { kind: "clear", run: 4, epoch: 9 })).toEqual([{ kind: "cleared", epoch: 9 }]);
  });

  it("a standby's agent works on while the controller is started again", () => {
    const told = standby();
    expect(told.at(20_000, { kind: "exited", part: "controller", run: 1, how: exit(70) })).toEqual([]);
    expect(told.at(20_100, { kind: "tick" })).toEqual([{ kind: "spawn", part: "controller", run: 4 }]);
    expect(told.node.phases).toEqual({ controller: "running", agent: "running" });
  });
});

describe("a transfer that is planned", () => {
  it("empties the node before, and its promotion then waits for nobody", () => {
    const told = standby();
    expect(told.at(10, { kind: "empty", run: 1, forMs: 2_000 })).toEqual([{ kind: "end-agent", run: 3 }]);
    expect(told.at(12, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([{ kind: "cleared", epoch: 0 }]);
    expect(told.at(50, { kind: "clear", run: 1, epoch: 7 })).toEqual([{ kind: "cleared", epoch: 7 }]);
    expect(told.at(60_000, { kind: "tick" })).toEqual([]);
  });

  it("that does not come brings the worker back", () => {
    const told = standby();
    told.at(10, { kind: "empty", run: 1, forMs: 2_000 });
    told.at(12, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(2_009, { kind: "tick" })).toEqual([]);
    expect(told.at(2_010, { kind: "tick" })).toEqual([{ kind: "spawn", part: "agent", run: 4 }]);
  });

  it("that is asked for twice is answered twice", () => {
    const told = standby();
    told.at(10, { kind: "empty", run: 1, forMs: 2_000 });
    told.at(12, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(13, { kind: "empty", run: 1, forMs: 5_000 })).toEqual([{ kind: "cleared", epoch: 0 }]);
    expect(told.at(2_500, { kind: "tick" })).toEqual([]);
  });

  it("says nothing to a node that leads", () => {
    const told = standby();
    told.at(10, { kind: "clear", run: 1, epoch: 7 });
    told.at(12, { kind: "agent-gone", run: 3, survivors: 0 });
    expect(told.at(13, { kind: "empty", run: 1, forMs: 1 })).toEqual([]);
    expect(told.at(60_000, { kind: "tick" })).toEqual([]);
  });
});

describe("crashes", () => {
  it("of the controller: started again after a growing pause, until it is a loop; then the node ends with its code", () => {
    const told = standby();
    let nowMs = 10;
    const pauses: number[] = [];
    let run = 1;
    for (let crash = 1; crash < 5; crash++) {
      expect(told.at(nowMs, { kind: "exited", part: "controller", run, how: exit(74) })).toEqual([]);
      const pauseMs = told.node.untilMs(nowMs);
      pauses.push(pauseMs);
      nowMs += Math.max(pauseMs, 100 * 2 ** (crash - 1));
      const [spawned] = told.at(nowMs, { kind: "tick" });
      expect(spawned).toMatchObject({ kind: "spawn", part: "controller" });
      run = (spawned as { run: number }).run;
    }
    expect(pauses.slice(0, 3)).toEqual([100, 200, 400]);
    expect(told.at(nowMs, { kind: "exited", part: "controller", run, how: exit(74) })).toEqual([
      { kind: "end-agent", run: 3 },
    ]);
    expect(told.at(nowMs + 1, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([{ kind: "end", code: 74 }]);
    expect(told.at(nowMs + 2, { kind: "start" })).toEqual([]);
  });

  it("of a controller that never came up are a loop, however long each start took", () => {
    const told = new Told();
    told.at(0, { kind: "start" });
    let nowMs = 0;
    for (let run = 1; run < 5; run++) {
      nowMs += 30_000;
      expect(told.at(nowMs, { kind: "exited", part: "controller", run, how: exit(70) })).toEqual([]);
      nowMs += 100 * 2 ** (run - 1);
      expect(told.at(nowMs, { kind: "tick" })).toEqual([{ kind: "spawn", part: "controller", run: run + 1 }]);
    }
    expect(told.at(nowMs + 30_000, { kind: "exited", part: "controller", run: 5, how: exit(70) })).toEqual([
      { kind: "end-agent", run: 6 },
    ]);
    expect(told.at(nowMs + 30_001, { kind: "agent-gone", run: 6, survivors: 0 })).toEqual([{ kind: "end", code: 70 }]);
  });

  it.each([64, 76, 78])(
    "of the agent with code %i are final: it would only fail again, or fight for its name",
    (code) => {
      const told = standby();
      told.at(20_000, { kind: "up", part: "agent", run: 3 });
      told.at(40_000, { kind: "exited", part: "agent", run: 3, how: exit(code) });
      told.at(40_001, { kind: "agent-gone", run: 3, survivors: 0 });
      expect(told.node.phases.agent).toBe("given-up");
      expect(told.at(600_000, { kind: "tick" })).toEqual([]);
    },
  );

  it("of the agent for want of a key are tried again every minute: it may be made meanwhile", () => {
    const told = standby();
    for (let run = 3; run < 13; run++) {
      const nowMs = run * 100_000;
      told.at(nowMs, { kind: "exited", part: "agent", run, how: exit(77) });
      told.at(nowMs, { kind: "agent-gone", run, survivors: 0 });
      expect(told.at(nowMs + 59_000, { kind: "alive", part: "controller", run: 1 })).toEqual([]);
      expect(told.at(nowMs + 60_000, { kind: "tick" })).toEqual([{ kind: "spawn", part: "agent", run: run + 1 }]);
    }
  });

  it("that a restart does not mend end the node at once, with the same code", () => {
    const told = new Told({ moonlights: false });
    told.at(0, { kind: "start" });
    // Also before it was up: an earlier supervisor may have left a worker behind.
    expect(told.at(10, { kind: "exited", part: "controller", run: 1, how: exit(78) })).toEqual([
      { kind: "end-agent", run: 2 },
    ]);
    expect(told.at(20, { kind: "agent-gone", run: 2, survivors: 0 })).toEqual([{ kind: "end", code: 78 }]);
  });

  it("of the agent end no node: after five in a row it stays away until the role changes", () => {
    const told = standby();
    let nowMs = 10;
    let run = 3;
    for (let crash = 1; crash <= 5; crash++) {
      expect(told.at(nowMs, { kind: "exited", part: "agent", run, how: exit(70) })).toEqual([
        { kind: "end-agent", run },
      ]);
      expect(told.at(nowMs, { kind: "agent-gone", run, survivors: 0 })).toEqual([]);
      nowMs += 5_000;
      const spawned = told.at(nowMs, { kind: "tick" });
      expect(spawned).toHaveLength(crash < 5 ? 1 : 0);
      run++;
    }
    expect(told.node.phases.agent).toBe("given-up");
    expect(told.at(nowMs, { kind: "released", run: 1 })).toEqual([]);
    expect(told.at(nowMs, { kind: "clear", run: 1, epoch: 3 })).toEqual([{ kind: "cleared", epoch: 3 }]);
    expect(told.at(nowMs, { kind: "released", run: 1 })).toMatchObject([{ kind: "spawn", part: "agent" }]);
  });
});

describe("a child that says nothing", () => {
  it("is replaced", () => {
    const told = standby();
    for (let nowMs = 500; nowMs <= 10_000; nowMs += 500) {
      expect(told.at(nowMs, { kind: "alive", part: "agent", run: 3 })).toEqual([]);
      expect(told.at(nowMs, { kind: "tick" })).toEqual([]);
    }
    expect(told.at(10_500, { kind: "tick" })).toEqual([{ kind: "signal", part: "controller", signal: "SIGKILL" }]);
  });

  it("is noticed also where its sibling talks all the time, and no tick ever comes", () => {
    const told = standby();
    const seen: NodeEffect[] = [];
    for (let nowMs = 400; nowMs <= 12_000; nowMs += 400) {
      seen.push(...told.at(nowMs, { kind: "alive", part: "agent", run: 3 }));
    }
    expect(seen).toEqual([{ kind: "signal", part: "controller", signal: "SIGKILL" }]);
  });

  it("trap 49: is not blamed for the time in which we were frozen ourselves", () => {
    const told = standby();
    told.at(500, { kind: "tick" });
    expect(told.at(3_600_000, { kind: "tick" })).toEqual([]);
  });

  it("has longer before it is up", () => {
    const told = new Told();
    told.at(0, { kind: "start" });
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 500) expect(told.at(nowMs, { kind: "tick" })).toEqual([]);
    expect(told.at(60_500, { kind: "tick" })).toEqual([{ kind: "signal", part: "controller", signal: "SIGKILL" }]);
  });
});

describe("the end", () => {
  it("both are told, and it is over when both are gone", () => {
    const told = standby();
    expect(told.at(10, { kind: "stop", signal: "SIGTERM" })).toEqual([
      { kind: "signal", part: "agent", signal: "SIGTERM" },
      { kind: "signal", part: "controller", signal: "SIGTERM" },
    ]);
    expect(told.at(20, { kind: "exited", part: "agent", run: 3, how: exit(0) })).toEqual([
      { kind: "end-agent", run: 3 },
    ]);
    expect(told.at(21, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([]);
    expect(told.at(22, { kind: "exited", part: "controller", run: 1, how: exit(0) })).toEqual([
      { kind: "end", code: 0 },
    ]);
  });

  it("comes after the limit all the same, also where SIGKILL does not help", () => {
    const told = standby();
    told.at(10, { kind: "stop", signal: "SIGTERM" });
    expect(told.at(30_010, { kind: "tick" })).toEqual([
      { kind: "signal", part: "controller", signal: "SIGKILL" },
      { kind: "end-agent", run: 3 },
    ]);
    expect(told.at(35_000, { kind: "agent-gone", run: 3, survivors: 2 })).toEqual([{ kind: "end", code: 0 }]);
  });

  it("a second signal does not wait", () => {
    const told = standby();
    told.at(10, { kind: "stop", signal: "SIGINT" });
    expect(told.at(11, { kind: "stop", signal: "SIGINT" })).toEqual([
      { kind: "signal", part: "controller", signal: "SIGKILL" },
      { kind: "end-agent", run: 3 },
    ]);
    expect(told.at(12, { kind: "agent-gone", run: 3, survivors: 0 })).toEqual([{ kind: "end", code: 130 }]);
  });
});

const aStep = fc.tuple(
  fc.nat(3_000),
  fc.oneof(
    { weight: 3, arbitrary: fc.constant("tick" as const) },
    { weight: 4, arbitrary: fc.constantFrom("clear" as const, "released" as const) },
    { weight: 4, arbitrary: fc.constant("gone" as const) },
    { weight: 2, arbitrary: fc.constantFrom("agent-dies" as const, "controller-dies" as const, "alive" as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "survives" as const,
        "stale-clear" as const,
        "stale-released" as const,
        "empty" as const,
      ),
    },
  ),
);

it("no history has a leader and a worker on one node, two of a kind, or a child that is born while the node stops", () => {
  const seen = { cleared: 0, agents: 0, ends: 0 };
  fc.assert(
    fc.property(
      fc.array(aStep, { minLength: 20, maxLength: 100, size: "max" }),
      fc.option(fc.nat(99)),
      (steps, stopAt) => {
        const node = new NodeSupervision(PLAN);
        // The world: what lives, and who may write.
        // Of a supervisor before this one an agent may live.
        const world = { controller: 0, agent: -1, leads: false, ending: 0, epoch: 0, isStopping: false, isOver: false };
        const carryOut = (effects: readonly NodeEffect[]): void => {
          for (const effect of effects) {
            expect(world.isOver).toBe(false);
            if (effect.kind === "spawn") {
              expect(world.isStopping).toBe(false);
              expect(world[effect.part]).toBe(0);
              world[effect.part] = effect.run;
              if (effect.part === "agent") {
                seen.agents++;
                expect(world.leads).toBe(false);
              } else world.leads = false;
            } else if (effect.kind === "cleared") {
              expect(world.agent).toBe(0);
              if (effect.epoch === EMPTIED) continue;
              expect(effect.epoch).toBe(world.epoch);
              seen.cleared++;
              world.leads = true;
            } else if (effect.kind === "end-agent") world.ending = effect.run;
            else if (effect.kind === "signal" && effect.signal === "SIGKILL") {
              world.controller = 0;
              world.leads = false;
            } else if (effect.kind === "end") {
              if (world.agent !== -1) expect(world.agent + world.controller).toBe(0);
              seen.ends++;
              world.isOver = true;
            }
          }
        };
        let nowMs = 0;
        carryOut(node.step(nowMs, { kind: "start" }));
        for (const [at, [passedMs, what]] of steps.entries()) {
          nowMs += passedMs;
          if (at === stopAt) {
            world.isStopping = true;
            carryOut(node.step(nowMs, { kind: "stop", signal: "SIGTERM" }));
          }
          const { controller, agent, ending } = world;
          if (what === "clear" && controller !== 0) {
            world.leads = false;
            carryOut(node.step(nowMs, { kind: "clear", run: controller, epoch: ++world.epoch }));
          } else if (what === "released" && controller !== 0) {
            world.leads = false;
            carryOut(node.step(nowMs, { kind: "released", run: controller }));
          } else if (what === "gone" && ending !== 0) {
            world.agent = 0;
            world.ending = 0;
            carryOut(node.step(nowMs, { kind: "agent-gone", run: ending, survivors: 0 }));
          } else if (what === "survives" && ending !== 0 && !world.isStopping) {
            carryOut(node.step(nowMs, { kind: "agent-gone", run: ending, survivors: 1 }));
          } else if (what === "agent-dies" && agent > 0) {
            // Its jobs live until `agent-gone` says otherwise, so it counts as alive here.
            carryOut(node.step(nowMs, { kind: "exited", part: "agent", run: agent, how: exit(70) }));
          } else if (what === "controller-dies" && controller !== 0) {
            world.controller = 0;
            world.leads = false;
            const { isStopping } = world;
            const effects = node.step(nowMs, { kind: "exited", part: "controller", run: controller, how: exit(70) });
            // Either another is coming, or the node ends.
            if (!isStopping && node.phases.controller === "off") world.isStopping = true;
            carryOut(effects);
          } else if (what === "alive") {
            if (controller !== 0) carryOut(node.step(nowMs, { kind: "up", part: "controller", run: controller }));
          } else if (what === "empty" && controller !== 0) {
            carryOut(node.step(nowMs, { kind: "empty", run: controller, forMs: 1_000 }));
          } else if (what === "stale-clear") {
            carryOut(node.step(nowMs, { kind: "clear", run: -1, epoch: 999 }));
          } else if (what === "stale-released") {
            carryOut(node.step(nowMs, { kind: "released", run: -1 }));
          } else carryOut(node.step(nowMs, { kind: "tick" }));
        }
      },
    ),
    { numRuns: 2_000 },
  );
  expect(seen.cleared).toBeGreaterThan(500);
  expect(seen.agents).toBeGreaterThan(500);
  expect(seen.ends).toBeGreaterThan(20);
});
