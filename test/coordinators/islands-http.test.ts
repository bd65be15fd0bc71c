// Calls to islands and forwarded transactions over real connections: whose answers count, what goes together, and what is known after a failure.

import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import type { TxnAnswer, TxnHeader, TxnRequest } from "../../src/core/txn/model.ts";
import { answerBody, outcomeBody } from "../../src/core/txn/wire-answers.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { HttpIslandCalls, httpTxnForward } from "../../src/drivers/transactions/index.ts";
import type { RegistryEntry } from "../../src/core/lease/model.ts";
import type { TxnBody, TxnDecide, TxnOutcome } from "../../src/ports/transactions.ts";
import type { PeerTls } from "../../src/drivers/wire/index.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { type Answer, json, TestCalls, TestServer } from "./test-server.ts";

const [OWN, OTHER] = ["a".repeat(64), "b".repeat(64)] as const;
const PREPARED = { kind: "txn", phase: "prepared", results: [], reason: null } as const satisfies TxnAnswer;
const FENCE = { clusterId: "c", term: 7, recoveredBy: null };
/** What has to fail fails long before that. */
const LONG_MS = 60_000;
const BY = "spiffe://tenure/tc/payer";

const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const headerOf = (n: number): TxnHeader => {
  return { id: idOf(n), home: OWN, participants: [OTHER], digest: "d".repeat(64), timeoutMs: 5_000, by: BY };
};
const prepare = (n: number): TxnRequest => ({ kind: "prepare", header: headerOf(n), operations: [], fence: FENCE });
const BODY: TxnBody = { id: idOf(1), home: OWN, timeoutMs: null, require: [], participants: [] };
const DECIDE: TxnDecide = { id: idOf(1), home: OWN, state: "commit", participants: [OTHER], expiresAtMs: null };
const OUTCOME: TxnOutcome = { id: idOf(1), state: "committed", term: 7, home: OWN, reason: null, participants: [] };

let authority: TestAuthority;
let own: PeerTls;
let n2: PeerTls;
const ends: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  authority = await TestAuthority.make();
  [own, n2] = [await authority.node("n1"), await authority.node("n2")];
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function serve(answer: Answer, tls: PeerTls | null = n2): Promise<TestServer> {
  const server = await TestServer.start(tls, answer);
  ends.push(() => server[Symbol.asyncDispose]());
  return server;
}

function calling(registry: readonly RegistryEntry[], tls: PeerTls | null = own) {
  const test = new TestCalls(tls);
  const calls = new HttpIslandCalls({
    http: test.http,
    registry: () => registry,
    own: { backendHash: OWN, answer: () => Promise.resolve(PREPARED) },
    ownEndpoint: "https://127.0.0.1:1",
    clock: systemClock,
    random: seededRandom(1),
  });
  ends.push(
    () => test.http.close(),
    () => calls.close(),
  );
  return { calls, http: test.http, warnings: test.warnings };
}

const at = (...servers: readonly TestServer[]): readonly RegistryEntry[] =>
  servers.map(({ url }) => ({ backendHash: OTHER, endpoint: url }));

interface Fields {
  readonly txn?: { readonly txn_id: string };
  readonly requests?: readonly { readonly body: { readonly txn: { readonly txn_id: string } } }[];
}

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as Fields;
}

/** An island that prepares whatever it is asked to. */
function preparing(seen: string[][], delayMs = 0): Answer {
  return (request: IncomingMessage, response: ServerResponse): void => {
    void bodyOf(request).then(async ({ txn, requests }) => {
      const ids = requests?.map(({ body }) => body.txn.txn_id) ?? [txn!.txn_id];
      seen.push([request.url!, ...ids]);
      if (delayMs > 0) await new Promise((resume) => setTimeout(resume, delayMs));
      const answers = ids.map((id) => ({ status: 200, body: answerBody(id, PREPARED) }));
      json(response, requests === undefined ? answers[0]!.body : { answers });
    });
  };
}

