// A site on a database as one node shows it: its role, who leads, how old its state is, and what an operator should know.

import { describe, expect, test } from "vitest";
import { HandClock, settled } from "../../electors/test-seat.ts";
import type { Leader } from "../../ports/elector.ts";
import type { LogHead } from "../../ports/log.ts";
import { SiteCluster, type SiteNodeView } from "./site-cluster.ts";

/** The log and the list of nodes at once, as a test sets them. */
class HandSite {
  readonly clock = new HandClock();
  epoch: number | null = null;
  isTurningOver = false;
  handOvers = 0;
  isWilling = true;
  heartbeatAgeMs: number | null = null;
  certificateEndsMs = Number.MAX_SAFE_INTEGER;
  readonly cluster: SiteCluster;
  // ---- the log
  openedEpoch = 3;
  freshAsOfMs: number | null = null;
  readonly stored = { position: 12, first: 1 };
  // ---- the nodes
  heardMs: number | null = this.clock.monotonicMs();
  all: SiteNodeView[] = ["n1", "n2", "n3"].map((nodeId) => this.node(nodeId, 300));
  #tell: (leader: Leader | null) => void = () => undefined;

  constructor() {
    this.cluster = new SiteCluster({
      siteId: "site",
      nodeId: "n1",
      instance: "i1",
      version: "1",
      url: "http://n1",
      clock: this.clock,
      trustMs: 4_500,
      elector: {
        observe: () => this.#leaders(),
        stats: () => ({ heartbeatAgeMs: this.heartbeatAgeMs }) as never,
      },
      leadership: {
        epoch: () => this.epoch,
        isTurningOver: () => this.isTurningOver,
      },
      campaign: {
        handOver: () => ++this.handOvers > 0,
        heardOfLeader: () => undefined,
        setWilling: (isWilling) => {
          this.isWilling = isWilling;
          if (!isWilling) this.epoch = null;
        },
      },
      log: this,
      nodes: this,
      disk: { state: () => "ok", freeBytes: () => 1 },
      certificates: () => [{ use: "api", notAfterMs: this.certificateEndsMs }],
    });
    this.cluster.start();
  }

  head(): LogHead {
    return { position: 10, epoch: this.openedEpoch };
  }

  catchUp(): Promise<boolean> {
    return Promise.resolve(true);
  }

  node(nodeId: string, silentMs: number): SiteNodeView {
    return { nodeId, instance: `i-${nodeId}`, url: `http://${nodeId}`, applied: 8, silentMs };
  }

  /** What the database says. */
  async tell(leader: Leader | null): Promise<void> {
    await settled();
    this.#tell(leader);
    await settled();
  }

  async *#leaders(): AsyncGenerator<Leader | null> {
    for (;;) {
      yield await new Promise<Leader | null>((resolve) => {
        this.#tell = resolve;
      });
    }
  }
}

const N2: Leader = { epoch: 7, identity: "n2", metadata: { url: "http://n2" } };

describe("who leads", () => {
  test("another, as the database says, with its URL and epoch", async () => {
    const site = new HandSite();
    await site.tell(N2);
    expect(site.cluster.view()).toMatchObject({
      role: "STANDBY",
      term: 7,
      leader: { nodeId: "n2", url: "http://n2" },
    });
    expect(site.cluster.view().members.map(({ isLeader }) => isLeader)).toEqual([false, true, false]);
  });

  test("nobody is known when the database has been silent for as long as a leader is trusted", async () => {
    const site = new HandSite();
    await site.tell(N2);
    await site.clock.advance(4_501);
    expect(site.cluster.view().leader).toBeNull();
  });

  test("this node leads when it has opened the log, not before (design D9)", () => {
    const site = new HandSite();
    site.epoch = 4;
    expect(site.cluster.view().role).toBe("STANDBY");
    site.openedEpoch = 4;
    expect(site.cluster.view()).toMatchObject({ role: "LEADER", term: 4, leader: { nodeId: "n1" } });
    site.cluster.setDraining(true);
    expect(site.cluster.view().role).toBe("DRAINING");
  });

  test("what the database says of this node is old news where the node knows better", async () => {
    const site = new HandSite();
    await site.tell({ epoch: 4, identity: "n1", metadata: {} });
    expect(site.cluster.view().leader).toBeNull();
  });
});

test("its state is as old as its last whole read, and on a leader as its last proof", () => {
  const site = new HandSite();
  expect(site.cluster.view()).toMatchObject({ stalenessMs: null, isReady: false });
  site.freshAsOfMs = site.clock.monotonicMs() - 700;
  expect(site.cluster.view()).toMatchObject({ stalenessMs: 700, isReady: true, commit: 12, applied: 10 });
  site.epoch = 3;
  site.heartbeatAgeMs = 150;
  expect(site.cluster.view().stalenessMs).toBe(150);
});

test("alerts: nobody leads for long, and a node that is silent", async () => {
  const site = new HandSite();
  expect(site.cluster.view().alerts).toEqual([]);
  await site.clock.advance(5_001);
  site.all = [site.node("n1", 0), site.node("n3", 60_000)];
  expect(site.cluster.view().alerts.map(({ name, nodeId }) => `${name} ${nodeId}`)).toEqual([
    "leader_unavailable null",
    "follower_unresponsive n3",
  ]);
  site.heardMs = site.clock.monotonicMs();
  await site.tell(N2);
  expect(site.cluster.view().alerts.map(({ name }) => name)).toEqual(["follower_unresponsive"]);
});

