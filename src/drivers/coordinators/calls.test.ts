// A call is what the wire says, and whatever goes wrong with it is no answer.

import { expect, it } from "vitest";
import { callOf } from "../../core/lease/wire-calls.ts";
import type { CoordinatorRequest } from "../../ports/coordinators.ts";
import { coordinatorCalls } from "./calls.ts";
import type { TcAnswer, TcExchange } from "./tc-http.ts";

const ENTRY = { backendHash: "a".repeat(64), endpoint: "https://b:1" };
const REGISTER: CoordinatorRequest = { kind: "registry", change: "register", entry: ENTRY, isForwarded: true };

function callsWith(exchanged: () => Promise<TcAnswer | null>) {
  const sent: TcExchange[] = [];
  const calls = coordinatorCalls({
    exchange: (exchange) => {
      sent.push(exchange);
      return exchanged();
    },
  });
  return { calls, sent };
}

it("is sent once, to the endpoint, with its time; and answered with who answered", async () => {
  const body = { backend_hash: ENTRY.backendHash, endpoints: [ENTRY.endpoint], updated_at_unix: 1 };
  const { calls, sent } = callsWith(async () => ({ from: "n2", status: 200, body }));
  expect(await calls.call("https://n2:1", REGISTER, 700)).toEqual({
    from: "n2",
    answer: { kind: "done", registry: [ENTRY] },
  });
  expect(sent).toEqual([{ endpoint: "https://n2:1", ...callOf(REGISTER), withinMs: 700 }]);
  expect(sent[0]).toMatchObject({
    method: "POST",
    path: "/v1/tc/rm/register",
    headers: { "x-tenure-tc-forwarded": "1" },
    body: { backend_hash: ENTRY.backendHash, endpoint: ENTRY.endpoint },
  });
});

it.each<[string, () => Promise<TcAnswer | null>]>([
  ["nobody answers", async () => null],
  ["the answer has nothing of it", async () => ({ from: "n2", status: 200, body: {} })],
  ["the answer is of another route", async () => ({ from: "n2", status: 200, body: { endpoints: [] } })],
  ["the node refuses its caller", async () => ({ from: "n2", status: 403, body: { error: "tc_server_required" } })],
  ["the coordinator left", async () => ({ from: "n2", status: 503, body: { error: "tc_unavailable" } })],
  ["a redirect comes back", async () => ({ from: "n2", status: 307, body: {} })],
])("is answered with nothing where %s", async (_why, exchanged) => {
  const { calls, sent } = callsWith(exchanged);
  expect(await calls.call("https://n2:1", REGISTER, 700)).toBe(null);
  expect(await calls.call("https://n2:1", { kind: "status" }, 700)).toBe(null);
  expect(sent).toHaveLength(2);
});
