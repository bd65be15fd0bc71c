// Leadership by an elector whose seat a test plays by hand: when it leads, what it confirms, and how it lets go.

import { describe, expect, test } from "vitest";
import { type Rig, rig, settled } from "../../electors/test-seat.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Leadership } from "../../ports/leadership.ts";
import { ClearedLeadership } from "./cleared-leadership.ts";
import { ElectorLeadership } from "./elector-leadership.ts";

interface Stage extends Rig {
  readonly campaign: ElectorLeadership;
  /** The same, or where the node may have a worker, what comes of it. */
  readonly leadership: Leadership;
  /** The epochs that listeners were told, in order, each once in a row. */
  readonly told: (number | null)[];
  readonly asked: PromiseWithResolvers<boolean>[];
}

function stage(clearance?: Clearance): Stage {
  const made: { campaign?: ElectorLeadership } = {};
  const asked: PromiseWithResolvers<boolean>[] = [];
  const rigged = rig({ onTransition: () => made.campaign?.look() });
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const { clock } = rigged;
  const campaign = new ElectorLeadership({
    elector: rigged.elector,
    clock,
    logger: quiet,
    confirm: () => {
      const one = Promise.withResolvers<boolean>();
      asked.push(one);
      return one.promise;
    },
  });
  made.campaign = campaign;
  const giveUp = (): void => campaign.giveUp();
  const cleared = clearance && new ClearedLeadership({ given: campaign, clearance, clock, logger: quiet, giveUp });
  const leadership = cleared ?? campaign;
  const told: (number | null)[] = [];
  leadership.subscribe(() => {
    const epoch = leadership.epoch();
    if ((told.at(-1) ?? null) !== epoch) told.push(epoch);
  });
  cleared?.start();
  campaign.start();
  return { ...rigged, campaign, leadership, told, asked };
}

async function leading(epoch = 7): Promise<Stage> {
  const on = stage();
  await on.seat.grant(epoch);
  expect(on.leadership.epoch()).toBe(epoch);
  return on;
}

describe("when it leads", () => {
  test("from its grant on, and not a moment longer than the gate is open, whoever looks", async () => {
    const { leadership, clock, told } = await leading();
    clock.stop(4_500);
    expect(leadership.epoch()).toBeNull();
    await clock.advance(0);
    expect(told).toEqual([7, null]);
  });

  test("again in the same epoch when the gate opens again", async () => {
    const { leadership, clock, seat, told } = await leading();
    await clock.advance(4_600);
    expect(leadership.epoch()).toBeNull();
    seat.beats.at(-1)!.resolve({ sentAt: clock.now });
    await settled();
    expect(told).toEqual([7, null, 7]);
  });

  test("not after its session was lost; then it campaigns again", async () => {
    const { leadership, seat, clock, told } = await leading();
    seat.claim.lost(7, "session-ended");
    await settled();
    expect(leadership.epoch()).toBeNull();
    await clock.advance(1_000);
    await seat.grant(8);
    expect(told).toEqual([7, null, 8]);
  });

  test("a refusal that a person must mend is tried again after a while", async () => {
    const { seat, clock, leadership } = stage();
    await seat.refuse("PERMISSION_DENIED");
    expect(seat.acquires).toHaveLength(1);
    await clock.advance(5_000);
    expect(seat.acquires).toHaveLength(2);
    await seat.grant(3);
    expect(leadership.epoch()).toBe(3);
  });
});

describe("what it confirms", () => {
  test("what the log says, asked after the call", async () => {
    const { leadership, asked } = await leading();
    const first = leadership.confirm();
    await settled();
    const second = leadership.confirm();
    await settled();
    expect(asked, "the second may not ride on a question that was asked before it").toHaveLength(1);
    asked[0]!.resolve(true);
    expect(await first).toBe(true);
    await settled();
    asked[1]!.resolve(false);
    expect(await second).toBe(false);
  });

  test("nothing where it does not lead, or does not any more when the answer comes", async () => {
    const { leadership, asked, seat } = await leading();
    expect(await stage().leadership.confirm()).toBe(false);
    const late = leadership.confirm();
    await settled();
    seat.claim.lost(7, "superseded");
    await settled();
    asked[0]!.resolve(true);
    expect(await late).toBe(false);
  });

  test("nothing where the log does not answer in time", async () => {
    const { leadership, clock } = await leading();
    const silent = leadership.confirm();
    await clock.advance(1_000);
    expect(await silent).toBe(false);
  });
});

