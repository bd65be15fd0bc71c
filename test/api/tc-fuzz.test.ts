// Requests that the contract of coordinators allows, nearly allows and does not allow, from a server with a certificate: each is answered as the contract
// says, and none gets past the rules of the voter.

import { Agent, request } from "node:https";
import fc from "fast-check";
import { expect, it } from "vitest";
import { COMMON_ERRORS, type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import { nodeIdOf } from "../../src/core/kit/ids.ts";
import { LEASE_TTL_MS } from "../../src/core/lease/limits.ts";
import { TestCoordinators, TestIsland } from "./test-coordinators.ts";
import { isRecord, pathOf, requestsWith } from "./test-requests.ts";

const REQUESTS = 1_000;
const SEED = 20_261_119;
const LIMIT_MS = 300_000;

const IDS = (Object.keys(ROUTES) as RouteId[]).filter(
  (id) => (ROUTES[id] as Route).identities !== undefined && ROUTES[id].path.startsWith("/v1/tc/"),
);
const VOTER = { identity: "n2", incarnation: "b2", endpoint: "https://n2:1" };
/** With these a body means this voter, and its caller: hardly any draw would. */
const MEANT = { incarnation: "b2", voter: "n1@a1", tc_cluster_id: "c-1", candidate_id: "n2", leader_id: "n2" };
const wild = fc.record({
  isMeant: fc.boolean(),
  /** Terms near the one that the voter is in, so that one request renews what another has acquired. */
  ahead: fc.constantFrom(-1, 0, 0, 0, 1, 2),
  version: fc.integer({ min: 1, max: 3 }),
  headers: fc.constantFrom({}, { "x-tenure-tc-forwarded": "1" }, { "x-tenure-tc-leave-fanout": "1" }),
});

it(
  `${REQUESTS} requests, each answered as the contract says`,
  async () => {
    const island = await TestIsland.make();
    const coordinators = new TestCoordinators({ seeds: ["https://n1:1", "https://a-seed:1"] });
    const { coordinator } = coordinators;
    await using api = await island.start(coordinators, { limits: { adminPerWindow: 1_000_000 } });
    const { cert, key } = await island.pair("server/n2");
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: island.ca.cert, cert, key });
    const ask = (method: string, path: string, body: unknown, more: object) =>
      new Promise<{ status: number; json: Record<string, unknown> }>((resolve, reject) => {
        const type = body === undefined ? {} : { "content-type": "application/json" };
        const headers = { ...type, ...more };
        const sent = request({ port: api.port, host: "127.0.0.1", method, path, agent, headers }, (answer) => {
          let text = "";
          answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
          answer.on("end", () => resolve({ status: answer.statusCode ?? 0, json: JSON.parse(text) as never }));
        });
        sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
      });
    const seen = new Map<string, number>();
    try {
      await fc.assert(
        fc.asyncProperty(
          requestsWith(wild, ["tcAcquire", "tcRenew", "tcRelease"], IDS),
          async ({ id, scope, query, body, wild: { isMeant, ...more } }) => {
            const route: Route = ROUTES[id];
            if (isMeant && isRecord(body)) {
              const { ahead, version } = more;
              const term = Math.max(1, coordinator.ledger.term + ahead);
              const roster = { term: 1, version, voters: [VOTER], registry: [] };
              const meant = { ...MEANT, roster, term, mark: { term: 1, version } };
              for (const [name, value] of Object.entries(meant)) if (name in body) body[name] = value;
              if ("endpoint" in body) body["endpoint"] = `https://e${version}:1`;
              if ("self_endpoint" in body) body["self_endpoint"] = `https://n2:${version}`;
              if ("backend_hash" in body) body["backend_hash"] = "a".repeat(64);
            }
            const before = coordinator.ledger;
            const { status, json } = await ask(route.method, pathOf(route, scope, query), body, more.headers);
            const text = `${id} ${JSON.stringify(body)} ${JSON.stringify(json)}`;
            seen.set(`${id} ${status}`, (seen.get(`${id} ${status}`) ?? 0) + 1);
            const after = coordinator.ledger;
            expect(after.term, text).toBeGreaterThanOrEqual(before.term);
            if (after.grant !== null) expect(nodeIdOf(after.grant.leader), text).toBe("n2");
            expect(
              coordinators
                .members()
                .leases.map(({ identity }) => identity)
                .filter((one) => one !== "n2"),
            ).toEqual(["n1"]);
            if (status === 200) {
              expect(shape(route.answer!).check(json), text).toMatchObject({ ok: true });
              const { lasts_ms: lastsMs = 0 } = (json["voter"] ?? {}) as { lasts_ms?: number };
              expect(lastsMs, text).toBeLessThanOrEqual(LEASE_TTL_MS + 0.001);
              return;
            }
            const code = json["error"] as keyof typeof ERRORS;
            expect(ERRORS[code].http, text).toBe(status);
            expect([...COMMON_ERRORS, ...route.errors], text).toContain(code);
            expect(code, text).not.toBe("INTERNAL");
            // Only where a leader is known, who never answers.
            if (code === "OUTCOME_UNKNOWN") expect(id.endsWith("egister"), text).toBe(true);
            expect(json["detail"], text).toBe(json["message"]);
            if (status === 400 && json["reason"] === undefined) expect(json["field"], text).toEqual(expect.any(String));
            expect(after, text).toBe(before);
          },
        ),
        { numRuns: REQUESTS, seed: SEED, endOnFailure: true },
      );
    } finally {
      agent.destroy();
      await coordinator.stop();
    }
    expect([api.faults, api.lines]).toEqual([[], []]);
    // Of the registry: whoever leads does not answer.
    for (const id of IDS)
      expect(
        seen.get(`${id} ${id.endsWith("egister") ? 409 : 200}`) ?? 0,
        `${id}: ${JSON.stringify([...seen])}`,
      ).toBeGreaterThan(0);
    for (const count of [
      "tcAcquire 400",
      "tcAcquire 403",
      "tcAcquire 409",
      "tcRenew 409",
      "tcRelease 409",
      "tcRegister 400",
    ])
      expect(seen.get(count) ?? 0, `${count}: ${JSON.stringify([...seen])}`).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
