// A stream over the port: it begins as any answer does, and ends with its signal, its reader, the connection, or silence.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { ServersAnswer } from "../../ports/backends/servers.ts";
import { serversHttpWire } from "./http-wire.ts";

async function stage(talk: (response: ServerResponse) => void) {
  const gone = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    response.once("close", gone.resolve);
    response.setHeader("x-tenure-cluster", "c1");
    talk(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const wire = serversHttpWire({ key: undefined, tls: {} });
  onTestFinished(() => {
    wire.close();
    server.closeAllConnections();
    server.close();
  });
  const stop = new AbortController();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = (silenceMs = 5_000): Promise<ServersAnswer> => {
    const limits = { timeoutMs: 5_000, bytesMax: 1_000, silenceMs, signal: stop.signal };
    return wire.ask(url, { method: "GET", path: "/v1/watch/values", body: null, ...limits });
  };
  return { open, stop, wire, gone: gone.promise };
}

/** What came, and why no more did. */
async function readAll({ pieces }: ServersAnswer): Promise<{ readonly text: string; readonly end: unknown }> {
  let text = "";
  try {
    for await (const piece of pieces!) text += piece;
  } catch (error) {
    return { text, end: error };
  }
  return { text, end: undefined };
}

it("is handed over as it comes, with its letters whole, until it ends", async () => {
  const { open } = await stage((response) => {
    const bytes = Buffer.from("data: é😀\n\n");
    response.write(bytes.subarray(0, 7));
    setTimeout(() => response.end(bytes.subarray(7)), 20);
  });
  const answer = await open();
  expect(answer).toMatchObject({ status: 200, body: {}, clusterId: "c1" });
  expect(await readAll(answer)).toEqual({ text: "data: é😀\n\n", end: undefined });
});

it("is an answer as any other where it is refused", async () => {
  const { open } = await stage((response) => response.writeHead(503).end('{"error":"OVERLOADED"}'));
  const answer = await open();
  expect(answer).toMatchObject({ status: 503, body: { error: "OVERLOADED" }, clusterId: "c1" });
  expect(answer.pieces).toBeUndefined();
});

it("fails when the connection breaks, and when nothing comes while its reader waits", async () => {
  const broken = await stage((response) => {
    response.write("a");
    setTimeout(() => response.destroy(), 20);
  });
  expect(await readAll(await broken.open())).toEqual({
    text: "a",
    end: expect.objectContaining({ code: "BACKEND_UNAVAILABLE" }),
  });
  const silent = await stage((response) => response.write("a"));
  expect(await readAll(await silent.open(50))).toEqual({
    text: "a",
    end: expect.objectContaining({ code: "BACKEND_UNAVAILABLE", message: expect.stringContaining("within 50 ms") }),
  });
});

it("does not fail because its reader takes its time", async () => {
  const { open } = await stage((response) => {
    response.write("a");
    setTimeout(() => response.end("b"), 10);
  });
  const { pieces } = await open(100);
  let text = "";
  for await (const piece of pieces!) {
    text += piece;
    await new Promise((resume) => setTimeout(resume, 150));
  }
  expect(text).toBe("ab");
});

it.each(["its signal aborts", "its reader leaves", "the wire is closed"])("ends at the server when %s", async (how) => {
  const { open, stop, wire, gone } = await stage((response) => response.write("a"));
  const answer = await open();
  if (how === "its reader leaves") {
    for await (const _ of answer.pieces!) break;
  } else if (how === "its signal aborts") stop.abort();
  else wire.close();
  await gone;
});