describe("how it lets go", () => {
  test("listeners hear that it does not lead before the scope is free", async () => {
    const { campaign, leadership, seat, told } = await leading();
    const order: string[] = [];
    leadership.subscribe(() => order.push(`epoch ${leadership.epoch()}, released ${seat.releases.length}`));
    expect(campaign.handOver()).toBe(true);
    await settled();
    expect(order[0]).toBe("epoch null, released 0");
    expect(seat.releases).toHaveLength(1);
    expect(told).toEqual([7, null]);
    expect(leadership.isTurningOver()).toBe(true);
  });

  test("the hand-over is over when another leads, or when nobody did for a second; then it campaigns", async () => {
    const { campaign, leadership, seat, clock } = await leading();
    campaign.handOver();
    await settled();
    campaign.heardOfLeader();
    expect(leadership.isTurningOver()).toBe(false);
    await seat.released();
    await clock.advance(1_000);
    await seat.grant(9);
    campaign.handOver();
    await settled();
    expect(leadership.isTurningOver()).toBe(true);
    await clock.advance(1_000);
    expect(leadership.isTurningOver()).toBe(false);
  });

  test("who does not lead has nothing to hand over", () => {
    expect(stage().campaign.handOver()).toBe(false);
  });

  test("stopping resolves when the scope is free, and it campaigns no more", async () => {
    const { campaign, leadership, seat, clock } = await leading();
    let isStopped = false;
    const stopping = campaign.stop().then(() => (isStopped = true));
    await settled();
    expect(leadership.epoch()).toBeNull();
    expect(isStopped).toBe(false);
    await seat.released();
    await stopping;
    await clock.advance(60_000);
    expect(seat.acquires).toHaveLength(1);
  });
});

describe("who does not want to lead", () => {
  test("lets go of what it leads, and campaigns only when it wants to again", async () => {
    const { campaign, seat, clock, told } = await leading();
    campaign.setWilling(false);
    campaign.setWilling(false);
    await settled();
    await seat.released();
    await clock.advance(60_000);
    expect(seat.acquires).toHaveLength(1);
    campaign.setWilling(true);
    await settled();
    await seat.grant(9);
    expect(told).toEqual([7, null, 9]);
  });

  test("stops waiting for the scope, and may still be stopped", async () => {
    const { campaign, leadership, seat, clock } = stage();
    await settled();
    campaign.setWilling(false);
    await settled();
    await clock.advance(60_000);
    expect(seat.acquires).toHaveLength(1);
    await campaign.stop();
    expect(leadership.epoch()).toBeNull();
  });
});

describe("on a node that may have a worker", () => {
  function cleared(): {
    readonly clearance: Clearance;
    readonly asked: ((is: boolean) => void)[];
    readonly happened: string[];
  } {
    const asked: ((is: boolean) => void)[] = [];
    const happened: string[] = [];
    const clearance: Clearance = {
      clear: (epoch) => {
        happened.push(`clear ${epoch}`);
        return new Promise((answer) => asked.push(answer));
      },
      empty: () => Promise.resolve(false),
      opened: (epoch) => happened.push(`opened ${epoch}`),
      release: (isLate) => happened.push(isLate === true ? "released late" : "released"),
      drained: () => undefined,
    };
    return { clearance, asked, happened };
  }

  test("leads when it is cleared, is turning over until then, and releases it when it does not lead any more", async () => {
    const { clearance, asked, happened } = cleared();
    const { leadership, seat, told } = stage(clearance);
    await seat.grant(7);
    expect(leadership.epoch()).toBeNull();
    expect(leadership.isTurningOver()).toBe(true);
    asked[0]!(true);
    await settled();
    expect(leadership.epoch()).toBe(7);
    expect(leadership.isTurningOver()).toBe(false);
    seat.claim.lost(7, "session-ended");
    await settled();
    expect(happened).toEqual(["released", "clear 7", "opened 7", "released"]);
    expect(told).toEqual([7, null]);
  });

  test("lets the scope go where the worker is not gone after 150 ms", async () => {
    const { clearance, asked, happened } = cleared();
    const { leadership, seat, clock } = stage(clearance);
    await seat.grant(7);
    await clock.advance(150);
    await settled();
    expect(happened).toEqual(["released", "clear 7", "released late"]);
    asked[0]!(true);
    await settled();
    expect(leadership.epoch()).toBeNull();
    expect(leadership.isTurningOver()).toBe(false);
    expect(seat.releases).toHaveLength(1);
  });
});
