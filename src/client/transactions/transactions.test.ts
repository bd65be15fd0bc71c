import { describe, expect, expectTypeOf, it } from "vitest";
import { virtualTime } from "../../../test/virtual-time.ts";
import { createClient } from "../client.ts";
import { failed, Network, type Node, type Reply, type Sent } from "../test-network.ts";
import type { PutHandle } from "./collect.ts";
import { newTransactionId } from "./new-id.ts";
import type { TransactionRequest } from "./views.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const N2 = "http://127.0.0.1:2";
const N3 = "http://127.0.0.1:3";
const A = "a".repeat(64);
const B = "b".repeat(64);
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Wire {
  readonly txn_id: string;
  readonly participants: readonly { readonly backend_hash: string; readonly operations: readonly object[] }[];
}

function refusal(code: string, status: number, more: object = {}): Reply {
  return [status, { error: code, message: `it is ${code}`, detail: null, ...more }];
}

const unavailable = refusal("tc_unavailable", 503);
const unknown = refusal("OUTCOME_UNKNOWN", 503);
const silentHome = refusal("OUTCOME_UNKNOWN", 503, { message: "home is silent" });

function committed({ body }: Sent, states: Readonly<Record<string, string>> = {}): Reply {
  const { txn_id, participants } = body as Wire;
  const answers = participants.map(({ backend_hash, operations }, at) => {
    const state = states[backend_hash] ?? "applied";
    const result = (_: object, number: number): object => {
      return { version: 100 * (at + 1) + number, epoch: 7, job_id: `job-${number}` };
    };
    return { backend_hash, state, results: state === "pending" ? [] : operations.map(result) };
  });
  return [200, { txn_id, state: "committed", tc_term: 5, home: A, reason: null, participants: answers }];
}

function rolledBack({ body }: Sent, code: string): Reply {
  const { txn_id } = body as Wire;
  const reason = { code, message: `it is ${code}`, backend_hash: B };
  return [200, { txn_id, state: "rolled_back", tc_term: 5, home: A, reason, participants: [] }];
}

function stage(nodes: Readonly<Record<string, Node>>, urls: readonly string[] = Object.keys(nodes)) {
  const network = new Network();
  for (const [url, one] of Object.entries(nodes)) network.nodes.set(url, one);
  const client = createClient({ urls, fetch: network.fetch });
  const ids = (): string[] => network.to("/v1/txn").map(({ body }) => (body as Wire).txn_id);
  const asked = (): string[] => network.to("/v1/txn").map(({ url }) => url);
  return { network, client, ids, asked };
}

/** One answer after the other, and the last for ever. */
function turns(...replies: ((sent: Sent) => Reply)[]): Node {
  let at = 0;
  return (_, sent) => (replies[Math.min(at++, replies.length - 1)] as (sent: Sent) => Reply)(sent);
}

const REQUEST: TransactionRequest = {
  id: newTransactionId(),
  participants: [{ backendHash: A, operations: [{ op: "value.put", name: "v", value: 1 }] }],
};

