// Failover of the database: standbys grant nothing, and a promoted one never gives out an epoch a second time.

import { afterEach, expect, it } from "vitest";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { Candidate, led } from "./test-elector.ts";
import { NEVER, seatOf } from "./test-seat.ts";

const servers: PostgresServer[] = [];
const proxies: TcpProxy[] = [];
const candidates: Candidate[] = [];

afterEach(async () => {
  await Promise.all(candidates.splice(0).map((one) => one.close()));
  await Promise.all(proxies.splice(0).map((one) => one.end()));
  await Promise.all(servers.splice(0).map((one) => one.end()));
});

async function pair(): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
  const primary = await startPostgres({ settings: { fsync: "off" } });
  servers.push(primary);
  const standby = await primary.standby();
  servers.push(standby);
  return { primary, standby };
}

it("trap 37: refuses a hot standby, keeps trying, and leads after its promotion", async () => {
  const { primary, standby } = await pair();
  const seat = seatOf({ url: primary.url() }, "standby");
  const { epoch } = await seat.acquire(NEVER);
  await standby.caughtUp(primary);
  const candidate = new Candidate("standby", { url: standby.url() });
  candidates.push(candidate);
  await waitFor("the refusal", () => candidate.warnings.length > 0);
  expect(candidate.warnings[0]).toContain(`Postgres at 127.0.0.1:${standby.port}/postgres is a standby`);
  expect(candidate.warnings[0]).toContain("Point the URL at the primary");
  expect(candidate.epochs).toEqual([]);
  await seat.close();
  await primary.stop("immediate");
  await standby.promote();
  expect((await led([candidate], epoch)).epoch).toBeGreaterThan(epoch);
});

it("trap 38: a promoted replica that lacks the last epochs hands out higher ones all the same", async () => {
  const { primary, standby } = await pair();
  const proxy = await startProxy({ host: "127.0.0.1", port: primary.port });
  proxies.push(proxy);
  const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
  const first = new Candidate("failover", { url });
  const second = new Candidate("failover", { url });
  candidates.push(first, second);
  const before = await led(candidates);
  await standby.caughtUp(primary);
  // From here on the replica hears nothing: what follows is lost with the primary.
  await standby.query("alter system set primary_conninfo = ''");
  await standby.query("select pg_reload_conf()");
  await waitFor("the replica to be cut off", async () => {
    const rows = await primary.query("select from pg_stat_replication");
    return rows.length === 0;
  });
  let lost = before.epoch;
  for (let terms = 0; terms < 3; terms++) {
    await primary.query("select tenure_ask_resign('failover', true)");
    lost = (await led(candidates, lost)).epoch;
  }
  expect(lost).toBeGreaterThan(before.epoch);
  proxy.cut("both", "refused");
  await primary.stop("immediate");
  await standby.promote();
  const [row] = await standby.query<{ epoch: string }>("select epoch::text from tenure_leader_state");
  expect(Number(row?.epoch)).toBeLessThan(lost);
  proxy.swap({ host: "127.0.0.1", port: standby.port });
  await proxy.heal();
  const after = await led(candidates, lost);
  expect(after.epoch).toBe(2 ** 32 + 1);
  // What the old primary's leader would still write, the new one refuses.
  await expect(standby.query("select tenure_require_epoch('failover', $1)", [lost])).rejects.toMatchObject({
    code: "TN001",
  });
});

it("ends a term at once when its server was made read-only, and leads again when it is writable", async () => {
  const primary = await startPostgres({ settings: { fsync: "off" } });
  servers.push(primary);
  const candidate = new Candidate("read-only", { url: primary.url() });
  candidates.push(candidate);
  const { epoch } = await led([candidate]);
  await primary.query("alter system set default_transaction_read_only = on");
  await primary.query("select pg_reload_conf()");
  await waitFor("the end of the term", () => candidate.ends.length > 0);
  expect(candidate.ends[0]).toBe("read-only");
  await waitFor("the refusal", () => candidate.warnings.some((one) => one.includes("25006")));
  // Not a transaction of its own, so it is allowed now too.
  await primary.query("alter system reset default_transaction_read_only");
  await primary.query("select pg_reload_conf()");
  expect((await led([candidate], epoch)).epoch).toBeGreaterThan(epoch);
});
