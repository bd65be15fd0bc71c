// The contract's small parts: names in both cases, mistakes in words, addresses, certificates.

import { describe, expect, it } from "vitest";
import { authorityOf, certificateCaller } from "./certificate-role.ts";
import { errorBody, notLeaderBody } from "./error-body.ts";
import { isLoopback, isWildcard, parseAddress, showAddress } from "./config/listen-address.ts";
import { allows, closes, type Role, ROLES } from "./roles.ts";
import { ROUTES } from "./routes.ts";
import { toCamel, toSnake } from "./snake-case.ts";
import { IDENTITY_KINDS } from "../core/kit/spiffe.ts";
import { suggestion } from "../core/kit/suggestion.ts";

describe("snake_case and camelCase", () => {
  it("are converted deeply, values untouched", () => {
    const camel = { isJoint: true, members: [{ lastContactMs: 3, kind: "aB_c" }], leader: null };
    const snake = { is_joint: true, members: [{ last_contact_ms: 3, kind: "aB_c" }], leader: null };
    expect(toSnake(camel)).toEqual(snake);
    expect(toCamel(snake)).toEqual(camel);
  });

  it("what stands under metadata is the user's own", () => {
    const holder = { metadata: { Zone_A: "eu", buildId: "7", x_y: "z" }, acquiredAtMs: 1 };
    expect(toSnake(holder)).toEqual({ metadata: holder.metadata, acquired_at_ms: 1 });
    expect(toCamel(toSnake(holder))).toEqual(holder);
  });

  it.each(["labels", "payload", "result", "detail"])("and so is what stands under %s", (name) => {
    const job = { [name]: { camelCase: { snake_case: [{ deepDown: 1 }] } }, jobEpoch: 1 };
    expect(toSnake(job)).toEqual({ [name]: job[name], job_epoch: 1 });
    expect(toCamel(toSnake(job))).toEqual(job);
  });

  it("the specification's names survive the way there and back", () => {
    const names = ["election_timeout_min_ms", "enable_auto_failover", "node_priority", "lease_renewal_interval_ms"];
    for (const name of names) expect(Object.keys(toSnake(toCamel({ [name]: 1 })))).toEqual([name]);
  });

  it("endless depth is refused", () => {
    let deep: object = {};
    for (let i = 0; i < 20; i++) deep = { deep };
    expect(() => toSnake(deep)).toThrow("levels");
  });
});

describe("addresses", () => {
  it.each([
    ["127.0.0.1:7400", { host: "127.0.0.1", port: 7_400 }],
    ["[::1]:0", { host: "::1", port: 0 }],
    ["n1.example.org:65535", { host: "n1.example.org", port: 65_535 }],
    ["127.0.0.1", undefined],
    ["127.0.0.1:65536", undefined],
    ["300.0.0.1:80", undefined],
    ["1.2.3:80", undefined],
    [":80", undefined],
    ["::1:80", undefined],
    ["http://a:80", undefined],
    ["a b:80", undefined],
    ["-a:80", undefined],
  ])("%s", (text, address) => {
    expect(parseAddress(text)).toEqual(address);
    if (address !== undefined) expect(showAddress(address)).toBe(text);
  });

  it("loopback and every interface are told apart from the rest", () => {
    expect(["localhost", "127.0.0.1", "127.9.9.9", "::1"].every(isLoopback)).toBe(true);
    expect(["0.0.0.0", "::", "10.0.0.1", "127.example.org", "localhost.example.org"].some(isLoopback)).toBe(false);
    expect([["0.0.0.0", "::", "0:0:0:0:0:0:0:0"].every(isWildcard), isWildcard("::1"), isWildcard("10.0.0.0")]).toEqual(
      [true, false, false],
    );
  });
});