describe("a transaction", () => {
  it("is one request with all that was collected, in the names of the wire, and its handles have the results", async () => {
    const { client, network } = stage({ [N1]: turns((sent) => committed(sent)) });
    const outcome = await client.transaction(
      async (t) => {
        t.require(A, "orders", 4);
        const here = t.on(A);
        here.release("orders", 4);
        here.delete("orders/cursor", { ifVersion: 9 });
        const there = t.on(B);
        await Promise.resolve();
        const cursor = there.put("orders/cursor", { nextId: 1 }, { ifVersion: 0 });
        const job = there.submit({ kind: "move", payload: { fromIsland: 1 }, attemptsMax: 2 });
        t.on(A).check("orders/limit", 3);
        const hold = there.acquire("orders", {
          session: "s",
          identity: "b-1",
          metadata: { zoneName: "x" },
          ttlMs: 5_000,
        });
        expect(() => cursor.version).toThrow(expect.objectContaining({ code: "TX_MISUSED" }));
        return { cursor, job, hold };
      },
      { home: A, lockMs: 2_000 },
    );
    const [{ body }] = network.sent as [Sent];
    expect(body).toEqual({
      txn_id: expect.stringMatching(UUID7),
      home: A,
      timeout_ms: 2_000,
      require: [{ backend_hash: A, scope: "orders", epoch: 4 }],
      participants: [
        {
          backend_hash: A,
          operations: [
            { op: "scope.release", scope: "orders", epoch: 4 },
            { op: "value.delete", name: "orders/cursor", if_version: 9 },
            { op: "value.check", name: "orders/limit", if_version: 3 },
          ],
        },
        {
          backend_hash: B,
          operations: [
            { op: "value.put", name: "orders/cursor", value: { nextId: 1 }, if_version: 0 },
            { op: "job.submit", job: { kind: "move", payload: { fromIsland: 1 }, attempts_max: 2 } },
            {
              op: "scope.acquire",
              scope: "orders",
              session: "s",
              identity: "b-1",
              metadata: { zoneName: "x" },
              ttl_ms: 5_000,
            },
          ],
        },
      ],
    });
    if (outcome.state !== "committed") throw new Error(outcome.state);
    expectTypeOf(outcome.result.cursor).toEqualTypeOf<PutHandle>();
    expect([outcome.result.cursor.version, outcome.result.job.jobId, outcome.result.hold.epoch]).toEqual([
      200,
      "job-1",
      7,
    ]);
    expect(outcome).toMatchObject({ id: (body as Wire).txn_id, term: 5, home: A });
    expect(outcome.participants.map(({ state }) => state)).toEqual(["applied", "applied"]);
  });

  it("whose island has not answered yet is committed, and its handles say that they are pending", async () => {
    const { client } = stage({ [N1]: turns((sent) => committed(sent, { [B]: "pending" })) });
    const outcome = await client.transaction((t) => [t.on(A).put("v", 1), t.on(B).put("v", 2)] as const);
    if (outcome.state !== "committed") throw new Error(outcome.state);
    const [here, there] = outcome.result;
    expect([here.version, here.isPending, there.version, there.isPending]).toEqual([100, false, null, true]);
  });

  it("that was rolled back says why and where; its handles have nothing", async () => {
    const { client } = stage({ [N1]: turns((sent) => rolledBack(sent, "VERSION_CONFLICT")) });
    let handle: PutHandle | undefined;
    const outcome = await client.transaction((t) => {
      handle = t.on(A).put("v", 1, { ifVersion: 3 });
    });
    expect(outcome).toMatchObject({ state: "rolled-back", reason: { code: "VERSION_CONFLICT", backendHash: B } });
    expect(() => handle?.version).toThrow(/not committed/);
  });

  it("of which an island can't be reached was rolled back, because home has recorded that", async () => {
    const { client } = stage({
      [N1]: turns(
        () => unknown,
        () => refusal("txn_fanout_failed", 502),
      ),
    });
    const outcome = await client.transactions.run(REQUEST);
    expect(outcome).toMatchObject({ state: "rolled-back", id: REQUEST.id, reason: { code: "txn_fanout_failed" } });
  });

  it("sends nothing where the function throws, collects nothing, or collects what is no JSON", async () => {
    const { client, network } = stage({ [N1]: turns((sent) => committed(sent)) });
    const nothing = client.transaction(() => undefined);
    await expect(nothing).rejects.toMatchObject({
      code: "BAD_REQUEST",
      message: expect.stringMatching(/no operation/) as string,
    });
    const thrown = client.transaction((t) => {
      t.on(A).put("v", 1);
      throw new Error("mine");
    });
    await expect(thrown).rejects.toThrow("mine");
    await expect(client.transaction((t) => t.on(A).put("v", NaN))).rejects.toMatchObject({ code: "BAD_REQUEST" });
    const misspelt = client.transaction((t) => t.on(A).put("v", 1, { ifVerson: 1 } as object));
    await expect(misspelt).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await expect(client.transaction(() => 1, { atempts: 2 } as object)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
    });
    const both = client.transaction((t) => t.on(A).put("v", 1), { id: REQUEST.id, attempts: 2 });
    await expect(both).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(network.sent).toEqual([]);
  });

  it("takes nothing more once it was sent", async () => {
    const { client } = stage({ [N1]: turns((sent) => committed(sent)) });
    let late: (() => void) | undefined;
    await client.transaction((t) => {
      t.on(A).put("v", 1);
      late = () => void t.on(A).put("w", 1);
    });
    expect(late).toThrow(expect.objectContaining({ code: "TX_MISUSED" }));
  });
});

