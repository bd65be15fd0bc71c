// Calls to one island: what goes together, to which of its nodes, and what is done about those that do not answer.

import { describe, expect, it } from "vitest";
import { type ErrorCode, ERRORS, TenureError } from "../../core/kit/errors.ts";
import { TURN_SLICE_MS, TXN_BATCH_BYTES_MAX, TXN_BATCH_MAX } from "../../core/kit/limits.ts";
import { seededRandom } from "../../core/kit/random.ts";
import type { TxnAnswer, TxnHeader, TxnRequest } from "../../core/txn/model.ts";
import { answerBody } from "../../core/txn/wire-answers.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import type { TcAnswer, TcExchange } from "../coordinators/index.ts";
import { ISLAND_EXCHANGES_MAX, ISLAND_QUEUE_MAX, ISLAND_RETRY_MS_MAX, ISLAND_TRY_MS } from "./limits.ts";
import { Lane, OWN } from "./lane.ts";

const TARGET = "b".repeat(64);
const [N1, N2, N3] = ["https://n1:1", "https://n2:1", "https://n3:1"] as const;
const FENCE = { clusterId: "c", term: 7, recoveredBy: null };
const PREPARED: TxnAnswer = { kind: "txn", phase: "prepared", results: [], reason: null };
const WITHIN_MS = 10_000;

const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const headerOf = (n: number): TxnHeader => ({
  id: idOf(n),
  home: "a".repeat(64),
  participants: [TARGET],
  digest: "d".repeat(64),
  timeoutMs: 5_000,
  by: "payer",
});
const prepare = (n: number): TxnRequest => ({ kind: "prepare", header: headerOf(n), operations: [], fence: FENCE });
const recover: TxnRequest = { kind: "recover", fence: FENCE, after: null };

interface Exchange extends TcExchange {
  readonly ids: readonly string[];
  readonly answer: (answer: TcAnswer | null) => void;
}

/** What one node answers to each call of an exchange. */
type Answering = (id: string) => TxnAnswer | { readonly error: ErrorCode; readonly leader_url?: string | null };

class Stage {
  readonly clock = new ManualClock();
  readonly exchanges: Exchange[] = [];
  readonly owned: TxnRequest[] = [];
  endpoints: readonly string[] = [N1, N2, N3];
  own: (request: TxnRequest) => Promise<TxnAnswer> = () => Promise.resolve(PREPARED);
  /** Answers at once. */
  auto: ((exchange: Exchange) => void) | null = null;
  readonly lane: Lane;
  #turns: (() => void)[] = [];

  constructor() {
    this.lane = new Lane({
      target: TARGET,
      endpoints: () => this.endpoints,
      ownEndpoint: N1,
      exchange: (asked) => {
        const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
        const exchange = { ...asked, ids: idsOf(asked), answer: resolve };
        this.exchanges.push(exchange);
        const late = this.clock.setTimer(this.clock.nowMs + asked.withinMs, () => resolve(null));
        void promise.then(() => late.cancel());
        this.auto?.(exchange);
        return promise;
      },
      own: (request) => {
        this.owned.push(request);
        return this.own(request);
      },
      clock: this.clock,
      random: seededRandom(1),
      nextTurn: (begin) => void this.#turns.push(begin),
    });
  }

  /** Many at once. */
  calls(from: number, to: number, withinMs = WITHIN_MS): Promise<TxnAnswer | null>[] {
    return Array.from({ length: to - from + 1 }, (_, at) => this.lane.call(prepare(from + at), withinMs));
  }

  async turn(): Promise<void> {
    for (const begin of this.#turns.splice(0)) begin();
    await this.clock.advance(0);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5) {
      await this.turn();
      await this.clock.advance(5);
    }
  }

  get sentTo(): readonly string[] {
    return this.exchanges.map(({ endpoint }) => endpoint);
  }
}

function idsOf({ body }: TcExchange): readonly string[] {
  const { txn, requests } = body as { txn?: { txn_id: string }; requests?: { body: { txn: { txn_id: string } } }[] };
  if (requests !== undefined) return requests.map((request) => request.body.txn.txn_id);
  return txn === undefined ? [] : [txn.txn_id];
}

