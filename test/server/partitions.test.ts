// Members that are added, promoted, removed and replaced through the API while the network is parted: at a leader that nobody
// hears, of a node that nobody reaches, in a half without a majority, in the middle of a swap. Every answer is definite and true,
// or OUTCOME_UNKNOWN; there is one configuration, and what clients were acknowledged stays. The steps build on each other.

import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { waitFor } from "../servers/index.ts";
import { Ledger } from "./test-ledger.ts";
import { type Change, Mesh } from "./test-mesh.ts";

/** A node that has lost its majority knows nothing definite of what it was writing, or does nothing. */
const WITHOUT_MAJORITY = ["OUTCOME_UNKNOWN", "NOT_LEADER", "ERR_NO_LEADER"];
/** What a change that is there already is answered with, by its kind. */
const DONE_BEFORE = {
  add: "MEMBER_EXISTS",
  promote: "CONF_CHANGE_INVALID",
  remove: "MEMBER_UNKNOWN",
  replace: "OK",
} as const;

let mesh: Mesh;
let ledger: Ledger;

beforeAll(async () => {
  mesh = await Mesh.start(5, 3);
  mesh.watch();
  ledger = new Ledger(mesh.cluster);
  ledger.begin(1);
}, 240_000);

afterAll(async () => {
  await ledger?.rest().catch(() => undefined);
  await mesh?.[Symbol.asyncDispose]();
}, 60_000);

const everybody = ["n1", "n2", "n3", "n4", "n5"];
const leads = (): Promise<string> => mesh.leaderAmong(everybody);
const others = (ids: readonly string[], ...but: readonly string[]): string[] => ids.filter((id) => !but.includes(id));

/** Asked again of whoever leads among these, after nobody knew: done now, or done before, and never done twice. */
async function again(among: readonly string[], change: Change): Promise<void> {
  const definite = async (): Promise<string> => {
    let code = "";
    await waitFor(`a definite answer to ${change.op} ${change.node_id}`, async () => {
      ({ code } = await mesh.change(await mesh.leaderAmong(among), change));
      // The leader has moved, or has not seen the node, or the node is not in step with it yet.
      const isUnseen = change.op === "add" && code === "MEMBER_UNKNOWN";
      return ![...WITHOUT_MAJORITY, "NOT_CAUGHT_UP", "CONF_CHANGE_PENDING"].includes(code) && !isUnseen;
    });
    return code;
  };
  expect(["OK", DONE_BEFORE[change.op]]).toContain(await definite());
  expect(await definite()).toBe(DONE_BEFORE[change.op]);
}

async function voters(): Promise<string[]> {
  const members = await mesh.members(await leads());
  return members.filter((member) => member.endsWith(" voter")).map((member) => member.split(" ")[0]!);
}

async function isMissed(at: string, id: string): Promise<boolean> {
  const view = await mesh.cluster.node(at).view();
  return view?.members.some(({ node_id, progress }) => node_id === id && progress?.healthy === false) === true;
}

beforeEach(() => onTestFinished(() => mesh.heal()));

test("an addition at a leader that nobody hears is not known, and is made once by the next one", async () => {
  const ids = ["n1", "n2", "n3"];
  const old = await mesh.leaderAmong(ids);
  mesh.part([old]);
  const change = { op: "add", node_id: "n4" } as const;
  const answer = mesh.change(old, change);
  await mesh.leaderAmong(others(ids, old));
  // It may never have shaken hands with n4.
  expect([...WITHOUT_MAJORITY, "MEMBER_UNKNOWN"]).toContain((await answer).code);
  await mesh.follows(old);
  await again(others(ids, old), change);
  await mesh.heal();
  expect(await mesh.agreed([...ids, "n4"])).toEqual(["n1 voter", "n2 voter", "n3 voter", "n4 learner"]);
});

test("a learner that nobody reaches is not promoted, and nothing has changed; one that is reached again is", async () => {
  const leader = await leads();
  mesh.part(["n4"]);
  await waitFor("the leader to miss it", () => isMissed(leader, "n4"));
  const before = await mesh.members(leader);
  expect((await mesh.change(leader, { op: "promote", node_id: "n4" })).code).toBe("NOT_CAUGHT_UP");
  expect(await mesh.members(leader)).toEqual(before);
  await mesh.heal();
  await again(everybody, { op: "promote", node_id: "n4" });
  expect(await mesh.agreed(["n1", "n2", "n3", "n4"])).toEqual(["n1 voter", "n2 voter", "n3 voter", "n4 voter"]);
});

