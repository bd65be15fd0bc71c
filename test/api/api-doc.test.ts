// docs/reference/api.md lists every route of the contract as it is, and no other.

import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { API_LIMITS } from "../../src/api/index.ts";
import { VALUE_BODY_BYTES_MAX } from "../../src/contract/limits.ts";
import { LEASE_BODY_BYTES_MAX, MEMBER_BODY_BYTES_MAX } from "../../src/contract/tc/limits.ts";
import * as txn from "../../src/contract/txn/limits.ts";
import {
  COMMON_ERRORS,
  EVENTS_PER_PAGE_MAX,
  JOBS_PER_PAGE_MAX,
  NAMES_PER_PAGE_MAX,
  type Route,
  ROUTES,
} from "../../src/contract/index.ts";
import * as limits from "../../src/core/kit/limits.ts";
import { TXN_GENERATIONS_AHEAD_MAX } from "../../src/core/txn/limits.ts";
import { OPERATOR_KEY, startTenureCluster } from "../servers/index.ts";

const run = promisify(execFile);

interface Entry {
  /** Empty: certificates of a kind are asked for. */
  readonly role: string;
  readonly certificates: readonly string[];
  /** Next to those of the role. */
  readonly alsoFor: readonly string[];
  readonly body: readonly string[];
  readonly query: readonly string[];
  readonly errors: readonly string[];
}

interface Fields {
  readonly properties?: object;
  readonly anyOf?: readonly Fields[];
}

const markdown = readFileSync("docs/reference/api.md", "utf8");

function documented(text: string): Record<string, Entry> {
  const entries: Record<string, Entry> = {};
  for (const [, route = "", section = ""] of text.matchAll(/^### `(\w+ \/[^`]*)`\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm)) {
    const [head = ""] = section.trim().split("\n\n");
    expect(entries, `${route} is there twice`).not.toHaveProperty([route]);
    entries[route] = {
      role: /^Role: (\w+)\./.exec(head)?.[1] ?? "",
      certificates: names(head, "Certificates"),
      alsoFor: names(head, "Certificates too"),
      body: names(head, "Body"),
      query: names(head, "Query"),
      errors: names(head, "Errors"),
    };
  }
  return entries;
}

function names(head: string, label: string): string[] {
  const list = new RegExp(`${label}: ((?:\`\\w+\`(?:, )?)+)\\.`).exec(head)?.[1] ?? "";
  return [...list.matchAll(/\w+/g)].map(([name]) => name).sort();
}

function actual(): Record<string, Entry> {
  return Object.fromEntries(
    Object.values(ROUTES as Record<string, Route>).map((route) => [
      `${route.method} ${route.path}`,
      {
        role: route.identities === undefined ? route.role : "",
        certificates: [...(route.identities ?? [])].sort(),
        alsoFor: [...(route.isAlsoFor ?? [])].sort(),
        body: fieldsOf(route.body),
        query: fieldsOf(route.query),
        errors: [...route.errors].sort(),
      },
    ]),
  );
}

function fieldsOf(shape: Route["body"]): string[] {
  const { properties = {}, anyOf = [] } = (shape?.schema ?? {}) as Fields;
  return [
    ...new Set([properties, ...anyOf.map((one) => one.properties ?? {})].flatMap((one) => Object.keys(one))),
  ].sort();
}

it("lists every route with its role, body, query and errors, and no other", () => {
  expect(documented(markdown)).toEqual(actual());
});

it("names every field of every answer", () => {
  const missing = Object.entries(ROUTES as Record<string, Route>).flatMap(([id, { answer }]) =>
    fieldNames(answer)
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(markdown))
      .map((name) => `${id}.${name}`),
  );
  expect(missing).toEqual([]);
});

it("names the errors that any route may answer, and the bounds as they are", () => {
  for (const code of COMMON_ERRORS) expect(markdown).toContain(`\`${code}\``);
  const shown = (value: number): string => value.toLocaleString("en-GB");
  const kib = (bytes: number): number => Math.ceil(bytes / 1024);
  for (const text of [
    `${kib(LEASE_BODY_BYTES_MAX)} KiB and ${kib(MEMBER_BODY_BYTES_MAX)} KiB where coordinators do, ${kib(txn.TXN_NOTE_BODY_BYTES_MAX)} KiB to ${shown(kib(txn.TXN_BATCH_BODY_BYTES_MAX))} KiB where`,
    `A body with a roster may have ${kib(LEASE_BODY_BYTES_MAX)} KiB, the others ${kib(MEMBER_BODY_BYTES_MAX)} KiB`,
    `with 1 to ${limits.MEMBERS_MAX} voters, each once, and at most ${limits.REGISTRY_ENTRIES_MAX}\nendpoints`,
    `of ${limits.API_URL_LENGTH_MAX} characters at most`,
    `Bodies ${API_LIMITS.bodyBytesMax / 1024} KiB, ${kib(VALUE_BODY_BYTES_MAX)} KiB where a value is written`,
    `${API_LIMITS.largeBodyBytesMax / 1024 / 1024} MiB where jobs`,
    `${shown(API_LIMITS.streamsMax)} streams`,
    `every ${API_LIMITS.heartbeatMs / 1_000} s`,
    `for ${API_LIMITS.streamStallMs / 1_000} s is cut`,
    `headers ${API_LIMITS.headerBytesMax / 1024} KiB and ${API_LIMITS.headersMax} headers`,
    `${shown(API_LIMITS.connectionsMax)} connections`,
    `${shown(API_LIMITS.requestsMax)} requests`,
    `arrive in ${API_LIMITS.headersTimeoutMs / 1_000} s`,
    `request in ${API_LIMITS.requestTimeoutMs / 1_000} s`,
    `${shown(API_LIMITS.adminPerWindow)} admin calls`,
    `${shown(API_LIMITS.acquirePerWindow)} campaigns`,
  ]) {
    expect(markdown).toContain(text);
  }
});

