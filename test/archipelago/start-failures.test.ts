// What a coordinator's configuration and files can have wrong ends its start, with a code and a sentence that says what to do; and nothing is left in its
// data directory by those that are found before anything is opened.

import { existsSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freePort } from "../servers/index.ts";
import { type TestIsland, TestIslands } from "./test-islands.ts";

const EX_UNAVAILABLE = 69;
const EX_CONFIG = 78;
const LIMIT_MS = 60_000;

let islands: TestIslands;
let island: TestIsland;

beforeEach(async () => {
  islands = await TestIslands.make({ islands: 2 });
  island = islands.all[0]!;
}, LIMIT_MS);

afterEach(() => islands?.end(), LIMIT_MS);

async function refusal(code: number): Promise<string> {
  island.start();
  const ended = await island.node.ended();
  expect(ended.code, ended.log).toBe(code);
  return ended.log;
}

const join = (): readonly string[] => islands.all.map(({ url }) => url);

it("a log in a database, with [tc]", { timeout: LIMIT_MS }, async () => {
  const { peer: _peer, ...rest } = island.node.config;
  void rest;
  island.node.configure({ peer: undefined, backend: "postgres://127.0.0.1:1/none" } as never);
  const said = await refusal(EX_CONFIG);
  expect(said).toContain("tc.join");
  expect(said).toContain("can't be used with backend");
});

it("other islands without TLS", { timeout: LIMIT_MS }, async () => {
  const { listen } = island.node.config.api!;
  island.node.configure({ api: { listen: listen!, advertise: `http://${listen}` }, tc: { join: [...join()] } });
  expect(await refusal(EX_CONFIG)).toContain("api.tls is missing");
  expect(existsSync(island.node.dataDir)).toBe(false);
});

it("other islands without an authority for their certificates", { timeout: LIMIT_MS }, async () => {
  const { api } = island.node.config;
  const { client_ca_file: _, ...tls } = api!.tls!;
  island.node.configure({ api: { ...api!, tls } });
  expect(await refusal(EX_CONFIG)).toContain("api.tls.client_ca_file is missing");
});

it("a certificate without a server's id", { timeout: LIMIT_MS }, async () => {
  await island.certify("operator", "ops");
  const said = await refusal(EX_CONFIG);
  expect(said).toContain("can't be a transaction coordinator's");
  expect(said).toContain("tenure cert issue --node-id");
  expect(existsSync(island.node.dataDir)).toBe(false);
});

it("disable_auth where others can call", { timeout: LIMIT_MS }, async () => {
  const { api, tc } = island.node.config;
  const port = await freePort();
  island.node.configure({ api: { ...api!, listen: `0.0.0.0:${port}` }, tc: { ...tc, disable_auth: true } });
  expect(await refusal(EX_CONFIG)).toContain("tc.disable_auth");
});

it("nobody of tc.join answers, and this node is not among them", { timeout: LIMIT_MS }, async () => {
  const other = islands.all[1]!.url;
  island.node.configure({ tc: { join: [other] } });
  const said = await refusal(EX_UNAVAILABLE);
  expect(said).toContain(other);
  expect(said).toContain("Start one of them first");
});
