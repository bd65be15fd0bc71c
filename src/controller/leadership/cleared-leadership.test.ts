// A consensus that a test plays by hand, on a node that may have a worker.

import { describe, expect, test } from "vitest";
import type { RaftStatus } from "../../core/raft/options.ts";
import type { RaftEvent, TransferResult } from "../../core/raft/types.ts";
import { HandClock, settled as flush } from "../../electors/test-seat.ts";
import type { Lead, Members } from "../../ports/consensus.ts";
import { ClearedLeadership } from "./cleared-leadership.ts";
import { giveUp, handOver } from "./hand-over.ts";
import { RaftLeadership } from "./raft-leadership.ts";

function stage(first: Partial<RaftStatus> = {}) {
  const status = { role: "follower", term: 1, established: false, configuration: { voters: [] }, ...first } as {
    -readonly [K in keyof RaftStatus]: RaftStatus[K];
  };
  const listeners = new Set<(event: RaftEvent) => void>();
  const clock = new HandClock();
  const asked: { readonly epoch: number; readonly answer: (isCleared: boolean) => void }[] = [];
  const happened: string[] = [];
  const transfers: PromiseWithResolvers<TransferResult>[] = [];
  const inner = {
    status: () => status,
    subscribe: (listener: (event: RaftEvent) => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    transfer: () => {
      happened.push("transfer");
      const one = Promise.withResolvers<TransferResult>();
      transfers.push(one);
      return one.promise;
    },
    stepDown: () => happened.push("step-down"),
  } as unknown as Lead & Members;
  const around = { consensus: inner, clock, empty: () => Promise.resolve() };
  const gate = new ClearedLeadership({
    given: new RaftLeadership(inner),
    giveUp: (epoch) => void giveUp(around, epoch),
    clock,
    logger: { info: () => undefined, warn: () => undefined, error: () => happened.push("logged") },
    clearance: {
      clear: (epoch) => new Promise((answer) => asked.push({ epoch, answer })),
      empty: () => Promise.resolve(false),
      opened: (epoch) => happened.push(`opened ${epoch}`),
      release: (isLate) => happened.push(isLate === true ? "released late" : "released"),
      drained: () => undefined,
    },
  });
  gate.subscribe(() => happened.push(String(gate.epoch())));
  gate.start();
  const tell = async (event: RaftEvent): Promise<void> => {
    for (const listener of listeners) listener(event);
    await flush();
  };
  const elected = async (term: number): Promise<void> => {
    Object.assign(status, { role: "leader", term, established: false });
    await tell({ kind: "role", role: "leader", term, leader: null });
    status.established = true;
    await tell({ kind: "established", term, index: 1 });
  };
  const deposed = async (term: number): Promise<void> => {
    Object.assign(status, { role: "follower", term, established: false });
    await tell({ kind: "role", role: "follower", term, leader: null });
  };
  return { status, clock, asked, happened, transfers, gate, elected, deposed, tell };
}

describe("who is elected", () => {
  test("leads only when its node is cleared, and nobody hears of it before; everybody has heard of the end before it is released", async () => {
    const { gate, elected, asked, happened, deposed } = stage();
    await elected(2);
    expect(asked.map(({ epoch }) => epoch)).toEqual([2]);
    expect(gate.epoch()).toBeNull();
    asked[0]!.answer(true);
    await flush();
    expect(gate.epoch()).not.toBeNull();
    await deposed(3);
    expect(gate.epoch()).toBeNull();
    expect(happened).toEqual(["released", "null", "null", "opened 2", "2", "null", "released"]);
  });

  test("and was deposed before the answer came opens nothing", async () => {
    const { gate, elected, asked, happened, deposed } = stage();
    await elected(2);
    await deposed(3);
    asked[0]!.answer(true);
    await flush();
    expect(gate.epoch()).toBeNull();
    expect(happened).toEqual(["released", "null", "null", "null", "released"]);
  });

  test("once more, asks once more: an answer for the term before counts for nothing", async () => {
    const { gate, elected, asked, happened } = stage();
    await elected(2);
    await elected(4);
    asked[0]!.answer(true);
    await flush();
    expect(gate.epoch()).toBeNull();
    asked[1]!.answer(true);
    await flush();
    expect(gate.epoch()).not.toBeNull();
    expect(happened.filter((what) => what.startsWith("opened"))).toEqual(["opened 4"]);
  });

  test("before anybody looked is asked for too", async () => {
    const { gate, asked } = stage({ role: "leader", established: true, term: 5 });
    expect(gate.epoch()).toBeNull();
    asked[0]!.answer(true);
    await flush();
    expect(gate.epoch()).not.toBeNull();
  });
});

describe("whose worker is not gone after 150 ms", () => {
  test("lets another lead", async () => {
    const { gate, elected, clock, happened, asked } = stage();
    await elected(2);
    await clock.advance(149);
    expect(happened).not.toContain("transfer");
    await clock.advance(1);
    await flush();
    expect(happened).toEqual(["released", "null", "null", "logged", "transfer"]);
    // Too late: it has said that it does not lead.
    asked[0]!.answer(true);
    await flush();
    expect(gate.epoch()).toBeNull();
  });

  test("steps down where nobody takes over", async () => {
    const { elected, clock, transfers, happened } = stage();
    await elected(2);
    await clock.advance(150);
    await flush();
    transfers[0]!.resolve({
      success: false,
      message: "",
      oldLeaderId: "n1@a",
      newLeaderId: null,
      isUnknown: false,
    } as TransferResult);
    await flush();
    expect(happened.at(-1)).toBe("step-down");
  });
});

describe("a planned transfer", () => {
  test("empties the likely successor first, and does not wait for one that says nothing", async () => {
    const asked: string[] = [];
    const clock = new HandClock();
    const followers: Record<string, { match: number; unhealthy: boolean; willing: boolean }> = {
      "n2@a": { match: 7, unhealthy: false, willing: true },
      "n3@a": { match: 9, unhealthy: false, willing: true },
      "n4@a": { match: 11, unhealthy: true, willing: true },
      "n5@a": { match: 12, unhealthy: false, willing: false },
    };
    const inner = {
      status: () => ({
        role: "leader",
        established: false,
        term: 1,
        peer: "n1@a",
        configuration: { voters: ["n1@a", ...Object.keys(followers)] },
      }),
      subscribe: () => () => undefined,
      followerOf: (peer: string) => followers[peer] ?? null,
      transfer: (target: string | null) => {
        asked.push(`transfer to ${target}`);
        return Promise.resolve({ success: true } as TransferResult);
      },
    } as unknown as Lead & Members;
    const around = {
      consensus: inner,
      clock,
      empty: (peer: string) => {
        asked.push(`empty ${peer}`);
        return new Promise<void>(() => undefined);
      },
    };
    const transferred = handOver(around, null);
    await flush();
    expect(asked).toEqual(["empty n3@a"]);
    await clock.advance(300);
    await transferred;
    expect(asked).toEqual(["empty n3@a", "transfer to n3@a"]);
  });
});
