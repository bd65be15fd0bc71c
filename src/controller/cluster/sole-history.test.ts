// A disk that may hold the only copy of a part of the history does not leave the cluster unless somebody says so (issue 18).

import { describe, expect, test } from "vitest";
import { soleCopies, type Lacks } from "../../core/archive/index.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { TestServers } from "../../sim/controller/test-servers.ts";
import type { MemberChange } from "../../ports/cluster.ts";

const WHOLE: Lacks = { start: 0, reached: 900, ranges: [] };
const HOLE: Lacks = { ...WHOLE, ranges: [{ first: 101, last: 200 }] };

describe("what may be on a disk that leaves, and nowhere else", () => {
  test("is what a voter lacks, nobody who stays has, and the one that leaves has or does not speak of", () => {
    const hole = HOLE.ranges;
    expect(soleCopies([HOLE, WHOLE], [], [WHOLE])).toEqual([]);
    expect(soleCopies([HOLE], [WHOLE], [WHOLE])).toEqual([]);
    expect(soleCopies([HOLE, HOLE], [], [WHOLE])).toEqual(hole);
    // One that is down, or of an earlier release, saves nothing; nor does one that has not applied it.
    expect(soleCopies([HOLE, null], [], [WHOLE])).toEqual(hole);
    expect(soleCopies([HOLE, { start: 0, reached: 150, ranges: [] }], [], [null])).toEqual([{ first: 151, last: 200 }]);
    expect(soleCopies([HOLE], [], [null])).toEqual(hole);
    // It lacks it too, or has let it go: nothing leaves with it.
    expect(soleCopies([HOLE], [], [HOLE])).toEqual([]);
    expect(soleCopies([HOLE], [], [{ start: 300, reached: 900, ranges: [] }])).toEqual([]);
    expect(soleCopies([HOLE], [], [{ start: 150, reached: 900, ranges: [] }])).toEqual([{ first: 151, last: 200 }]);
    // A learner lacks what it is still fetching: that holds up nobody.
    expect(soleCopies([WHOLE], [HOLE], [WHOLE])).toEqual([]);
    expect(soleCopies([null], [], [WHOLE])).toEqual([]);
  });

  test("is told in parts, where others have some of it", () => {
    const some: Lacks = { ...WHOLE, ranges: [{ first: 151, last: 300 }] };
    expect(soleCopies([HOLE, some], [], [null])).toEqual([{ first: 151, last: 200 }]);
    expect(soleCopies([HOLE, some], [], [null, null])).toEqual([{ first: 151, last: 200 }]);
  });
});

