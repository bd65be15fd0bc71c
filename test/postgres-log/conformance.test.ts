// The log in Postgres keeps every promise of ports/log.ts, on a real server, behind proxies that are cut.

import { afterAll, beforeAll, describe, it } from "vitest";
import { logConformance } from "../../src/logs/conformance/index.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { postgresLogWorld } from "./test-log-world.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await server.end();
});

describe("postgres", () => {
  for (const { name, run } of logConformance(() => postgresLogWorld(server, "postgres"))) it(name, run);
});