it("names the bounds of transactions over islands as they are", () => {
  const shown = (value: number): string => value.toLocaleString("en-GB");
  const kib = (bytes: number): string => shown(Math.ceil(bytes / 1024));
  for (const text of [
    `each island once, ${limits.TXN_PARTICIPANTS_MAX} of them at most, each with 1 to ${limits.TXN_OPERATIONS_MAX} [operations]`,
    `at most ${limits.TXN_REQUIRES_MAX} of \`{backend_hash, scope, epoch}\``,
    `${shown(limits.TXN_TIMEOUT_MS_MIN)} to ${shown(limits.TXN_TIMEOUT_MS_MAX)}, default ${shown(limits.TXN_TIMEOUT_MS)}`,
    `(at most ${shown(limits.TXN_STAGED_MS_MAX)})`,
    `have ${kib(limits.TXN_BYTES_MAX)} KiB as JSON at most`,
    `${kib(txn.TXN_BODY_BYTES_MAX)} KiB with operations of a client, ${kib(txn.TXN_CALL_BODY_BYTES_MAX)} KiB with those of an island, ${kib(txn.TXN_BATCH_BODY_BYTES_MAX)} KiB of a batch, the others ${kib(txn.TXN_NOTE_BODY_BYTES_MAX)} KiB`,
    `1 to ${limits.TXN_BATCH_MAX} of \`{call, body}\``,
    `about \`ids\` (at most ${limits.TXN_BATCH_MAX})`,
    `\`message\` (at most ${shown(limits.TXN_MESSAGE_BYTES_MAX)} bytes)`,
    `at most ${limits.TXNS_PER_PAGE_MAX}, after the id`,
    `at most \`limit\` (1 to ${txn.TXNS_SHOWN_PER_PAGE_MAX}, default ${txn.TXNS_SHOWN_PER_PAGE_MAX}) after the id`,
    `older than ${limits.TXN_AGE_MS_MAX / 3_600_000} hours`,
    `more than ${limits.TXN_AHEAD_MS_MAX / 1_000} s ahead`,
    `more than ${TXN_GENERATIONS_AHEAD_MAX} generations above`,
  ]) {
    expect(markdown).toContain(text);
  }
});

it("names the bounds of values as they are, as docs/values.md does", () => {
  const shown = (value: number): string => value.toLocaleString("en-GB");
  const mib = limits.VALUES_BYTES_MAX / 1024 / 1024;
  for (const text of [
    `has 1 to ${limits.VALUE_NAME_BYTES_MAX} bytes`,
    `at most \`limit\` (1 to ${limits.VALUES_PER_PAGE_MAX}, default ${limits.VALUES_PER_PAGE_MAX}), after the name`,
    `at most ${limits.VALUES_PAGE_BYTES_MAX / 1024} KiB of them`,
    `any JSON of at most ${limits.VALUE_BYTES_MAX} bytes (as canonical JSON) and ${limits.JSON_DEPTH_MAX} levels`,
    `there are ${shown(limits.VALUES_MAX)} values, or they have ${mib} MiB together`,
  ]) {
    expect(markdown).toContain(text);
  }
  const page = readFileSync("docs/values.md", "utf8");
  for (const text of [
    `${shown(limits.VALUES_MAX)} values`,
    `${limits.VALUE_BYTES_MAX / 1024} KiB each`,
    `${mib} MiB all together`,
    `${limits.VALUE_NAME_BYTES_MAX} bytes`,
    `${limits.JSON_DEPTH_MAX} levels`,
  ]) {
    expect(page).toContain(text);
  }
});