describe("a disk that may hold the only copy of events", () => {
  const lacking = new Map<string, Lacks | null>();
  const lackingReceipts = new Map<string, Lacks | null>();

  async function started(seed: string): Promise<TestServers> {
    lacking.clear();
    lackingReceipts.clear();
    const names = ["n1", "n2", "n3"];
    const lacks = (peer: PeerKey): Lacks | null => {
      const said = lacking.has(peer) ? lacking.get(peer) : lacking.get(nodeIdOf(peer));
      return said === undefined ? WHOLE : said;
    };
    const servers = new TestServers({
      seed,
      names,
      founders: names,
      lacks,
      lacksReceipts: (peer) => lackingReceipts.get(nodeIdOf(peer)) ?? WHOLE,
    });
    servers.world.startAll();
    await servers.until(() => servers.leader() !== undefined);
    return servers;
  }

  const change = (servers: TestServers, what: MemberChange): Promise<string> =>
    servers.ask(servers.leader()!, ({ cluster }) => cluster.changeMember(what)).then(({ message }) => message);

  test("of receipts is kept as one of events is", async () => {
    const servers = await started("sole-receipts");
    const leader = servers.leader()!;
    const [other, leaving] = ["n1", "n2", "n3"].filter((name) => name !== leader) as [string, string];
    lackingReceipts.set(other, HOLE).set(leader, HOLE);
    await expect(change(servers, { op: "remove", nodeId: leaving })).rejects.toMatchObject({
      code: "CONF_CHANGE_INVALID",
      message: expect.stringMatching(/^receipts of other sites' events 101 to 200 .*--force/),
    });
    lackingReceipts.delete(other);
    expect(await change(servers, { op: "remove", nodeId: leaving })).toBe(`${leaving} was removed`);
  });

  test("is not removed, before another has fetched them or somebody forces it", async () => {
    const servers = await started("sole");
    const leader = servers.leader()!;
    const [other, leaving] = ["n1", "n2", "n3"].filter((name) => name !== leader) as [string, string];
    lacking.set(other, HOLE);
    expect(await change(servers, { op: "remove", nodeId: leaving })).toBe(`${leaving} was removed`);

    const again = await started("sole-again");
    const [one, two] = ["n1", "n2", "n3"].filter((name) => name !== again.leader()) as [string, string];
    lacking.set(one, HOLE).set(again.leader()!, HOLE);
    const remove = (force?: boolean): Promise<string> => change(again, { op: "remove", nodeId: two, force });
    await expect(remove()).rejects.toMatchObject({
      code: "CONF_CHANGE_INVALID",
      message: expect.stringMatching(/^events 101 to 200 .* and n\d may: .*--force/),
    });
    expect(again.members(again.leader()!)).toContain(`${two} voter`);
    // One that is gone does not say: it may have them.
    lacking.set(two, null);
    await expect(remove()).rejects.toMatchObject({ code: "CONF_CHANGE_INVALID" });
    // One that lacks them too takes nothing with it.
    lacking.set(two, HOLE);
    expect(await remove()).toBe(`${two} was removed`);
  });

  test("is removed when it is forced", async () => {
    const servers = await started("forced");
    const [one, two] = ["n1", "n2", "n3"].filter((name) => name !== servers.leader()) as [string, string];
    lacking.set(one, HOLE).set(servers.leader()!, HOLE);
    expect(await change(servers, { op: "remove", nodeId: two, force: true })).toBe(`${two} was removed`);
  });

  test("is not swapped by the leader itself: its new disk waits as a learner, until others have them, or by force", async () => {
    // A disk that was away for long is silent from the start: the first look at it must not come too late.
    const cases = ([0, 3_000, 10_000] as const).flatMap((awayMs) => [
      { how: "fetched", awayMs },
      { how: "forced", awayMs },
    ]);
    for (const { how, awayMs } of cases) {
      const servers = await started(`swap-${how}-${awayMs}`);
      const leader = servers.leader()!;
      const [one, lost] = ["n1", "n2", "n3"].filter((name) => name !== leader) as [string, string];
      const old = servers.of(lost).engine.peer;
      lacking.set(one, HOLE).set(leader, HOLE).set(old, null).set(lost, HOLE);
      servers.crash(lost);
      await servers.world.runFor(awayMs);
      servers.world.node(lost).disk.wipe();
      servers.world.start(lost);
      await servers.until(() => servers.members(servers.leader()!).includes(`${lost} learner`));
      await servers.world.runFor(20_000);
      const incarnations = (): string[] =>
        servers
          .view(leader)
          .members.filter(({ nodeId }) => nodeId === lost)
          .map(({ kind }) => kind);
      expect(incarnations().toSorted()).toEqual(["learner", "voter"]);
      expect(servers.logged(leader, "disk-kept")).toMatchObject([{ about: lost, disk: old }]);
      const replace: MemberChange = { op: "replace", nodeId: lost };
      if (how === "fetched") lacking.set(one, WHOLE);
      else {
        await expect(change(servers, replace)).rejects.toMatchObject({ code: "CONF_CHANGE_INVALID" });
        await change(servers, { ...replace, force: true });
      }
      await servers.until(() => incarnations().join() === "voter");
      expect(servers.of(lost).engine.peer).not.toBe(old);
    }
  });
});
