// Whole simulated clusters under crashes, cuts and transfers: the split-brain detector must stay silent through all of
// it, everybody must agree in the end, and a state that is made to differ must then be found.

import { describe, expect, test } from "vitest";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { TestServers } from "../../src/sim/controller/test-servers.ts";

const ALL = ["n1", "n2", "n3", "n4", "n5"];
const STEPS = 60;

interface Fired {
  crashes: number;
  cuts: number;
  transfers: number;
  writes: number;
}

function oneFault(servers: TestServers, random: Random, fired: Fired): void {
  const name = random.pick(ALL);
  const leader = servers.leader();
  switch (random.below(5)) {
    case 0:
      if (!servers.runs(name)) return;
      fired.crashes++;
      servers.crash(name);
      return servers.world.startAfter(name, random.below(3_000));
    case 1: {
      const some = ALL.filter(() => random.chance(0.5));
      const rest = ALL.filter((other) => !some.includes(other));
      if (servers.world.network.partition([some, rest])) fired.cuts++;
      return;
    }
    case 2:
      if (servers.world.network.partition([[name], ALL.filter((other) => other !== name)])) fired.cuts++;
      return;
    case 3:
      servers.world.network.heal();
      return;
    default:
      if (leader === undefined) return;
      fired.transfers++;
      servers.world.call(leader, () => {
        // Refused, failed or done: all of it is normal here.
        void servers
          .of(leader)
          .cluster.transfer(null, random.chance(0.3))
          .catch(() => undefined);
      });
  }
}

function write(servers: TestServers, fired: Fired): void {
  const leader = servers.leader();
  if (leader === undefined) return;
  for (let i = 0; i < 20; i++) {
    fired.writes++;
    servers.world.call(leader, () => void servers.of(leader).engine.propose([new Uint8Array([1, i])]));
  }
}

async function storm(seed: string): Promise<{ servers: TestServers; fired: Fired }> {
  const random = seededRandom(seed);
  const servers = new TestServers({ seed, names: ALL, founders: ["n1"], expect: ALL });
  const fired: Fired = { crashes: 0, cuts: 0, transfers: 0, writes: 0 };
  servers.world.startAll();
  await servers.until(() => servers.leader() === "n1" && servers.of("n1").machine.wasInvited);
  await servers.until(() => servers.members("n1").filter((member) => member.endsWith("voter")).length === ALL.length);
  for (let step = 0; step < STEPS; step++) {
    oneFault(servers, random, fired);
    write(servers, fired);
    await servers.world.runFor(random.below(2_000));
  }
  servers.world.calm();
  await servers.until(() => ALL.every((name) => servers.runs(name) && servers.view(name).leader !== null));
  await servers.world.runFor(5_000);
  return { servers, fired };
}

describe("the split-brain detector", () => {
  test.each(["a", "b", "c", "d", "e", "f"])(
    "is silent through storm %s, and finds what is planted after it",
    async (seed) => {
      const { servers, fired } = await storm(`storm-${seed}`);
      // Trap 33: a storm in which nothing happened proves nothing.
      for (const count of Object.values(fired)) expect(count).toBeGreaterThan(3);
      expect(ALL.map((name) => servers.of(name).cluster.stats().failovers).reduce((a, b) => a + b)).toBeGreaterThan(0);
      expect(servers.world.findings).toEqual([]);
      for (const name of ALL) {
        const lines = servers.lines.get(name)!.filter(({ level }) => level === "error");
        expect(lines.filter(({ alert }) => alert !== "leader_unavailable")).toEqual([]);
      }
      const heads = ALL.map((name) => servers.of(name).machine.head);
      expect(new Set(heads.map(({ index, hash }) => `${index} ${hash}`)).size).toBe(1);

      const sick = ALL.find((name) => name !== servers.leader())!;
      const { machine } = servers.of(sick);
      const apply = machine.apply.bind(machine);
      machine.apply = (entry) => apply({ ...entry, term: entry.term + 1 });
      await servers.write(servers.leader()!, "x");
      await servers.world.runFor(3_000);
      for (const name of ALL) {
        if (name === sick) continue;
        const about = servers.view(name).alerts.filter((alert) => alert.name === "state_diverged");
        expect([name, about.map(({ nodeId }) => nodeId)]).toEqual([name, [sick]]);
      }
    },
  );
});
