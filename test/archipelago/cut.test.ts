// Three islands of which one, the leader, is cut off from the two others for longer than every lease: one leads, on the side of two.

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MEMBERSHIP_TTL_MS } from "../../src/core/lease/limits.ts";
import { ISLANDS_START_MS, PATIENT_MS, TestIslands } from "./test-islands.ts";

const LOOK_MS = 100;
const LIMIT_MS = 4 * PATIENT_MS;

let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start({ isProxied: true });
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

it(
  "one against two, for longer than all leases: exactly one leads, on the side of two; after that one, in a higher term",
  async () => {
    const { island: alone, term } = await islands.leader();
    const two = islands.all.filter((one) => one !== alone);
    const links = [...alone.links.values(), ...two.map((one) => one.links.get(alone.id)!)];
    for (const link of links) link.cut("both", "unanswered");

    await islands.until("a leader on the side of two", PATIENT_MS, async () => {
      const views = await Promise.all(two.map((one) => one.view()));
      return views.some((view) => (view?.acts_in_term ?? 0) > term);
    });
    await islands.until("both sides to list only themselves", PATIENT_MS, async () => {
      const views = await islands.views();
      const listed = views.map(({ members }) => members.length);
      return listed.toSorted((a, b) => a - b).join() === "1,2,2";
    });
    // Each lease has ended by now, also that of the membership, which tells the one that it is alone; and it has as long again to lead.
    const untilMs = Date.now() + MEMBERSHIP_TTL_MS;
    while (Date.now() < untilMs) {
      expect((await alone.view())?.acts_in_term).toBeNull();
      await sleep(LOOK_MS);
    }
    const views = await Promise.all(two.map((one) => one.view()));
    const leading = views.filter((view) => view?.acts_in_term !== null);
    expect(leading).toHaveLength(1);
    const during = leading[0]!.acts_in_term!;
    expect(during).toBeGreaterThan(term);
    // By silence nobody stops being a voter.
    expect(leading[0]).toMatchObject({ quorum: 2, voters: { length: 3 } });

    await Promise.all(links.map((link) => link.heal("reset")));
    await islands.settled();
    const after = await islands.leader();
    expect(after.term).toBeGreaterThanOrEqual(during);
    expect(after.term).toBeGreaterThan(term);
  },
  LIMIT_MS,
);
