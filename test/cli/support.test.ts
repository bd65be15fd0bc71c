// `tenure support bundle` on real nodes: what is in it, that a node which is down or hangs costs only itself, and that none of the
// secrets that nodes and operators have is in it. Unpacked with tar, as its reader does.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
  VIEWER_KEY,
} from "../servers/index.ts";
import { atTheEnd, start, tenure } from "./test-tenure.ts";

const directory = mkdtempSync(join(tmpdir(), "tenure-support-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

interface Bundled {
  readonly code: number | null;
  readonly nodes: readonly {
    node: string;
    status: string | null;
    metrics: string | null;
    diagnostics: string | null;
  }[];
  /** By name. */
  readonly files: ReadonlyMap<string, string>;
  readonly tookMs: number;
}

let bundles = 0;

async function bundle(environment: Record<string, string>, ...args: readonly string[]): Promise<Bundled> {
  const file = join(directory, `${++bundles}.tar.gz`);
  const place = join(directory, `${bundles}`);
  mkdirSync(place);
  const startedMs = performance.now();
  const { code, stdout, stderr } = await start(["support", "bundle", file, "-o", "json", ...args], environment).ended;
  const tookMs = performance.now() - startedMs;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { nodes } = JSON.parse(stdout) as Pick<Bundled, "nodes">;
  expect(statSync(file).mode & 0o777).toBe(0o600);
  execFileSync("tar", ["-xzf", file, "-C", place]);
  const names = readdirSync(place, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const files = names.map((one) => join(one.parentPath, one.name));
  for (const one of files) expect(statSync(one).mode & 0o077, one).toBe(0);
  const texts = files.map((one) => [one.slice(place.length + 1), readFileSync(one, "utf8")] as const);
  return { code, nodes, files: new Map(texts), tookMs };
}

/** Lines of a key, too: a part of one is one. */
function expectNone(secrets: readonly string[], { files }: Bundled): void {
  for (const [name, text] of files)
    for (const secret of secrets) expect(text.includes(secret), `${name}: ${secret}`).toBe(false);
}

/** The base64 lines of a private key's file. */
function linesOf(keyFile: string): string[] {
  const lines = readFileSync(keyFile, "utf8").split("\n");
  return lines.filter((line) => line.length > 20 && !line.startsWith("-----"));
}

async function made(): Promise<TenureCluster> {
  const cluster = await startTenureCluster({ tls: true, election: CALM_ELECTION });
  atTheEnd(() => cluster.end());
  await cluster.steady();
  return cluster;
}

const ONES = ["cluster.json", "metrics.txt", "about.json", "config.json", "log.jsonl"];
const ALL = ["bundle.json", "status.txt", "status.json", "elections.json", "alerts.json"];

it("has what every node gives, without the secrets of nodes and callers; one that is down and one that hangs are named", async () => {
  const cluster = await made();
  const access = ["--url", cluster.urls[0]!, "--ca", join(cluster.authority, "ca.crt")];
  // A wrong key in a URL, and one as a header's value, are in nobody's log; and a replicated key is made.
  const created = await tenure("key", "create", "--role", "viewer", "--name", "eve", ...access, "--key", OPERATOR_KEY);
  expect(created.code).toBe(0);
  const environment = { TENURE_API_KEY: OPERATOR_KEY, PLANTED_PASSWORD: "pl4nted-in-the-environment" };
  const whole = await bundle(environment, ...access);
  expect([...whole.files.keys()].toSorted()).toEqual(
    [...ALL, ...cluster.nodes.flatMap(({ id }) => ONES.map((name) => `nodes/${id}/${name}`))].toSorted(),
  );
  for (const { id } of cluster.nodes) {
    expect(whole.files.get(`nodes/${id}/log.jsonl`)).toContain('"event":"listening"');
    expect(whole.files.get(`nodes/${id}/metrics.txt`)).toContain("tenure_current_term");
    expect(JSON.parse(whole.files.get(`nodes/${id}/config.json`)!)).toMatchObject({
      node_id: id,
      keys: expect.arrayContaining([{ name: expect.any(String) as string, role: "operator" }]) as unknown,
    });
  }
  expect(JSON.parse(whole.files.get("elections.json")!)).not.toEqual([]);
  const keyFiles = [...cluster.nodes.map(({ id, home }) => join(home, `${id}.key`)), join(cluster.authority, "ca.key")];
  const secrets = [
    OPERATOR_KEY,
    CLIENT_KEY,
    VIEWER_KEY,
    created.stdout.trim(),
    environment.PLANTED_PASSWORD,
    ...keyFiles.flatMap(linesOf),
    ...(cluster.nodes[0]!.config.keys ?? []).map(({ sha256 }) => sha256),
  ];
  expect(secrets.length).toBeGreaterThan(10);
  expectNone(secrets, whole);

  const viewer = await bundle({ TENURE_API_KEY: VIEWER_KEY }, ...access);
  expect(viewer.nodes.map(({ diagnostics }) => diagnostics)).toEqual(Array(3).fill(expect.stringMatching("operator")));
  expect(viewer.files.has("nodes/n1/config.json")).toBe(false);
  expect(viewer.files.has("nodes/n1/metrics.txt")).toBe(true);

  const [one, two, three] = cluster.nodes;
  await two!.kill9();
  three!.stop();
  const left = await bundle(environment, "--url", cluster.urls.join(","), ...access.slice(2));
  three!.cont();
  // Two seconds for who does not answer at all; ten for an answer. The rest is the machine's.
  expect(left.tookMs).toBeLessThan(60_000);
  expect(left.nodes.map(({ status }) => status)).toEqual([null, expect.any(String), expect.any(String)]);
  expect(left.nodes[0]).toMatchObject({ node: one!.id, metrics: null, diagnostics: null });
  expect([...left.files.keys()].filter((name) => name.startsWith("nodes/")).toSorted()).toEqual(
    ONES.map((name) => `nodes/${one!.id}/${name}`).toSorted(),
  );
  expectNone(secrets, left);
}, 300_000);

it("hides the password of the database, in the configuration and wherever a log line has it", async () => {
  const postgres = await startPostgres();
  atTheEnd(() => postgres.end());
  const password = "pl4nted-p%40ss";
  const url = new URL(await postgres.createDatabase("support"));
  url.password = password;
  const cluster = await startTenureCluster({ nodes: 1, backend: url.href });
  atTheEnd(() => cluster.end());
  await cluster.waitForLeader();
  const found = await bundle({ TENURE_API_KEY: OPERATOR_KEY }, "--url", cluster.urls.join(","));
  const config = JSON.parse(found.files.get("nodes/n1/config.json")!) as { backend: string };
  expect(config.backend).toContain(`:…@${url.host}`);
  expect(found.files.get("nodes/n1/log.jsonl")).toContain('"event"');
  expectNone([password, decodeURIComponent(password), "pl4nted"], found);
}, 180_000);

it("says that nobody answers, and leaves no file", async () => {
  const place = join(directory, "nobody");
  mkdirSync(place);
  const { code, stderr } = await tenure("support", "bundle", join(place, "x.tar.gz"), "--url", "http://127.0.0.1:9");
  expect(code).toBe(69);
  expect(stderr).toContain("no server answers");
  expect(readdirSync(place)).toEqual([]);
});
