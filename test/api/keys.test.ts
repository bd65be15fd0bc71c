// API keys of the replicated state: made by their hash, used, listed and revoked.

import { describe, expect, it } from "vitest";
import { sha256, startApi } from "./test-api.ts";
import { fits, leasing } from "./test-job-calls.ts";

describe("keys", () => {
  it("are created by their hash, used at once, listed without it, and revoked", async () => {
    await using t = await startApi();
    const key = { name: "ci", role: "submitter", sha256: sha256("secret") };
    const made = await t.call("POST", "/v1/keys", key);
    fits("createKey", made.json);
    expect(made.json).toMatchObject({ name: "ci", role: "submitter", created_by: "the operator" });
    const listed = await t.call("GET", "/v1/keys");
    fits("keys", listed.json);
    expect(listed.text).not.toContain(key.sha256);
    expect((await t.call("POST", "/v1/jobs", { kind: "build" }, "secret")).status).toBe(200);
    expect((await t.call("POST", "/v1/leases", leasing, "secret")).status).toBe(403);
    expect((await t.call("GET", "/v1/jobs/job-1")).json?.["submitted_by"]).toBe("ci");
    expect((await t.call("DELETE", "/v1/keys/ci")).json).toEqual({});
    expect((await t.call("POST", "/v1/jobs", { kind: "build" }, "secret")).status).toBe(401);
    expect((await t.call("DELETE", "/v1/keys/ci")).status).toBe(404);
    expect(t.audited.map((line) => [line["operation"], line["phase"], line["target"]])).toContainEqual([
      "revokeKey",
      "ended",
      "ci",
    ]);
    expect(JSON.stringify(t.audited)).not.toContain(key.sha256);
  });

  it("that are a configured one's name or hash, or of nothing, are refused", async () => {
    await using t = await startApi({ keys: [{ name: "ada", sha256: sha256("operator-key"), role: "operator" }] });
    const make = async (name: string, hash: string) =>
      (await t.call("POST", "/v1/keys", { name, role: "viewer", sha256: hash })).json?.["error"];
    expect(await make("ada", sha256("x"))).toBe("KEY_EXISTS");
    expect(await make("bob", sha256("operator-key"))).toBe("KEY_EXISTS");
    expect(await make("bob", sha256(""))).toBe("BAD_REQUEST");
    expect(await make("anonymous", sha256("x"))).toBe("BAD_REQUEST");
    expect(await make("bob", sha256("x"))).toBeUndefined();
    expect(await make("bob", sha256("x"))).toBeUndefined();
    expect(await make("bob", sha256("y"))).toBe("KEY_EXISTS");
  });

  it("end anonymous access on loopback, as configured ones do", async () => {
    await using t = await startApi({ keys: [{ name: "ada", sha256: sha256("operator-key"), role: "operator" }] });
    expect(t.lines.map(({ fields }) => fields)).toEqual([
      { event: "anonymous-access", nodeId: "n1", roles: "viewer,submitter,agent,client" },
    ]);
    const roles = async () => (await t.call("GET", "/healthz")).json?.["anonymous_roles"];
    expect(await roles()).toEqual(["viewer", "submitter", "agent", "client"]);
    const anonymous = async () => [
      (await t.call("GET", "/v1/jobs", undefined, null)).status,
      (await t.call("POST", "/v1/jobs", { kind: "build" }, null)).status,
      (await t.call("POST", "/v1/leases", leasing, null)).status,
      (await t.call("POST", "/v1/admin/drain", {}, null)).status,
    ];
    expect(await anonymous()).toEqual([200, 200, 200, 401]);
    await t.call("POST", "/v1/keys", { name: "worker", role: "agent", sha256: sha256("w") });
    expect(await anonymous()).toEqual([200, 401, 401, 401]);
    expect(await roles()).toEqual(["viewer"]);
    await t.call("POST", "/v1/keys", { name: "eve", role: "viewer", sha256: sha256("v") });
    expect(await anonymous()).toEqual([401, 401, 401, 401]);
    expect(await roles()).toEqual([]);
  });
});

describe("certificates", () => {
  it("are revoked by their hash, those of members excepted: a server of another island is a caller like any other", async () => {
    await using t = await startApi();
    t.cluster.lead();
    const revoke = async (id: string): Promise<unknown[]> => {
      const body = { sha256: sha256(id), id, not_after_ms: Date.now() + 1_000_000 };
      const { status, json } = await t.call("POST", "/v1/certificates/revoked", body);
      return [status, json?.["error"] ?? json?.["id"]];
    };
    for (const of of ["sdk/payer", "tc/orders", "agent/n2", "server/far-1"]) {
      const id = `spiffe://tenure/${of}`;
      expect(await revoke(id)).toEqual([200, id]);
    }
    const before = t.fingerprint();
    for (const id of ["spiffe://tenure/server/n2", "spiffe://tenure/nobody/x", "https://example.org"]) {
      expect(await revoke(id)).toEqual([400, "BAD_REQUEST"]);
    }
    expect(t.fingerprint()).toBe(before);
  });
});