describe("islands", () => {
  const backends = [
    { backend_hash: A, endpoints: ["https://a-1.example:7401", "https://a-2.example:7401"] },
    { backend_hash: B, endpoints: ["https://b.example:7401"] },
  ];
  const listing: Node = (path, sent) =>
    path === "/v1/tc/rm/list" ? [200, { backends, updated_at_unix: 1 }] : committed(sent);

  it("may be named by the URLs under which they are registered; two names of one are one participant", async () => {
    const { client, network } = stage({ [N1]: listing });
    const outcome = await client.transaction(
      (t) => {
        t.require("https://b.example:7401/", "s", 1);
        const first = t.on("https://a-1.example:7401").put("v", 1);
        const other = t.on(B).put("v", 2);
        const second = t.on("https://a-2.example:7401").put("w", 3);
        return { first, other, second };
      },
      { home: "https://b.example:7401" },
    );
    expect(network.to("/v1/txn")[0]!.body).toMatchObject({
      home: B,
      require: [{ backend_hash: B }],
      participants: [
        { backend_hash: A, operations: [{ name: "v" }, { name: "w" }] },
        { backend_hash: B, operations: [{ name: "v" }] },
      ],
    });
    if (outcome.state !== "committed") throw new Error(outcome.state);
    const { first, other, second } = outcome.result;
    expect([first.version, second.version, other.version]).toEqual([100, 101, 200]);
  });

  it("that are not registered are refused before anything is sent", async () => {
    const { client, network } = stage({ [N1]: listing });
    for (const name of ["https://c.example:7401", "a", ""]) {
      const refused = client.transaction((t) => t.on(name).put("v", 1));
      await expect(refused).rejects.toMatchObject({
        code: "BAD_REQUEST",
        message: expect.stringContaining("b.example") as string,
      });
    }
    expect(network.to("/v1/txn")).toEqual([]);
  });
});

