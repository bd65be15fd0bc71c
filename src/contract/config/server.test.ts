// The server's configuration: what is taken, what is refused, and in which words.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { electionConfig } from "../../core/raft/config.ts";
import { parseServerConfig } from "./server.ts";

const SHA = "a".repeat(64);
const TLS = { ca_file: "pki/ca.pem", cert_file: "pki/n1.pem", key_file: "/etc/n1.key" };
const MINIMAL = { node_id: "n1", data_dir: "data" };
const EXPOSED = {
  ...MINIMAL,
  peer: { listen: "10.0.0.1:7400", tls: TLS },
  api: { listen: "10.0.0.1:7401", tls: { cert_file: "api.pem", key_file: "api.key" } },
  keys: [{ name: "ops", sha256: SHA, role: "operator" }],
};

function parse(raw: unknown, environment: Record<string, string> = {}) {
  return parseServerConfig(raw, { environment, configDir: "/etc/tenure", checkElection: electionConfig });
}

function refusal(raw: unknown, environment?: Record<string, string>): string {
  try {
    parse(raw, environment);
  } catch (error) {
    if (TenureError.is(error) && error.code === "CONFIG_INVALID") return error.message;
    throw error;
  }
  throw new Error("was taken");
}

describe("what is taken", () => {
  it("the least that makes a server, with defaults", () => {
    expect(parse(MINIMAL)).toEqual({
      nodeId: "n1",
      dataDir: "/etc/tenure/data",
      backend: null,
      peer: { listen: { host: "127.0.0.1", port: 7_400 }, advertise: null, tls: null, secretFile: null, trust: [] },
      api: {
        listen: { host: "127.0.0.1", port: 7_401 },
        advertise: null,
        tls: null,
        limits: {
          connectionsPerCaller: 9_000,
          requestsPerCaller: 18_000,
          streamsPerCaller: 500,
          unauthenticatedPerAddress: 1_000,
          connectionAgeS: 3_600,
        },
      },
      peers: {},
      bootstrapExpect: [],
      keys: [],
      election: {},
      snapshots: {},
      disk: { minFreeBytes: 67_108_864 },
      history: { quotaBytes: null, keepDays: null },
      agent: { enabled: false, capacity: 1, labels: {}, servers: [], keyFile: null, caFile: null },
      mesh: {
        mode: "standalone",
        controllerId: null,
        controllerName: null,
        parentUrls: [],
        registrationTtlMs: 300_000,
        heartbeatIntervalMs: 120_000,
        expirationCheckIntervalMs: 60_000,
        keyFile: "/etc/tenure/data/mesh.key",
        apiKeyFile: null,
        certificate: null,
        accept: "vouched",
        maxSkewMs: 1_000,
        replayHours: 24,
        dialRegistered: false,
        peers: [],
      },
      tc: null,
      log: { level: "info" },
    });
  });

  it("everything, in camelCase, with paths from the file's directory", () => {
    const config = parse({
      ...EXPOSED,
      api: {
        ...EXPOSED.api,
        advertise: "https://n1.example:7401/",
        tls: { ...EXPOSED.api.tls, client_ca_file: "ca.pem", trust_domain: "prod.example", min_version: "1.2" },
        limits: { streams_per_caller: 5, connection_age_s: 60 },
      },
      peers: { n2: "10.0.0.2:7400" },
      bootstrap: { expect: ["n2", "n3", "n1"] },
      election: { heartbeat_interval_ms: 40, enable_lease: true, node_priority: 9 },
      snapshots: { after_entries: 10, keep_entries: 0 },
      disk: { min_free_bytes: 0 },
      history: { quota_bytes: 1_000_000, keep_days: 30 },
      log: { level: "debug" },
    });
    expect(config.peer.tls).toEqual({
      caFile: "/etc/tenure/pki/ca.pem",
      certFile: "/etc/tenure/pki/n1.pem",
      keyFile: "/etc/n1.key",
    });
    expect(config.api).toEqual({
      listen: { host: "10.0.0.1", port: 7_401 },
      advertise: "https://n1.example:7401",
      tls: {
        certFile: "/etc/tenure/api.pem",
        keyFile: "/etc/tenure/api.key",
        clientCaFile: "/etc/tenure/ca.pem",
        trustDomain: "prod.example",
        minVersion: "1.2",
      },
      limits: { ...parse(MINIMAL).api.limits, streamsPerCaller: 5, connectionAgeS: 60 },
    });
    expect(config.election).toEqual({ heartbeatIntervalMs: 40, enableLease: true, nodePriority: 9 });
    expect(config.snapshots).toEqual({ afterEntries: 10, keepEntries: 0 });
    expect(config.history).toEqual({ quotaBytes: 1_000_000, keepDays: 30 });
    expect(config.bootstrapExpect).toEqual(["n2", "n3"]);
  });

  it("what the environment says wins, and its paths begin at the working directory", () => {
    const config = parse(MINIMAL, {
      TENURE_NODE_ID: "n2",
      TENURE_DATA_DIR: "elsewhere",
      TENURE_API_LISTEN: "127.0.0.1:9",
      TENURE_LOG_LEVEL: "warn",
      TENURE_PEER_LISTEN: " ",
    });
    expect([config.nodeId, config.dataDir, config.api.listen.port, config.log.level]).toEqual([
      "n2",
      "elsewhere",
      9,
      "warn",
    ]);
    expect(config.peer.listen.port).toBe(7_400);
  });

  it("one file for all nodes: a node's own entry is where it is reached", () => {
    const peers = { n1: "10.0.0.1:7400", n2: "10.0.0.2:7400" };
    const shared = { ...EXPOSED, peers, peer: { listen: "0.0.0.0:7400", tls: TLS }, api: EXPOSED.api };
    const config = parse(shared);
    expect(config.peer.advertise).toBe("10.0.0.1:7400");
    expect(config.peers).toEqual({ n2: "10.0.0.2:7400" });
    expect(parse(shared, { TENURE_NODE_ID: "n2" }).peer.advertise).toBe("10.0.0.2:7400");
  });

  it("beyond loopback with TLS and a key, or with a client CA", () => {
    expect(parse(EXPOSED).keys).toHaveLength(1);
    const byCertificate = {
      ...EXPOSED,
      keys: [],
      api: { ...EXPOSED.api, tls: { ...EXPOSED.api.tls, client_ca_file: "ca" } },
    };
    expect(parse(byCertificate).keys).toEqual([]);
  });
});