it("names the bounds of jobs, agents and keys as they are", () => {
  for (const text of [
    `at most ${limits.JOB_NAME_BYTES_MAX}. \`payload\``,
    `JSON of at most ${limits.JOB_PAYLOAD_BYTES_MAX} bytes and ${limits.JSON_DEPTH_MAX} levels`,
    `at most ${limits.JOB_LABELS_MAX}, ${limits.JOB_LABELS_BYTES_MAX} bytes as JSON`,
    `−${limits.JOB_PRIORITY_MAX} to ${limits.JOB_PRIORITY_MAX}`,
    `\`attempts_max\` (3; 1 to ${limits.JOB_BUDGET_MAX}`,
    `at most ${limits.JOB_BACKOFF_MS_MAX}), \`timeout_ms\``,
    `at most\n${limits.JOB_TIMEOUT_MS_MAX}), \`retention_ms\``,
    `at most ${limits.JOB_RETENTION_MS_MAX})`,
    `1 to ${limits.JOB_CONCURRENCY_MAX}: at most so many`,
    `\`jobs\`: 1 to ${limits.JOBS_PER_REQUEST_MAX} of them`,
    `at most ${limits.SESSION_BYTES_MAX}\nbytes), \`kinds\` (1 to ${limits.AGENT_KINDS_MAX})`,
    `\`capacity\` (1 to ${limits.AGENT_CAPACITY_MAX})`,
    `\`ttl_ms\`: ${limits.LEASE_TTL_MS_MIN} to\n${limits.LEASE_TTL_MS_MAX}`,
    `(0 to ${limits.LEASE_WAIT_MS_MAX})`,
    `\`message\` (${limits.JOB_PROGRESS_BYTES_MAX} bytes)`,
    `\`text\` (${limits.LOG_CHUNK_BYTES_MAX} bytes; at most ${limits.LOG_CHUNKS_PER_CALL_MAX}\nchunks)`,
    `\`results\`: 1 to ${limits.RESULTS_PER_CALL_MAX}.`,
    `\`message\` of at most ${limits.JOB_ERROR_BYTES_MAX} bytes`,
    `header of 1 to ${limits.IDEMPOTENCY_KEY_BYTES_MAX} printable`,
    `at most ${limits.API_KEY_NAME_BYTES_MAX}. Answer`,
    `\`limit\`: 1 to ${JOBS_PER_PAGE_MAX}, default ${JOBS_PER_PAGE_MAX}`,
    `\`limit\` (1 to ${NAMES_PER_PAGE_MAX}, default ${NAMES_PER_PAGE_MAX})`,
    `\`limit\` (1 to ${EVENTS_PER_PAGE_MAX}, default ${EVENTS_PER_PAGE_MAX})`,
    `at most ${limits.LOG_PAGE_BYTES_MAX / 1024} KiB`,
  ]) {
    expect(markdown).toContain(text);
  }
});

it("names every reason for which a job is pending, and the runbook says what to do about each", () => {
  const reasons = [
    ...JSON.stringify(ROUTES.job.answer).matchAll(/"reason":\{[^}]*?"(?:const|enum)":\[?"([a-z-]+)"/g),
  ].map(([, reason = ""]) => reason);
  expect(reasons).toContain("no-agent");
  expect(reasons.length).toBeGreaterThanOrEqual(7);
  const rows = readFileSync("docs/runbooks/jobs-wait.md", "utf8").matchAll(/^ *\| `([a-z-]+)` \| \S/gm);
  expect([...rows].map(([, reason = ""]) => reason).toSorted()).toEqual(reasons.toSorted());
  for (const reason of reasons) expect(markdown).toContain(`\`${reason}\``);
});

const hasTools = ["curl", "jq"].every((tool) => spawnSync(tool, ["--version"]).status === 0);

it.skipIf(!hasTools)(
  "the example by hand runs as it stands, on a real server",
  async () => {
    const [, script = ""] = /## By hand[\s\S]*?```sh\n([\s\S]*?)```/.exec(markdown) ?? [];
    await using cluster = await oneNode();
    const env = { PATH: process.env["PATH"], URL: cluster.url, KEY: OPERATOR_KEY };
    const { stdout, stderr } = await run("bash", ["--norc", "-euc", script], { env });
    expect(stderr).toBe("");
    expect(stdout).toContain('"reason": "no-agent"');
    expect(stdout).toContain('"renewed"\n"completed"\n');
    expect(stdout).toContain('"state": "completed"');
    expect(stdout).toContain("\ncloned\n");
    expect(stdout).toMatch(
      /event: build:submitted\nevent: build:assigned\nevent: build:log\nevent: build:completed\n$/,
    );
  },
  180_000,
);

async function oneNode(): Promise<{ readonly url: string } & AsyncDisposable> {
  const cluster = await startTenureCluster({ nodes: 1 });
  return { url: cluster.urls[0]!, [Symbol.asyncDispose]: () => cluster.end() };
}

it("the comparison sees a missing, an invented and a changed route", () => {
  expect(documented(markdown.replace("### `GET /role`", "GET /role"))).not.toEqual(actual());
  expect(documented(markdown.replace("`GET /role`", "`GET /roles`"))).not.toEqual(actual());
  expect(documented(markdown.replace("Role: operator. Body: `force`", "Role: client. Body: `force`"))).not.toEqual(
    actual(),
  );
  expect(documented(markdown.replace("Certificates: `server`.", "Certificates: `tc`."))).not.toEqual(actual());
  expect(documented(markdown.replace("`STALE_EPOCH`.\n\nFrees", "`NOT_FOUND`.\n\nFrees"))).not.toEqual(actual());
});

function fieldNames(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const own = "properties" in schema ? Object.keys(schema.properties as object) : [];
  return [...new Set([...own, ...Object.values(schema).flatMap((one) => fieldNames(one))])];
}