describe("the same id", () => {
  it("goes to the next node while nothing is certain, and never as another", async () => {
    const { client, ids, asked } = stage({
      [N1]: turns(() => unavailable),
      [N2]: turns(
        () => failed("ECONNRESET"),
        (sent) => committed(sent),
      ),
      [N3]: turns(() => unknown),
    });
    const outcome = await client.transaction((t) => t.on(A).put("v", 1));
    expect(outcome.state).toBe("committed");
    expect(asked()).toEqual([N1, N2, N3, N1, N2]);
    expect(new Set(ids())).toEqual(new Set([outcome.id]));
    // It goes on where it was answered.
    await client.transaction((t) => t.on(A).put("v", 1));
    expect(asked().slice(5)).toEqual([N2]);
  });

  it("goes to another node where one says nothing", async () => {
    const { client, asked } = stage({ [N1]: () => "never", [N2]: turns((sent) => committed(sent)) });
    expect((await client.transactions.run(REQUEST)).state).toBe("committed");
    expect(asked()).toEqual([N1, N2]);
  });

  it("follows to the coordinators' leader where that is one of the client's nodes, and never elsewhere", async () => {
    const moved = (leader_endpoint: string) => () => refusal("tc_not_leader", 409, { leader_endpoint });
    const { client, asked } = stage({
      [N1]: turns(moved(N3)),
      [N2]: turns((sent) => committed(sent)),
      [N3]: turns((sent) => committed(sent)),
    });
    expect((await client.transactions.run(REQUEST)).state).toBe("committed");
    expect(asked()).toEqual([N1, N3]);
    const other = stage({ [N1]: turns(moved("http://evil.example"), moved(N1), (sent) => committed(sent)) });
    expect((await other.client.transactions.run(REQUEST)).state).toBe("committed");
    expect(other.asked()).toEqual([N1, N1, N1]);
  });

  it("that two nodes send to each other ends with the call's time, and asks in moderation", async () => {
    const moved = (leader_endpoint: string) => () => refusal("tc_not_leader", 409, { leader_endpoint });
    const { client, asked } = stage({ [N1]: turns(moved(N2)), [N2]: turns(moved(N1)) });
    await expect(client.transactions.run(REQUEST, { timeoutMs: 5_000 })).rejects.toMatchObject({
      code: "tc_not_leader",
    });
    expect(asked().length).toBeLessThan(300);
  });

  it("whose time is over is unknown where an attempt may have arrived, and comes with all that is needed to ask", async () => {
    const answers = [
      () => "never" as const,
      () => unknown,
      () => failed("ECONNRESET"),
      () => [200, { hello: 1 }] as const,
    ];
    for (const answer of answers) {
      const { client, ids } = stage({ [N1]: turns(answer), [N2]: turns(() => unavailable) });
      const outcome = await client.transactions.run(REQUEST, { timeoutMs: 2_000 });
      expect(outcome).toMatchObject({
        state: "unknown",
        id: REQUEST.id,
        request: REQUEST,
        code: "OUTCOME_UNKNOWN",
        why: expect.stringContaining("") as string,
      });
      expect(new Set(ids())).toEqual(new Set([REQUEST.id]));
    }
  });

  it("says why a server did not know, although nobody answered after that", async () => {
    const { client } = stage({
      [N1]: turns(
        () => silentHome,
        () => "never" as const,
      ),
    });
    const said = await client.transactions.run(REQUEST, { timeoutMs: 2_000 });
    const only = stage({ [N1]: turns(() => "never" as const) });
    const unsaid = await only.client.transactions.run(REQUEST, { timeoutMs: 2_000 });
    expect([said, unsaid]).toMatchObject([
      { state: "unknown", why: "home is silent" },
      { state: "unknown", why: expect.stringContaining("did not confirm") as string },
    ]);
  });

  it("was certainly not done where no attempt can have arrived: then it is refused", async () => {
    const { client } = stage({ [N1]: turns(() => unavailable) }, [N1, N2]);
    const refused = client.transactions.run(REQUEST, { timeoutMs: 2_000 });
    await expect(refused).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    const away = stage({}, [N1]);
    await expect(away.client.transactions.run(REQUEST, { timeoutMs: 2_000 })).rejects.toMatchObject({
      code: "BACKEND_UNAVAILABLE",
    });
  });

  it.each([
    ["txn_conflict", 409],
    ["invalid_txn_id", 400],
    ["tc_client_required", 403],
    ["tc_rm_unavailable", 503],
    ["NOT_SUPPORTED", 501],
  ])(
    "refused for good with %s is refused at once; after an attempt that may have arrived it is unknown",
    async (code, status) => {
      const { client, asked } = stage({
        [N1]: turns(() => refusal(code, status)),
        [N2]: turns((sent) => committed(sent)),
      });
      await expect(client.transactions.run(REQUEST)).rejects.toMatchObject({ code });
      expect(asked()).toEqual([N1]);
      const after = stage({ [N1]: turns(() => unknown), [N2]: turns(() => refusal(code, status)) });
      expect(await after.client.transactions.run(REQUEST)).toMatchObject({ state: "unknown", id: REQUEST.id });
    },
  );

  it("whose id was kept and is forgotten is unknown: it may have been committed before. Under a new id it was not", async () => {
    const expired = refusal("txn_expired", 409);
    const { client } = stage({ [N1]: turns(() => expired) });
    const lost = { state: "unknown", id: REQUEST.id, code: "txn_expired" };
    expect(await client.transactions.run(REQUEST)).toMatchObject(lost);
    const put = (t: { on(island: string): { put(name: string, value: number): unknown } }): void =>
      void t.on(A).put("x", 1);
    expect(await client.transaction(put, { id: REQUEST.id })).toMatchObject(lost);
    await expect(client.transaction(put)).rejects.toMatchObject({ code: "txn_expired" });
  });

  it.each(["DISK_FULL", "CLUSTER_PAUSED"])(
    "whose id was kept is unknown while home answers %s, which is of this request alone; under a new id it was not done",
    async (code) => {
      const { client } = stage({ [N1]: turns(() => refusal(code, 507)) });
      const short = { timeoutMs: 2_000 };
      expect(await client.transactions.run(REQUEST, short)).toMatchObject({ state: "unknown", why: `it is ${code}` });
      const put = client.transaction((t) => void t.on(A).put("x", 1), short);
      await expect(put).rejects.toMatchObject({ code });
    },
  );

  it("whose id was too old when home decided is rolled back, also after an attempt that may have arrived", async () => {
    const { client } = stage({ [N1]: turns(() => unknown), [N2]: turns((sent) => rolledBack(sent, "txn_expired")) });
    expect(await client.transactions.run(REQUEST)).toMatchObject({
      state: "rolled-back",
      reason: { code: "txn_expired" },
    });
  });

  it("on servers of a release before transactions is NOT_SUPPORTED", async () => {
    const { client } = stage({ [N1]: turns(() => refusal("NOT_FOUND", 404)) });
    await expect(client.transactions.run(REQUEST)).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
  });

  it("whose caller gives up is thrown before it was sent, and unknown afterwards: its id is not lost", async () => {
    const stop = new AbortController();
    const { client } = stage({
      [N1]: () => {
        stop.abort(new Error("enough"));
        return "never";
      },
    });
    const outcome = await client.transactions.run(REQUEST, { signal: stop.signal });
    expect(outcome).toMatchObject({ state: "unknown", id: REQUEST.id });
    await expect(client.transactions.run(REQUEST, { signal: stop.signal })).rejects.toThrow("enough");
  });

  it("may be the caller's own, so that it outlives the process", async () => {
    const { client, ids } = stage({ [N1]: turns((sent) => committed(sent)) });
    const outcome = await client.transaction((t) => t.on(A).put("v", 1), { id: REQUEST.id });
    expect([outcome.id, ids()]).toEqual([REQUEST.id, [REQUEST.id]]);
  });
});

