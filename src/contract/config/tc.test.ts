// `[tc]` of the configuration, `--join` and TENURE_TC_JOIN: what is taken, what is refused, and in which words.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { MEMBERS_MAX } from "../../core/kit/limits.ts";
import { electionConfig } from "../../core/raft/config.ts";
import { parseServerConfig } from "./server.ts";

const MINIMAL = { node_id: "n1", data_dir: "data" };
const TLS = { cert_file: "a.crt", key_file: "a.key", client_ca_file: "ca.crt" };
const A = "https://a.example:7401";
const B = "https://b.example:7401";
/** An island at `A`, which others can reach. */
const EXPOSED = {
  ...MINIMAL,
  api: { listen: "0.0.0.0:7401", advertise: A, tls: TLS },
  peer: { listen: "127.0.0.1:1" },
};

interface Said {
  readonly flag?: readonly string[];
  readonly variable?: string;
}

function parse(raw: object, { flag, variable }: Said = {}) {
  const environment = variable === undefined ? {} : { TENURE_TC_JOIN: variable };
  return parseServerConfig(raw, { environment, join: flag, configDir: "/etc/tenure", checkElection: electionConfig })
    .tc;
}

function refusal(raw: object, said?: Said): string {
  try {
    parse(raw, said);
  } catch (error) {
    if (TenureError.is(error) && error.code === "CONFIG_INVALID") return error.message;
    throw error;
  }
  throw new Error("was taken");
}

describe("what is taken", () => {
  it("nothing: this node is no coordinator", () => {
    expect(parse(MINIMAL)).toBeNull();
    expect(parse({ ...MINIMAL, tc: {} })).toBeNull();
    expect(parse(MINIMAL, { variable: " " })).toBeNull();
  });

  it("the others' APIs, each once, without slashes and ports that go without saying", () => {
    const join = [B, A, `${B}/`, "https://c.example", "https://c.example:443/"];
    expect(parse({ ...EXPOSED, tc: { join } })).toEqual({
      endpoint: A,
      join: [B, A, "https://c.example"],
      disableAuth: false,
    });
    const api = { ...EXPOSED.api, advertise: "https://a.example:443/" };
    expect(parse({ ...EXPOSED, api, tc: { join: ["https://a.example"] } })?.endpoint).toBe("https://a.example");
  });

  it("this node alone, on loopback, without TLS, and where it listens", () => {
    const alone = { ...MINIMAL, tc: { join: ["http://127.0.0.1:7401"], disable_auth: true } };
    expect(parse(alone)).toEqual({
      endpoint: "http://127.0.0.1:7401",
      join: ["http://127.0.0.1:7401"],
      disableAuth: true,
    });
    const six = { ...MINIMAL, api: { listen: "[::1]:9", tls: TLS }, tc: { join: ["https://[::1]:9"] } };
    expect(parse(six)?.endpoint).toBe("https://[::1]:9");
  });

  it("the flag before the variable, and the variable before the file: each replaces the whole list", () => {
    const file = { ...EXPOSED, tc: { join: [A, B] } };
    expect(parse(file, { variable: ` ${A} , https://v.example:1 ` })?.join).toEqual([A, "https://v.example:1"]);
    expect(parse(file, { variable: A, flag: ["https://f.example:1"] })?.join).toEqual(["https://f.example:1"]);
    expect(parse(EXPOSED, { flag: [A] })?.join).toEqual([A]);
  });

  it("as many as a cluster may have members", () => {
    const join = (count: number) => Array.from({ length: count }, (_, at) => `https://c${at}.example`);
    expect(parse({ ...EXPOSED, tc: { join: join(MEMBERS_MAX) } })?.join).toHaveLength(MEMBERS_MAX);
    expect(refusal({ ...EXPOSED, tc: { join: join(MEMBERS_MAX + 1) } })).toMatch(
      /tc\.join must be a list of at most 32 API URLs/,
    );
  });
});

