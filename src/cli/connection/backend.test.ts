import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { backendSource, backendUrl } from "./backend.ts";
import { UsageError } from "../kit/flags.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-backend-"));
const KEY_FILE = join(directory, "key");
writeFileSync(KEY_FILE, "from-file\n");
afterAll(() => rmSync(directory, { recursive: true }));

describe("a Postgres URL", () => {
  it("keeps what is the client's, and gives up what is ours", () => {
    const url = "postgres://u:p%40@h:1/d?sslmode=require&tenure_server_timeout_ms=3000&tenure_pg_wait=poll";
    expect(backendSource(url, {})).toEqual({
      kind: "postgres",
      options: { url: "postgres://u:p%40@h:1/d?sslmode=require", serverTimeoutMs: 3_000, wait: "poll" },
    });
  });

  it("goes before the environment, which goes before nothing", () => {
    const environment = { TENURE_SERVER_TIMEOUT_MS: "9000", TENURE_HEARTBEAT_INTERVAL_MS: "500", TENURE_MARGIN_MS: "" };
    const { options } = backendSource("postgresql://h/d?tenure_server_timeout_ms=3000", environment);
    expect(options).toEqual({ url: "postgresql://h/d", serverTimeoutMs: 3_000, heartbeatMs: 500 });
  });

  it("is not taken from TENURE_PG_CONN_STRING when another was given", () => {
    const { options } = backendSource("postgres://h/d", { TENURE_PG_CONN_STRING: "postgres://other/d" });
    expect(options).toEqual({ url: "postgres://h/d" });
  });

  it("with knobs that contradict each other is refused as a whole", () => {
    const url = "postgres://h/d?tenure_server_timeout_ms=3000&tenure_heartbeat_interval_ms=2900";
    expect(() => backendSource(url, {})).toThrow(TenureError);
    const fitting = "postgres://h/d?tenure_server_timeout_ms=30000&tenure_heartbeat_late_threshold_ms=20000";
    expect(backendSource(fitting, {}).options).toMatchObject({ serverTimeoutMs: 30_000, lateThresholdMs: 20_000 });
  });
});

describe("an etcd URL", () => {
  it("has its scheme once, in front of all hosts", () => {
    expect(backendSource("etcd://u:p@a:2379,b:2379/?tenure_server_timeout_ms=2000", {})).toEqual({
      kind: "etcd",
      options: { endpoints: ["http://u:p@a:2379", "http://b:2379"], ttlSeconds: 2, tls: {} },
    });
    const secure = backendSource("etcds://a:2379", { TENURE_ETCD_PREFIX: "x/" });
    expect(secure.options).toEqual({ endpoints: ["https://a:2379"], prefix: "x/", tls: {} });
  });
});

describe("a URL of Tenure's own servers", () => {
  it("has its scheme once, or in front of each host", () => {
    const urls = ["https://n1:7100", "https://n2:7100", "https://n3"];
    const source = { kind: "servers", urls, options: { tls: {} } };
    expect(backendSource("https://n1:7100,n2:7100,n3/", {})).toEqual(source);
    expect(backendSource("https://n1:7100,https://n2:7100/,https://n3", {})).toEqual(source);
  });

  it("takes its knobs from the query before the environment, and the key from a variable or a file", () => {
    const environment = {
      TENURE_API_KEY: "k1",
      TENURE_API_KEY_FILE: KEY_FILE,
      TENURE_SERVER_TIMEOUT_MS: "9000",
      TENURE_MARGIN_MS: "700",
    };
    const { options } = backendSource("http://127.0.0.1:7100?tenure_server_timeout_ms=3000", environment);
    expect(options).toEqual({ key: "k1", ttlMs: 3_000, marginMs: 700, tls: {} });
    const files = { TENURE_API_KEY: "", TENURE_API_KEY_FILE: KEY_FILE, TENURE_SERVERS_CA_FILE: KEY_FILE };
    const fromFile = backendSource("https://n1", files);
    expect(fromFile.options).toEqual({ key: "from-file", tls: { ca: "from-file\n" } });
  });

  it("is refused before anything is sent where a knob can't be", () => {
    expect(() => backendSource("https://n1?tenure_server_timeout_ms=10", {})).toThrow(/"ttlMs" is 10/);
    expect(() => backendSource("https://n1", { TENURE_API_KEY: "two words" })).toThrow(/"key" must be printable/);
  });
});

it.each([
  ["h:5432/d", /must begin with postgres:/],
  ["mysql://h/d", /must begin with postgres:/],
  ["https://", /names no host: write https/],
  ["https://n1,,n2", /names no host/],
  ["https://n1/path,n2", /names no host/],
  ["https://n1,http://n2", /names no host/],
  ["https://u:secret@n1", /TENURE_API_KEY_FILE/],
  ["https://n1?key=secret", /key, which means nothing with Tenure's servers/],
  ["https://n1?tenure_api_keyfile=x", /did you mean tenure_api_key_file\?/],
  ["https://n1?tenure_servers_ca_file=/nowhere/ca.pem", /TENURE_SERVERS_CA_FILE: ENOENT/],
  ["etcd://", /names no host/],
  ["etcd://a:1,,b:1", /names no host/],
  ["etcd://a:1?sslmode=on", /sslmode, which means nothing with etcd/],
  ["etcd://a:1?tenure_server_timeout_ms=2500", /TENURE_SERVER_TIMEOUT_MS takes whole seconds/],
  ["etcd://a:1?tenure_etcd_ca_file=/nowhere/ca.pem", /TENURE_ETCD_CA_FILE: ENOENT/],
  ["postgres://h/d?tenure_server_timeout=3", /did you mean tenure_server_timeout_ms\?/],
  ["postgres://u:secret@h/d?tenure_margin_ms=-5", /TENURE_MARGIN_MS takes a whole number/],
])("%s is refused with one line that names what is wrong, and no password", (url, message) => {
  expect(() => backendSource(url, {})).toThrow(message);
  try {
    backendSource(url, {});
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).not.toContain("secret");
  }
});

it("the URL comes from the flag, TENURE_BACKEND, TENURE_PG_CONN_STRING or TENURE_URL, in this order", () => {
  const environment = { TENURE_BACKEND: "etcd://a", TENURE_PG_CONN_STRING: "postgres://b" };
  expect(backendUrl("postgres://c", environment)).toBe("postgres://c");
  expect(backendUrl(undefined, environment)).toBe("etcd://a");
  expect(backendUrl(undefined, { ...environment, TENURE_BACKEND: "" })).toBe("postgres://b");
  const servers = { ...environment, TENURE_URL: "https://n1:7401, https://n2:7401" };
  expect(backendUrl(undefined, servers)).toBe("etcd://a");
  const url = backendUrl(undefined, { TENURE_URL: servers.TENURE_URL });
  expect(backendSource(url, {})).toMatchObject({ urls: ["https://n1:7401", "https://n2:7401"] });
  expect(() => backendUrl(undefined, {})).toThrow(/--backend is missing/);
});
