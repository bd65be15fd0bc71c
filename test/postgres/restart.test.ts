// The database goes away and comes back: nobody acts meanwhile, and somebody leads again at once, in a higher epoch.

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { Candidate, led, leaderOf } from "./test-elector.ts";

const AGAIN_MS_MAX = 1_000;
const TRUST_MS = 4_500;

let server: PostgresServer;
let candidates: Candidate[] = [];

beforeAll(async () => {
  server = await startPostgres();
});
afterEach(async () => {
  await server.start();
  await Promise.all(candidates.map((one) => one.close()));
});
afterAll(() => server?.end());

const ENDS = {
  "a fast stop": (one: PostgresServer) => one.stop("fast"),
  "an immediate stop": (one: PostgresServer) => one.stop("immediate"),
  "kill -9 of the postmaster": (one: PostgresServer) => one.kill(),
} as const;

for (const wait of ["block", "poll"] as const) {
  for (const [name, end] of Object.entries(ENDS)) {
    it(`leads again within a second of the database's return after ${name} (${wait})`, async () => {
      // The times of production: the second is measured with the backoff that users have.
      const production = {
        heartbeatMs: 1_000,
        serverTimeoutMs: TRUST_MS + 1_500,
        marginMs: 1_500,
        retryMinMs: 200,
        retryMaxMs: 800,
      };
      const options = { ...production, url: server.url(), wait };
      const scope = `${name} ${wait}`;
      candidates = [new Candidate(scope, options), new Candidate(scope, options)];
      const before = await led(candidates);
      await end(server);
      // The socket's end is word enough: the time for which a leader trusts a silent database is not over.
      await waitFor("the old term to end", () => before.leader.ends.length === 1, TRUST_MS - 500);
      expect(before.leader.ends).toEqual(["session-ended"]);
      expect(leaderOf(candidates)).toBeUndefined();
      await server.start();
      const backMs = performance.now();
      const after = await led(candidates, before.epoch);
      const againMs = performance.now() - backMs;
      console.info(`${scope}: a leader ${againMs.toFixed(0)} ms after the database's return`);
      expect(againMs).toBeLessThan(AGAIN_MS_MAX);
      expect(after.epoch).toBeGreaterThan(before.epoch);
      expect(candidates.map((one) => one.refusal)).toEqual([undefined, undefined]);
    });
  }
}

it("keeps a follower alive that was served before, although the database then refuses its password", async () => {
  await server.query("create role rolling login superuser password 'old-secret'");
  const url = server.url("postgres", "rolling", "old-secret");
  candidates = [new Candidate("rolling", { url }), new Candidate("rolling", { url })];
  const { leader, epoch } = await led(candidates);
  await server.query("alter role rolling password 'new-secret'");
  await server.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'rolling'");
  await waitFor("the refusal", () => leader.warnings.some((one) => one.includes("28P01")));
  expect(leader.refusal).toBeUndefined();
  expect(leader.warnings.join()).not.toContain("secret");
  await server.query("alter role rolling password 'old-secret'");
  expect((await led(candidates, epoch)).epoch).toBeGreaterThan(epoch);
});
