// The registry of sites over HTTP: what a site sends and is answered, for whom a key or a certificate may act, and what is written down.

import { createHash, generateKeyPairSync } from "node:crypto";
import { expect, it } from "vitest";
import type { ApiKey } from "../../src/contract/index.ts";
import { standalone } from "../../src/controller/mesh/own/own-view.ts";
import { lineIdOf, ringHashOf, ringKeyOf, toBase64 } from "../../src/core/mesh/proof/index.ts";
import { possessionText } from "../../src/core/mesh/registry/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { signerOf } from "../../src/drivers/system/signatures.ts";
import { KEYS, startApi } from "./test-api.ts";
import { OWN } from "./test-controllers.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const SITE_KEYS: readonly ApiKey[] = [...KEYS, { name: "site-b", sha256: sha256("site-b-key"), role: "controller" }];
const REGISTER = "/api/controllers/register";
const site = (id: string, metadata?: object) => ({ id, url: `http://${id}:7401`, name: `Site ${id}`, metadata });

/** What a site with one node shows. */
function shownBy(id: string, node = "n1") {
  const signer = signerOf(generateKeyPairSync("ed25519").privateKey);
  const ring = { controller: id, generation: 1, author: id, keys: [ringKeyOf(node, signer.publicKey)] };
  const text = possessionText({ id, url: `http://${id}:7401`, receiver: OWN.controllerId });
  const proof = { key: toBase64(signer.publicKey), signature: toBase64(signer.sign(text)) };
  return { line: lineIdOf(ring, systemDigest), ring, proof };
}

it("a site registers, is heard, and is listed with what it says of itself", async () => {
  await using t = await startApi({ keys: SITE_KEYS });
  const before = Date.now();
  const shown = shownBy("site-b");
  const metadata = { version: "1.2.3", urls: ["http://n2:7401"], rack: { row: 3 }, ...shown };
  const made = await t.call("POST", REGISTER, site("site-b", metadata), "site-b-key");
  expect([made.status, made.json?.["id"]]).toEqual([200, "site-b"]);
  expect(made.json?.["expiresAt"]).toBeGreaterThanOrEqual(before + 300_000);
  const beat = await t.call("POST", "/api/controllers/site-b/heartbeat", undefined, "site-b-key");
  expect([beat.status, Object.keys(beat.json ?? {})]).toEqual([200, ["expiresAt"]]);
  const { json } = await t.call("GET", "/api/controllers", undefined, "site-b-key");
  expect(json?.["controllers"]).toMatchObject([
    { id: "c-test", status: "own", isActive: true },
    {
      id: "site-b",
      url: "http://site-b:7401",
      name: "Site site-b",
      isActive: true,
      metadata: { version: "1.2.3", urls: ["http://n2:7401"], rack: { row: 3 }, line: shown.line, ring: shown.ring },
    },
  ]);
  expect(JSON.stringify(json)).not.toContain("proof");
});

it("a heartbeat of a site that is not registered is 404, and registering again heals it", async () => {
  await using t = await startApi({ keys: SITE_KEYS });
  const beat = () => t.call("POST", "/api/controllers/site-b/heartbeat", {}, "site-b-key");
  expect([(await beat()).status, (await beat()).json?.["error"]]).toEqual([404, "NOT_FOUND"]);
  await t.call("POST", REGISTER, site("site-b"), "site-b-key");
  expect((await beat()).status).toBe(200);
});