describe("certificates", () => {
  const roleOf = (subjectaltname?: string) =>
    certificateCaller({ subjectaltname }, { trustDomain: "tenure", peers: [] })?.role ?? null;
  it.each([
    ["URI:spiffe://tenure/operator/ada", "operator"],
    ["URI:spiffe://tenure/viewer/eve", "viewer"],
    ["DNS:a.example, URI:spiffe://tenure/sdk/payer, IP Address:10.0.0.1", "client"],
    ["URI:spiffe://tenure/server/n1", "viewer"],
    ["URI:spiffe://tenure/submitter/ci", "submitter"],
    ["URI:spiffe://tenure/agent/a-1", "agent"],
    ["URI:spiffe://tenure/backup/nightly", "backup"],
    ["URI:spiffe://tenure/controller/site-b", "controller"],
    ["URI:spiffe://tenure/controller/Site.B", null],
    ["URI:spiffe://tenure/tc/orders", "viewer"],
    ["URI:spiffe://tenure/root/x", null],
    ["URI:spiffe://tenure/operator/a, URI:spiffe://tenure/operator/b", null],
    ["URI:spiffe://tenure/operator/a, URI:https://example.org", null],
    ["DNS:a", null],
    ['DNS:"a, URI:spiffe://tenure/operator/x, b"', null],
    ['URI:"spiffe://tenure/operator/x"', null],
    [undefined, null],
  ])("%s is %s", (names, role) => expect(roleOf(names)).toBe(role));

  it.each(IDENTITY_KINDS)(
    "of the kind %s have a role, and name one identity; hole 6: with a second name they name nobody",
    (kind) => {
      const [trustDomain, name] = ["tenure", "n1"];
      const trust = { trustDomain, peers: [] };
      const uri = `URI:spiffe://tenure/${kind}/n1`;
      expect(certificateCaller({ subjectaltname: uri }, trust)).toEqual({
        id: `spiffe://tenure/${kind}/n1`,
        role: expect.toBeOneOf(ROLES) as unknown,
        identity: { trustDomain, kind, name },
      });
      for (const second of ["spiffe://tenure/server/n1", "spiffe://other/tc/x", "https://example.org"]) {
        expect(certificateCaller({ subjectaltname: `${uri}, URI:${second}` }, trust)).toBeNull();
        expect(certificateCaller({ subjectaltname: `URI:${second}, ${uri}` }, trust)).toBeNull();
      }
    },
  );
});

describe("certificates of other sites", () => {
  const peers = [
    { id: "b", trustDomain: "b.example", authorities: ["B1", "B2"] },
    { id: "c", trustDomain: "tenure", authorities: null },
    { id: "d", trustDomain: "d.example", authorities: null },
  ];
  const roleOf = (uri: string, authority?: string) =>
    certificateCaller({ subjectaltname: `URI:spiffe://${uri}` }, { trustDomain: "tenure", peers }, authority)?.role ??
    null;
  it.each([
    ["b.example/controller/b", "B2", "controller"],
    // An authority of another site vouches for that site, and for nothing else.
    ["b.example/controller/c", "B1", null],
    ["b.example/operator/b", "B1", null],
    ["tenure/controller/b", "B1", null],
    ["tenure/operator/ada", "B1", null],
    ["d.example/controller/d", "B1", null],
    // This cluster's own authority: everything in its own domain, and the sites that it signs for.
    ["tenure/operator/ada", "OWN", "operator"],
    ["tenure/controller/c", "OWN", "controller"],
    ["d.example/controller/d", "OWN", "controller"],
    ["d.example/operator/d", "OWN", null],
    ["b.example/controller/b", "OWN", null],
    // Nobody knows whose it is.
    ["tenure/operator/ada", undefined, null],
    ["b.example/controller/b", undefined, null],
  ])("%s by %s is %s", (uri, authority, role) => expect(roleOf(uri, authority)).toBe(role));

  it("have no identity here, whatever kind they claim: they are sites", () => {
    const of = (uri: string, authority: string) =>
      certificateCaller({ subjectaltname: `URI:spiffe://${uri}` }, { trustDomain: "tenure", peers }, authority);
    expect(of("b.example/controller/b", "B1")).toMatchObject({ role: "controller", identity: null });
    expect(of("d.example/controller/d", "OWN")).toMatchObject({ role: "controller", identity: null });
    for (const kind of IDENTITY_KINDS) {
      expect(of(`tenure/${kind}/b`, "OWN")?.identity).toEqual({ trustDomain: "tenure", kind, name: "b" });
      for (const domain of ["tenure", "b.example"]) {
        expect(of(`${domain}/${kind}/b`, "B1")?.identity ?? null).toBeNull();
      }
      expect(of(`b.example/${kind}/b`, "OWN")?.identity ?? null).toBeNull();
    }
  });

  it("have the authority at the end of their chain, where that is known", () => {
    const root: Record<string, unknown> = { fingerprint256: "R" };
    root["issuerCertificate"] = root;
    const chain = { fingerprint256: "L", issuerCertificate: { fingerprint256: "I", issuerCertificate: root } };
    expect([authorityOf(root), authorityOf(chain)]).toEqual(["R", "R"]);
    expect(authorityOf({ fingerprint256: "L", issuerCertificate: { fingerprint256: "I" } })).toBeUndefined();
    const endless = { fingerprint256: "0", issuerCertificate: {} as object };
    endless.issuerCertificate = { fingerprint256: "1", issuerCertificate: endless };
    expect(authorityOf(endless)).toBeUndefined();
  });
});