describe("what is refused", () => {
  const beyond = { ...EXPOSED.api, listen: "10.0.0.1:7401" };
  it.each<[string, object, RegExp]>([
    ["an empty list", { ...MINIMAL, tc: { join: [] } }, /tc\.join is empty: name this node/],
    ["one URL that is no list", { ...MINIMAL, tc: { join: A } }, /tc\.join must be a list of at most 32 API URLs/],
    [
      "a seed that is no API URL",
      { ...EXPOSED, tc: { join: [A, `${B}/v1`] } },
      /tc\.join\[1\] must be http:\/\/host:port/,
    ],
    ["a seed with a password", { ...EXPOSED, tc: { join: ["https://u:p@c:443"] } }, /tc\.join\[0\] must be http/],
    [
      "another setting",
      { ...MINIMAL, tc: { join: [A], ttl_ms: 1 } },
      /tc\.ttl_ms is not known: expected join, disable_auth/,
    ],
    [
      "a node on Postgres",
      { ...MINIMAL, backend: "postgres://u@h/d", tc: { join: ["http://127.0.0.1:7401"] } },
      /tc\.join can't be used with backend: a coordinator decides transactions in a log of its own/,
    ],
    [
      "another node without TLS here",
      { ...MINIMAL, tc: { join: ["http://127.0.0.1:7401", B] } },
      /tc\.join names other nodes \(https:\/\/b\.example:7401\).*api\.tls is missing.*tenure cert issue/,
    ],
    [
      "another node without an authority of clients",
      { ...MINIMAL, api: { tls: { cert_file: "a", key_file: "k" } }, tc: { join: [B] } },
      /tc\.join names other nodes .*api\.tls\.client_ca_file is missing/,
    ],
    [
      "another node without TLS there",
      { ...EXPOSED, tc: { join: [A, "http://b.example:7401"] } },
      /tc\.join names http:\/\/b\.example:7401, which is not this node \(https:\/\/a\.example:7401\): it must begin with https/,
    ],
    [
      "this node under another name without TLS",
      { ...EXPOSED, tc: { join: ["http://a.example:7401"] } },
      /tc\.join names http:\/\/a\.example:7401, which is not this node/,
    ],
    [
      "nowhere to be reached, beyond loopback",
      { ...EXPOSED, api: { listen: beyond.listen, tls: TLS }, tc: { join: [B] } },
      /is not valid: api\.advertise is missing: tc\.join is set.*api\.listen is 10\.0\.0\.1:7401, beyond loopback/,
    ],
    [
      "nowhere to be reached, on every interface",
      { ...EXPOSED, api: { listen: "0.0.0.0:7401", tls: TLS }, tc: { join: [B] } },
      /is not valid: api\.advertise is missing: api\.listen is every interface/,
    ],
    [
      "another port at each start",
      { ...MINIMAL, api: { listen: "127.0.0.1:0" }, tc: { join: ["http://127.0.0.1:7401"] } },
      /is not valid: api\.advertise is missing: tc\.join is set.*127\.0\.0\.1:0, which differs at each start/,
    ],
    [
      "an address that nobody can dial",
      { ...MINIMAL, api: { advertise: "http://0.0.0.0:7401" }, tc: { join: ["http://0.0.0.0:7401"] } },
      /api\.advertise must be an address that other coordinators can dial/,
    ],
    [
      "a port that nobody can dial",
      { ...MINIMAL, api: { advertise: "http://127.0.0.1:0" }, tc: { join: ["http://127.0.0.1:0"] } },
      /api\.advertise must be an address that other coordinators can dial/,
    ],
    [
      "open reads beyond loopback",
      { ...EXPOSED, tc: { join: [A], disable_auth: true } },
      /tc\.disable_auth must be false: api\.listen is 0\.0\.0\.0:7401, beyond loopback/,
    ],
    [
      "open reads of nothing",
      { ...MINIMAL, tc: { disable_auth: false } },
      /tc\.disable_auth means nothing without tc\.join/,
    ],
  ])("%s", (_name, raw, message) => expect(refusal(raw)).toMatch(message));

  it("by the flag's or the variable's name where that said it", () => {
    expect(refusal(EXPOSED, { flag: [A, "nonsense"] })).toMatch(/: --join must be http.*, found "nonsense"/);
    expect(refusal(EXPOSED, { flag: [""] })).toMatch(/: --join must be http/);
    expect(refusal(EXPOSED, { variable: `${A},` })).toMatch(/: TENURE_TC_JOIN must be http/);
    expect(refusal(MINIMAL, { flag: [B], variable: A })).toMatch(/--join names other nodes/);
    expect(refusal(MINIMAL, { variable: B })).toMatch(/TENURE_TC_JOIN names other nodes/);
  });

  it("all mistakes at once", () => {
    const api = { listen: "10.0.0.1:7401", advertise: "http://0.0.0.0:1" };
    const message = refusal({
      ...MINIMAL,
      backend: "postgres://u@h/d",
      api,
      tc: { join: ["http://b:1"], disable_auth: true },
    });
    const said = [
      "tc.join can't be",
      "tc.disable_auth must",
      "api.advertise must",
      "tc.join names http://b:1",
      "tc.join names other",
      "api.tls is",
      "keys is",
    ];
    for (const one of said) expect(message).toContain(one);
  });

  it("what depends on a field that is wrong itself is left out", () => {
    const message = refusal({ ...MINIMAL, api: { advertise: "nonsense" }, tc: { join: ["http://127.0.0.1:9"] } });
    expect(message).toMatch(/is not valid: api\.advertise must be http/);
  });
});
