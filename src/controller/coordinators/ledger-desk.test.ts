// The desk: what a decision changes is durable before anything follows from it.

import { expect, test } from "vitest";
import { peerKey } from "../../core/kit/ids.ts";
import { EMPTY_LEDGER, type Ledger, recovered, type Roster, type VoterRequest } from "../../core/lease/index.ts";
import { HandClock, settled } from "../../loops/test-clock.ts";
import { LedgerDesk } from "./ledger-desk.ts";
import { Pace } from "./pace.ts";

const [A, B] = [peerKey("a", "1"), peerKey("b", "1")];
const ROSTER: Roster = {
  term: 0,
  version: 1,
  recoveredBy: null,
  voters: [A, B].map((peer) => ({ peer, endpoint: peer })),
  registry: [],
};

function acquire(holder: typeof A, term: number): VoterRequest {
  return { kind: "acquire", clusterId: "c", holder, voter: B, term, ttlMs: 3_000, roster: ROSTER };
}

function deskOn() {
  const writes: { readonly ledger: Ledger; readonly synced: () => void; readonly failed: (error: Error) => void }[] =
    [];
  const errors: unknown[] = [];
  const file = {
    write: (ledger: Ledger) =>
      new Promise<void>((synced, failed) => {
        writes.push({ ledger, synced, failed });
      }),
  };
  const fatal = (error: unknown): void => void errors.push(error);
  const desk = new LedgerDesk({ self: B, ledger: EMPTY_LEDGER, file, clock: new HandClock(), fatal }, new Pace());
  const answers: string[] = [];
  const ask = (caller: string, request: VoterRequest): void =>
    void desk.decide(caller, request).then(({ outcome, term }) => answers.push(`${outcome.kind} ${term}`));
  return { desk, writes, errors, answers, ask };
}

test("a voter answers after its ledger is durable, and decides the next request after that", async () => {
  const { desk, writes, answers, ask } = deskOn();
  ask("a", acquire(A, 1));
  ask("b", acquire(B, 1));
  await settled();
  expect([answers, writes.length, desk.ledger]).toEqual([[], 1, EMPTY_LEDGER]);
  writes[0]!.synced();
  await settled();
  expect(answers).toEqual(["accepted 1", "refused 1"]);
  expect(desk.ledger.grant?.leader).toBe(A);
});

test("of which generation a request is counts on its arrival, also while the disk writes", async () => {
  const { desk, writes, answers, ask } = deskOn();
  ask("a", acquire(A, 1));
  await settled();
  let isHeard = false;
  desk.onChange(() => (isHeard = true));
  const roster = recovered({ ...desk.ledger, clusterId: "c", roster: ROSTER }, ROSTER.voters[0]!).roster!;
  // Not in another's name.
  ask("b", { ...acquire(A, roster.term), roster } as VoterRequest);
  expect([isHeard, desk.generation]).toEqual([false, 0]);
  ask("a", { ...acquire(A, roster.term), roster } as VoterRequest);
  expect([isHeard, desk.generation, writes.length, answers]).toEqual([true, 1, 1, []]);
});

test("what changes nothing is not written: renewals cost no disk", async () => {
  const { writes, answers, ask } = deskOn();
  ask("a", acquire(A, 1));
  await settled();
  writes[0]!.synced();
  ask("a", { ...acquire(A, 1), kind: "renew", mark: null } as VoterRequest);
  await settled();
  expect([answers, writes.length]).toEqual([["accepted 1", "accepted 1"], 1]);
});

test("after a write that failed nothing is answered any more, and the process must end", async () => {
  const { writes, errors, answers, ask } = deskOn();
  ask("a", acquire(A, 1));
  await settled();
  writes[0]!.failed(new Error("fsync"));
  ask("a", acquire(A, 2));
  await settled();
  expect(answers).toEqual([]);
  expect(errors.length).toBeGreaterThan(0);
});

test("it is closed when nothing is written any more; what was not decided by then is not decided", async () => {
  const { desk, writes, errors, answers, ask } = deskOn();
  ask("a", acquire(A, 1));
  ask("b", acquire(B, 2));
  await settled();
  let isClosed = false;
  void desk.close().then(() => (isClosed = true));
  await settled();
  expect(isClosed).toBe(false);
  writes[0]!.synced();
  await settled();
  expect([isClosed, answers, writes.length]).toEqual([true, ["accepted 1"], 1]);
  expect(errors).toEqual([]);
});

test("a write that is given up because the process ends is no failure", async () => {
  const { desk, writes, errors, ask } = deskOn();
  ask("a", acquire(A, 1));
  await settled();
  const closed = desk.close();
  writes[0]!.failed(new Error("the data directory was closed while a write waited for room"));
  await closed;
  await settled();
  expect(errors).toEqual([]);
});