describe("attempts", () => {
  const locked = (sent: Sent): Reply => rolledBack(sent, "txn_locked");

  it("are one, unless more are asked for; each has another id and what the function collects then, after a pause", async () => {
    const { client, ids, network } = stage({ [N1]: turns(locked) });
    expect(await client.transaction((t) => t.on(A).put("v", 1))).toMatchObject({ reason: { code: "txn_locked" } });
    expect(ids()).toHaveLength(1);
    network.nodes.set(
      N1,
      turns(locked, locked, (sent) => committed(sent)),
    );
    let runs = 0;
    const startedMs = performance.now();
    const outcome = await client.transaction((t) => t.on(A).put("v", ++runs), { attempts: 5 });
    if (outcome.state !== "committed") throw new Error(outcome.state);
    expect(outcome.result.version).toBe(100);
    expect(new Set(ids()).size).toBe(4);
    const values = network.to("/v1/txn").map(({ body }) => (body as Wire).participants[0]!.operations[0]);
    expect(values.slice(1)).toMatchObject([{ value: 1 }, { value: 2 }, { value: 3 }]);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(10 + 20);
  });

  it("end with their number, or with the time of the call", async () => {
    const { client, ids } = stage({ [N1]: turns(locked) });
    await client.transaction((t) => t.on(A).put("v", 1), { attempts: 3 });
    expect(ids()).toHaveLength(3);
    const outcome = await client.transaction((t) => t.on(A).put("v", 1), { attempts: 1_000, timeoutMs: 3_000 });
    expect(outcome).toMatchObject({ state: "rolled-back" });
    expect(ids().length).toBeLessThan(30);
  });

  it("are not made for another reason, nor where the outcome is unknown", async () => {
    const { client, ids } = stage({
      [N1]: turns(
        (sent) => rolledBack(sent, "VERSION_CONFLICT"),
        () => unknown,
      ),
    });
    await client.transaction((t) => t.on(A).put("v", 1), { attempts: 3 });
    expect(ids()).toHaveLength(1);
    const outcome = await client.transaction((t) => t.on(A).put("v", 1), { attempts: 3, timeoutMs: 2_000 });
    expect(outcome.state).toBe("unknown");
    expect(new Set(ids()).size).toBe(2);
  });
});

