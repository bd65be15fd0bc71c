// A lane to an island that is far away, or was away: after an outage a long way is not taken for a narrow one for good.

import { expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import type { TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import { answerBody } from "../../core/txn/wire-answers.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import type { TcAnswer } from "../coordinators/index.ts";
import { Lane } from "./lane.ts";

const TARGET = "b".repeat(64);
const FENCE = { clusterId: "c", term: 7, recoveredBy: null };
const PREPARED = { kind: "txn", phase: "prepared", results: [], reason: null } as const satisfies TxnAnswer;

interface Sent {
  readonly txn?: { readonly txn_id: string };
  readonly requests?: readonly { readonly body: { readonly txn: { readonly txn_id: string } } }[];
}
const prepare = (n: number): TxnRequest => {
  const id = `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  const header = { id, home: TARGET, participants: [TARGET], digest: "d".repeat(64), timeoutMs: 60_000, by: "p" };
  const operations = [{ kind: "value-delete", name: `v${n}`, ifVersion: null }] as const;
  return { kind: "prepare", header, operations, fence: FENCE };
};

interface Course {
  /** By time. */
  readonly rttMs: (nowMs: number) => number;
  readonly awayFromMs: number;
  readonly awayUntilMs: number;
  readonly everyMs: number;
}

/** Any bandwidth: only the way is long. Each call has two seconds. How many of those that came in this time were answered. */
async function share({ rttMs, awayFromMs, awayUntilMs, everyMs }: Course, fromMs: number, forMs: number) {
  const clock = new ManualClock();
  const lane = new Lane({
    target: TARGET,
    endpoints: () => ["https://n1:1"],
    ownEndpoint: "https://n0:1",
    exchange: ({ body, withinMs }) => {
      const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
      const { nowMs } = clock;
      const isHeard = (nowMs < awayFromMs || nowMs >= awayUntilMs) && withinMs >= rttMs(nowMs);
      clock.setTimer(nowMs + (isHeard ? rttMs(nowMs) : withinMs), () =>
        resolve(isHeard ? answerTo(body as Sent) : null),
      );
      return promise;
    },
    own: () => Promise.resolve(PREPARED),
    clock,
    random: seededRandom(1),
    nextTurn: (begin) => void clock.setTimer(clock.nowMs, begin),
  });
  let all = 0;
  let answered = 0;
  for (let n = 0; clock.nowMs < fromMs + forMs; n++) {
    const isCounted = clock.nowMs >= fromMs;
    if (isCounted) all++;
    void lane.call(prepare(n), 2_000).then((answer) => {
      if (isCounted && answer !== null) answered++;
    });
    await clock.advance(everyMs);
  }
  await clock.advance(2_100);
  return answered / all;
}

function answerTo({ txn, requests }: Sent): TcAnswer {
  const bodyOf = (id: string) => answerBody(id, PREPARED) as TcAnswer["body"];
  if (txn !== undefined) return { from: "n1", status: 200, body: bodyOf(txn.txn_id) };
  const answers = requests!.map(({ body }) => ({ status: 200, body: bodyOf(body.txn.txn_id) }));
  return { from: "n1", status: 200, body: { answers } };
}

const AWAY = { awayFromMs: 0, awayUntilMs: 15_000 };

it("an island that was never silent answers all, whatever the way", async () => {
  const never = { awayFromMs: Infinity, awayUntilMs: Infinity };
  expect(await share({ ...never, rttMs: () => 50, everyMs: 10 }, 5_000, 10_000)).toBe(1);
  expect(await share({ ...never, rttMs: () => 1_000, everyMs: 33 }, 5_000, 10_000)).toBeGreaterThan(0.9);
});

it("away when this node began to call it (a new leader of the coordinators): a minute after it is back, 50 ms away, 100 calls a second", async () => {
  expect(await share({ ...AWAY, rttMs: () => 50, everyMs: 10 }, 75_000, 5_000)).toBeGreaterThan(0.9);
});

it("away for 15 s, and back over a longer way (20 ms before, 60 ms now): a minute later", async () => {
  const course = {
    awayFromMs: 5_000,
    awayUntilMs: 20_000,
    rttMs: (nowMs: number) => (nowMs < 5_000 ? 20 : 60),
    everyMs: 10,
  };
  expect(await share(course, 80_000, 5_000)).toBeGreaterThan(0.9);
});

it("a second away before and after the outage, 30 calls a second: a minute later", async () => {
  const course = { awayFromMs: 5_000, awayUntilMs: 20_000, rttMs: () => 1_000, everyMs: 33 };
  expect(await share(course, 80_000, 10_000)).toBeGreaterThan(0.9);
});
