// `tenure config check` as a process, on files of every kind of wrong, and `tenure config show`.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atTheEnd, start, tenure, tenureJson } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-config-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

const KEY = { name: "ops", sha256: "a".repeat(64), role: "operator" };
const VALID = {
  node_id: "n1",
  data_dir: "data",
  peers: { n2: "127.0.0.1:7202", n3: "127.0.0.1:7203" },
  bootstrap: { expect: ["n1", "n2", "n3"] },
  keys: [KEY],
};

let files = 0;
function file(contents: unknown): string {
  const path = join(directory, `${++files}.json`);
  writeFileSync(path, typeof contents === "string" ? contents : JSON.stringify(contents));
  return path;
}

describe("tenure config check", () => {
  it("says what a valid file means, with paths from where the file lies, and no warning", async () => {
    const path = file(VALID);
    expect(await tenureJson("config", "check", path)).toMatchObject({
      code: 0,
      file: path,
      node_id: "n1",
      data_dir: join(directory, "data"),
      peers: ["n2", "n3"],
      keys: [{ name: "ops", role: "operator" }],
      warnings: [],
    });
    const { code, stdout } = await tenure("config", "check", path);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^file +.*: valid$/m);
    expect(stdout).not.toContain(KEY.sha256);
  });

  it("says how the site takes part in a mesh, and warns where its parents are shown nothing to know it by", async () => {
    const mesh = { mode: "distributed", controller_id: "paris", parent_urls: ["http://127.0.0.1:7501"] };
    const path = file({ ...VALID, mesh });
    expect(await tenureJson("config", "check", path)).toMatchObject({
      mesh: { mode: "distributed", controller_id: "paris", parent_urls: ["http://127.0.0.1:7501"] },
      warnings: [expect.stringContaining("mesh.parent_urls without mesh.api_key_file and mesh.cert_file")],
    });
    expect((await tenure("config", "check", path)).stdout).toMatch(
      /^mesh +distributed, as paris; parents: http:\/\/127\.0\.0\.1:7501$/m,
    );
    const key = join(directory, "paris.key");
    const withKey = file({ ...VALID, mesh: { ...mesh, api_key_file: key } });
    expect((await tenure("config", "check", withKey)).stderr).toMatch(/mesh\.api_key_file: can't read .*paris\.key/);
    writeFileSync(key, "secret");
    expect(await tenureJson("config", "check", withKey)).toMatchObject({ code: 0, warnings: [] });
    expect((await tenure("config", "check", file(VALID))).stdout).toMatch(/^mesh +standalone$/m);
  });

  it("warns of what works and is hardly meant", async () => {
    const { warnings } = await tenureJson<{ warnings: string[] }>(
      "config",
      "check",
      file({ ...VALID, keys: [], peers: { n2: "127.0.0.1:7202" } }),
    );
    expect(warnings).toEqual([
      expect.stringContaining("bootstrap.expect names n3, and peers does not say where it is"),
      expect.stringContaining("nobody may steer"),
    ]);
    const even = await tenureJson<{ warnings: string[] }>(
      "config",
      "check",
      file({ ...VALID, bootstrap: {}, peers: { n2: "127.0.0.1:7202" } }),
    );
    expect(even.warnings).toEqual([expect.stringContaining("there are 2 nodes")]);
    const worker = await tenureJson<{ warnings: string[] }>(
      "config",
      "check",
      file({
        ...VALID,
        bootstrap: {},
        peers: {},
        keys: [KEY, { name: "w", role: "agent", sha256: "f".repeat(64) }],
        agent: { enabled: true },
      }),
    );
    expect(worker.warnings).toEqual([
      expect.stringContaining("agent.enabled without agent.key_file"),
      expect.stringContaining("agent.enabled on a single node"),
    ]);
    const missing = await tenure("config", "check", file({ ...VALID, agent: { enabled: true, key_file: "nope" } }));
    expect([missing.code, missing.stderr]).toEqual([
      78,
      expect.stringMatching(/agent\.key_file: can't read .*nope: there is no such file/),
    ]);
  });

  it("names every wrong field, each on its line, with 78", async () => {
    const wrong = { ...VALID, node_id: "N 1", data_dri: "x", api: { listen: "0.0.0.0:x" } };
    const { code, stderr } = await tenure("config", "check", file(wrong));
    expect(code).toBe(78);
    const [head, ...lines] = stderr.trimEnd().split("\n");
    expect(head).toMatch(/^tenure: The server's configuration \(.*\.json\) is not valid:$/);
    expect(lines).toEqual([
      "  data_dri is not known; did you mean data_dir?",
      '  node_id must be a node id: a–z, 0–9 and -, at most 63, not beginning with -, found "N 1"',
      '  api.listen must be "host:port", such as 127.0.0.1:7400 or [::1]:7400, found "0.0.0.0:x"',
      "docs/reference/configuration.md lists every field.",
    ]);
  });

  it("refuses to listen beyond loopback without TLS and keys, and says how to fix it", async () => {
    const open = { ...VALID, keys: [], api: { listen: "192.0.2.1:7100" }, peer: { listen: "192.0.2.1:7200" } };
    const { code, stderr } = await tenure("config", "check", file(open));
    expect(code).toBe(78);
    for (const text of ["peer.tls", "api.tls", "keys", "tenure cert init"]) expect(stderr).toContain(text);
  });

  it.each([
    ["tenure_server_timeout_m=3000", /did you mean tenure_server_timeout_ms\? /],
    ["tenure_server_timeout_ms=abc", /tenure_server_timeout_ms/i],
  ])("names a wrong parameter of the backend's URL: %s", async (parameter, said) => {
    const path = file({
      node_id: "n1",
      data_dir: "data",
      backend: `postgres://u@127.0.0.1/d?${parameter}`,
      keys: [KEY],
    });
    const { code, stderr } = await tenure("config", "check", path);
    expect([code, stderr.trim().split("\n").length]).toEqual([78, 1]);
    expect(stderr).toMatch(/backend/);
    expect(stderr).toMatch(said);
  });

  it("tenure server start names the flag where the backend came from it", async () => {
    const { code, stderr } = await tenure("server", "start", "--config", file(VALID), "--backend", "mysql://x");
    expect(code).toBe(78);
    expect(stderr).toContain("--backend must be a Postgres URL");
    expect(stderr).not.toContain("TENURE_SERVER_BACKEND");
  });

  it("looks at the files that it names", async () => {
    writeFileSync(join(directory, "not.pem"), "hello");
    const tls = { ca_file: "nothing.pem", cert_file: "not.pem", key_file: "not.pem" };
    const { code, stderr } = await tenure("config", "check", file({ ...VALID, peer: { tls } }));
    expect(code).toBe(78);
    expect(stderr).toContain("peer.tls.cert_file: can't read");
    expect(stderr).toContain("peer.tls.key_file: can't read");
    expect(stderr).toContain(`peer.tls.ca_file: can't read ${join(directory, "nothing.pem")}: there is no such file`);
  });

  it("holds the peer certificate to the node's id and to the authority, as the other nodes will", async () => {
    const certs = join(directory, "certs");
    for (const args of [
      ["init", "--dir", join(certs, "ca")],
      ["init", "--dir", join(certs, "other")],
      ["issue", "--dir", join(certs, "ca"), "--out", join(certs, "n1"), "--node-id", "n1", "--host", "127.0.0.1"],
    ]) {
      expect(await tenure("cert", ...args)).toMatchObject({ code: 0 });
    }
    const files = { cert_file: join(certs, "n1/n1.crt"), key_file: join(certs, "n1/n1.key") };
    const check = (nodeId: string, ca: string) => {
      const tls = { ...files, ca_file: join(certs, ca, "ca.crt") };
      return tenure("config", "check", file({ ...VALID, node_id: nodeId, bootstrap: {}, peer: { tls } }));
    };
    expect(await check("n1", "ca")).toMatchObject({ code: 0, stderr: "" });
    const another = await check("n4", "ca");
    expect(another.code).toBe(78);
    expect(another.stderr).toContain("it is that of node n1, and this is node n4");
    const stranger = await check("n1", "other");
    expect(stranger.code).toBe(78);
    expect(stranger.stderr).toMatch(/peer\.tls\.cert_file: .*it was not issued by this cluster's authority/);
  });

  it("warns where the API's certificate does not have the name that clients are given", async () => {
    const certs = join(directory, "names");
    const issue = (...flags: readonly string[]) =>
      tenure("cert", "issue", "--dir", join(certs, "ca"), "--out", join(certs, "n1"), "--node-id", "n1", ...flags);
    expect(await tenure("cert", "init", "--dir", join(certs, "ca"))).toMatchObject({ code: 0 });
    expect(await issue("--host", "other.example")).toMatchObject({ code: 0 });
    const tls = { cert_file: join(certs, "n1/n1.crt"), key_file: join(certs, "n1/n1.key") };
    const api = { advertise: "https://n1.example:7401", tls: { ...tls, client_ca_file: join(certs, "n1/ca.crt") } };
    const check = () => tenureJson<{ warnings: readonly string[] }>("config", "check", file({ ...VALID, api }));
    const { code, warnings } = await check();
    expect({ code, warnings }).toMatchObject({ code: 0 });
    expect(warnings.join("\n")).toMatch(
      /api\.advertise gives clients the name n1\.example, which .*DNS:other\.example.*Issue it again with --host n1\.example/,
    );
    expect(await issue("--host", "n1.example")).toMatchObject({ code: 0 });
    expect((await check()).warnings.join("\n")).not.toContain("api.advertise");
  });

  it("says who the node is among coordinators, by its certificate, and refuses one that names no node or another one", async () => {
    const certs = join(directory, "tc");
    expect(await tenure("cert", "init", "--dir", certs)).toMatchObject({ code: 0 });
    expect(await tenure("cert", "issue", "--dir", certs, "--node-id", "berlin-1")).toMatchObject({ code: 0 });
    expect(await tenure("cert", "issue", "--dir", certs, "--operator", "joe")).toMatchObject({ code: 0 });
    const checked = (name: string, nodeId = "berlin-1") => {
      const files = ["crt", "key"].map((ending) => join(certs, `${name}.${ending}`));
      const tls = { cert_file: files[0], key_file: files[1], client_ca_file: join(certs, "ca.crt") };
      const api = { advertise: "https://127.0.0.1:7401", tls };
      const tc = { join: ["https://127.0.0.1:7401", "https://127.0.0.1:7411"] };
      return file({ ...VALID, node_id: nodeId, api, tc });
    };
    const path = checked("berlin-1");
    expect(await tenureJson("config", "check", path)).toMatchObject({
      code: 0,
      tc: {
        identity: "berlin-1",
        endpoint: "https://127.0.0.1:7401",
        join: ["https://127.0.0.1:7401", "https://127.0.0.1:7411"],
      },
    });
    expect((await tenure("config", "check", path)).stdout).toMatch(
      /^coordinator +berlin-1 at https:\/\/127\.0\.0\.1:7401; joins https:\/\/127\.0\.0\.1:7401, https:\/\/127\.0\.0\.1:7411$/m,
    );
    const { code, stderr } = await tenure("config", "check", checked("operator-joe"));
    expect(code).toBe(78);
    expect(stderr).toMatch(
      /joe\.crt can't be a transaction coordinator's.*names spiffe:\/\/tenure\/operator\/joe.*tenure cert issue/,
    );
    const other = await tenure("config", "check", checked("berlin-1", "paris-1"));
    expect(other.code).toBe(78);
    expect(other.stderr).toMatch(/it is the certificate of node berlin-1, and this node is paris-1 \(node_id\)/);
    expect(await tenureJson("config", "check", file(VALID))).toMatchObject({ code: 0, tc: null });
  });

  it("takes TOML as well, and says who said what", async () => {
    const path = join(directory, "n1.toml");
    writeFileSync(path, 'node_id = "n1"\ndata_dir = "data"\n[log]\nlevel = "warn" # quiet\n');
    const shown = await tenureJson<Shown>("config", "show", path);
    expect(shown.settings.find(({ key }) => key === "log.level")).toMatchObject({ value: "warn", from: "file" });
    expect(await tenure("config", "check", path)).toMatchObject({ code: 0, stderr: "" });
  });

  it("warns of a variable that is nearly one of ours", async () => {
    const { stdout } = await start(["config", "check", file(VALID)], { TENURE_LOG_LEVL: "debug", TENURE_PORT: "1" })
      .ended;
    expect(stdout).toMatch(
      /^warning +TENURE_LOG_LEVL is set, and no server reads it; did you mean TENURE_LOG_LEVEL\?$/m,
    );
    expect(stdout).not.toContain("TENURE_PORT");
  });
});

interface Shown {
  readonly file: string;
  readonly settings: readonly { readonly key: string; readonly value: unknown; readonly from: string }[];
}

describe("tenure config show", () => {
  it("says what is in effect and who said so, in both forms, in the documented fields", async () => {
    const path = file({ ...VALID, log: { level: "warn" } });
    const shown = await tenureJson<Shown>("config", "show", path);
    expect(shown).toMatchObject({ code: 0, file: path });
    const of = (key: string) => shown.settings.find((one) => one.key === key);
    expect(of("data_dir")).toEqual({ key: "data_dir", value: join(directory, "data"), from: "file", variable: null });
    expect(of("log.level")).toMatchObject({ value: "warn", from: "file" });
    expect(of("api.listen")).toMatchObject({ value: "127.0.0.1:7401", from: "default" });
    const [, text = ""] = readFileSync("docs/reference/cli.md", "utf8").split(
      "### `tenure config show FILE -o json`\n",
    );
    const documented = [...text.split("\n#", 1)[0]!.matchAll(/^\| `([^`]+)`/gm)].map(([, field]) => field);
    expect(["file", ...Object.keys(shown.settings[0]!).map((name) => `settings[].${name}`)]).toEqual(documented);
    const { code, stdout, stderr } = await tenure("config", "show", path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^KEY +FROM +VALUE$/m);
    expect(stdout).toMatch(/^log\.level +file +warn$/m);
    expect(stdout.trimEnd().split("\n")).toHaveLength(shown.settings.length + 1);
  });

  it("hides the password of a backend, and refuses what is not valid", async () => {
    const backend = "postgres://u:geheim@127.0.0.1/d?tenure_server_timeout_ms=6000";
    const path = file({ node_id: "n1", data_dir: "data", backend, keys: [KEY] });
    for (const more of [[], ["-o", "json"]]) {
      const { code, stdout, stderr } = await tenure("config", "show", path, ...more);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("postgres://u:…@127.0.0.1/d?tenure_server_timeout_ms=6000");
      expect(stdout).not.toContain("geheim");
    }
    const wrong = await tenure("config", "show", file({ ...VALID, data_dri: "x" }));
    expect(wrong).toMatchObject({ code: 78, stdout: "" });
    expect(wrong.stderr).toContain("did you mean data_dir?");
  });
});