function reply(exchange: Exchange, answering: Answering = () => PREPARED): void {
  const answers = exchange.ids.map((id) => {
    const answer = answering(id);
    if ("error" in answer) return { status: ERRORS[answer.error].http, body: { message: "why", ...answer } };
    if (answer.kind === "refused") throw new Error("an error's body says so");
    return { status: 200, body: answerBody(id, answer) };
  });
  const isBatch = exchange.path.endsWith("/batch");
  const one = isBatch ? { status: 200, body: { answers } } : answers[0]!;
  exchange.answer({ from: "n1", status: one.status, body: one.body as Record<string, unknown> });
}

const settledOf = async (calls: readonly Promise<unknown>[]): Promise<number> => {
  let count = 0;
  for (const call of calls) void call.then(() => count++);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  return count;
};

describe("what goes together", () => {
  it("one alone goes by its own route, as soon as everything else of this moment is done", async () => {
    const stage = new Stage();
    const [call] = stage.calls(1, 1);
    expect(stage.exchanges).toEqual([]);
    await stage.turn();
    expect(stage.exchanges).toMatchObject([{ endpoint: N1, path: "/v1/txn/prepare", ids: [idOf(1)], isUnnamed: true }]);
    reply(stage.exchanges[0]!);
    expect(await call).toEqual(PREPARED);
  });

  it("those of one moment are one call, in their order; each has its own answer", async () => {
    const stage = new Stage();
    const calls = stage.calls(1, 3);
    await stage.turn();
    expect(stage.exchanges).toMatchObject([{ path: "/v1/txn/batch", ids: [1, 2, 3].map(idOf) }]);
    reply(stage.exchanges[0]!, (id) => (id === idOf(2) ? { error: "txn_locked" } : PREPARED));
    expect(await Promise.all(calls)).toEqual([
      PREPARED,
      { kind: "refused", code: "txn_locked", message: "why" },
      PREPARED,
    ]);
  });

  it("two are under way, and what comes meanwhile is gathered until one of them is answered", async () => {
    const stage = new Stage();
    const calls = stage.calls(1, 1);
    await stage.turn();
    calls.push(...stage.calls(2, 2));
    await stage.turn();
    calls.push(...stage.calls(3, 40));
    await stage.turn();
    calls.push(...stage.calls(41, 60));
    await stage.turn();
    expect(stage.exchanges.length).toBe(ISLAND_EXCHANGES_MAX);
    reply(stage.exchanges[1]!);
    await stage.turn();
    expect(stage.exchanges.map(({ ids }) => ids.length)).toEqual([1, 1, 58]);
    for (const exchange of stage.exchanges) reply(exchange);
    expect(await settledOf(calls)).toBe(60);
  });

  it("no more than fit go together, by count and by size", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => reply(exchange);
    const many = stage.calls(1, TXN_BATCH_MAX + 2);
    await stage.pass(20);
    expect(stage.exchanges.map(({ ids }) => ids.length)).toEqual([TXN_BATCH_MAX, 2]);
    const data = new TextEncoder().encode(JSON.stringify("x".repeat(TXN_BATCH_BYTES_MAX / 2 - 20_000)));
    const put = { kind: "value-put", name: "v", data, ifVersion: null } as const;
    const large = [1, 2, 3].map((n) => stage.lane.call({ ...prepare(n), operations: [put] } as TxnRequest, WITHIN_MS));
    await stage.pass(20);
    expect(stage.exchanges.slice(2).map(({ ids }) => ids.length)).toEqual([2, 1]);
    expect(await settledOf([...many, ...large])).toBe(TXN_BATCH_MAX + 5);
  });

  it("what has no place in a batch goes by itself, and holds nobody up", async () => {
    const stage = new Stage();
    const calls = [...stage.calls(1, 2), stage.lane.call(recover, WITHIN_MS), ...stage.calls(3, 4)];
    await stage.turn();
    expect(stage.exchanges.map(({ path, ids }) => [path, ids.length])).toEqual([
      ["/v1/txn/batch", 4],
      ["/v1/txn/recover", 0],
    ]);
    reply(stage.exchanges[0]!);
    stage.exchanges[1]!.answer({ from: "n1", status: 200, body: { open: [], next: null } });
    expect((await Promise.all(calls))[2]).toEqual({ kind: "recovered", open: [], next: null });
  });

  it("sets one timer for all of them", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => reply(exchange);
    // The fake exchange has a timer of its own.
    for (let n = 1; n <= 100; n++) {
      const calls = stage.calls(n, n);
      await stage.turn();
      await Promise.all(calls);
    }
    expect(stage.clock.timersSet - stage.exchanges.length).toBe(1);
  });
});

