// The SDK and the agent's as a browser gets them: one file each, run where there is nothing of Node, and where a stream can be
// read but not walked through. (That they import nothing, and their sizes: test/bundle.test.ts.)

import { createContext, runInContext } from "node:vm";
import { build } from "rolldown";
import { expect, it } from "vitest";
import type * as agentEntry from "../../src/entry/agent.ts";
import type * as clientEntry from "../../src/entry/client.ts";
import { startApi, type TestApi } from "../api/test-api.ts";

async function bundle(input: string): Promise<string> {
  const { output } = await build({
    input,
    write: false,
    logLevel: "silent",
    platform: "neutral",
    external: (id) => !/^[./]/.test(id),
    output: { format: "iife", name: "sdk", minify: true },
  });
  const [chunk, ...others] = output;
  expect(others).toEqual([]);
  return chunk.code;
}

/** What a page has, of all that the SDK might want. */
function page(): object {
  const { AbortController, AbortSignal, TextDecoder, TextEncoder, URL, URLSearchParams, crypto, performance } =
    globalThis;
  const plain = { AbortController, AbortSignal, TextDecoder, TextEncoder, URL, URLSearchParams, crypto, performance };
  const timers = { setTimeout, clearTimeout };
  return { ...plain, ...timers, fetch: async (url: string, init: RequestInit) => readable(await fetch(url, init)) };
}

function readable({ ok, status, url, headers, body }: Response): object {
  return { ok, status, url, headers, body: body === null ? null : { getReader: () => body.getReader() } };
}

async function load<T>(input: string): Promise<T> {
  return runInContext(`${await bundle(input)}; sdk`, createContext(page())) as T;
}

const loadClient = async (t: TestApi) => {
  const { createClient } = await load<typeof clientEntry>("src/entry/client.ts");
  return createClient({ urls: [t.url], key: "operator-key", timeoutMs: 10_000 });
};

it("in a page the client submits, lists, follows events and ends by its signal", async () => {
  await using t = await startApi();
  const client = await loadClient(t);
  const id = await client.submit({ kind: "build", payload: { from: "a page" } });
  expect(await client.job(id)).toMatchObject({ id, state: "pending", spec: { payload: { from: "a page" } } });
  const listed: string[] = [];
  for await (const job of client.jobs()) listed.push(job.id);
  expect(listed).toEqual([id]);
  for await (const event of client.events({ after: 0 })) {
    expect(event).toMatchObject({ sequence: 1, eventType: "build:submitted", entityId: id });
    break;
  }
  // Whoever leaves the loop closes the stream.
  await expect.poll(() => t.api.stats().streams).toBe(0);
  const over = new AbortController();
  const waiting = client.wait(id, { signal: over.signal });
  over.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(client.job("none")).rejects.toMatchObject({ code: "NOT_FOUND" });
});

it("in a page an agent runs a job and reports it", async () => {
  await using t = await startApi();
  const client = await loadClient(t);
  const { createAgent } = await load<typeof agentEntry>("src/entry/agent.ts");
  const handlers = { build: async ({ payload }: { payload: unknown }) => ({ seen: payload }) };
  await using agent = createAgent({ urls: [t.url], key: "operator-key", name: "page", handlers });
  await agent.start();
  const id = await client.submit({ kind: "build", payload: 7 });
  expect(await client.wait(id, { signal: AbortSignal.timeout(10_000) })).toMatchObject({
    state: "completed",
    result: { seen: 7 },
  });
});