describe("transactions that an island knows", () => {
  const wire = (txn_id: string, state = "prepared") => ({
    txn_id,
    state,
    home: A,
    participants: [A, B],
    by: "mover",
    timeout_ms: 5_000,
    at_ms: 1_000,
    locks: ["value v"],
    results: [{ job_id: "j" }],
    reason: null,
    undelivered: 0,
    waits_for: [],
    settled: false,
    in_doubt: true,
  });

  it("are shown one by one, or page by page", async () => {
    const node: Node = (path) => {
      if (path === "/v1/txn/t1?consistency=linearizable") return [200, wire("t1", "rolled_back")];
      if (path === "/v1/txn?in_doubt=true&consistency=linearizable")
        return [200, { transactions: [wire("t1"), wire("t2")], next: "t2" }];
      if (path === "/v1/txn?in_doubt=true&after=t2&consistency=linearizable")
        return [200, { transactions: [wire("t3")], next: null }];
      return refusal("txn_not_found", 404);
    };
    const { client } = stage({ [N1]: node });
    expect(await client.transactions.get("t1")).toMatchObject({
      id: "t1",
      state: "rolled-back",
      isInDoubt: true,
      results: [{ jobId: "j" }],
    });
    expect(await client.transactions.get("t9")).toBeNull();
    const ids: string[] = [];
    for await (const { id } of client.transactions.list({ inDoubt: true })) ids.push(id);
    expect(ids).toEqual(["t1", "t2", "t3"]);
  });

  it("are replayed at the leader, and forced by an operator's word", async () => {
    const bodies: unknown[] = [];
    const node: Node = (path, { body }) => {
      if (path === "/leader")
        return [200, { node_id: "n1", leader_id: "n1", leader_url: N1, leader_address: null, term: 1 }];
      bodies.push(body);
      const { txn_id } = body as Wire;
      return txn_id === "t9" ? refusal("txn_not_found", 404) : [200, { txn_id, state: "rolled_back" }];
    };
    const { client } = stage({ [N1]: node });
    expect(await client.transactions.replay("t1")).toBe("rolled-back");
    expect(await client.transactions.replay("t1", { force: "rollback" })).toBe("rolled-back");
    expect(await client.transactions.replay("t9")).toBeNull();
    expect(bodies).toEqual([{ txn_id: "t1" }, { txn_id: "t1", force: "rolled_back" }, { txn_id: "t9" }]);
  });
});

it("ids are UUIDs of version 7 with the time in front, and no two are the same", () => {
  const ids = Array.from({ length: 200 }, () => newTransactionId());
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(id).toMatch(UUID7);
    expect(Math.abs(Number.parseInt(id.replace("-", "").slice(0, 12), 16) - Date.now())).toBeLessThan(60_000);
  }
});
