// Changes of one thing at a time, of a node whose leadership and log a test plays by hand.

import { expect, test } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { TURNOVER_WAIT_MS } from "../../core/kit/timeouts.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { HandClock, settled } from "../../electors/test-seat.ts";
import type { Log, LogAppended, LogOpened } from "../../ports/log.ts";
import { OPEN_RETRY_MS } from "../leadership/limits.ts";
import { JournalService } from "./service.ts";
import { SiteJournal } from "./site-journal.ts";

function stage() {
  const clock = new HandClock();
  const listeners = new Set<() => void>();
  const lead = { epoch: null as number | null };
  const opened = Promise.withResolvers<LogOpened>();
  const appended = Promise.withResolvers<LogAppended>();
  const log = { open: () => opened.promise, append: () => appended.promise } as unknown as Log;
  const service = new JournalService({
    clock,
    random: seededRandom("journal"),
    log,
    journal: new SiteJournal(systemDigest),
    author: "site",
    newId: () => "e1",
    leadership: {
      epoch: () => lead.epoch,
      isTurningOver: () => false,
      confirm: () => Promise.resolve(true),
      subscribe: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
  });
  const leads = (epoch: number | null): void => {
    lead.epoch = epoch;
    for (const listener of listeners) listener();
  };
  const codes: string[] = [];
  const create = (): void => {
    const payload = { role: "viewer", sha256: "0".repeat(64), by: "ada" };
    const draft = { id: "e1", eventType: "key:created", entityType: "key", entityId: "a", payload } as const;
    service
      .change(({ nowMs }) => [{ ...draft, timestamp: nowMs }])
      .then(
        () => codes.push("done"),
        ({ code }: { code: string }) => codes.push(code),
      );
  };
  return { clock, service, leads, opened, codes, create };
}

test("many that wait for a log that does not open are refused together, and not one after the other", async () => {
  const { clock, leads, codes, create } = stage();
  leads(3);
  for (let n = 0; n < 20; n++) create();
  await settled();
  await clock.advance(TURNOVER_WAIT_MS - 1);
  expect(codes).toEqual([]);
  await clock.advance(1);
  for (let n = 0; n < 20; n++) await settled();
  expect(codes).toEqual(Array<string>(20).fill("NOT_LEADER"));
});

test("a node that does not lead any more says so, although an append of its own is not answered yet", async () => {
  const { leads, opened, codes, create } = stage();
  leads(3);
  opened.resolve({ outcome: "opened", head: { epoch: 3, position: 0 } });
  await settled();
  create();
  await settled();
  leads(null);
  create();
  await settled();
  expect(codes).toEqual(["NOT_LEADER"]);
});

test("where one service can't begin, those that have begun are ended, and all begin again", async () => {
  const { clock, service, leads, opened } = stage();
  const lives: string[] = [];
  const failures = [new Error("no room yet")];
  const first = service.serve((reign) => {
    const name = `first ${lives.length}`;
    lives.push(name);
    reign.watch({ takenBack: () => undefined, settled: () => undefined, ended: () => lives.push(`${name} ended`) });
    return name;
  });
  service.serve(() => {
    const failure = failures.pop();
    if (failure !== undefined) throw failure;
    return "second";
  });
  leads(3);
  opened.resolve({ outcome: "opened", head: { epoch: 3, position: 0 } });
  for (let n = 0; n < 5; n++) await settled();
  expect(first.current).toBe(null);
  expect(lives).toEqual(["first 0", "first 0 ended"]);
  await clock.advance(2 * OPEN_RETRY_MS);
  for (let n = 0; n < 5; n++) await settled();
  expect(first.current).toBe("first 2");
  leads(null);
  expect(lives).toEqual(["first 0", "first 0 ended", "first 2", "first 2 ended"]);
});

test("another site's clock moves what is sealed, and not the time on this node: leases and schedules do not jump", () => {
  const clock = new HandClock();
  let floorMs = 0;
  const leader = new SiteJournal(systemDigest, { floorMs: () => floorMs });
  const follower = new SiteJournal(systemDigest, { floorMs: () => floorMs });
  const around = { clock, random: seededRandom("journal"), author: "site", newId: () => "e1" };
  const idle = { epoch: () => null, isTurningOver: () => false, confirm: async () => false, subscribe: () => () => undefined };
  const log = {} as unknown as Log;
  const services = [leader, follower].map(
    (journal) => new JournalService({ ...around, log, journal, leadership: idle, believedMs: () => null }),
  );
  const payload = { role: "viewer", sha256: "0".repeat(64), by: "ada" };
  const write = (timestamp: number): number => {
    const { sequence } = leader.chain;
    const draft = { id: "e", eventType: "key:created", entityType: "key", entityId: `k${sequence}`, payload } as const;
    leader.propose({ epoch: 1, author: "site" }, [{ ...draft, timestamp }]);
    const [data] = leader.tailAfter(sequence, 1)!;
    for (const journal of [leader, follower]) journal.apply({ position: sequence + 1, epoch: 1, data: data! });
    return leader.chain.timestamp;
  };
  expect(write(10_000)).toBe(10_000);
  expect(services.map(({ time }) => time.lastMs)).toEqual([10_000, 10_000]);
  floorMs = 10_900;
  expect([write(10_010), write(10_020)]).toEqual([10_900.001, 10_900.002]);
  expect(services.map(({ time }) => time.lastMs)).toEqual([10_000, 10_000]);
  expect(write(10_950)).toBe(10_950);
  expect(services.map(({ time }) => time.lastMs)).toEqual([10_950, 10_950]);
});
