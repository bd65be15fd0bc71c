// How a node serves the dashboard: what is in its headers, who of another origin may read the API, what there is without
// a build. Over the in-memory ports.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { readWeb } from "../../src/node/worlds/web.ts";
import { startApi, type TestApi } from "../api/test-api.ts";
import { buildWeb } from "./test-browser.ts";

const GZIP_BYTES_MAX = 60_000;

let folder: string;
let t: TestApi;
beforeAll(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "tenure-web-")), "web");
  buildWeb("--out", folder);
  t = await startApi({ web: readWeb([folder]) });
  // One after a path, as a proxy may have it, and one that is no address of a server.
  t.cluster.memberUrls = { n1: t.url, n2: "https://n2.example:7401/tenure", n3: "javascript:alert(1)" };
});
afterAll(async () => {
  await t?.[Symbol.asyncDispose]();
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

/** The members of the test's cluster, as far as they tell a URL. */
const members = (): string[] => [t.url, "https://n2.example:7401"];

it(`is at most ${GZIP_BYTES_MAX} bytes in all, compressed`, () => {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.map(
    ({ parentPath, name }) => gzipSync(readFileSync(join(parentPath, name)), { level: 9 }).length,
  );
  const total = bytes.reduce((sum, one) => sum + one, 0);
  console.log(`the dashboard: ${bytes.length} files, ${total} bytes gzip`);
  expect(bytes.length).toBeGreaterThanOrEqual(3);
  expect(total).toBeGreaterThan(10_000);
  expect(total).toBeLessThanOrEqual(GZIP_BYTES_MAX);
});

it("the page is given to anybody, with a strict policy, and is asked for again each time", async () => {
  const { status, headers, text } = await t.call("GET", "/", undefined, null);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-cache");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("content-security-policy")?.split("; ")).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${members().join(" ")}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ]);
  expect(text).not.toMatch(/<script(?![^>]*src=)|<style| style=| on\w+=/);
  const again = await t.call("GET", "/?view=jobs", undefined, null, { "if-none-match": headers.get("etag") ?? "" });
  expect([again.status, again.text]).toEqual([304, ""]);
});

it("its assets have names that change with their content, and may be kept for ever", async () => {
  const { text } = await t.call("GET", "/", undefined, null);
  const paths = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  expect(paths.map((path) => /\.\w+$/.exec(path)?.[0] ?? "").toSorted()).toEqual([".css", ".js", ".svg"]);
  for (const path of paths) {
    const { status, headers } = await t.call("GET", path, undefined, null);
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(headers.get("content-type")).toMatch(/^(text\/(javascript|css)|image\/svg)/);
    expect((await t.call("HEAD", path, undefined, null)).status).toBe(200);
  }
});

it.each(["/assets/none.js", "/assets/", "/assets/..%2f..%2fpackage.json", "/index.html", "/.built"])(
  "%s is no route",
  async (path) => expect((await t.call("GET", path, undefined, null)).json).toMatchObject({ error: "NOT_FOUND" }),
);

it("anything but reading it is refused", async () => {
  const { status, headers } = await t.call("POST", "/", {}, null);
  expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
});

it("a member's page may read this API from its own origin, also what is refused", async () => {
  const [origin = ""] = members();
  for (const key of ["viewer-key", "wrong"]) {
    const { headers } = await t.call("GET", "/role", undefined, key, { origin });
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-expose-headers")).toContain("x-tenure-staleness-ms");
    expect(headers.get("access-control-allow-credentials")).toBeNull();
    expect(headers.get("vary")).toContain("origin");
  }
  const preflight = await t.fetch("/v1/queues/q/pause", {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "x-api-key" },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
  expect(preflight.headers.get("access-control-allow-methods")).toBe("POST");
  expect(preflight.headers.get("access-control-allow-headers")).toContain("x-api-key");
});

it("nobody else's page may", async () => {
  const [member = ""] = members();
  const strangers = ["https://example.org", "null", `${member}.example.org`, `${member}/`, member.toUpperCase(), "*"];
  for (const origin of strangers) {
    for (const method of ["GET", "OPTIONS"]) {
      const { headers } = await t.call(method, "/role", undefined, null, { origin });
      expect(headers.get("access-control-allow-origin"), `${method} from ${origin}`).toBeNull();
      expect(headers.get("access-control-allow-methods")).toBeNull();
    }
  }
});

it("nobody else's page changes anything, whatever it is let in by; a member's page and this node's own may", async () => {
  const [member = ""] = members();
  const pause = (origin: string) => t.call("POST", "/v1/queues/q/pause", {}, "operator-key", { origin });
  for (const origin of ["https://example.org", "null", `${member}.example.org`, "*"]) {
    const { status, json } = await pause(origin);
    expect([status, json], origin).toMatchObject([403, { error: "PERMISSION_DENIED" }]);
  }
  for (const origin of [member, new URL(t.url).origin, `https://${new URL(t.url).host}`]) {
    expect((await pause(origin)).status, origin).toBe(200);
  }
});

it("a stream says it too", async () => {
  const [origin = ""] = members();
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const headers = { origin, "x-api-key": "viewer-key", accept: "text/event-stream" };
  const response = await fetch(`${t.url}/v1/events`, { headers, signal: over.signal });
  expect(response.headers.get("access-control-allow-origin")).toBe(origin);
});

it("without a build `/` says how to build it, and the API works", async () => {
  await using bare = await startApi({ web: readWeb([join(folder, "nowhere")]) });
  const { status, text } = await bare.call("GET", "/", undefined, null);
  expect([status, /npm run build:web/.test(text)]).toEqual([200, true]);
  expect((await bare.call("GET", "/role")).status).toBe(200);
});