describe("what is refused", () => {
  const { keys: _keys, ...noKeys } = EXPOSED;
  it.each<[string, unknown, RegExp]>([
    ["no object", [], /the file must be an object/],
    ["an unknown field", { ...MINIMAL, nodeid: "n1" }, /nodeid is not known; did you mean node_id\? docs\//],
    [
      "an unknown field below",
      { ...MINIMAL, peer: { lisen: "a:1" } },
      /peer\.lisen is not known; did you mean listen\?/,
    ],
    ["a missing field", { data_dir: "d" }, /node_id is missing/],
    ["a bad node id", { ...MINIMAL, node_id: "N1" }, /node_id must be a node id/],
    ["a long node id", { ...MINIMAL, node_id: "n".repeat(64) }, /node_id must be/],
    ["a bad address", { ...MINIMAL, peer: { listen: "7400" } }, /peer\.listen must be "host:port"/],
    ["a bad address of a peer", { ...MINIMAL, peers: { n2: "n2" } }, /peers\.n2 must be "host:port"/],
    ["a bad id of a peer", { ...MINIMAL, peers: { N2: "n2:1" } }, /peers must have node ids/],
    [
      "peers beyond loopback without TLS",
      { ...MINIMAL, peer: { listen: "10.0.0.1:1" } },
      /peer\.tls is missing.*tenure cert init/,
    ],
    [
      "an API beyond loopback without TLS",
      { ...EXPOSED, api: { listen: "10.0.0.1:1" } },
      /api\.tls is missing.*or listen on 127\.0\.0\.1/,
    ],
    ["an API beyond loopback without keys", noKeys, /keys is missing.*client_ca_file/],
    [
      "every interface without an address to dial",
      { ...EXPOSED, peer: { listen: "0.0.0.0:1", tls: TLS } },
      /peer\.advertise is missing/,
    ],
    ["an API URL that is none", { ...MINIMAL, api: { advertise: "n1:7401" } }, /api\.advertise must be http/],
    ["an API URL with a path", { ...MINIMAL, api: { advertise: "http://n1:7401/x" } }, /api\.advertise must be http/],
    [
      "an API URL with a password",
      { ...MINIMAL, api: { advertise: "http://a:b@n1:7401" } },
      /api\.advertise must be http/,
    ],
    [
      "an API URL that hides its TLS",
      { ...EXPOSED, api: { ...EXPOSED.api, advertise: "http://n1:7401" } },
      /api\.advertise must begin with https/,
    ],
    [
      "itself at another address",
      { ...MINIMAL, peers: { n1: "127.0.0.1:7999" } },
      /peers\.n1 is 127\.0\.0\.1:7999.*two nodes must not have one id/,
    ],
    [
      "a key in the clear",
      { ...MINIMAL, keys: [{ name: "a", sha256: "hunter2", role: "viewer" }] },
      /keys\[0\]\.sha256 must be the SHA-256.*never the key itself/,
    ],
    [
      "a role that is none",
      { ...MINIMAL, keys: [{ name: "a", sha256: SHA, role: "admin" }] },
      /keys\[0\]\.role must be one of viewer, submitter, agent, client, backup, controller, operator/,
    ],
    [
      "one name for two keys",
      {
        ...MINIMAL,
        keys: [
          { name: "a", sha256: SHA, role: "viewer" },
          { name: "a", sha256: "b".repeat(64), role: "viewer" },
        ],
      },
      /keys\[1\]\.name is given twice/,
    ],
    [
      "one key for two names",
      {
        ...MINIMAL,
        keys: [
          { name: "a", sha256: SHA, role: "viewer" },
          { name: "b", sha256: SHA, role: "operator" },
        ],
      },
      /keys\[1\]\.sha256 is the same/,
    ],
    [
      "the hash of an empty key",
      {
        ...MINIMAL,
        keys: [
          { name: "a", sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", role: "viewer" },
        ],
      },
      /empty key/,
    ],
    [
      "an election that can't work",
      { ...MINIMAL, election: { heartbeat_interval_ms: 100 } },
      /election\.heartbeat_interval_ms must be at most half of election\.election_timeout_min_ms/,
    ],
    [
      "a priority out of range",
      { ...MINIMAL, election: { node_priority: 256 } },
      /election\.node_priority must be at most 255/,
    ],
    [
      "a time that is none",
      { ...MINIMAL, election: { heartbeat_interval_ms: 0 } },
      /election\.heartbeat_interval_ms must be a positive number/,
    ],
    ["a level that is none", { ...MINIMAL, log: { level: "loud" } }, /log\.level must be one of trace/],
  ])("%s", (_name, raw, message) => expect(refusal(raw)).toMatch(message));

  it("all mistakes at once", () => {
    const message = refusal({
      ...MINIMAL,
      peer: { listen: "10.0.0.1:1" },
      api: { listen: "10.0.0.1:2" },
      election: { node_priority: 1, election_timeout_max_ms: 100 },
    });
    for (const field of ["peer.tls", "api.tls", "keys", "election.election_timeout_max_ms"])
      expect(message).toContain(field);
  });

  it("a mistake of the environment is told by the variable's name", () => {
    expect(refusal(MINIMAL, { TENURE_API_LISTEN: "nonsense" })).toMatch(/TENURE_API_LISTEN must be "host:port"/);
  });

  it("no value is repeated: it may be a secret in the wrong place", () => {
    const message = refusal({ ...MINIMAL, keys: [{ name: "a", sha256: "my secret key", role: "my secret role" }] });
    expect(message).not.toContain("secret");
  });
});

describe("a backend", () => {
  const URL = "postgres://app:s3cret@db:5432/site";

  it("comes from the file, or from the environment, which goes first", () => {
    expect(parse({ ...MINIMAL, backend: URL }).backend).toBe(URL);
    const other = { TENURE_SERVER_BACKEND: "postgresql://other/site" };
    expect(parse({ ...MINIMAL, backend: URL }, other).backend).toBe("postgresql://other/site");
  });

  it("comes from the command line before both, and a mistake there is told by the flag's name", () => {
    const surroundings = {
      environment: { TENURE_SERVER_BACKEND: "postgresql://other/site" },
      configDir: "/etc/tenure",
      checkElection: electionConfig,
    };
    expect(parseServerConfig(MINIMAL, { ...surroundings, backend: URL }).backend).toBe(URL);
    const wrong = { ...surroundings, backend: "mysql://x" };
    expect(() => parseServerConfig(MINIMAL, wrong)).toThrow(/: --backend must be a Postgres URL/);
  });

  it("is a Postgres URL, and what is not is refused without showing it", () => {
    const message = refusal({ ...MINIMAL, backend: "https://app:s3cret@db" });
    expect(message).toContain("backend must be a Postgres URL");
    expect(message).not.toContain("s3cret");
    expect(refusal(MINIMAL, { TENURE_SERVER_BACKEND: "etcd://db" })).toContain("TENURE_SERVER_BACKEND must be");
  });

  it("leaves nothing to say about peers, elections and what is kept", () => {
    const message = refusal({
      ...MINIMAL,
      backend: URL,
      peer: { listen: "127.0.0.1:1" },
      peers: { n2: "127.0.0.1:2" },
      bootstrap: { expect: ["n2"] },
      election: { enable_lease: true },
      history: { quota_bytes: 1_000_000 },
    });
    for (const field of ["peer", "peers", "bootstrap", "election", "history"])
      expect(message).toContain(`${field} means nothing with backend`);
  });
});