describe("the node that leads the island", () => {
  const elsewhere = (leader: string | null) => (exchange: Exchange) =>
    reply(exchange, () => ({ error: "NOT_LEADER", leader_url: leader }));

  it("is followed at once, and remembered", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => (exchange.endpoint === N3 ? reply(exchange) : elsewhere(`${N3}/`)(exchange));
    const calls = stage.calls(1, 5);
    await stage.turn();
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 5 }, () => PREPARED));
    expect(stage.sentTo).toEqual([N1, N3]);
    await stage.pass(20);
    const [next] = stage.calls(6, 6);
    await stage.turn();
    expect([await next, stage.sentTo.at(-1)]).toEqual([PREPARED, N3]);
    expect(stage.clock.nowMs).toBe(1_020);
  });

  it("is never an address that is not registered, whoever says so: the next one is tried", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => (exchange.endpoint === N2 ? reply(exchange) : elsewhere("https://evil:1")(exchange));
    const [call] = stage.calls(1, 1);
    await stage.turn();
    expect([await call, stage.sentTo]).toEqual([PREPARED, [N1, N2]]);
  });

  it.each<[string, (exchange: Exchange) => void]>([
    ["knows no leader", (exchange) => reply(exchange, () => ({ error: "ERR_NO_LEADER" }))],
    ["is stopping", (exchange) => reply(exchange, () => ({ error: "BACKEND_UNAVAILABLE" }))],
    ["does not know what came of it", (exchange) => reply(exchange, () => ({ error: "OUTCOME_UNKNOWN" }))],
    [
      "does not know the caller",
      (exchange) => exchange.answer({ from: "n1", status: 403, body: { error: "tc_server_required" } }),
    ],
    ["is none of ours", (exchange) => exchange.answer({ from: "n1", status: 200, body: { hello: 1 } })],
    ["does not answer", (exchange) => exchange.answer(null)],
  ])("is another one where the node that is asked %s", async (_what, answer) => {
    const stage = new Stage();
    stage.auto = (exchange) => (exchange.endpoint === N1 ? answer(exchange) : reply(exchange));
    const calls = stage.calls(1, 2);
    await stage.turn();
    await stage.pass(50);
    expect(await settledOf(calls)).toBe(2);
    expect(stage.sentTo).toEqual([N1, N2]);
  });

  it("that hangs is left after a while, and not asked again because the others still name it", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => {
      if (exchange.endpoint === N1) return;
      if (exchange.endpoint === N3 && stage.clock.nowMs > 4_000) reply(exchange);
      else elsewhere(N1)(exchange);
    };
    const [call] = stage.calls(1, 1);
    await stage.pass(ISLAND_TRY_MS - 10);
    expect(stage.sentTo).toEqual([N1]);
    await stage.pass(3_000);
    expect(stage.sentTo.slice(1)).not.toContain(N1);
    await stage.pass(1_000);
    expect(await call).toEqual(PREPARED);
  });

  it("is asked for in a round with pauses, while nobody is", async () => {
    const stage = new Stage();
    stage.auto = elsewhere(null);
    const [call] = stage.calls(1, 1);
    await stage.pass(WITHIN_MS + 10);
    expect(await call).toBe(null);
    expect(stage.sentTo.slice(0, 4)).toEqual([N1, N2, N3, N1]);
    expect(stage.sentTo.length).toBeGreaterThan(WITHIN_MS / ISLAND_RETRY_MS_MAX);
    expect(stage.sentTo.length).toBeLessThan(100);
  });

  it("of an island that is not registered yet is waited for", async () => {
    const stage = new Stage();
    stage.endpoints = [];
    stage.auto = (exchange) => reply(exchange);
    const [call] = stage.calls(1, 1);
    await stage.pass(1_000);
    expect(stage.exchanges).toEqual([]);
    stage.endpoints = [N2];
    await stage.pass(ISLAND_RETRY_MS_MAX + 10);
    expect([await call, stage.sentTo]).toEqual([PREPARED, [N2]]);
  });

  it("a call that nobody has answered is repeated where the others of its batch were", async () => {
    const stage = new Stage();
    let times = 0;
    stage.auto = (exchange) =>
      reply(exchange, (id) => (id === idOf(2) && times++ === 0 ? { error: "OUTCOME_UNKNOWN" } : PREPARED));
    const calls = stage.calls(1, 3);
    await stage.turn();
    expect(await settledOf(calls)).toBe(2);
    await stage.pass(100);
    expect([await settledOf(calls), stage.sentTo]).toEqual([3, [N1, N1]]);
    expect(stage.exchanges[1]!.ids).toEqual([idOf(2)]);
  });
});

