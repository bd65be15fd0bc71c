// Calls to an island over a link with a bandwidth: what goes together must arrive within the time of one exchange, or nothing ever does.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import type { TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import { answerBody } from "../../core/txn/wire-answers.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import type { TcAnswer, TcExchange } from "../coordinators/index.ts";
import { Lane } from "./lane.ts";

const KIB = 1024;
const TARGET = "b".repeat(64);
const [N1, N2] = ["https://n1:1", "https://n2:1"] as const;
const FENCE = { clusterId: "c", term: 7, recoveredBy: null };
const PREPARED = { kind: "txn", phase: "prepared", results: [], reason: null } as const satisfies TxnAnswer;

const headerOf = (n: number) => {
  const id = `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  return { id, home: TARGET, participants: [TARGET], digest: "d".repeat(64), timeoutMs: 60_000, by: "p" };
};
const prepare = (n: number, bytes: number): TxnRequest => {
  const data = new TextEncoder().encode(JSON.stringify("x".repeat(bytes - 2)));
  const operations = [{ kind: "value-put", name: `v${n}`, data, ifVersion: null }] as const;
  return { kind: "prepare", header: headerOf(n), operations, fence: FENCE };
};
const commit = (n: number): TxnRequest => {
  return { kind: "commit", header: headerOf(n), operations: null, require: [], fence: FENCE };
};

interface Sent {
  readonly txn?: { readonly txn_id: string };
  readonly requests?: readonly { readonly body: { readonly txn: { readonly txn_id: string } } }[];
}

/** It carries one exchange after the other, and what is given up no further. */
class Link {
  readonly clock = new ManualClock();
  readonly lane: Lane;
  /** Of all that was sent. */
  bytes = 0;
  endpoints: readonly string[] = [N2];
  /** Whatever is sent there is lost. */
  lost: string | null = null;
  readonly sent: TcExchange[] = [];
  readonly #bytesPerMs: number;
  #freeAtMs = 0;

  constructor(bytesPerMs: number) {
    this.#bytesPerMs = bytesPerMs;
    this.lane = new Lane({
      target: TARGET,
      endpoints: () => this.endpoints,
      ownEndpoint: "https://n0:1",
      exchange: (asked) => this.#exchange(asked),
      own: () => Promise.resolve(PREPARED),
      clock: this.clock,
      random: seededRandom(1),
      nextTurn: (begin) => void this.clock.setTimer(this.clock.nowMs, begin),
    });
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) await this.clock.advance(100);
  }

  #exchange(asked: TcExchange): Promise<TcAnswer | null> {
    const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
    this.sent.push(asked);
    const { nowMs } = this.clock;
    this.clock.setTimer(nowMs + asked.withinMs, () => resolve(null));
    if (asked.endpoint === this.lost) return promise;
    const bytes = JSON.stringify(asked.body).length;
    this.bytes += bytes;
    const doneAtMs = Math.max(nowMs, this.#freeAtMs) + bytes / this.#bytesPerMs;
    this.#freeAtMs = Math.min(doneAtMs, nowMs + asked.withinMs);
    this.clock.setTimer(doneAtMs, () => resolve(answerTo(asked.body as Sent)));
    return promise;
  }
}

function answerTo({ txn, requests }: Sent): TcAnswer {
  const bodyOf = (id: string) => answerBody(id, PREPARED) as TcAnswer["body"];
  if (txn !== undefined) return { from: "n2", status: 200, body: bodyOf(txn.txn_id) };
  const answers = requests!.map(({ body }) => ({ status: 200, body: bodyOf(body.txn.txn_id) }));
  return { from: "n2", status: 200, body: { answers } };
}

describe("over a slow link", () => {
  it.each([
    ["2.4 Mbit/s: one call of 500 KiB, which takes 1.7 s to be carried", 300, 1, 500 * KIB],
    ["4 Mbit/s: four calls of 500 KiB, which take a second each", 500, 4, 500 * KIB],
    ["1 Mbit/s: 128 calls of 7 KiB that come together, which take 8 s in all", 125, 128, 7 * KIB],
  ])("%s: each is answered within its minute", async (_, bytesPerMs, count, bytes) => {
    const link = new Link(bytesPerMs);
    const answers: (TxnAnswer | null)[] = [];
    for (let n = 0; n < count; n++)
      void link.lane.call(prepare(n, bytes), 60_000).then((answer) => answers.push(answer));
    await link.pass(61_000);
    expect(answers.filter((answer) => answer !== null).length).toBe(count);
    // What was given up is sent again: no more than this, and not for ever.
    expect(link.bytes).toBeLessThan(4 * count * bytes + 2_048 * KIB);
  });

  it("a large call that is repeated after two seconds, as whoever coordinates does it, is answered the second time", async () => {
    const link = new Link(300);
    const first = link.lane.call(prepare(1, 500 * KIB), 2_000);
    await link.pass(2_100);
    expect(await first).toBe(null);
    const second = link.lane.call(prepare(1, 500 * KIB), 2_000);
    await link.pass(2_000);
    expect(await second).toEqual(PREPARED);
  });

  it("a steady load is carried at most of what the link can: a batch that is too large is not tried with each answer", async () => {
    const link = new Link(125);
    let answered = 0;
    const goOn = (n: number): void => {
      void link.lane.call(prepare(n, 7 * KIB), 20_000).then((answer) => {
        if (answer !== null) answered++;
        if (link.clock.nowMs < 50_000) goOn(n + 64);
      });
    };
    for (let n = 0; n < 64; n++) goOn(n);
    await link.pass(60_000);
    expect(answered / ((50_000 * 125) / (7.5 * KIB))).toBeGreaterThan(0.6);
  });

  it("a node that is lost is left after its first try, whatever the call's size, and does not make the others' smaller for long", async () => {
    const link = new Link(5_000);
    link.endpoints = [N1, N2];
    link.lost = N1;
    const call = link.lane.call(prepare(1, 500 * KIB), 10_000);
    await link.pass(1_700);
    expect(await call).toEqual(PREPARED);
    const many = Array.from({ length: 20 }, (_, n) => link.lane.call(prepare(n, 7 * KIB), 10_000));
    await link.pass(200);
    expect(await Promise.all(many)).toEqual(many.map(() => PREPARED));
  });
});

describe("calls without operations", () => {
  it("go apart from the large ones that came before them, and at once, where there was no answer", async () => {
    const link = new Link(200);
    link.lost = N2;
    const large = Array.from({ length: 30 }, (_, n) => link.lane.call(prepare(n, 100 * KIB), 60_000));
    await link.pass(1_000);
    const small = Array.from({ length: 3 }, (_, n) => link.lane.call(commit(100 + n), 60_000));
    link.lost = null;
    await link.pass(800);
    expect(await Promise.all(small)).toEqual([PREPARED, PREPARED, PREPARED]);
    // One of each kind is under way.
    const ofPrepares = { call: "prepare" };
    expect(link.sent.map(({ body }) => (body as Sent).requests)).toMatchObject([
      Array.from({ length: 9 }, () => ofPrepares),
      Array.from({ length: 9 }, () => ofPrepares),
      Array.from({ length: 3 }, () => ({ call: "commit" })),
      Array.from({ length: 4 }, () => ofPrepares),
    ]);
    await link.pass(40_000);
    expect(await Promise.all(large)).toEqual(large.map(() => PREPARED));
  });
});
