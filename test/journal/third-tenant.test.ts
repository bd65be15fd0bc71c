// A tenant that nobody else knows: one object in this file. The journal has it replicated by Raft, written down in snapshots,
// restored from them and rolled back, next to the jobs, the keys and the certificates.

import { describe, expect, test } from "vitest";
import { JournalWriter } from "../../src/controller/journal/writer.ts";
import { SiteJournal } from "../../src/controller/journal/site-journal.ts";
import type { Tenant } from "../../src/controller/journal/tenant.ts";
import { RaftLeadership } from "../../src/controller/leadership/raft-leadership.ts";
import { Reign } from "../../src/controller/leadership/reign.ts";
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
  readonly reign: Reign<{ epoch: number; end(): void; writer: JournalWriter }>;
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
          const none = (): void => undefined;
          const reign = new Reign({
            leadership: new RaftLeadership(consensus),
            log,
            clock,
            random: boot.random.fork("reign"),
            begin: ({ epoch, onOver }) => {
              const around = { epoch, author: "site", log, journal, onOver, onTakenBack: none, onSettled: none };
              const writer = new JournalWriter(around);
              return { epoch, writer, end: () => writer.end() };
            },
          });
          return { journal, tally, reign };
        },
      };
    },
  });
}

const serving = (cluster: RaftCluster<Extra>, among = cluster.names): string | undefined =>
  among.find((name) => (cluster.node(name)?.extra.reign.current ?? null) !== null);

async function until(cluster: RaftCluster<Extra>, isDone: () => boolean): Promise<void> {
  for (let step = 0; step < 2_000 && !isDone(); step++) await cluster.world.runFor(10);
  expect(isDone()).toBe(true);
}

/** At the leader, `count` decisions one after the other; resolves when all are committed. */
async function write(cluster: RaftCluster<Extra>, leader: string, count: number): Promise<void> {
  let done = 0;
  cluster.world.call(leader, () => {
    const { writer } = cluster.node(leader)!.extra.reign.now()!;
    const run = async (): Promise<void> => {
      for (; done < count; done++) await writer.write([added("a", 1), added("b", 2)]);
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
      const written = cluster
        .node(old)!
        .extra.reign.now()!
        .writer.write([added("a", 1_000)]);
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
