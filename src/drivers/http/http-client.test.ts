// A cut says what it may be: only an address that has never answered may want TLS. And how long a connection is kept.

import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { WORDS } from "../sites/failures.ts";
import { HttpClient, type HttpClientOptions, readText, urlBelow } from "./http-client.ts";

async function stage(talk: (socket: Socket) => void, options: HttpClientOptions = {}) {
  const server: Server = createServer((socket) => {
    socket.on("error", () => undefined);
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new HttpClient({}, WORDS, options);
  const { port } = server.address() as AddressInfo;
  const asked = {
    method: "GET",
    url: new URL(`http://127.0.0.1:${port}/`),
    headers: {},
    body: null,
    timeoutMs: 5_000,
    signal: new AbortController().signal,
  } as const;
  return {
    ask: () =>
      client
        .exchange(asked, (response) => readText(response, 100, () => WORDS.givenUp("")))
        .catch((error: unknown) => (error as Error).message),
    [Symbol.asyncDispose]: async () => {
      client.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const BEGUN = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok";

it("a connection that is cut at its first bytes may want TLS, as long as nobody has answered there", async () => {
  let connections = 0;
  await using server = await stage((socket) =>
    socket.once("data", () => (++connections === 2 ? socket.end(ANSWER) : socket.resetAndDestroy())),
  );
  expect(await server.ask()).toMatch(/the connection was cut\. If that lasts: the site may want https:\/\//);
  expect(await server.ask()).toBe("ok");
  expect(await server.ask()).toMatch(/can't be reached: the connection was cut\.$/);
});

it("an answer that is cut is no question of TLS", async () => {
  await using server = await stage((socket) =>
    socket.once("data", () => socket.write(BEGUN, () => setTimeout(() => socket.resetAndDestroy(), 50))),
  );
  expect(await server.ask()).toMatch(/can't be reached: the connection was cut\.$/);
});

it.each(["ECONNREFUSED", "ETIMEDOUT", "EHOSTUNREACH", "ENOTFOUND"])("%s is no question of TLS", (code) => {
  const { message } = WORDS.failed(Object.assign(new Error("x"), { code }), "http://n1:7401", false);
  expect(message).not.toMatch(/https|certificate/);
});

it.each([
  ["https://n1:7401", "/v1/tc/leader", "https://n1:7401/v1/tc/leader"],
  ["https://n1:7401/", "/v1/x?a=b?c&d=%2F", "https://n1:7401/v1/x?a=b?c&d=%2F"],
  ["https://n1/tenure/", "/v1/x", "https://n1/tenure/v1/x"],
  ["https://n1/tenure?key=1#part", "/v1/x", "https://n1/tenure/v1/x"],
  ["https://n1//evil.example/", "/v1/x", "https://n1//evil.example/v1/x"],
  ["https://n1//evil.example:81/", "/v1/x?a", "https://n1//evil.example:81/v1/x?a"],
  ["https://n1/\\\\evil.example", "//also/v1", "https://n1///evil.example//also/v1"],
])("trap 64: what is asked below %s stays at its host", (base, path, expected) => {
  const url = urlBelow(new URL(base), path);
  expect([url.href, url.host]).toEqual([expected, new URL(base).host]);
});

const KEPT = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

it("a connection that nobody uses for longer than asked for is closed, and not one that waits for its answer", async () => {
  const open = new Set<Socket>();
  const answers: (() => void)[] = [];
  await using server = await stage(
    (socket) => {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
      socket.on("data", () => answers.push(() => socket.write(KEPT)));
    },
    { idleMs: 100 },
  );
  const asked = server.ask();
  await expect.poll(() => answers).toHaveLength(1);
  // Longer than a connection may be idle: this one is not.
  const answered = new Promise((resolve) => setTimeout(resolve, 300)).then(() => answers[0]!());
  expect(await asked).toBe("ok");
  await answered;
  await expect.poll(() => open.size).toBe(0);
});