describe("calls to an island", () => {
  it("are answered by its leader; those of one moment go together", async () => {
    const seen: string[][] = [];
    const server = await serve(preparing(seen));
    const { calls } = calling(at(server));
    expect(await calls.call(OTHER, prepare(1), LONG_MS)).toEqual(PREPARED);
    const many = Array.from({ length: 64 }, (_, n) => calls.call(OTHER, prepare(n), LONG_MS));
    expect(await Promise.all(many)).toEqual(many.map(() => PREPARED));
    expect(seen).toEqual([
      ["/v1/txn/prepare", idOf(1)],
      ["/v1/txn/batch", ...many.map((_, n) => idOf(n))],
    ]);
    expect(server.accepted).toBe(1);
  });

  it("of 64 who go on one after the other are far fewer than their calls", async () => {
    const seen: string[][] = [];
    const server = await serve(preparing(seen, 2));
    const { calls } = calling(at(server));
    const EACH = 8;
    const clients = Array.from({ length: 64 }, async (_, client) => {
      for (let n = 0; n < EACH; n++)
        expect(await calls.call(OTHER, prepare(client * EACH + n), LONG_MS)).toEqual(PREPARED);
    });
    await Promise.all(clients);
    expect(seen.flatMap(([, ...ids]) => ids).length).toBe(64 * EACH);
    expect(seen.length).toBeLessThan((64 * EACH) / 4);
  });

  it("follow to the leader among its registered addresses, and to no other one", async () => {
    const seen: string[][] = [];
    const leader = await serve(preparing(seen));
    const stranger = await serve(preparing([]));
    const named = [stranger.url, leader.url];
    const follower = await serve((request, response) => {
      request.resume();
      json(response, { error: "NOT_LEADER", message: "not I", leader_url: named.shift() ?? null }, 409);
    });
    const third = await serve((request, response) => {
      request.resume();
      json(response, { error: "NOT_LEADER", message: "not I", leader_url: leader.url }, 409);
    });
    const { calls } = calling(at(follower, third, leader));
    expect(await calls.call(OTHER, prepare(1), LONG_MS)).toEqual(PREPARED);
    expect([follower.requests, third.requests, stranger.requests, seen.length]).toEqual([1, 1, 0, 1]);
    expect(await calls.call(OTHER, prepare(2), LONG_MS)).toEqual(PREPARED);
    expect([follower.requests, third.requests]).toEqual([1, 1]);
  });

  it("go to the next address where nobody listens, or another one's server does", async () => {
    const gone = await serve(() => undefined);
    await gone[Symbol.asyncDispose]();
    const foreign = await serve(() => undefined, await (await TestAuthority.make()).node("n3"));
    const client = await serve(() => undefined, await authority.forged(["spiffe://tenure/tc/n2"]));
    const server = await serve(preparing([]));
    const { calls, warnings } = calling(at(gone, foreign, client, server));
    expect(await calls.call(OTHER, prepare(1), LONG_MS)).toEqual(PREPARED);
    expect([foreign.requests, client.requests]).toEqual([0, 0]);
    expect(warnings.length).toBe(2);
  });

  it("end in their time where an island says nothing, and nothing is known of it", async () => {
    const server = await serve(() => undefined);
    const { calls } = calling(at(server));
    expect(await calls.call(OTHER, prepare(1), 200)).toBe(null);
  });

  it("without TLS go to loopback, where an answer need not say who gave it", async () => {
    const server = await serve(preparing([]), null);
    const { calls } = calling(at(server), null);
    expect(await calls.call(OTHER, prepare(1), LONG_MS)).toEqual(PREPARED);
  });

  it("know the islands of the registry, each once; of one that is in no registry nothing is asked", async () => {
    const server = await serve(preparing([]));
    const { calls } = calling([{ backendHash: OWN, endpoint: "https://127.0.0.1:1" }, ...at(server, server)]);
    expect(calls.islands()).toEqual([OWN, OTHER]);
    expect(await calls.call("c".repeat(64), prepare(1), LONG_MS)).toBe(null);
    // Its own is asked here, registered or not.
    expect(await calls.call(OWN, prepare(1), LONG_MS)).toEqual(PREPARED);
    expect(server.requests).toBe(0);
  });

  it("end when this node stops, and none begins after that", async () => {
    const server = await serve(() => undefined);
    const { calls } = calling(at(server));
    const call = calls.call(OTHER, prepare(1), LONG_MS);
    await expect.poll(() => server.requests).toBe(1);
    calls.close();
    expect(await call).toBe(null);
    expect(await calls.call(OTHER, prepare(2), LONG_MS)).toBe(null);
  });
});

