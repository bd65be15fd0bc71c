import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseServerConfig, SERVER_DEFAULTS } from "../../contract/index.ts";
import { electionConfig } from "../../core/raft/index.ts";
import { settingsOf, settingsText, withoutSecrets } from "./show.ts";

const FILE = { node_id: "n1", data_dir: "data", peers: { n1: "127.0.0.1:7400", n2: "127.0.0.1:7402" } };

function settings(raw: object, environment: Record<string, string> = {}) {
  const config = parseServerConfig(raw, { environment, configDir: "/etc/tenure", checkElection: electionConfig });
  return settingsOf(raw, config, environment);
}

const of = (found: ReturnType<typeof settings>, key: string) => found.find((one) => one.key === key);

describe("a configuration in effect", () => {
  it("has every field of the documented table, once", () => {
    const [, table = ""] = readFileSync("docs/reference/configuration.md", "utf8").split("## `tenure server`\n");
    const fields = [...table.split("\n## ", 1)[0]!.matchAll(/^\| `([a-z_.[\]]+)` \|/gm)].map(([, field = ""]) =>
      field.replace(/\[\].*$/, ""),
    );
    expect(settings(FILE).map(({ key }) => key)).toEqual([...new Set(fields)]);
  });

  it("says of each who said so: the environment goes before the file, and both before the defaults", () => {
    const raw = { ...FILE, api: { listen: "127.0.0.1:1" }, log: { level: "debug" }, election: { enable_lease: true } };
    const found = settings(raw, { TENURE_API_LISTEN: "127.0.0.1:2", TENURE_LOG_LEVEL: " " });
    const is = (key: string, value: unknown, from: string, variable: string | null = null) =>
      expect(of(found, key)).toEqual({ key, value, from, variable });
    is("api.listen", "127.0.0.1:2", "environment", "TENURE_API_LISTEN");
    is("log.level", "debug", "file");
    is("data_dir", "/etc/tenure/data", "file");
    is("peers", { n2: "127.0.0.1:7402" }, "file");
    is("election.enable_lease", true, "file");
    is("election.heartbeat_interval_ms", 50, "default");
    is("peer.listen", SERVER_DEFAULTS["peer.listen"], "default");
    is("disk.min_free_bytes", SERVER_DEFAULTS["disk.min_free_bytes"], "default");
    is("snapshots.after_entries", 50_000, "default");
    is("history.keep_days", null, "default");
    is("api.tls.cert_file", null, "default");
    is("bootstrap.expect", [], "default");
    is("tc.join", null, "default");
    is("tc.disable_auth", false, "default");
  });

  it("has what is set for the mesh, and its defaults", () => {
    const peers = [{ id: "b" }];
    const files = { key_file: "k", cert_file: "c", cert_key_file: "/run/c.key" };
    const mesh = { mode: "distributed", parent_url: "http://a:1/", ...files, peers };
    const found = settings({ ...FILE, mesh });
    const shown = ["mode", "parent_urls", "key_file", "cert_file", "cert_key_file", "accept", "peers"];
    expect(shown.map((name) => of(found, `mesh.${name}`)?.value)).toEqual([
      "distributed",
      ["http://a:1"],
      "/etc/tenure/k",
      "/etc/tenure/c",
      "/run/c.key",
      "vouched",
      [{ id: "b", ca_file: null, trust_domain: null }],
    ]);
  });

  it("says so of a list of the environment", () => {
    const raw = { ...FILE, tc: { join: ["http://127.0.0.1:7401"], disable_auth: true } };
    const found = settings(raw, { TENURE_TC_JOIN: "http://127.0.0.1:7401/, http://127.0.0.1:7401" });
    expect(of(found, "tc.join")).toEqual({
      key: "tc.join",
      value: ["http://127.0.0.1:7401"],
      from: "environment",
      variable: "TENURE_TC_JOIN",
    });
    expect(of(found, "tc.disable_auth")).toMatchObject({ value: true, from: "file" });
  });

  it("says that a shared file's entry for this node is where it is reached", () => {
    const tls = { ca_file: "ca", cert_file: "c", key_file: "k" };
    const peers = { n1: "10.0.0.1:7400" };
    const found = settings({ node_id: "n1", data_dir: "d", peers, peer: { listen: "0.0.0.0:7400", tls } });
    expect(of(found, "peer.advertise")).toMatchObject({ value: "10.0.0.1:7400", from: "file" });
    expect(of(found, "peer.tls.ca_file")).toMatchObject({ value: "/etc/tenure/ca", from: "file" });
  });

  it("leaves out what means nothing with a backend, and never shows its password", () => {
    const environment = { TENURE_SERVER_BACKEND: "postgres://u:geheim@h/d" };
    const found = settings({ node_id: "n1", data_dir: "d" }, environment);
    const sections = found.map(({ key }) => key.split(".")[0]);
    for (const one of ["election", "tc"]) expect(sections).not.toContain(one);
    expect(of(found, "backend")).toEqual({
      key: "backend",
      value: "postgres://u:…@h/d",
      from: "environment",
      variable: "TENURE_SERVER_BACKEND",
    });
    expect(settingsText(found)).not.toContain("geheim");
  });

  it("is a table", () => {
    const text = settingsText(settings(FILE, { TENURE_LOG_LEVEL: "warn" }));
    expect(text).toMatch(/^KEY +FROM +VALUE\n/);
    expect(text).toMatch(/^node_id +file +n1$/m);
    expect(text).toMatch(/^log\.level +environment \(TENURE_LOG_LEVEL\) +warn$/m);
    expect(text).toMatch(/^backend +default +-$/m);
    expect(text).toMatch(/^peers +file +\{"n2":"127\.0\.0\.1:7402"\}$/m);
  });
});

describe("a backend's URL", () => {
  it.each([
    ["postgres://u:p@h:5432/d", "postgres://u:…@h:5432/d"],
    ["postgres://u@h/d", "postgres://u@h/d"],
    ["postgres://h/d", "postgres://h/d"],
    ["postgres://:p@h/d", "postgres://:…@h/d"],
    ["postgres://u:p@h/d?sslmode=require&tenure_margin_ms=5", "postgres://u:…@h/d?sslmode=require&tenure_margin_ms=5"],
    ["postgres://u@h/d?password=p&sslpassword=q", "postgres://u@h/d?password=…&sslpassword=…"],
    ["postgres://u:a@b@h/d", "postgres://u:…@h/d"],
    ["postgres://u:a/b@h/d", "postgres://…"],
    ["postgres://u:12/b@h/d", "postgres://…"],
    ["postgres://u:12?b@h/d", "postgres://…"],
    ["postgres://u:12#b@h/d", "postgres://…"],
    ["postgres://u:p@h1:1,h2:2/d", "postgres://…"],
  ])("%s is shown as %s", (url, shown) => {
    expect(withoutSecrets(url)).toBe(shown);
  });
});