it("everybody may read, operators may do everything, and the rest nothing of one another's", () => {
  expect(ROLES).toEqual(["viewer", "submitter", "agent", "client", "backup", "controller", "operator"]);
  const table = ROLES.map((held) => ROLES.map((needed) => (allows(held, needed) ? 1 : 0)).join(""));
  expect(table).toEqual(["1000000", "1100000", "1010000", "1001000", "0000100", "0000010", "1111111"]);
});

it("a key closes what needs a role of its rank or above to those without one, and any key what other sites may do", () => {
  const table = ROLES.map((given) => ROLES.map((needed) => (closes(given, needed) ? 1 : 0)).join(""));
  expect(table).toEqual(["1111111", "0111111", "0111111", "0111111", "0111111", "0111111", "0000011"]);
});

it("a role of a newer release may do nothing here, and closes everything", () => {
  for (const unknown of ["auditor", "constructor", "__proto__", ""] as unknown as Role[]) {
    expect(ROLES.filter((needed) => allows(unknown, needed))).toEqual([]);
    expect(ROLES.filter((needed) => closes(unknown, needed))).toEqual(ROLES);
  }
});

it("an error has its number where the specification has one, and NOT_LEADER always all its fields", () => {
  expect(errorBody("ERR_NO_LEADER", "m")).toEqual({ error: "ERR_NO_LEADER", message: "m", code: 4002 });
  expect(errorBody("BAD_REQUEST", "m", { field: "a" })).toEqual({ error: "BAD_REQUEST", message: "m", field: "a" });
  const nobody = { leaderId: null, leaderUrl: null, leaderEpoch: null, nodeId: "n1", role: "STANDBY" } as const;
  expect(notLeaderBody("m", nobody)).toEqual({
    error: "NOT_LEADER",
    message: "m",
    leader_id: null,
    leader_url: null,
    leader_epoch: null,
    node_id: "n1",
    role: "STANDBY",
  });
});

it("a typing mistake is guessed, a stranger is not", () => {
  expect(suggestion("sesion", ["session", "epoch"])).toBe("; did you mean session?");
  expect(suggestion("ttl_sm", ["ttl_ms"])).toBe("; did you mean ttl_ms?");
  expect(suggestion("password", ["session", "epoch"])).toBe("");
  expect(suggestion("x".repeat(10_000), ["session"])).toBe("");
});

describe("what is asked about a scope", () => {
  const { body, params } = ROUTES.acquire;
  const campaign = { session: "s", identity: "i", ttl_ms: 5_000, wait_ms: 0 };

  it.each(["a\nb", "a\rb", "a\u2028b", "a\u2029b", "a"])("has texts as metadata, also under the name %j", (name) => {
    expect(body.check({ ...campaign, metadata: { [name]: "1" } }).ok).toBe(true);
    for (const value of [1, null, {}, ["x"], true])
      expect(body.check({ ...campaign, metadata: { [name]: value } })).toMatchObject({ ok: false });
  });

  it.each([".", ".."])("is never %j, which as a part of a path means another path", (scope) => {
    expect(params.check({ scope })).toMatchObject({ ok: false, mistakes: [{ field: "scope" }] });
    expect(params.check({ scope: `${scope}.` })).toMatchObject({ ok: scope === ".." });
  });
});