test("alerts: another node that is heard of has this one's URL", async () => {
  const site = new HandSite();
  await site.tell(N2);
  const twin = { ...site.node("n2", 300), url: "http://n1" };
  site.all = [site.node("n1", 0), twin, { ...site.node("n3", 60_000), url: "http://n1" }];
  const [alert] = site.cluster.view().alerts;
  expect(alert).toMatchObject({ name: "url_shared", severity: "warning", nodeId: null });
  expect(alert?.message).toMatch(/^n1 and n2 have one API URL, http:\/\/n1: .*TENURE_API_ADVERTISE/);
  await site.clock.advance(1_000);
  site.heardMs = site.clock.monotonicMs();
  expect(site.cluster.view().alerts[0]?.sinceWallMs).toBe(alert?.sinceWallMs);
  site.all = [site.node("n1", 0), { ...twin, silentMs: 60_000 }];
  expect(site.cluster.view().alerts.map(({ name }) => name)).toEqual(["follower_unresponsive"]);
});

test("alerts: the certificate of its API ends within two weeks, until another one is shown", async () => {
  const site = new HandSite();
  await site.tell(N2);
  expect(site.cluster.view().alerts).toEqual([]);
  site.certificateEndsMs = site.clock.wallMs() + 3 * 24 * 3_600_000;
  const [alert] = site.cluster.view().alerts;
  expect(alert).toMatchObject({ name: "certificate_ends", severity: "warning", nodeId: "n1" });
  expect(alert?.message).toContain("ends in 3 days");
  await site.clock.advance(1_000);
  site.heardMs = site.clock.monotonicMs();
  expect(site.cluster.view().alerts[0]?.sinceWallMs).toBe(alert?.sinceWallMs);
  site.certificateEndsMs = Number.MAX_SAFE_INTEGER;
  expect(site.cluster.view().alerts).toEqual([]);
});

describe("a transfer", () => {
  test("resolves when another leads in a higher epoch", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const transfer = site.cluster.transfer(null, false);
    await settled();
    site.epoch = null;
    await site.tell(N2);
    await site.clock.advance(10);
    expect(await transfer).toMatchObject({ success: true, oldLeaderId: "n1", newLeaderId: "n2" });
    expect(site.handOvers).toBe(1);
  });

  test("fails where nobody takes over, and is refused where nobody could", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const transfer = site.cluster.transfer(null, false).catch((error: unknown) => error);
    await site.clock.advance(4_000);
    expect(await transfer).toMatchObject({ code: "ERR_LEADER_TRANSFER_FAILED" });
    site.all = [site.node("n1", 0), site.node("n2", 60_000)];
    await expect(site.cluster.transfer(null, false)).rejects.toMatchObject({ code: "TRANSFER_TARGET_INVALID" });
    expect(site.handOvers).toBe(1);
  });
});

describe("a node that is taken out", () => {
  test("that leads lets go, and is out when another leads; undone, it campaigns again", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const drained = site.cluster.drain(true, false);
    await settled();
    expect(site.isWilling).toBe(false);
    await site.tell(N2);
    await site.clock.advance(10);
    await drained;
    expect(site.cluster.view()).toMatchObject({ isDraining: true, role: "STANDBY", leader: { nodeId: "n2" } });
    await site.cluster.drain(true, false);
    await site.cluster.drain(false, false);
    expect(site.isWilling).toBe(true);
    expect(site.cluster.view().isDraining).toBe(false);
  });

  test("that does not lead is out at once", async () => {
    const site = new HandSite();
    await site.tell(N2);
    await site.cluster.drain(true, false);
    expect(site.isWilling).toBe(false);
  });

  test("is not, where nobody takes over or nobody could; by force it is", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const drained = site.cluster.drain(true, false).catch((error: unknown) => error);
    await site.clock.advance(4_000);
    expect(await drained).toMatchObject({ code: "ERR_LEADER_TRANSFER_FAILED" });
    expect([site.isWilling, site.cluster.view().isDraining]).toEqual([true, false]);
    site.all = [site.node("n1", 0), site.node("n2", 60_000)];
    await expect(site.cluster.drain(true, false)).rejects.toMatchObject({ code: "TRANSFER_TARGET_INVALID" });
    expect(site.isWilling).toBe(true);
    await site.cluster.drain(true, true);
    expect(site.isWilling).toBe(false);
  });

  test("is in again when it was undone before another took over: the drain says so", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const drained = site.cluster.drain(true, false).catch((error: unknown) => error);
    await settled();
    await site.cluster.drain(false, false);
    await site.tell(N2);
    await site.clock.advance(10);
    expect(await drained).toMatchObject({ message: expect.stringContaining("undone by a later request") as string });
    expect([site.isWilling, site.cluster.view().isDraining]).toEqual([true, false]);
  });

  test("by force stays out when an earlier request fails; without force both wait, and both fail", async () => {
    const site = new HandSite();
    site.epoch = 3;
    const plain = [site.cluster.drain(true, false), site.cluster.drain(true, false)].map((one) =>
      one.catch((error: unknown) => error),
    );
    await site.clock.advance(4_000);
    for (const said of plain) expect(await said).toMatchObject({ code: "ERR_LEADER_TRANSFER_FAILED" });
    expect([site.isWilling, site.cluster.view().isDraining]).toEqual([true, false]);
    site.epoch = 4;
    const third = site.cluster.drain(true, false).catch((error: unknown) => error);
    await settled();
    const forced = site.cluster.drain(true, true);
    await site.clock.advance(4_000);
    await forced;
    expect(await third).toMatchObject({ message: expect.stringContaining("stays drained") as string });
    expect([site.isWilling, site.cluster.view().isDraining]).toEqual([false, true]);
  });
});