test("in two halves without a majority nobody changes anything, and nothing is acknowledged", async () => {
  const ids = await voters();
  const old = await leads();
  const half = [old, others(ids, old)[0]!];
  const rest = others(ids, ...half);
  mesh.part(half);
  const add = { op: "add", node_id: "n5" } as const;
  const answers = [
    mesh.change(old, add),
    ...[...others(half, old), ...rest].map((at) => mesh.change(at, { op: "remove", node_id: old })),
  ];
  for (const { code } of await Promise.all(answers)) expect([...WITHOUT_MAJORITY, "MEMBER_UNKNOWN"]).toContain(code);
  await mesh.follows(old);
  const acknowledged = ledger.acknowledged.length;
  for (const at of ids) expect(WITHOUT_MAJORITY).toContain((await mesh.change(at, add)).code);
  expect(ledger.acknowledged).toHaveLength(acknowledged);
  await mesh.heal();
  await ledger.progress(3);
  await again(everybody, add);
  expect(await mesh.agreed(everybody)).toEqual(["n1 voter", "n2 voter", "n3 voter", "n4 voter", "n5 learner"]);
});

test("of two halves the leader's goes on where it removes one of the other, which can't follow it nor lead", async () => {
  const ids = await voters();
  const old = await leads();
  const half = [old, others(ids, old)[0]!];
  const [gone, left] = others(ids, ...half) as [string, string];
  mesh.part(half);
  const { code } = await mesh.change(old, { op: "remove", node_id: gone });
  // Three are voters then, and two of them are here. Unless it was not asked in time.
  expect(["OK", ...WITHOUT_MAJORITY]).toContain(code);
  if (code === "OK") {
    await ledger.progress(3);
    expect(await mesh.members(old)).not.toContain(`${gone} voter`);
    expect(await mesh.leaderAmong(half)).toBe(old);
    for (const at of [gone, left]) expect((await mesh.cluster.node(at).view())?.role).not.toBe("LEADER");
  }
  await mesh.heal();
  await again(everybody, { op: "remove", node_id: gone });
  const now = others(everybody, gone);
  expect(await mesh.agreed(now)).toEqual(now.map((id) => `${id} ${id === "n5" ? "learner" : "voter"}`));
});

test("a leader that is asked to remove itself while nobody hears it leads no more, and is removed once by the next", async () => {
  const ids = await voters();
  const old = await leads();
  mesh.part([old]);
  const change = { op: "remove", node_id: old } as const;
  const answer = mesh.change(old, change);
  const left = others(ids, old);
  await mesh.leaderAmong(left);
  // Where it misses the others by then it refuses: two that do not answer would be left.
  expect([...WITHOUT_MAJORITY, "CONF_CHANGE_INVALID"]).toContain((await answer).code);
  await again([...left, "n5"], { op: "promote", node_id: "n5" });
  await again([...left, "n5"], change);
  await mesh.heal();
  const now = [...left, "n5"].toSorted();
  expect(await mesh.agreed(now)).toEqual(now.map((id) => `${id} voter`));
  await waitFor("it to know that it was removed", async () => {
    const { status, body } = await mesh.cluster.node(old).call("/readyz");
    return status === 503 && String(body["reason"]).includes("removed");
  });
  await ledger.progress(3);
});

test("a disk whose swap loses its leader on the way is swapped once: one disk of the node votes", async () => {
  const ids = await voters();
  const victim = others(ids, await leads())[0]!;
  const node = mesh.cluster.node(victim);
  const { incarnation } = (await node.view())!;
  const disks = async (at: string) =>
    ((await mesh.cluster.node(at).view())?.members ?? []).filter(({ node_id }) => node_id === victim);
  await node.kill9();
  node.wipe();
  // So that what is between two steps of the swap can be seen.
  mesh.slow(150);
  node.start();
  let leader = "";
  await waitFor("the new disk to be on its way in", async () => {
    leader = await leads();
    await mesh.change(leader, { op: "replace", node_id: victim });
    return (await disks(leader)).some((disk) => disk.incarnation !== incarnation);
  });
  mesh.part([leader]);
  mesh.slow(0);
  const { code } = await mesh.change(leader, { op: "replace", node_id: victim });
  expect(["OK", "MEMBER_UNKNOWN", "CONF_CHANGE_INVALID", ...WITHOUT_MAJORITY]).toContain(code);
  await mesh.follows(leader);
  await mesh.heal();
  await waitFor("the new disk alone to vote", async () => {
    const found = await disks(await leads());
    return found.length === 1 && found[0]?.kind === "voter" && found[0].incarnation !== incarnation;
  });
  expect(await mesh.agreed(ids)).toEqual(ids.map((id) => `${id} voter`));
});

test("nobody has ever seen two leaders of one term, and nothing that was acknowledged is gone", async () => {
  await ledger.progress(3);
  await ledger.rest();
  expect(await ledger.lost()).toEqual([]);
  expect(mesh.violations).toEqual([]);
});
