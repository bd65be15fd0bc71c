// `tenure key` as a process, against three real servers: from the first operator's key, which no server can make, to a key that
// is let in no more. The steps build on each other.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { tenure, tenureJson } from "./test-tenure.ts";

const LIMIT_MS = 60_000;

interface Made {
  readonly name: string;
  readonly role: string;
  readonly key: string;
  readonly created_by: string;
}

let cluster: TenureCluster;
let first: { readonly key: string; readonly entry: { name: string; sha256: string; role: "operator" } };
let access: string[];

beforeAll(async () => {
  first = await tenureJson("key", "create", "--role", "operator", "--name", "ada", "--offline");
  cluster = await startTenureCluster({
    prepare: (node) => node.configure({ keys: [...(node.config.keys ?? []), first.entry] }),
  });
  access = ["--url", cluster.urls.join(","), "--key", first.key];
}, 2 * LIMIT_MS);

afterAll(async () => cluster.end());

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function filesWith(directory: string, text: string): string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return files.map((one) => join(one.parentPath, one.name)).filter((file) => readFileSync(file).includes(text));
}

it("the first key is made without a server, and its entry in the configuration lets it in", async () => {
  expect(first.entry).toEqual({ name: "ada", sha256: sha256(first.key), role: "operator" });
  expect(await tenureJson("key", "list", ...access)).toEqual({ code: 0, keys: [] });
});

it("create prints the key alone on stdout, lets it in on every node, and no node keeps more than its hash", async () => {
  const { code, stdout, stderr } = await tenure("key", "create", "--role", "submitter", "--name", "ci", ...access);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^[0-9a-f]{64}\n$/);
  expect(stderr).toContain("ci, submitter");
  const key = stdout.trim();
  expect(stderr).not.toContain(key);
  const id = await createClient({ urls: cluster.urls, key }).submit({ kind: "build" });
  for (const node of cluster.nodes) {
    await waitFor("the node to know the key and the job", async () => {
      return (await node.call(`/v1/jobs/${id}`, { key })).status === 200;
    });
    expect(node.log()).not.toContain(key);
    expect(filesWith(node.dataDir, key)).toEqual([]);
    expect(filesWith(node.dataDir, sha256(key)).length).toBeGreaterThan(0);
  }
  const events = await cluster.nodes[0]!.call<object>("/api/events/since/0", { key });
  expect(JSON.stringify(events.body)).toContain(sha256(key));
  expect(JSON.stringify(events.body)).not.toContain(key);
  await expect(createClient({ urls: cluster.urls, key }).keys.list()).rejects.toMatchObject({
    code: "PERMISSION_DENIED",
  });
});

it("a name is chosen where none is given, and is taken once", async () => {
  const made = await tenureJson<Made>("key", "create", "--role", "agent", ...access);
  expect(made).toMatchObject({ code: 0, role: "agent", created_by: "ada" });
  expect(made.name).toBe(`agent-${sha256(made.key).slice(0, 8)}`);
  const again = await tenure("key", "create", "--role", "viewer", "--name", made.name, ...access);
  expect(again).toMatchObject({ code: 69, stdout: "" });
  expect(again.stderr).toContain("name");
});

it("list names them all without their keys, in both forms", async () => {
  const { keys } = await tenureJson<{ keys: Made[] }>("key", "list", ...access);
  expect(keys.map(({ role }) => role).toSorted()).toEqual(["agent", "submitter"]);
  const { stdout } = await tenure("key", "list", ...access);
  expect(stdout).toMatch(/^NAME +ROLE +CREATED +BY\n/);
  expect(stdout).toMatch(/^ci +submitter +2\d{3}-.* +ada$/m);
});

it("an operator's key that was made so may make others; a failover and a restart change nothing", async () => {
  const { key } = await tenureJson<Made>("key", "create", "--role", "operator", "--name", "bob", ...access);
  await cluster.node(await cluster.leader()).restart();
  await cluster.steady();
  const made = await tenureJson<Made>("key", "create", "--role", "viewer", "--url", access[1]!, "--key", key);
  expect(made).toMatchObject({ code: 0, created_by: "bob" });
});

it("revoke ends a key on every node; nobody, a wrong key and a lower role are refused with 77", async () => {
  const { key } = await tenureJson<Made>("key", "create", "--role", "submitter", "--name", "gone", ...access);
  for (const others of [[], ["--key", "guessed"], ["--key", key]]) {
    const refused = await tenure("key", "revoke", "ci", "--url", access[1]!, ...others);
    expect(refused).toMatchObject({ code: 77, stdout: "" });
  }
  expect(await tenureJson("key", "revoke", "gone", ...access)).toEqual({ code: 0, name: "gone" });
  for (const node of cluster.nodes) {
    await waitFor("the node to refuse it", async () => (await node.call("/v1/jobs", { key })).status === 401);
  }
  expect((await tenure("key", "revoke", "gone", ...access)).code).toBe(69);
});

it("the fields of -o json are those of docs/reference/cli.md", async () => {
  const document = readFileSync("docs/reference/cli.md", "utf8");
  const documented = (heading: string): string[] => {
    const [, text = ""] = document.split(`### \`${heading}\`\n`);
    return [...text.split("\n#", 1)[0]!.matchAll(/^\| `([^`]+)`/gm)].map(([, field = ""]) => field).toSorted();
  };
  const { entry, ...offline } = await tenureJson<{ entry: object }>("key", "create", "--role", "viewer", "--offline");
  const inner = Object.keys(entry).map((name) => `entry.${name}`);
  expect([...fields(offline), ...inner].toSorted()).toEqual(documented("tenure key create --offline -o json"));
  const made = await tenureJson<Made>("key", "create", "--role", "viewer", "--name", "doc", ...access);
  expect(fields(made)).toEqual(documented("tenure key create -o json"));
  const { keys } = await tenureJson<{ keys: object[] }>("key", "list", ...access);
  expect(fields(keys[0]!).map((name) => `keys[].${name}`)).toEqual(documented("tenure key list -o json"));
});

function fields(object: object): string[] {
  return Object.keys(object)
    .filter((name) => name !== "code")
    .toSorted();
}
