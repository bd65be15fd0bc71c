// The list of members at real islands: who is on it, who may remove whom, and what happens to those who crash, come and go.

import { afterAll, beforeAll, expect, it } from "vitest";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";

const LIMIT_MS = 4 * PATIENT_MS;

interface Listed {
  readonly endpoints: readonly string[];
  readonly voters: readonly { readonly identity: string; readonly state: string }[];
  readonly quorum: number;
}

let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start();
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

const listAt = async (island: TestIsland, as?: TestIsland): Promise<Listed> =>
  (await island.call<Listed>("/v1/tc/cluster/list", {}, as)).body;

const urls = (all: readonly TestIsland[]): readonly string[] => all.map(({ url }) => url).toSorted();

const [asClient, asMember] = ["tc_client_required", "tc_cluster_identity_missing"];

it("announce and list: every island lists all, sorted, with the voters and what a leader needs", async () => {
  for (const island of islands.all) {
    const listed = await listAt(island, islands.all[0]);
    expect(listed).toMatchObject({ endpoints: urls(islands.all), quorum: 2 });
    expect(listed.voters.map(({ identity }) => identity).toSorted()).toEqual(["i1", "i2", "i3"]);
  }
});

it("nobody without a certificate reads the list or changes it", async () => {
  const { node } = islands.all[0]!;
  expect(await node.call("/v1/tc/cluster/list")).toMatchObject({ status: 403, body: { error: asClient } });
  const leave = await node.call("/v1/tc/cluster/leave", { method: "POST", body: {} });
  expect(leave).toMatchObject({ status: 403, body: { error: asMember } });
});

it("an announcement that was sent twice, or with a slash, is one lease", async () => {
  const [one, other] = islands.all;
  const body = { self_endpoint: `${other!.url}/` };
  for (let again = 0; again < 2; again++)
    expect(await one!.call("/v1/tc/cluster/announce", { body }, other)).toMatchObject({ status: 200 });
  expect((await listAt(one!)).endpoints).toEqual(urls(islands.all));
});

it(
  "self-only leave: what one island asks of another removes its own lease there, and is made good by its next announcement",
  async () => {
    const [one, other] = islands.all;
    const left = await one!.call<Listed>("/v1/tc/cluster/leave", { method: "POST", body: {} }, other);
    expect(left).toMatchObject({ status: 200 });
    expect(left.body.endpoints).not.toContain(other!.url);
    expect(left.body.endpoints).toContain(one!.url);
    expect((await one!.view())!.left).toBe(false);
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "leave: the others list two, vote with two, and are reached no more; announce brings it back",
  async () => {
    const [island, ...others] = await islands
      .followers()
      .then((followers) => [followers[0]!, ...islands.all.filter((one) => one !== followers[0])]);
    expect(await island!.leave()).toMatchObject({ status: 200 });
    for (const one of others) {
      const listed = await listAt(one);
      expect(listed.endpoints).toEqual(urls(others));
    }
    await islands.until("two voters", PATIENT_MS, async () => {
      const views = await Promise.all(others.map((one) => one.view()));
      return views.every((view) => view?.voters.length === 2);
    });
    expect(await island!.call("/v1/tc/leader")).toMatchObject({ status: 503, body: { error: "tc_unavailable" } });
    expect(await island!.announce()).toMatchObject({ status: 200 });
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "a leave is transactional: while an island that is listed does not answer, it is refused and nothing has changed",
  async () => {
    const [island, silent] = await islands.followers();
    silent!.node.stop();
    const refused = await island!.leave();
    silent!.node.cont();
    expect(refused).toMatchObject({ status: 503, body: { error: "tc_cluster_unavailable" } });
    expect(String(refused.body["message"])).toContain(silent!.url);
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "crash and expiry: whoever is killed stays listed until its lease ends, and a voter after that",
  async () => {
    const [island] = await islands.followers();
    const others = islands.all.filter((one) => one !== island);
    await island!.node.kill9();
    expect((await listAt(others[0]!)).endpoints).toEqual(urls(islands.all));
    await islands.until("the lease of the one that was killed to end", PATIENT_MS, async () => {
      const lists = await Promise.all(others.map((one) => listAt(one)));
      return lists.every(({ endpoints }) => JSON.stringify(endpoints) === JSON.stringify(urls(others)));
    });
    const listed = await listAt(others[0]!);
    expect([listed.voters.length, listed.quorum]).toEqual([3, 2]);
    island!.start();
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "membership churn: a fourth island joins, an old one stops and starts, the fourth leaves; all agree each time",
  async () => {
    const fourth = await islands.add("i4");
    fourth.start();
    await islands.settled(ISLANDS_START_MS);
    expect((await fourth.view())!.quorum).toBe(3);
    const [island] = (await islands.followers()).filter((one) => one !== fourth);
    expect(await island!.node.term()).toBe(0);
    await islands.until("three voters", PATIENT_MS, async () => (await fourth.view())?.voters.length === 3);
    island!.start();
    await islands.settled();
    expect(await fourth.leave()).toMatchObject({ status: 200 });
    await islands.until("three voters and members", PATIENT_MS, async () => {
      const views = await Promise.all(islands.all.filter((one) => one !== fourth).map((one) => one.view()));
      return views.every((view) => view?.voters.length === 3 && view.members.length === 3);
    });
  },
  ISLANDS_START_MS + LIMIT_MS,
);
