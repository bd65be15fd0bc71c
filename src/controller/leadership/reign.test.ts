// A reign whose leadership and log a test plays by hand: when it opens, tries again, serves and ends.

import { describe, expect, test } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { HandClock, settled } from "../../electors/test-seat.ts";
import type { LogOpened } from "../../ports/log.ts";
import { type Opened, Reign, type Serving } from "./reign.ts";

function stage() {
  const clock = new HandClock();
  const listeners = new Set<() => void>();
  const lead = { epoch: null as number | null, isTurning: false, asked: 0 };
  const opens: PromiseWithResolvers<LogOpened>[] = [];
  const happened: string[] = [];
  const begun: Opened[] = [];
  const reign = new Reign<Serving>({
    leadership: {
      epoch: () => {
        lead.asked++;
        return lead.epoch;
      },
      isTurningOver: () => lead.isTurning,
      subscribe: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    log: {
      open: (epoch) => {
        happened.push(`open ${epoch}`);
        const one = Promise.withResolvers<LogOpened>();
        opens.push(one);
        return one.promise;
      },
    },
    clock,
    random: seededRandom("reign"),
    begin: (opened) => {
      happened.push(`begin ${opened.epoch} after ${opened.position}`);
      begun.push(opened);
      return { epoch: opened.epoch, end: () => happened.push(`end ${opened.epoch}`) };
    },
  });
  const leads = (epoch: number | null, isTurning = false): void => {
    Object.assign(lead, { epoch, isTurning });
    for (const listener of listeners) listener();
  };
  const opened = async (epoch: number, position: number): Promise<void> => {
    opens.at(-1)!.resolve({ outcome: "opened", head: { epoch, position } });
    await settled();
  };
  return { clock, reign, lead, leads, opens, opened, happened, begun };
}

describe("a reign", () => {
  test("opens the log when this node leads, serves when it is open, and ends with the epoch", async () => {
    const { reign, leads, opened, happened } = stage();
    expect(() => reign.now()).toThrow("This node does not lead. Ask the leader.");
    leads(3);
    expect(reign.now()).toBeNull();
    await opened(3, 41);
    expect(reign.now()?.epoch).toBe(3);
    leads(null);
    expect(() => reign.now()).toThrow("This node does not lead. Ask the leader.");
    expect(happened).toEqual(["open 3", "begin 3 after 41", "end 3"]);
  });

  test("asks once, at the door, whether this node leads", async () => {
    const { reign, lead, leads, opened } = stage();
    leads(3);
    await opened(3, 0);
    lead.asked = 0;
    expect(reign.now()?.epoch).toBe(3);
    expect(lead.asked).toBe(1);
    // Not notified yet, as after a pause: the door finds out by itself.
    lead.epoch = null;
    expect(() => reign.now()).toThrow("does not lead");
  });

  test("tries an open that was refused again after a while, and not in an epoch that is over", async () => {
    const { clock, leads, opens, opened, happened } = stage();
    leads(3);
    opens[0]!.reject(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await settled();
    await clock.advance(75);
    expect(happened).toEqual(["open 3", "open 3"]);
    leads(null);
    opens[1]!.reject(new TenureError("NOT_LEADER", "it is over"));
    await settled();
    await clock.advance(1_000);
    leads(5);
    await opened(5, 9);
    expect(happened).toEqual(["open 3", "open 3", "open 5", "begin 5 after 9"]);
  });

  test("does not begin where the epoch was over before the log was open", async () => {
    const { reign, leads, opens, happened } = stage();
    leads(3);
    leads(4);
    opens[0]!.resolve({ outcome: "opened", head: { epoch: 3, position: 0 } });
    await settled();
    expect(reign.current).toBeNull();
    opens[1]!.resolve({ outcome: "opened", head: { epoch: 4, position: 7 } });
    await settled();
    expect(happened).toEqual(["open 3", "open 4", "begin 4 after 7"]);
  });

  test("opens again where the log does not know what it has written, and a late word of an ended one changes nothing", async () => {
    const { reign, leads, opened, happened, begun } = stage();
    leads(3);
    await opened(3, 5);
    begun[0]!.onOver();
    expect(reign.now()).toBeNull();
    await opened(3, 6);
    begun[0]!.onOver();
    expect(reign.now()?.epoch).toBe(3);
    expect(happened).toEqual(["open 3", "begin 3 after 5", "end 3", "open 3", "begin 3 after 6"]);
  });

  test("has requests wait while leaders change, and refuses those that wait when it is closed", async () => {
    const { reign, leads, opened } = stage();
    leads(null, true);
    expect(reign.now()).toBeNull();
    const first = reign.next();
    leads(3);
    await opened(3, 0);
    expect((await first).epoch).toBe(3);
    leads(3, true);
    const second = reign.next();
    leads(null, true);
    reign.close();
    await expect(second).rejects.toMatchObject({ code: "NOT_LEADER" });
    reign.close();
    expect(() => reign.now()).toThrow("does not lead");
  });
});
