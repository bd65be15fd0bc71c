// A tenant that nobody else knows: one object in this file. It writes as the jobs do (on its head) and as the keys do (one change at a
// time, on what is applied). The journal has it replicated by Raft, written down in snapshots, restored from them and rolled back,
// next to the jobs, the keys and the certificates.

import { describe, expect, test } from "vitest";
import type { JournalReign } from "../../src/controller/journal/journal-reign.ts";
import { JournalService } from "../../src/controller/journal/service.ts";
import { SiteJournal } from "../../src/controller/journal/site-journal.ts";
import type { Tenant } from "../../src/controller/journal/tenant.ts";
import { RaftLeadership } from "../../src/controller/leadership/raft-leadership.ts";
import type { Door } from "../../src/controller/leadership/reign.ts";
import type { ChainEvent, EventDraft } from "../../src/core/events/index.ts";
import { wholeOf } from "../../src/core/kit/pieces.ts";
import { systemDigest as digest } from "../../src/drivers/system/digest.ts";
import { RaftCluster } from "../conformance/test-log-worlds.ts";

/** Sums by name. It decides on its head: what is not committed is in `proposed`, by sequence. */
class Tally implements Tenant {
  readonly name = "tally";
  readonly eventTypes = ["tally:added"] as const;
  applied = new Map<string, number>();
  proposed: { readonly sequence: number; readonly name: string; readonly by: number }[] = [];
  restores = 0;

  head(name: string): number {
    const ahead = this.proposed.filter((one) => one.name === name);
    return ahead.reduce((sum, { by }) => sum + by, this.applied.get(name) ?? 0);
  }

  propose(events: readonly ChainEvent[]): void {
    for (const { sequence, eventType, entityId: name, payload } of events) {
      if (eventType === "tally:added") this.proposed.push({ sequence, name, by: payload["by"] as number });
    }
  }

  apply({ sequence, eventType, entityId: name, payload }: ChainEvent): void {
    this.proposed = this.proposed.filter((one) => one.sequence > sequence);
    if (eventType !== "tally:added") return;
    this.applied.set(name, (this.applied.get(name) ?? 0) + (payload["by"] as number));
  }

  undo(to: number): void {
    this.proposed = this.proposed.filter(({ sequence }) => sequence <= to);
  }

  snapshot(): string | null {
    return this.applied.size === 0 ? null : JSON.stringify([...this.applied]);
  }

  restore(state: string | null): void {
    this.applied = new Map(JSON.parse(state ?? "[]") as [string, number][]);
    this.restores++;
  }
}

let ids = 0;

function added(name: string, by: number): EventDraft {
  const timestamp = 1_790_000_000_000 + ids;
  return { id: `e${ids++}`, eventType: "tally:added", entityType: "tally", entityId: name, payload: { by }, timestamp };
}

interface Extra {
  readonly journal: SiteJournal;
  readonly tally: Tally;
  readonly service: JournalService;
  readonly door: Door<JournalReign>;
}

function started(seed: string): RaftCluster<Extra> {
  return new RaftCluster<Extra>({
    seed,
    start: (boot) => {
      const tally = new Tally();
      const journal = new SiteJournal(digest, { tenants: [tally] });
      return {
        fold: journal,
        begin: ({ log, consensus, clock }) => {
          const service = new JournalService({
            leadership: new RaftLeadership(consensus),
            log,
            journal,
            author: "site",
            clock,
            random: boot.random.fork("reign"),
            newId: () => `e${ids++}`,
          });
          return { journal, tally, service, door: service.serve((reign) => reign) };
        },
      };
    },
  });
}

const serving = (cluster: RaftCluster<Extra>, among = cluster.names): string | undefined =>
  among.find((name) => (cluster.node(name)?.extra.door.current ?? null) !== null);

async function until(cluster: RaftCluster<Extra>, isDone: () => boolean): Promise<void> {
  for (let step = 0; step < 2_000 && !isDone(); step++) await cluster.world.runFor(10);
  expect(isDone()).toBe(true);
}

/** At the leader, `count` decisions one after the other; resolves when all are committed. */
async function write(cluster: RaftCluster<Extra>, leader: string, count: number): Promise<void> {
  let done = 0;
  cluster.world.call(leader, () => {
    const { service } = cluster.node(leader)!.extra;
    const run = async (): Promise<void> => {
      for (; done < count; done++) await service.change(() => [added("a", 1), added("b", 2)]);
    };
    void run();
  });
  await until(cluster, () => done === count);
}

const sums = (cluster: RaftCluster<Extra>): string[] =>
  cluster.names.map((name) => {
    const { applied } = cluster.node(name)!.extra.tally;
    return `${applied.get("a")}, ${applied.get("b")}`;
  });