describe("a forwarded transaction", () => {
  it("says for whom it is, and that it was forwarded; its outcome comes back", async () => {
    const seen: unknown[] = [];
    const server = await serve((request, response) => {
      const { url, headers } = request;
      seen.push([url, headers["x-tenure-tc-forwarded"], headers["x-tenure-on-behalf-of"]]);
      request.resume();
      json(response, url === "/v1/txn" ? outcomeBody(OUTCOME) : { txn_id: idOf(1), state: "commit" });
    });
    const forward = httpTxnForward(calling([]).http);
    expect(await forward.run(server.url, BODY, BY, LONG_MS)).toEqual(OUTCOME);
    expect(await forward.decide(server.url, DECIDE, BY, LONG_MS)).toEqual({ id: idOf(1), state: "commit" });
    expect(seen).toEqual([
      ["/v1/txn", "1", BY],
      ["/v1/txn/decide", "1", BY],
    ]);
  });

  it("is refused with what the leader refuses it with", async () => {
    const server = await serve((request, response) => {
      request.resume();
      const where = { leader_endpoint: "https://n3:1" };
      json(response, { error: "tc_not_leader", message: "not I", ...where }, 409);
    });
    const refused = expect.objectContaining({ code: "tc_not_leader", leaderEndpoint: "https://n3:1" });
    await expect(httpTxnForward(calling([]).http).run(server.url, BODY, BY, LONG_MS)).rejects.toEqual(refused);
  });

  it("has not left where nobody listens, or another one's server does", async () => {
    const gone = await serve(() => undefined);
    await gone[Symbol.asyncDispose]();
    const foreign = await serve(() => undefined, await (await TestAuthority.make()).node("n3"));
    const forward = httpTxnForward(calling([]).http);
    expect(await forward.run(gone.url, BODY, BY, LONG_MS)).toBe(null);
    expect(await forward.run(foreign.url, BODY, BY, LONG_MS)).toBe(null);
    expect(await forward.run("http://127.0.0.1:1", BODY, BY, LONG_MS)).toBe(null);
    expect(foreign.requests).toBe(0);
  });

  it.each<[string, Answer]>([
    ["says nothing", () => undefined],
    ["breaks off", (_request, response) => void response.socket!.destroy()],
    ["says what is none of this", (request, response) => (request.resume(), json(response, { hello: 1 }))],
    ["says what no leader says", (request, response) => (request.resume(), json(response, { error: "x" }, 500))],
  ])("may have been done where the leader %s", async (_what, answer) => {
    const server = await serve(answer);
    const run = httpTxnForward(calling([]).http).run(server.url, BODY, BY, 300);
    await expect(run).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it("that arrived on a kept connection which broke off may have been done, whatever comes of the second try", async () => {
    let requests = 0;
    const server = await serve((request, response) => {
      request.resume();
      if (++requests === 1) return json(response, outcomeBody(OUTCOME));
      // It has arrived; nobody listens there any more.
      server.server.close();
      response.socket!.destroy();
    });
    const forward = httpTxnForward(calling([]).http);
    expect(await forward.run(server.url, BODY, BY, LONG_MS)).toEqual(OUTCOME);
    await expect(forward.run(server.url, BODY, BY, LONG_MS)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(requests).toBe(2);
  });

  it.each([
    ["tc_not_leader", "OUTCOME_UNKNOWN"],
    ["txn_fanout_failed", "txn_fanout_failed"],
  ])("whose second try is answered with %s ends as %s: the first one may have arrived", async (said, heard) => {
    let requests = 0;
    const server = await serve((request, response) => {
      request.resume();
      requests++;
      if (requests === 1) return json(response, outcomeBody(OUTCOME));
      if (requests === 2) return void response.socket!.destroy();
      json(response, { error: said, message: "refused" }, said === "tc_not_leader" ? 409 : 502);
    });
    const forward = httpTxnForward(calling([]).http);
    expect(await forward.run(server.url, BODY, BY, LONG_MS)).toEqual(OUTCOME);
    await expect(forward.run(server.url, BODY, BY, LONG_MS)).rejects.toMatchObject({ code: heard });
    expect(requests).toBe(3);
  });
});
