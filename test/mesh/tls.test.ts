// Sites that know each other by certificates alone: a hub, a site under the hub's own authority, and one with an authority of its own. Both
// join with no API key at all; whoever shows a certificate that is not that site's changes nothing.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { IdentityKind } from "../../src/core/kit/spiffe.ts";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { temporaryDirectory } from "../servers/directories.ts";
import { type TenureAnswer, type TenureNode, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

const HOST = "127.0.0.1";
const DAY_MS = 86_400_000;

let files: string;
/** Of the hub and of `near`, and of `far` alone. */
let common: Authority;
let own: Authority;
let hub: TestSite;
let near: TestSite;
let far: TestSite;

interface Authority {
  readonly trustDomain: string;
  readonly ca: KeyPair;
  readonly caFile: string;
}

interface Shown {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

beforeAll(async () => {
  files = await temporaryDirectory("mesh-tls", undefined);
  common = await authority("hub.example");
  own = await authority("far.example");
  hub = await start("hub", common, {
    peers: [{ id: "far", ca_file: own.caFile, trust_domain: own.trustDomain }],
  });
  const parent_urls = [hub.url];
  near = await start("near", common, { parent_urls, ...(await siteFiles("near", common)) });
  far = await start("far", own, {
    parent_urls,
    ...(await siteFiles("far", own)),
    peers: [{ id: "hub", ca_file: common.caFile, trust_domain: common.trustDomain }],
  });
}, SITES_START_MS);

afterAll(() => Promise.all([hub?.end(), near?.end(), far?.end()]), 60_000);

async function authority(trustDomain: string, name = trustDomain): Promise<Authority> {
  const ca = await createCa({ trustDomain, nowMs: Date.now() });
  const caFile = join(files, `${name}.crt`);
  writeFileSync(caFile, ca.cert);
  return { trustDomain, ca, caFile };
}

async function certificate(by: Authority, kind: IdentityKind, name: string, agedDays = 0): Promise<KeyPair> {
  const identity = { trustDomain: by.trustDomain, kind, name };
  return issue({ ca: by.ca, identity, hosts: [HOST], days: 10, nowMs: Date.now() - agedDays * DAY_MS });
}

function write(directory: string, name: string, { cert, key }: KeyPair): { cert_file: string; key_file: string } {
  mkdirSync(directory, { recursive: true });
  const [cert_file, key_file] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  writeFileSync(cert_file, cert);
  writeFileSync(key_file, key, { mode: 0o600 });
  return { cert_file, key_file };
}

/** What the site shows to others. */
async function siteFiles(id: string, by: Authority): Promise<{ cert_file: string; cert_key_file: string }> {
  const { cert_file, key_file } = write(files, `site-${id}`, await certificate(by, "controller", id));
  return { cert_file, cert_key_file: key_file };
}

/** With TLS on its API, which asks for certificates; its node has one of the kind `server`, as each node does. */
async function start(id: string, by: Authority, mesh: Readonly<Record<string, unknown>>): Promise<TestSite> {
  const node = await certificate(by, "server", "n1");
  return TestSite.start({
    id,
    mesh,
    prepare: (one: TenureNode) => {
      const { api } = one.config;
      const tls = { ...write(one.home, "api", node), client_ca_file: by.caFile };
      one.configure({ api: { ...api!, advertise: `https://${api!.listen!}`, tls } });
    },
  });
}

async function shownBy(by: Authority, kind: IdentityKind, name: string, agedDays?: number): Promise<Shown> {
  const { cert, key } = await certificate(by, kind, name, agedDays);
  return { ca: common.ca.cert, cert, key };
}

/** A stream in the name of a site: the first thing for which one must be that site. */
function asSite(controller: string, tls: Shown): Promise<TenureAnswer> {
  return hub.node.call("/api/events/broadcast", { tls, body: { controller, pages: [], heads: [] } });
}

describe("sites with certificates and without keys", () => {
  it(
    "join, under one authority or under two, and have the same history",
    async () => {
      for (const site of [hub, near, far]) await site.submit(3);
      await haveTheSame([hub, near, far]);
    },
    SPREAD_MS + 10_000,
  );

  it(
    "join again after a restart of the hub, which compares its line with both",
    async () => {
      await hub.node.restart();
      await waitFor(
        "the hub to sign",
        async () => (await hub.get<{ status: string }>("/v1/mesh/sites").catch(() => null))?.status === "signing",
        SPREAD_MS,
      );
      await far.submit(1);
      await haveTheSame([hub, near, far]);
    },
    2 * SPREAD_MS,
  );
});

describe("at the hub", () => {
  const denied = { status: 403, body: { error: "PERMISSION_DENIED" } };

  it("a site speaks for itself", async () => {
    expect(await asSite("near", await shownBy(common, "controller", "near"))).toMatchObject({ status: 200 });
    expect(await asSite("far", await shownBy(own, "controller", "far"))).toMatchObject({ status: 200 });
  });

  const wrong: readonly (readonly [who: string, claims: string, tls: () => Promise<Shown>])[] = [
    ["another site of the same authority", "near", () => shownBy(common, "controller", "far")],
    ["a node's certificate", "near", () => shownBy(common, "server", "near")],
    ["a program's certificate", "near", () => shownBy(common, "sdk", "near")],
    ["an agent's certificate", "near", () => shownBy(common, "agent", "near")],
    ["a viewer's certificate", "near", () => shownBy(common, "viewer", "near")],
    ["the hub's authority for the site with an authority of its own", "near", () => shownBy(own, "controller", "far")],
  ];

  it.each(wrong)("nobody else does: %s", async (_who, claims, tls) => {
    expect(await asSite(claims, await tls())).toMatchObject(denied);
  });

  const nobody: readonly (readonly [who: string, tls: () => Promise<Shown>])[] = [
    ["another id by far's authority", () => shownBy(own, "controller", "near")],
    ["an operator by far's authority", () => shownBy(own, "operator", "far")],
    ["a node by far's authority", () => shownBy(own, "server", "far")],
    [
      "far's authority in the hub's trust domain",
      () => shownBy({ ...own, trustDomain: common.trustDomain }, "controller", "near"),
    ],
    [
      "the hub's authority in far's trust domain",
      () => shownBy({ ...common, trustDomain: own.trustDomain }, "controller", "far"),
    ],
    ["nobody's certificate", () => Promise.resolve({ ca: common.ca.cert })],
    [
      "an authority that nobody has named",
      async () => shownBy(await authority(common.trustDomain, "other"), "controller", "near"),
    ],
    ["a certificate that is over", () => shownBy(common, "controller", "near", 11)],
  ];

  it.each(nobody)("is nobody at all: %s", async (_who, tls) => {
    const answer = await asSite("near", await tls());
    expect(answer).toMatchObject({ status: 401, body: { error: "UNAUTHENTICATED" } });
  });

  it("a site's certificate reads what sites exchange, and nothing else", async () => {
    const tls = await shownBy(common, "controller", "near");
    expect(await hub.node.call("/v1/mesh/heads", { tls })).toMatchObject({ status: 200 });
    expect(await hub.node.call("/v1/jobs", { tls })).toMatchObject(denied);
    expect(await hub.node.call("/v1/admin/audit", { tls })).toMatchObject(denied);
  });

  it("a viewer's key is no site", async () => {
    const body = { controller: "near", pages: [], heads: [] };
    const tls = { ca: common.ca.cert };
    expect(await hub.node.call("/api/events/broadcast", { tls, key: VIEWER_KEY, body })).toMatchObject(denied);
  });
});

it(
  "a site that shows no certificate, or does not know the hub's authority, says why it is not joined",
  async () => {
    const problems = async (mesh: Readonly<Record<string, unknown>>): Promise<string> => {
      await near.node.term();
      near.node.configure({ mesh: { mode: "distributed", controller_id: "near", parent_urls: [hub.url], ...mesh } });
      near.node.start();
      let problem = "";
      await waitFor(
        "a problem",
        async () => {
          const shown = await near
            .get<{ links: readonly { problem?: string | null }[] }>("/v1/mesh/sites")
            .catch(() => null);
          problem = shown?.links.map((link) => link.problem ?? "").join() ?? "";
          return problem !== "" && problem !== "not reached yet";
        },
        SPREAD_MS,
      );
      return problem;
    };
    expect(await problems({})).toMatch(/nobody is known to call|client certificate/i);
    const elsewhere = { peers: [{ id: "far", ca_file: own.caFile, trust_domain: own.trustDomain }] };
    const strange = near.node.config.api!;
    near.node.configure({ api: { ...strange, tls: { ...strange.tls!, client_ca_file: undefined } as never } });
    expect(await problems({ ...(await siteFiles("near", common)), ...elsewhere })).toMatch(/mesh\.peers\[\]\.ca_file/);
    near.node.configure({ api: strange });
  },
  3 * SPREAD_MS,
);
