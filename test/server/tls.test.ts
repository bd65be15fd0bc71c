// A cluster with mutual TLS between its nodes and on its API, set up with `tenure cert` as the documentation says: who is let
// in, who is not, and how certificates are renewed while it runs.

import { X509Certificate } from "node:crypto";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { tenure } from "../cli/test-tenure.ts";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { Stranger } from "../wire/test-stranger.ts";
import { Ledger } from "./test-ledger.ts";

let cluster: TenureCluster;
let ledger: Ledger;
let ca: string;

beforeAll(async () => {
  cluster = await startTenureCluster({ tls: true, election: CALM_ELECTION });
  ledger = new Ledger(cluster);
  ca = readFileSync(join(cluster.authority, "ca.crt"), "utf8");
}, 120_000);

afterAll(() => cluster?.end());

interface Files {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

async function filesOf(kind: "operator" | "sdk", name: string): Promise<Files & { readonly directory: string }> {
  const directory = await cluster.issueTo(kind, name);
  const read = (file: string): string => readFileSync(join(directory, file), "utf8");
  return { directory, ca: read("ca.crt"), cert: read(`${kind}-${name}.crt`), key: read(`${kind}-${name}.key`) };
}

/** The cluster's term and members: nobody has campaigned, nobody was added. */
async function facts(): Promise<unknown> {
  const view = await cluster.node(await cluster.leader()).view();
  return { term: view?.term, members: view?.members.map((one) => [one.node_id, one.incarnation, one.kind]) };
}

describe("the API", () => {
  test("knows an operator by its certificate, and names it in the audit", async () => {
    const tls = await filesOf("operator", "alice");
    const leader = cluster.node(await cluster.leader());
    expect(await leader.call("/v1/admin/snapshot", { body: {}, tls })).toMatchObject({ status: 200 });
    const { body } = await leader.call<{ records: Record<string, unknown>[] }>("/v1/admin/audit", { tls });
    expect(body.records[0]).toMatchObject({ how: "certificate", role: "operator", outcome: "OK" });
    expect(String(body.records[0]?.["who"])).toContain("alice");
    const access = ["--ca", "ca.crt", "--cert", "operator-alice.crt", "--client-key", "operator-alice.key"];
    const flags = access.map((one) => (one.startsWith("--") ? one : join(tls.directory, one)));
    const status = await tenure("cluster", "status", "--url", cluster.urls.join(","), ...flags);
    expect(status).toMatchObject({ code: 0, stderr: "" });
  });

  test("knows a program by its certificate as a client, and lets it steer nothing", async () => {
    const tls = await filesOf("sdk", "reports");
    const leader = cluster.node(await cluster.leader());
    const body = { session: "s", identity: "reports", ttl_ms: 60_000, wait_ms: 0 };
    expect(await leader.call("/v1/scopes/reports/acquire", { tls, body })).toMatchObject({ body: { granted: true } });
    expect(await leader.call("/v1/admin/transfer", { tls, body: {} })).toMatchObject({ status: 403 });
  });

  test("takes a key from who shows no certificate, and nothing from who shows neither", async () => {
    const leader = cluster.node(await cluster.leader());
    expect(await leader.call("/leader", { tls: { ca }, key: CLIENT_KEY })).toMatchObject({ status: 200 });
    expect(await leader.call("/v1/admin/snapshot", { tls: { ca }, key: OPERATOR_KEY, body: {} })).toMatchObject({
      status: 200,
    });
    expect(await leader.call("/leader", { tls: { ca } })).toMatchObject({ status: 401 });
  });
});

describe("a node does not start, exit 78,", () => {
  let dataDir = "";

  async function refused(
    spoil: (node: TenureNode) => Promise<void> | void,
  ): Promise<{ code: number | null; log: string }> {
    const node = await cluster.make("n9");
    ({ dataDir } = node);
    onTestFinished(() => cluster.forget("n9"));
    await spoil(node);
    node.start(["--bootstrap"]);
    return node.ended();
  }

  test("with another node's certificate", async () => {
    const { code, log } = await refused((node) => {
      for (const end of ["crt", "key"])
        cpSync(join(cluster.node("n1").home, `n1.${end}`), join(node.home, `n9.${end}`));
    });
    expect({ code, log }).toMatchObject({ code: 78, log: expect.stringContaining("n1") });
  });

  test.for(["peer", "api"] as const)("with a certificate that is none, for %s", async (which) => {
    const { code, log } = await refused((node) => {
      writeFileSync(join(node.home, "none.crt"), "not a certificate");
      const section = node.config[which]!;
      node.configure({ [which]: { ...section, tls: { ...section.tls, cert_file: "none.crt" } } });
    });
    expect({ code, log }).toMatchObject({ code: 78, log: expect.stringContaining("CERTIFICATE_INVALID") });
    // Nothing was founded.
    expect(existsSync(join(dataDir, "stamp"))).toBe(false);
  });
});

describe("at the peer port", () => {
  const target = (): TenureNode => cluster.node("n2");
  const port = (): number => Number(target().peerAddress.split(":")[1]);

  async function refusals(reason: string): Promise<number> {
    const { body } = await target().call<{ text: string }>("/metrics", { key: CLIENT_KEY });
    const line = new RegExp(`^tenure_peer_connections_refused_total\\{reason="${reason}"\\} (\\d+)$`, "m");
    return Number(line.exec(body.text)?.[1] ?? Number.NaN);
  }

  /** The cluster's own authority, in the hands of somebody who signs what `tenure cert` never would. */
  function forger(): TestAuthority {
    const key = readFileSync(join(cluster.authority, "ca.key"), "utf8");
    return TestAuthority.of({ cert: ca, key });
  }

  const strangers: readonly (readonly [who: string, reason: string, tls: () => Promise<Files>])[] = [
    ["of another authority", "certificate", async () => (await TestAuthority.make()).node("n3")],
    ["whose certificate is over", "certificate", () => forger().node("n3", { agedDays: 11 })],
    ["with two identities", "certificate-identity", () => forger().forged([uri("n3"), uri("n4")])],
    ["of another trust domain", "certificate-identity", () => forger().node("n3", { trustDomain: "elsewhere" })],
  ];

  function uri(nodeId: string): string {
    return `spiffe://tenure/server/${nodeId}`;
  }

  test.for(strangers)(
    "one %s is refused and counted; the cluster goes on, in the same term",
    async ([, reason, tls]) => {
      const [before, was] = [await facts(), await refusals(reason)];
      const stranger = await Stranger.dial(port(), await tls()).catch(() => null);
      stranger?.hello({ nodeId: "n3" });
      await waitFor(`${reason} to be counted`, async () => (await refusals(reason)) > was);
      if (stranger !== null) await waitFor("its end", () => stranger.isClosed);
      await ledger.write();
      expect(await facts()).toEqual(before);
      expect(await ledger.lost()).toEqual([]);
    },
  );
});

describe("SIGHUP", () => {
  /** The serial number of what a client is shown. */
  function shown(node: TenureNode): Promise<string> {
    const { hostname: host, port } = new URL(node.url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
        const { serialNumber } = socket.getPeerCertificate();
        socket.destroy();
        resolve(serialNumber);
      });
      socket.once("error", reject);
    });
  }

  test("shows a re-issued certificate to whoever connects, and nobody campaigns for it", async () => {
    const before = await facts();
    ledger.begin(1);
    for (const node of cluster.nodes) {
      const was = await shown(node);
      await cluster.issue(node.id);
      node.signal("SIGHUP");
      await waitFor("the new certificate", async () => (await shown(node)) !== was);
      await waitFor("it to say so", () => node.log().includes('"event":"reloaded"'));
      // In use, not only on the disk: both are counted from what was taken over.
      const { validToDate } = new X509Certificate(readFileSync(join(node.home, `${node.id}.crt`)));
      const { body } = await node.call<{ text: string }>("/metrics", { key: CLIENT_KEY });
      for (const use of ["peer", "api"])
        expect(body.text).toContain(
          `tenure_certificate_not_after_seconds{use="${use}"} ${validToDate.getTime() / 1_000}\n`,
        );
    }
    await ledger.progress(5);
    await ledger.rest();
    expect(await facts()).toEqual(before);
  });

  test("a certificate that ends within two weeks is an alert of its node, until another one is taken", async () => {
    const node = cluster.node("n2");
    const alerts = async (): Promise<unknown[]> =>
      (await node.view())?.alerts.filter(({ name }) => name === "certificate_ends") ?? [];
    expect(await alerts()).toEqual([]);
    const issue = ["cert", "issue", "--dir", cluster.authority, "--out", node.home, "--node-id", "n2", "-o", "json"];
    expect(await tenure(...issue, "--days", "5")).toMatchObject({ code: 0 });
    node.signal("SIGHUP");
    await waitFor("its alert", async () => (await alerts()).length === 1);
    expect(await alerts()).toMatchObject([
      {
        severity: "warning",
        node_id: "n2",
        message: expect.stringMatching(/for other nodes .* ends in 4 days, and .* for clients .* ends in 4 days: /),
      },
    ]);
    expect(await tenure(...issue)).toMatchObject({ code: 0 });
    node.signal("SIGHUP");
    await waitFor("its end", async () => (await alerts()).length === 0);
  });

  test("with files that can't be used changes nothing, and says so", async () => {
    const node = cluster.node("n3");
    const [was, before] = [await shown(node), await facts()];
    const file = join(node.home, "n3.crt");
    const good = readFileSync(file, "utf8");
    writeFileSync(file, (await (await TestAuthority.make()).node("n3")).cert);
    node.signal("SIGHUP");
    await waitFor("its complaint", () => node.log().includes('"event":"reload-failed"'));
    expect(await shown(node)).toBe(was);
    writeFileSync(file, good);
    await ledger.write();
    expect(await facts()).toEqual(before);
  });

  test("and a node that is killed comes back with its new certificate", async () => {
    await cluster.node("n3").restart();
    await cluster.steady();
    expect(await ledger.lost()).toEqual([]);
  });
});
