// Keys and certificates: who may lead, where the key goes, and where it never goes.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { findProgram } from "../servers/server-process.ts";
import { waitFor } from "../servers/index.ts";
import { electorAt, freshScope, never, quickServers, seatAt, testCluster } from "./test-electors.ts";

const openssl = findProgram("openssl");
const KEYS = { "client-key": "client", "operator-key": "operator" } as const;

describe("a cluster with keys", () => {
  test("lets a client lead, and an operator ask it to resign", async () => {
    const cluster = await testCluster({ keys: KEYS });
    const scope = freshScope();
    const { elector } = electorAt(quickServers(cluster.urls, { key: "client-key" }), scope, "a");
    const term = await elector.acquire();
    const admin = quickServers(cluster.urls, { key: "operator-key" }).admin();
    onTestFinished(() => admin.close());
    expect(await admin.askResign(scope, false)).toEqual({ epoch: term.epoch });
    await waitFor("the leader to hear of it", () => term.signal.aborted);
    await term.resign();
    expect((await admin.list()).find((one) => one.scope === scope)).toMatchObject({ identity: null });
    expect((await admin.history(scope)).map(({ reason }) => reason)).toEqual(["resigned", "acquired"]);
    expect(await admin.history("never-led")).toEqual([]);
    expect(await admin.askResign(scope, true)).toBeNull();
  });

  test.each([
    ["a wrong key", "wrong-key"],
    ["no key", undefined],
  ])("refuses %s with a message that says what to do, and does not repeat it", async (_what, key) => {
    const cluster = await testCluster({ keys: KEYS });
    const { seat } = seatAt(quickServers(cluster.urls, { key }), freshScope());
    const error = await seat.acquire(never).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
    expect(String(error)).toMatch(/option "key"; TENURE_API_KEY/);
    expect(String(error)).not.toContain("wrong-key");
  });

  test("refuses a client that plays the operator, and says which role that needs", async () => {
    const cluster = await testCluster({ keys: KEYS });
    const admin = quickServers(cluster.urls, { key: "client-key" }).admin();
    onTestFinished(() => admin.close());
    await expect(admin.askResign(freshScope(), true)).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringMatching(/role.*operator/),
    });
  });
});

test("trap 64: the key is sent to no stranger, however often a member names one as the leader", async () => {
  let visits = 0;
  const stranger = createServer((_request, response) => {
    visits++;
    response.end("{}");
  });
  await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void stranger.close());
  const evil = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  const cluster = await testCluster({ keys: KEYS });
  const { seat } = seatAt(quickServers(cluster.urls, { key: "client-key" }), freshScope());
  const { epoch } = await seat.acquire(never);
  for (const node of cluster.nodes) {
    node.intercept = (_request, response, path) => {
      const leader = { leader_id: "evil", leader_url: evil, leader_epoch: 99, term: 99, node_id: node.id };
      if (path === "/leader") response.end(JSON.stringify({ ...leader, leader_address: null }));
      else
        response
          .writeHead(409)
          .end(JSON.stringify({ error: "NOT_LEADER", message: "go there", ...leader, role: "STANDBY" }));
      return true;
    };
  }
  await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  expect(visits).toBe(0);
});

test("two clusters among the URLs are refused: their epochs do not compare", async () => {
  const [one, other] = [await testCluster(), await testCluster()];
  const scope = freshScope();
  const { seat } = seatAt(quickServers(one.urls), scope);
  const { epoch } = await seat.acquire(never);
  // The nodes come back as another cluster, at the same addresses.
  for (const node of one.nodes) await node.kill();
  one.clusterId = other.clusterId;
  for (const node of one.nodes) await node.start();
  await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "CLUSTER_MISMATCH" });
  const mixed = seatAt(quickServers([testUrl(one), testUrl(await testCluster())]), scope);
  await expect(mixed.seat.acquire(never)).rejects.toMatchObject({ code: "CLUSTER_MISMATCH" });
});

test("another cluster is noticed also where its answers do not name it", async () => {
  const cluster = await testCluster({ header: false });
  const backend = quickServers(cluster.urls);
  const { seat } = seatAt(backend, freshScope());
  await seat.release((await seat.acquire(never)).epoch);
  for (const node of cluster.nodes) await node.kill();
  cluster.clusterId = "another";
  for (const node of cluster.nodes) await node.start();
  await expect(seat.acquire(never)).rejects.toMatchObject({ code: "CLUSTER_MISMATCH" });
});

describe.skipIf(openssl === undefined)("a cluster behind TLS (skipped without the program openssl)", () => {
  let files: { key: Buffer; cert: Buffer };
  beforeAll(() => {
    files = selfSigned();
  });

  test("is used with a trusted authority and a client certificate, and fails over", async () => {
    const cluster = await testCluster({
      tls: { ...files, requestCert: true, rejectUnauthorized: true, ca: files.cert },
    });
    const tls = { ca: files.cert, cert: files.cert, key: files.key };
    const { elector } = electorAt(quickServers(cluster.urls, { tls }), freshScope(), "a");
    const { epoch } = await elector.acquire();
    await cluster.node(0).kill();
    cluster.elect(1);
    await waitFor("a beat at n2", () => cluster.node(1).asked.some(({ path }) => path.endsWith("/renew")));
    expect(elector.gate.requireLeader()).toBe(epoch);
    const { seat } = seatAt(quickServers(cluster.urls, { tls: { ca: files.cert } }), freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({ message: expect.stringMatching(/client certificate/) });
  });

  test("is refused with an unknown authority, and the message says how to trust it", async () => {
    const cluster = await testCluster({ tls: files });
    const { seat } = seatAt(quickServers(cluster.urls), freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({
      code: "BACKEND_UNSUPPORTED",
      message: expect.stringMatching(/not trusted.*tls\.ca/),
    });
  });

  test("leads nobody to http://, although its members advertise that", async () => {
    const plain = await testCluster({ nodes: 1 });
    const cluster = await testCluster({ tls: files, advertise: () => plain.node(0).url });
    await cluster.node(0).kill();
    cluster.elect(0);
    const backend = quickServers([cluster.node(1).url], { tls: { ca: files.cert }, key: "k" });
    const { seat } = seatAt(backend, freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({
      message: expect.stringMatching(/none that may be used/),
    });
    expect(plain.node(0).asked).toEqual([]);
  });
});

function testUrl(cluster: { urls: string[] }): string {
  return cluster.urls[0] ?? "";
}

function selfSigned(): { key: Buffer; cert: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), "tenure-tls-"));
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync(openssl ?? "", [...kind, "-keyout", key, "-out", cert, ...names], { stdio: "ignore" });
  const files = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(directory, { recursive: true });
  return files;
}