describe("a call", () => {
  it("ends in its time, and its late answer is nobody's", async () => {
    const stage = new Stage();
    const short = stage.lane.call(prepare(1), 100);
    const long = stage.lane.call(prepare(2), 400);
    await stage.turn();
    await stage.pass(110);
    expect([await short, await settledOf([long])]).toEqual([null, 0]);
    reply(stage.exchanges[0]!);
    expect(await long).toEqual(PREPARED);
    expect(stage.lane.isIdle).toBe(true);
  });

  it("that has ended is not repeated", async () => {
    const stage = new Stage();
    const short = stage.lane.call(prepare(1), 100);
    await stage.turn();
    await stage.pass(ISLAND_TRY_MS + 100);
    expect([await short, stage.exchanges.length]).toEqual([null, 1]);
  });

  it("is not taken where too many wait", async () => {
    const stage = new Stage();
    const calls = stage.calls(1, ISLAND_QUEUE_MAX + 1);
    expect(await calls.at(-1)).toBe(null);
    expect(await settledOf(calls.slice(0, 10))).toBe(0);
  });

  it("ends when the lane is closed, and none begins", async () => {
    const stage = new Stage();
    const calls = stage.calls(1, 2);
    await stage.turn();
    stage.lane.close();
    expect(await Promise.all(calls)).toEqual([null, null]);
    expect(await stage.lane.call(prepare(3), 100)).toBe(null);
    reply(stage.exchanges[0]!);
    await stage.turn();
    expect([stage.exchanges.length, stage.clock.pending]).toEqual([1, 0]);
  });
});

describe("this node's own island", () => {
  const ownStage = () => {
    const stage = new Stage();
    stage.endpoints = [OWN, N2, N3];
    return stage;
  };

  it("is asked without HTTP and without a wait, while this node leads it", async () => {
    const stage = ownStage();
    const calls = stage.calls(1, 3);
    expect(stage.owned).toEqual([1, 2, 3].map(prepare));
    expect(await Promise.all(calls)).toEqual([PREPARED, PREPARED, PREPARED]);
    expect(stage.exchanges).toEqual([]);
  });

  it("is asked at another node where this one does not lead it, and here again when that one says so", async () => {
    const stage = ownStage();
    stage.own = () => Promise.reject(new TenureError("NOT_LEADER", "no"));
    stage.auto = (exchange) => reply(exchange);
    const [first] = stage.calls(1, 1);
    await stage.pass(20);
    expect([await first, stage.sentTo]).toEqual([PREPARED, [N2]]);
    stage.own = () => Promise.resolve(PREPARED);
    stage.auto = (exchange) => reply(exchange, () => ({ error: "NOT_LEADER", leader_url: N1 }));
    const [second] = stage.calls(2, 2);
    await stage.pass(20);
    expect([await second, stage.sentTo, stage.owned.length]).toEqual([PREPARED, [N2, N2], 2]);
  });

  it("a definite refusal is an answer", async () => {
    const stage = ownStage();
    stage.own = () => Promise.reject(new TenureError("NOT_SUPPORTED", "a member is too old"));
    const [call] = stage.calls(1, 1);
    expect(await call).toEqual({ kind: "refused", code: "NOT_SUPPORTED", message: "a member is too old" });
  });

  it("an unknown outcome is asked for again", async () => {
    const stage = ownStage();
    let times = 0;
    stage.own = async () => {
      if (times++ < 2) throw new TenureError("OUTCOME_UNKNOWN", "it led no longer");
      return PREPARED;
    };
    const [call] = stage.calls(1, 1);
    await stage.pass(300);
    expect([await call, stage.owned.length]).toEqual([PREPARED, 3]);
  });

  it("of one node is asked for with pauses until that leads", async () => {
    const stage = new Stage();
    stage.endpoints = [OWN];
    stage.own = () => Promise.reject(new TenureError("ERR_NO_LEADER", "not yet"));
    const [call] = stage.calls(1, 1);
    await stage.pass(1_000);
    expect(stage.owned.length).toBeGreaterThan(3);
    expect(stage.owned.length).toBeLessThan(20);
    stage.own = () => Promise.resolve(PREPARED);
    await stage.pass(ISLAND_RETRY_MS_MAX + 10);
    expect(await call).toEqual(PREPARED);
  });
});