it("a key acts for the site that it is named after, an operator for any", async () => {
  await using t = await startApi({ keys: SITE_KEYS });
  const other = await t.call("POST", REGISTER, site("site-c"), "site-b-key");
  expect([other.status, other.json?.["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  expect((await t.call("POST", REGISTER, site("site-c"), "operator-key")).status).toBe(200);
  const beat = await t.call("POST", "/api/controllers/site-c/heartbeat", {}, "site-b-key");
  expect([beat.status, beat.json?.["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  expect((await t.call("GET", "/v1/cluster", undefined, "site-b-key")).status).toBe(403);
});

it("another ring under a known id is 409 until an operator approves it, which is written down", async () => {
  await using t = await startApi({ keys: SITE_KEYS });
  const register = (shown: object) => t.call("POST", REGISTER, site("site-b", shown), "site-b-key");
  const [first, second] = [shownBy("site-b"), shownBy("site-b")];
  expect((await register(first)).status).toBe(200);
  const conflict = await register(second);
  expect([conflict.status, conflict.json?.["error"]]).toEqual([409, "CONTROLLER_CONFLICT"]);
  const hash = ringHashOf(second.ring, systemDigest);
  expect(conflict.json?.["message"]).toContain(`tenure mesh approve site-b --ring ${hash}`);
  const approved = await t.call("POST", "/v1/mesh/sites/site-b/approve", { ring: hash });
  expect([approved.status, approved.json]).toEqual([
    200,
    { id: "site-b", name: "Site site-b", url: "http://site-b:7401", status: "approved" },
  ]);
  expect((await register(second)).status).toBe(200);
  expect((await register(first)).status).toBe(200);
  const evicted = await t.call("POST", "/v1/mesh/sites/site-b/evict", {});
  expect(evicted.json).toMatchObject({ status: "evicted" });
  expect((await register(second)).status).toBe(403);
  expect((await t.call("POST", "/v1/mesh/sites/nobody/evict", {})).status).toBe(404);
  const all = await t.call("GET", "/api/controllers?all=true", undefined, "viewer-key");
  const active = await t.call("GET", "/api/controllers", undefined, "viewer-key");
  expect([all, active].map(({ json }) => (json!["controllers"] as unknown[]).length)).toEqual([2, 1]);
  const { json } = await t.call("GET", "/v1/admin/audit");
  const records = json?.["records"] as Record<string, unknown>[];
  expect(records.map((one) => [one["operation"], one["target"], one["outcome"]])).toEqual([
    ["evictSite", "nobody", "NOT_FOUND"],
    ["evictSite", "site-b", "OK"],
    ["approveSite", "site-b", "OK"],
  ]);
});

it("what is not well-formed is refused by its field", async () => {
  await using t = await startApi({ keys: SITE_KEYS });
  const wrong: readonly [object, string][] = [
    [{ ...site("site-b"), id: "Site B" }, "id"],
    [{ ...site("site-b"), url: "http://site-b:7401/path" }, "url"],
    [{ ...site("site-b"), url: "file:///etc/passwd" }, "url"],
    [{ ...site("site-b"), name: "" }, "name"],
    [site("site-b", { urls: Array.from({ length: 33 }, () => "http://a:1") }), "metadata.urls"],
    [site("site-b", { own: "x".repeat(20_000) }), "metadata"],
  ];
  for (const [body, field] of wrong) {
    const { status, json } = await t.call("POST", REGISTER, body, "site-b-key");
    expect([status, json?.["field"]]).toEqual([400, field]);
  }
  const { status, json } = await t.call("POST", REGISTER, site("site-b", { ring: { no: "ring" } }), "site-b-key");
  expect([status, json?.["error"]]).toEqual([400, "BAD_REQUEST"]);
  expect(t.controllers.fingerprint()).toBe("");
});

it("a standalone site answers 501, and lists itself", async () => {
  await using t = await startApi({ keys: SITE_KEYS }, standalone(OWN, 300_000, systemClock));
  const { status, json } = await t.call("POST", REGISTER, site("site-b"), "site-b-key");
  expect([status, json?.["error"], json?.["message"]]).toEqual([
    501,
    "MESH_DISABLED",
    'This site is standalone. Set mode = "distributed" in [mesh] to join sites; see docs/mesh.md.',
  ]);
  expect((await t.call("POST", "/api/controllers/b/heartbeat", {}, "operator-key")).status).toBe(501);
  const listed = await t.call("GET", "/api/controllers");
  expect(listed.json).toMatchObject({ controllers: [{ id: "c-test", name: "test", isActive: true }] });
});