describe("a third tenant", () => {
  test("is replicated; a node that was away is brought back by a snapshot that has its state", async () => {
    const cluster = started("third/replicated");
    await until(cluster, () => serving(cluster) !== undefined);
    const leader = serving(cluster)!;
    await write(cluster, leader, 5);
    await until(cluster, () => sums(cluster).every((sum) => sum === "5, 10"));
    const away = cluster.names.find((name) => name !== leader)!;
    cluster.crash(away);
    // Past the next snapshot: what the node misses is not in the log any more.
    await write(cluster, leader, 120);
    cluster.world.start(away);
    await until(cluster, () => cluster.node(away)?.extra.tally.applied.get("a") === 125);
    expect(sums(cluster)).toEqual(["125, 250", "125, 250", "125, 250"]);
    expect(cluster.node(away)!.extra.tally.restores).toBeGreaterThan(0);
    const chains = cluster.names.map((name) => cluster.node(name)!.extra.journal.chain);
    expect(new Set(chains.map(({ hash }) => hash)).size).toBe(1);
  });

  test("is rolled back where a leader was cut off with what it had proposed", async () => {
    const cluster = started("third/rolled-back");
    await until(cluster, () => serving(cluster) !== undefined);
    const old = serving(cluster)!;
    await write(cluster, old, 3);
    cluster.cut(old);
    const { tally, journal } = cluster.node(old)!.extra;
    const outcome = { error: "" };
    cluster.world.call(old, () => {
      const reign = cluster.node(old)!.extra.door.now()!;
      const written = reign.write([added("a", 1_000)], reign);
      written.catch((error: Error) => (outcome.error = error.message));
    });
    await cluster.world.runFor(1);
    expect([tally.head("a"), tally.applied.get("a")]).toEqual([1_003, 3]);
    const others = cluster.names.filter((name) => name !== old);
    await until(cluster, () => serving(cluster, others) !== undefined);
    await write(cluster, serving(cluster, others)!, 4);
    cluster.heal(old);
    await until(cluster, () => tally.applied.get("a") === 7);
    expect([tally.head("a"), tally.proposed, outcome.error]).toEqual([
      7,
      [],
      expect.stringContaining("stopped leading"),
    ]);
    expect(journal.chain).toEqual(cluster.node(others[0]!)!.extra.journal.chain);
  });

  test("changes one thing at a time, decided on what is applied; a refusal is answered when the leader is known to lead", async () => {
    const cluster = started("third/changes");
    await until(cluster, () => serving(cluster) !== undefined);
    const leader = serving(cluster)!;
    const { service, tally } = cluster.node(leader)!.extra;
    const answers: string[] = [];
    const takeOne = async (): Promise<void> => {
      const taken = service.change(({ newId, nowMs: timestamp, leaderEpoch }) => {
        if (tally.applied.get("a") === 1) throw new Error(`taken in epoch ${leaderEpoch}`);
        return [{ ...added("a", 1), id: newId(), timestamp }];
      });
      await taken.then(
        () => answers.push("taken"),
        (error: Error) => answers.push(error.message),
      );
    };
    cluster.world.call(leader, () => void Promise.all([takeOne(), takeOne()]));
    await until(cluster, () => answers.length === 2);
    const { epoch } = cluster.node(leader)!.extra.door.current!;
    expect([answers, tally.applied.get("a")]).toEqual([["taken", `taken in epoch ${epoch}`], 1]);
    const follower = cluster.names.find((name) => name !== leader)!;
    let refusal = "";
    cluster.world.call(follower, () => {
      const refused = cluster.node(follower)!.extra.service.change(() => [added("a", 1)]);
      refused.catch((error: Error) => (refusal = error.message));
    });
    await until(cluster, () => refusal !== "");
    expect(refusal).toBe("This node does not lead. Ask the leader.");
  });

  test("is in a snapshot under its name, which a release that does not know it refuses; without state nothing is written of it", () => {
    const [tally, other] = [new Tally(), new Tally()];
    const journal = new SiteJournal(digest, { tenants: [tally] });
    expect(wholeOf(journal.snapshot())).toEqual(wholeOf(new SiteJournal(digest).snapshot()));
    journal.propose({ epoch: 1, author: "site" }, [added("a", 4), added("b", 5)]);
    for (const [at, data] of journal.tailAfter(0, 2)!.entries()) journal.apply({ position: at + 1, epoch: 1, data });
    const data = wholeOf(journal.snapshot());
    const head = { position: 2, epoch: 1 };
    new SiteJournal(digest, { tenants: [other] }).restore(data, head);
    expect(other.applied).toEqual(tally.applied);
    expect(() => new SiteJournal(digest).restore(data, head)).toThrow(
      expect.objectContaining({ code: "FORMAT_UNSUPPORTED", message: expect.stringContaining('"tally"') as string }),
    );
  });
});