describe("what is in the registry and is not this island any more", () => {
  it("a node that was restored, and is of another island now, is passed over: the others of the island are asked", async () => {
    const stage = new Stage();
    stage.auto = (exchange) =>
      reply(exchange, () => (exchange.endpoint === N1 ? { error: "txn_backend_mismatch" } : PREPARED));
    const [first] = stage.calls(1, 1);
    await stage.pass(20);
    const [second] = stage.calls(2, 2);
    await stage.pass(20);
    expect([await first, await second, stage.sentTo]).toEqual([PREPARED, PREPARED, [N1, N2, N2]]);
  });

  it("all of its nodes: then that is the answer", async () => {
    const stage = new Stage();
    stage.auto = (exchange) => reply(exchange, () => ({ error: "txn_backend_mismatch" }));
    const [call] = stage.calls(1, 1);
    await stage.pass(20);
    expect([await call, stage.sentTo]).toMatchObject([{ code: "txn_backend_mismatch" }, [N1, N2, N3]]);
  });
});

describe("what a turn costs", () => {
  const wholeOf = (n: number, looked: () => void): TxnRequest => ({
    kind: "prepare",
    header: headerOf(n),
    operations: [
      {
        kind: "value-put",
        name: "x",
        get data() {
          looked();
          return LARGE;
        },
        ifVersion: null,
      },
    ],
    fence: FENCE,
  });
  const LARGE = new TextEncoder().encode(JSON.stringify("x".repeat(500 * 1024)));

  it("large calls that wait are not looked at until it is their turn", async () => {
    const stage = new Stage();
    let looks = 0;
    const calls = Array.from({ length: 200 }, (_, at) =>
      stage.lane.call(
        wholeOf(at, () => looks++),
        WITHIN_MS,
      ),
    );
    await stage.turn();
    // Two exchanges with two calls each are under way.
    expect([stage.exchanges.map(({ ids }) => ids.length), looks <= 20]).toEqual([[2, 2], true]);
    stage.lane.close();
    await Promise.all(calls);
  });

  it("what waits for this node itself is begun in slices of turns, in its order", async () => {
    const stage = new Stage();
    stage.endpoints = [];
    stage.own = () => {
      stage.clock.nowMs += 0.5;
      return Promise.resolve(PREPARED);
    };
    const calls = stage.calls(1, 100);
    await stage.turn();
    stage.endpoints = [OWN];
    while (stage.owned.length === 0) await stage.clock.advance(5);
    const begun = [stage.owned.length];
    // One that comes meanwhile does not overtake them.
    calls.push(...stage.calls(101, 101));
    while (stage.owned.length < 101) {
      await stage.turn();
      begun.push(stage.owned.length - begun.reduce((sum, one) => sum + one, 0));
    }
    expect(Math.max(...begun)).toBe(TURN_SLICE_MS / 0.5);
    expect(stage.owned).toEqual(Array.from({ length: 101 }, (_, at) => prepare(at + 1)));
    expect(await settledOf(calls)).toBe(101);
  });
});
