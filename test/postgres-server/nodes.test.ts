// Who is who: node ids in the database, and what a node says that can't start.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { freePort, type PostgresServer, startPostgres, startTenureCluster, type TenureNode } from "../servers/index.ts";
import { key, siteUrl, startSite, waitFor } from "./test-site.ts";

const CONFIGURATION = 78;
const NO_RIGHT = 77;

async function postgres(): Promise<PostgresServer> {
  const server = await startPostgres({ settings: { fsync: "off" } });
  onTestFinished(() => server.end());
  return server;
}

/** Configured, not started. */
async function node(id: string, backend: string): Promise<TenureNode> {
  const cluster = await startTenureCluster({ nodes: 0, backend });
  onTestFinished(() => cluster.end());
  return cluster.make(id);
}

test("a second process with the same node id is refused and says where the first is; the first goes on", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const first = site.cluster.node("n1");
  const second = await node("n1", siteUrl(site.server));
  second.start();
  const { code, log } = await second.ended();
  expect(code).toBe(CONFIGURATION);
  expect(log).toContain("another process runs as node n1");
  expect(log).toContain(first.url);
  expect((await first.call("/readyz", { key })).status).toBe(200);
  await site.submit({ kind: randomUUID() });
}, 120_000);

test("two nodes that give one API URL say so, both of them, until one has its own", async () => {
  const site = await startSite({ nodes: 1 });
  onTestFinished(() => site.end());
  const first = site.cluster.node("n1");
  const twin = await node("n2", siteUrl(site.server));
  twin.configure({ api: { listen: new URL(twin.url).host, advertise: first.url } });
  twin.start();
  for (const one of [first, twin]) {
    const alerts = async () => (await one.view())?.alerts.map(({ name }) => name) ?? [];
    await waitFor(`${one.id} to say so`, async () => (await alerts()).includes("url_shared"));
    // The log is written a moment after the alert can be seen.
    const said = (): number => one.log().split("another node has this node's API URL").length - 1;
    await waitFor(`${one.id}'s log`, () => said() > 0);
    expect(said()).toBe(1);
  }
  await twin.kill9();
  await waitFor(
    "it to be over",
    async () => (await first.view())?.alerts.every(({ name }) => name !== "url_shared") === true,
  );
}, 120_000);

test("a frozen node loses its id to the process that replaces it, and ends when it goes on", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const [frozen] = await site.standbys();
  frozen!.stop();
  onTestFinished(() => frozen!.cont());
  const replacement = await node(frozen!.id, siteUrl(site.server));
  replacement.start();
  await waitFor("the replacement to be ready", async () => (await replacement.view())?.is_ready === true);
  frozen!.cont();
  const { code, log } = await frozen!.ended();
  expect(code).toBe(CONFIGURATION);
  expect(log).toContain(`another process runs as node ${frozen!.id}`);
}, 120_000);

test("a node that is killed and started again at once has its id back, and its place in the site", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const [standby] = await site.standbys();
  const before = (await standby!.view())?.incarnation;
  await standby!.restart();
  await site.cluster.steady();
  const view = await standby!.view();
  expect(view?.incarnation).not.toBe(before);
  expect(view?.members.map(({ node_id }) => node_id)).toEqual(["n1", "n2"]);
}, 120_000);

test("the grants of permissions.md, the elector's and the server's, are all that a node needs", async () => {
  const server = await postgres();
  await server.query(schemaSql("tenure"));
  const document = readFileSync(new URL("../../docs/reference/permissions.md", import.meta.url), "utf8");
  for (const name of ["elector", "log"]) {
    const [, block = ""] = document.split(`\`\`\`sql ${name}\n`);
    await server.query(block.split("```")[0]!);
  }
  await server.query("create role app login password 'pw' in role tenure_elector, tenure_log");
  const url = `${server.url("postgres", "app", "pw")}?tenure_pg_schema=tenure&tenure_pg_migrate=check`;
  const lone = await node("n1", url);
  lone.start();
  await waitFor("it to lead", async () => (await lone.view())?.role === "LEADER");
  const { status } = await lone.call("/v1/jobs", { key, body: { kind: "k" } });
  expect(status).toBe(200);
  const [submitted] = await server.query<{ id: string }>("select tenure.tenure_submit('k', '1') as id");
  await waitFor("the submission to be taken over", async () => {
    return (await lone.call(`/v1/jobs/${submitted!.id}`, { key })).status === 200;
  });
  expect(await lone.term()).toBe(0);
}, 60_000);

test("without the schema, and told only to check, a node ends and says what to run", async () => {
  const server = await postgres();
  const lone = await node("n1", `${siteUrl(server)}&tenure_pg_migrate=check`);
  lone.start();
  const { code, log } = await lone.ended();
  expect(code).toBe(CONFIGURATION);
  expect(log).toContain("tenure schema apply");
}, 60_000);

test("with a schema that is too old, and told only to check, a node ends and says so", async () => {
  const server = await postgres();
  await server.query(schemaSql("public"));
  await server.query("drop table tenure_inbox; delete from tenure_schema_version where version > 1");
  const lone = await node("n1", `${siteUrl(server)}&tenure_pg_migrate=check`);
  lone.start();
  const { code, log } = await lone.ended();
  expect(code).toBe(CONFIGURATION);
  expect(log).toContain("of version 1, too old");
}, 60_000);

test("a wrong password ends it, and stands in no line of its log", async () => {
  const server = await postgres();
  await server.query("create role app login password 'right-one'");
  const secret = "wr0ng-and-secret";
  const lone = await node("n1", server.url("postgres", "app", secret));
  lone.start();
  const { code, log } = await lone.ended();
  expect(code).toBe(NO_RIGHT);
  expect(log).toContain("password");
  expect(log).not.toContain(secret);
}, 60_000);

test("a node that is started before its database waits for it", async () => {
  const server = await postgres();
  await server.stop();
  const early = await node("n1", siteUrl(server));
  early.start();
  await waitFor("it to have tried", () =>
    Promise.resolve(early.log().includes("this node is not known in the database")),
  );
  await server.start();
  await waitFor("it to lead", async () => (await early.view())?.role === "LEADER");
  expect(await early.term()).toBe(0);
}, 60_000);

test.each([
  ["peers", { peers: { n2: "127.0.0.1:1" } }],
  ["election", { election: { enable_lease: true } }],
  ["bootstrap", { bootstrap: { expect: ["n2"] } }],
  ["peer", { peer: { listen: "127.0.0.1:1" } }],
])("%s beside a backend is refused: it would mean nothing", async (field, change) => {
  const lone = await node("n1", `postgres://nobody@127.0.0.1:${await freePort()}/none`);
  lone.configure(change);
  lone.start();
  const { code, log } = await lone.ended();
  expect(code).toBe(CONFIGURATION);
  expect(log).toContain(`${field} means nothing with backend`);
});
