// Certificates and authorities are replaced while coordinators call each other: on real APIs, which retire their connections at a reload, and with
// the calls' own. No call fails on the way.

import { X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import type { PeerTls } from "../../src/drivers/wire/index.ts";
import { startApi, type TestApi } from "../api/test-api.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { json, TestCalls, TestServer } from "./test-server.ts";

/** Calls of everybody between two steps. */
const STEP_CALLS = 300;
const WORKERS = 2;

interface Node {
  readonly id: string;
  readonly api: TestApi;
  readonly url: string;
  readonly calls: TestCalls;
}

const trusting = (tls: PeerTls, ...authorities: TestAuthority[]): PeerTls => ({
  ...tls,
  ca: authorities.map(({ ca }) => ca.cert).join("\n"),
});

async function startNode(id: string, tls: PeerTls): Promise<Node> {
  const api = await startApi({ nodeId: id, keys: [], tls: { ...tls, clientCa: tls.ca } });
  return { id, api, url: `https://127.0.0.1:${api.port}`, calls: new TestCalls(tls) };
}

function reload({ api, calls }: Node, tls: PeerTls): void {
  api.api.reload({ ...tls, clientCa: tls.ca });
  calls.http.reload(tls);
}

it("no call fails while every certificate, and then the authority itself, is replaced under load", async () => {
  const [old, next] = [await TestAuthority.make(), await TestAuthority.make()];
  const ids = ["n1", "n2", "n3"];
  const nodes = await Promise.all(ids.map(async (id) => startNode(id, await old.node(id))));
  await using watcher = await TestServer.start(trusting(await old.node("n9"), old, next), (_, response) =>
    json(response, {}),
  );
  let done = 0;
  const over = new AbortController();
  const wrong: unknown[] = [];
  const call = async ({ calls }: Node, to: Node): Promise<void> => {
    const asked = { endpoint: to.url, method: "GET", path: "/v1/cluster", body: null, withinMs: 60_000 } as const;
    const answer = await calls.http.exchange(asked);
    if (answer?.from !== to.id || answer.status !== 200) wrong.push(answer);
    done++;
  };
  const work = async (from: Node): Promise<void> => {
    const others = nodes.filter((node) => node !== from);
    for (let n = 0; !over.signal.aborted; n++) await call(from, others[n % others.length]!);
  };
  const workers = nodes.flatMap((node) => Array.from({ length: WORKERS }, () => work(node)));
  const underLoad = async (): Promise<void> => {
    const from = done;
    await expect.poll(() => done - from, { timeout: 60_000 }).toBeGreaterThan(STEP_CALLS);
  };
  const everyNode = async (make: (id: string) => Promise<PeerTls>): Promise<void> => {
    for (const node of nodes) {
      reload(node, await make(node.id));
      await underLoad();
    }
  };
  await underLoad();
  // Renewed by the same authority; both are trusted; certificates of the next one; the first is trusted no more.
  await everyNode((id) => old.node(id));
  await everyNode(async (id) => trusting(await old.node(id), old, next));
  const renewed = new Map<string, PeerTls>();
  await everyNode(async (id) => {
    const tls = trusting(await next.node(id), old, next);
    renewed.set(id, tls);
    return tls;
  });
  await everyNode(async (id) => trusting(renewed.get(id)!, next));
  over.abort();
  await Promise.all(workers);
  expect(wrong).toEqual([]);
  console.log(`${done} calls, 0 failed`);
  // The new ones are in use: of the first authority nobody is asked any more, and everybody shows the next one's.
  const [n1] = nodes;
  expect(await n1!.calls.get(watcher.url)).toBeNull();
  (watcher.server as unknown as { setSecureContext(tls: PeerTls): void }).setSecureContext(await next.node("n9"));
  expect((await n1!.calls.get(watcher.url))?.from).toBe("n9");
  expect(watcher.shown).toEqual([new X509Certificate(renewed.get("n1")!.cert).fingerprint256]);
  for (const { api, calls } of nodes) {
    calls.http.close();
    await api[Symbol.asyncDispose]();
  }
});

it("a call that is under way at a reload is answered on its connection, which then ends; the next one shows the new certificate", async () => {
  const authority = await TestAuthority.make();
  const [first, second] = [await authority.node("n1"), await authority.node("n1")];
  const answers: (() => void)[] = [];
  await using server = await TestServer.start(await authority.node("n2"), (request, response) => {
    if (request.method === "GET") answers.push(() => json(response, {}));
    else json(response, {});
  });
  using calls = new TestCalls(first);
  const idle = await Promise.all([calls.post(server.url, {}), calls.post(server.url, {})]);
  expect(idle.map((one) => one?.from)).toEqual(["n2", "n2"]);
  const waiting = calls.get(server.url);
  await expect.poll(() => answers).toHaveLength(1);
  calls.http.reload(second);
  // The one that nobody used is closed at once.
  await expect.poll(() => server.open.size).toBe(1);
  expect((await calls.post(server.url, {}))?.from).toBe("n2");
  expect(server.open.size).toBe(2);
  answers[0]!();
  expect((await waiting)?.from).toBe("n2");
  await expect.poll(() => server.open.size).toBe(1);
  expect((await calls.post(server.url, {}))?.from).toBe("n2");
  const shown = server.shown.map((one) =>
    one === new X509Certificate(first.cert).fingerprint256 ? "first" : "second",
  );
  expect(shown).toEqual(["first", "first", "first", "second", "second"]);
  expect(server.accepted).toBe(3);
});
